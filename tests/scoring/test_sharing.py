from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalspec.artifacts.protocol import BatchRule
from evalspec.artifacts.study import LetterScoring, OptionScoring
from evalspec.artifacts.work import Answer, EncodedQuestion, work_of
from evalspec.scoring.batching import plan_questions, plan_texts
from evalspec.scoring.sharing import BY_KERNEL, ROW_BY_ROW, SEPARATE, Abilities, Group, Sharing, lay_out, share
from evalspec.scoring.tokens import encode_work

IDS = st.lists(st.integers(1, 5), min_size=1, max_size=6)


@st.composite
def encoded(draw: st.DrawFn) -> EncodedQuestion:
    before = tuple(draw(IDS))
    rows: dict[tuple[int, ...], int] = {}
    answers = []
    for ending in draw(st.lists(IDS, min_size=1, max_size=4)):
        row = rows.setdefault(before + tuple(ending[:-1]), len(rows))
        answers.append(Answer(row, len(before) - 1, tuple(ending)))
    return EncodedQuestion(tuple(rows), tuple(answers))


def seen_by(layout: Any, row: int, column: int) -> list[int]:
    """The ids that the id at `column` can see, itself included."""
    branches = layout.branches[row]
    return [int(layout.ids[row, other]) for other in range(column + 1) if branches[other] in (0, branches[column])]


@given(st.lists(encoded(), min_size=1, max_size=4))
@settings(max_examples=200)
def test_in_a_tree_every_predicted_id_follows_the_same_ids_as_in_its_own_row(batch: list[EncodedQuestion]) -> None:
    trees = lay_out(batch, Sharing(branches=True))
    place = 0
    for number, question in enumerate(batch):
        for answer in question.answers:
            for step, target in enumerate(answer.ids):
                row, column = np.argwhere(trees.kept)[trees.mark[place]].tolist()
                assert (row, int(trees.targets[place])) == (number, target)
                assert seen_by(trees, number, column) == list(question.rows[answer.row][: answer.start + step + 1])
                assert int(trees.positions[number, column]) == answer.start + step
                place += 1


@given(st.lists(encoded(), min_size=1, max_size=4))
def test_a_tree_holds_no_more_ids_than_the_rows_do(batch: list[EncodedQuestion]) -> None:
    for question in batch:
        assert Sharing(branches=True).shape(question).tokens <= SEPARATE.shape(question).tokens


@given(st.lists(encoded(), min_size=2, max_size=6), st.integers(1, 4))
def test_every_question_is_in_one_group_and_begins_with_the_prefix_of_its_group(batch: list[EncodedQuestion], shortest: int) -> None:
    groups = share(batch, Abilities(cache=True), BatchRule(shortest_prefix=shortest))
    assert sorted(number for group in groups for number in group.questions) == list(range(len(batch)))
    for group in groups:
        prefix = group.sharing.prefix
        assert len(prefix) == 0 or len(prefix) >= shortest
        for question in (batch[number] for number in group.questions):
            assert all(row[: len(prefix)] == prefix for row in question.rows)
            assert all(answer.start >= len(prefix) for answer in question.answers)


def test_prompts_with_the_same_examples_form_a_group() -> None:
    first, second = ((1, 2, 3), (4, 5, 6))
    texts = [(*first, 7), (*second, 7), (*first, 8, 9), (*second, 9, 9), (5, 5, 5, 5)]
    questions = [EncodedQuestion((row,), (Answer(0, len(row) - 1, (1,)),)) for row in texts]
    groups = share(questions, Abilities(cache=True), BatchRule(shortest_prefix=3))
    assert groups == (Group((0, 2), Sharing(first)), Group((1, 3), Sharing(second)), Group((4,), SEPARATE))


def test_nothing_is_shared_where_a_row_is_longer_than_the_window_or_the_rule_forbids_it() -> None:
    question = EncodedQuestion(((1, 2, 3), (1, 2, 4)), (Answer(0, 1, (3, 5)), Answer(1, 1, (4, 5))))
    able = Abilities(branches=True, cache=True, window=3)
    rule = BatchRule(shortest_prefix=1)
    assert share([question, question], able, rule) == (Group((0, 1), Sharing((1,), branches=True)),)
    assert share([question, question], Abilities(branches=True, cache=True, window=2), rule) == (Group((0, 1), SEPARATE),)
    assert share([question, question], able, BatchRule(shortest_prefix=1, branches=False)) == (Group((0, 1), Sharing((1,))),)
    assert share([question], able, rule) == (Group((0,), Sharing(branches=True)),)


PACKED = Sharing(packing=True)
QUESTION = EncodedQuestion(((1, 2, 3),), (Answer(0, 2, (3,)),))
LONGER = EncodedQuestion(((1, 2, 3, 4), (1, 2, 5)), (Answer(0, 1, (3, 4, 5)), Answer(1, 1, (5, 6))))


@pytest.mark.parametrize(
    ("abilities", "rule", "expected"),
    [
        (Abilities(packing=BY_KERNEL), {}, (Group((0, 1), PACKED),)),
        (Abilities(packing=BY_KERNEL), {"packing": False}, (Group((0, 1), SEPARATE),)),
        (Abilities(), {}, (Group((0, 1), SEPARATE),)),
        (Abilities(packing=BY_KERNEL, longest_packed=4), {}, (Group((0, 1), PACKED),)),
        (Abilities(packing=BY_KERNEL, longest_packed=3), {}, (Group((0, 1), SEPARATE),)),
        (Abilities(packing=BY_KERNEL, branches=True), {}, (Group((0, 1), Sharing(branches=True)),)),
        (Abilities(packing=ROW_BY_ROW, branches=True), {}, (Group((0, 1), Sharing(branches=True, packing=True)),)),
        (Abilities(packing=ROW_BY_ROW, branches=True), {"branches": False}, (Group((0, 1), PACKED),)),
        (Abilities(packing=BY_KERNEL, branches=True, window=3), {}, (Group((0, 1), PACKED),)),
        (Abilities(packing=BY_KERNEL, cache=True), {"shortest_prefix": 1}, (Group((0, 1), Sharing((1,))),)),
        (Abilities(packing=BY_KERNEL, cache=True), {"shortest_prefix": 3}, (Group((0, 1), PACKED),)),
    ],
)
def test_rows_that_share_nothing_are_laid_end_to_end(abilities: Abilities, rule: dict[str, Any], expected: tuple[Group, ...]) -> None:
    assert share([QUESTION, LONGER], abilities, BatchRule(**rule)) == expected


def of_length(*lengths: int) -> list[EncodedQuestion]:
    return [EncodedQuestion((tuple(range(1, length + 1)),), (Answer(0, length - 1, (3,)),)) for length in lengths]


def test_rows_with_which_positions_stretch_share_nothing_with_others_and_come_first() -> None:
    able = Abilities(cache=True, packing=BY_KERNEL, stretched_from=10)
    groups = share(of_length(9, 11, 10, 30), able, BatchRule(shortest_prefix=4))
    assert groups == (Group((1, 3), SEPARATE), Group((0, 2), Sharing(tuple(range(1, 9)))))
    assert share(of_length(9, 11, 10, 30), replace(able, cache=False), BatchRule()) == (Group((1, 3), SEPARATE), Group((0, 2), PACKED))
    assert share(of_length(9, 10), replace(able, stretched_from=None), BatchRule()) == share(of_length(9, 10), able, BatchRule())


@pytest.mark.parametrize("window", [None, 12])
def test_a_text_with_which_positions_may_stretch_is_written_alone(window: int | None) -> None:
    plan = plan_texts(of_length(2, 3, 9, 9, 11), Abilities(gaps=True, window=window, stretched_from=10), BatchRule(), max_tokens=4)
    assert [batch.questions for batch in plan] == [(2,), (3,), (4,), (0, 1)]


def test_rows_to_which_text_is_written_are_padded() -> None:
    plan = plan_texts([QUESTION, QUESTION], Abilities(packing=BY_KERNEL, gaps=True), BatchRule(), max_tokens=8)
    assert {batch.sharing for batch in plan} == {SEPARATE}


@given(st.lists(encoded(), min_size=1, max_size=4))
def test_end_to_end_every_predicted_id_follows_the_ids_of_its_own_row_and_nothing_is_padded(batch: list[EncodedQuestion]) -> None:
    layout = lay_out(batch, PACKED)
    assert layout.positions is not None
    assert layout.ids.shape == layout.positions.shape == (1, sum(layout.lengths))
    assert list(layout.lengths) == [len(row) for question in batch for row in question.rows]
    columns, place, rows_before = np.flatnonzero(layout.kept[0]), 0, 0
    for question in batch:
        for answer in question.answers:
            begins = sum(layout.lengths[: rows_before + answer.row])
            for step, target in enumerate(answer.ids):
                column = int(columns[layout.mark[place]])
                assert column == begins + answer.start + step
                assert layout.ids[0, begins : column + 1].tolist() == list(question.rows[answer.row][: answer.start + step + 1])
                assert layout.positions[0, begins : column + 1].tolist() == list(range(answer.start + step + 1))
                assert int(layout.targets[place]) == target
                place += 1
        rows_before += len(question.rows)
    assert place == len(layout.targets)
    assert PACKED.computed([PACKED.shape(question) for question in batch]) == layout.ids.size


ARCHITECTURES = {
    "llama": ("LlamaConfig", {}),
    "qwen2": ("Qwen2Config", {}),
    "gemma3": ("Gemma3TextConfig", {"head_dim": 16, "sliding_window": 512}),
    "gemma2": ("Gemma2Config", {"head_dim": 16, "final_logit_softcapping": 3.0}),
    "gpt2": ("GPT2Config", {"n_embd": 32, "n_layer": 2, "n_head": 2}),
    "bloom": ("BloomConfig", {"n_layer": 2, "n_head": 2}),
    "mamba": ("MambaConfig", {"state_size": 4}),
}
SHARES = {"bloom": (False, False), "mamba": (False, False)}
"""Architectures that cannot share: (branches, cache). The order in the row alone says Bloom where an id stands, Mamba keeps a running state."""


@pytest.fixture(scope="module", params=ARCHITECTURES)
def scorer(request: pytest.FixtureRequest, llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A random float32 model with the tokenizer of the llama."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from evalspec.scoring import causal_lm

    name, extra = ARCHITECTURES[request.param]
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1}
    tokenizer = transformers.AutoTokenizer.from_pretrained(llama)
    config = getattr(transformers, name)(**({"vocab_size": len(tokenizer), "initializer_range": 0.3} | shape | extra))
    torch.manual_seed(1)
    folder = tmp_path_factory.mktemp(request.param)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    loaded = causal_lm.load(folder, model=request.param, precision="float32")
    assert (loaded.abilities.branches, loaded.abilities.cache) == SHARES.get(request.param, (True, True))
    return loaded


@pytest.mark.parametrize("shots", [False, True], ids=["no common beginning", "common beginning"])
@pytest.mark.parametrize("scoring", [LetterScoring(method="letter"), OptionScoring(method="option")], ids=["letter", "option"])
def test_sharing_changes_no_log_probability(make: SimpleNamespace, scorer: Any, scoring: Any, *, shots: bool) -> None:
    questions = make.questions(24)
    asked = work_of(make.benchmark("b", questions, scoring), questions)
    if shots:
        longer = tuple(one.model_copy(update={"prompt": "red green blue stone river\n\n" * 6 + one.prompt}) for one in asked.questions)
        asked = asked.model_copy(update={"questions": longer})
    texts = encode_work(asked, scorer.vocabulary)
    plan = plan_questions(texts.questions, scorer.abilities, BatchRule(token_budget=900, shortest_prefix=8))
    assert any(batch.sharing.prefix for batch in plan) == (shots and scorer.abilities.cache)
    assert any(batch.sharing.branches for batch in plan) == (scoring.method == "option" and scorer.abilities.branches)
    for batch in plan:
        together = scorer.logprobs([texts.questions[place] for place in batch.questions], scorer.reading(batch.sharing))
        for place, values in zip(batch.questions, together, strict=True):
            # Float32 sums of up to a dozen terms of size ten, in another order.
            np.testing.assert_allclose(values, scorer.logprobs([texts.questions[place]])[0], atol=2e-4)


def test_a_model_that_looks_at_other_branches_is_found_out(scorer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from evalspec.scoring import abilities

    if not scorer.abilities.branches:
        pytest.skip("this architecture reads no branches")
    whole = type(scorer.model).forward

    def without_mask(self: Any, *given: Any, attention_mask: Any = None, position_ids: Any = None, **more: Any) -> Any:
        del attention_mask
        return whole(self, *given, position_ids=position_ids, **more)

    monkeypatch.setattr(type(scorer.model), "forward", without_mask)
    assert not abilities.learn_abilities(scorer.model, None).branches
