from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalspec.artifacts.base import canonical_json
from evalspec.artifacts.protocol import BatchRule
from evalspec.artifacts.study import SampledScoring
from evalspec.artifacts.work import Answer, AskedQuestion, BenchmarkWork, EncodedQuestion
from evalspec.errors import ScoringError
from evalspec.scoring.batching import GENERATED_PER_READ, plan_texts
from evalspec.scoring.draws import uniforms
from evalspec.scoring.sharing import Abilities
from evalspec.scoring.tokens import encode_work

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from evalspec.scoring.causal_lm import CausalLM, load  # noqa: E402 - they need torch
from evalspec.scoring.generation import NotFiniteError, choose, texts_of  # noqa: E402 - as above

WEIGHTS = "a" * 64
SIZES = {"llama": {}, "gpt2": {}, "gemma2": {"sliding_window": 64, "layer_types": ["sliding_attention", "full_attention"]}}


def work_of(make: SimpleNamespace, count: int = 12, **scoring: Any) -> BenchmarkWork:
    """Return questions of varied length to write texts for."""
    asked = tuple(
        AskedQuestion(name=one.id, sha256=one.digest(), prompt=f"{one.stem}\nAnswer:", answers=one.choices) for one in make.questions(count)
    )
    return BenchmarkWork(benchmark="b", scoring=SampledScoring(method="sampled", **{"max_tokens": 20, **scoring}), prompt="", questions=asked, seed=3)


def written(lm: CausalLM, work: BenchmarkWork, *, budget: int = 400) -> list[Any]:
    """Return the texts of a work, in batches as they are planned."""
    encoded = encode_work(work, lm.vocabulary).questions
    plan = plan_texts(encoded, lm.abilities, BatchRule(token_budget=budget, overhead_tokens=16, shortest_prefix=4), max_tokens=work.most_written)
    found: dict[int, Any] = {}
    for batch in plan:
        items = [(work.questions[place], encoded[place]) for place in batch.questions]
        found |= dict(zip(batch.questions, texts_of(lm, items, work=work, weights=WEIGHTS, reading=lm.reading(batch.sharing)), strict=True))
    return [found[place] for place in range(len(encoded))]


def alone(lm: CausalLM, work: BenchmarkWork) -> list[Any]:
    """Return the texts of a work, each written by itself."""
    encoded = encode_work(work, lm.vocabulary).questions
    return [texts_of(lm, [item], work=work, weights=WEIGHTS)[0] for item in zip(work.questions, encoded, strict=True)]


@pytest.fixture(scope="module", params=sorted(SIZES))
def lm(request: pytest.FixtureRequest, make: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory) -> CausalLM:
    folder = make.checkpoint(tmp_path_factory.mktemp("lm") / request.param, architecture=request.param, bos=True, **SIZES[request.param])
    return load(folder, model=request.param, precision="float32")


@pytest.mark.parametrize("temperature", [0.0, 0.7, 2.0])
def test_a_text_does_not_depend_on_what_is_written_beside_it(make: SimpleNamespace, lm: CausalLM, temperature: float) -> None:
    work = work_of(make, temperature=temperature)
    together = written(lm, work)
    assert together == alone(lm, work)
    assert len({one.tokens for one in together}) > 1 or all(one.ended == "limit" for one in together)
    backwards = work.model_copy(update={"questions": work.questions[::-1]})
    assert written(lm, backwards)[::-1] == together


@pytest.mark.parametrize(
    "abilities", [Abilities(), Abilities(cache=True), Abilities(cache=True, window=30, gaps=True)], ids=["none", "cache", "window"]
)
def test_a_model_that_cannot_share_or_skip_gaps_writes_the_same(make: SimpleNamespace, lm: CausalLM, abilities: Abilities) -> None:
    work = work_of(make, 8, temperature=1.0, max_tokens=8)
    assert written(replace(lm, abilities=abilities), work) == written(lm, work)


def test_greedy_texts_are_those_of_the_library(make: SimpleNamespace, lm: CausalLM) -> None:
    work = work_of(make, 6)
    expected = []
    for question in encode_work(work, lm.vocabulary).questions:
        ids = torch.tensor([question.rows[0]])
        out = lm.model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=20, do_sample=False, pad_token_id=0)[0, ids.shape[1] :]
        assert lm.vocabulary.decode is not None
        expected.append(lm.vocabulary.decode([token for token in out.tolist() if token not in lm.vocabulary.ends]))
    assert [one.text for one in written(lm, work)] == expected


def test_another_seed_repeat_question_or_weights_give_other_texts_and_the_same_give_the_same(make: SimpleNamespace, lm: CausalLM) -> None:
    work = work_of(make, 4, temperature=1.5)
    again = work.model_copy(update={"questions": tuple(one.model_copy(update={"repeat": 1}) for one in work.questions)})
    assert written(lm, work) == written(lm, work)
    others = [written(lm, one) for one in (again, work.model_copy(update={"seed": 4}))]
    assert all(one.text != other.text for texts in others for one, other in zip(written(lm, work), texts, strict=True))


def test_more_tokens_lengthen_a_text_and_change_nothing_before(make: SimpleNamespace, lm: CausalLM) -> None:
    short, long = (alone(lm, work_of(make, 4, temperature=1.0, max_tokens=tokens)) for tokens in (5, 15))
    assert lm.vocabulary.decode is not None
    assert all(other.text.startswith(one.text.rstrip("\ufffd")) for one, other in zip(short, long, strict=True))
    assert all(one.tokens <= 5 for one in short)


def test_a_stop_text_ends_a_text_and_does_not_belong_to_it(make: SimpleNamespace, lm: CausalLM) -> None:
    work = work_of(make, 6, temperature=1.0)
    free = written(lm, work)
    stops = tuple({one.text[3:6] for one in free if len(one.text) > 6})[:4]
    assert stops
    for before, after in zip(free, written(lm, work_of(make, 6, temperature=1.0, stop=stops)), strict=True):
        places = [place for stop in stops if (place := before.text.find(stop)) >= 0]
        assert after.ended == ("stop" if places else before.ended)
        assert after.text == (before.text[: min(places)] if places else before.text)
        assert after.tokens <= before.tokens


def test_a_text_ends_with_the_ends_that_the_model_and_its_tokenizer_name(make: SimpleNamespace, llama: Path) -> None:
    lm = load(llama, model="m", precision="float32")
    assert lm.vocabulary.ends == (2,)
    every = tuple(range(lm.model.config.vocab_size))
    ended = written(replace(lm, vocabulary=replace(lm.vocabulary, ends=every)), work_of(make, 3, temperature=1.0))
    assert [(one.text, one.ended, one.tokens) for one in ended] == [("", "end", 1)] * 3


def test_a_prompt_that_leaves_no_room_for_its_answer_is_refused_with_its_name(make: SimpleNamespace, llama: Path) -> None:
    lm = load(llama, model="m", precision="float32")
    longest = max(question.longest for question in encode_work(work_of(make, 3), lm.vocabulary).questions)
    encode_work(work_of(make, 3, max_tokens=256 - longest), lm.vocabulary)
    with pytest.raises(
        ScoringError, match=rf"question 'q00\d' of benchmark 'b' has {longest} tokens, and its answer up to {257 - longest}"
    ) as caught:
        encode_work(work_of(make, 3, max_tokens=257 - longest), lm.vocabulary)
    assert "max_tokens" in str(caught.value.diagnostics[0].hint)


def test_no_finite_probability_is_an_error_that_names_the_question(make: SimpleNamespace, llama: Path) -> None:
    lm = load(llama, model="m", precision="float32")
    with torch.no_grad():
        lm.model.model.norm.weight[0] = float("nan")
    with pytest.raises(ScoringError, match="no finite probability at question 'q00"):
        written(lm, work_of(make, 3, temperature=1.0))


def test_numbers_belong_to_seed_weights_question_and_repeat() -> None:
    key = canonical_json(["sampled", 5, WEIGHTS, "b" * 64, 2])
    first = int.from_bytes(hashlib.shake_256(key).digest(8), "little") >> 11
    numbers = uniforms(seed=5, weights=WEIGHTS, question="b" * 64, repeat=2, count=4000)
    assert numbers[0] == first / 2**53
    np.testing.assert_array_equal(uniforms(seed=5, weights=WEIGHTS, question="b" * 64, repeat=2, count=10), numbers[:10])
    assert numbers.min() >= 0
    assert numbers.max() < 1
    shares = np.histogram(numbers, bins=10, range=(0, 1))[0] / 4000
    assert np.abs(shares - 0.1).max() < 5 * np.sqrt(0.09 / 4000)  # five standard errors
    assert not np.array_equal(numbers, uniforms(seed=5, weights=WEIGHTS, question="b" * 64, repeat=3, count=4000))


@given(st.integers(1, 3000), st.floats(0.05, 2.0), st.integers(0, 2**32 - 1))
def test_a_token_is_the_one_at_which_the_summed_probabilities_pass_the_number(vocabulary: int, temperature: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    logits, numbers = rng.normal(0, 3, (3, vocabulary)).astype(np.float32), rng.random(3)
    probabilities = np.exp((logits.astype(np.float64) - logits.max(axis=1, keepdims=True)) / temperature)
    running = np.cumsum(probabilities / probabilities.sum(axis=1, keepdims=True), axis=1)
    for token, passed, number in zip(choose(torch.from_numpy(logits), numbers, temperature, range(3)), running, numbers, strict=True):
        before = passed[token - 1] if token else 0.0
        assert before - 1e-12 <= number <= passed[token] + 1e-12  # sums in another order differ in the last bits


def test_the_largest_number_takes_a_token_that_can_be_and_ties_at_temperature_0_the_first() -> None:
    masked = torch.tensor([[0.0, -torch.inf, 0.0, -torch.inf]])
    assert choose(masked, np.array([np.nextafter(1.0, 0.0)]), 1.0, [0]) == [2]
    assert choose(masked, np.array([0.0]), 1.0, [0]) == [0]
    assert choose(masked, np.array([0.5]), 1.0, [0]) == [2]
    assert choose(torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 1.0]]), np.zeros(2), 0.0, [0, 1]) == [1, 0]
    with pytest.raises(NotFiniteError):
        choose(torch.tensor([[0.0, torch.nan]]), np.zeros(1), 1.0, [0])


@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=60),
    st.integers(1, 100),
    st.sampled_from([Abilities(), Abilities(cache=True), Abilities(cache=True, gaps=True), Abilities(cache=True, window=50, gaps=True)]),
)
def test_every_text_is_in_one_batch_within_the_budget_and_without_padding_where_gaps_would_harm(
    lengths: list[int], max_tokens: int, abilities: Abilities
) -> None:
    questions = [EncodedQuestion((tuple(range(100, 100 + length)),), (Answer(0, length - 1, ()),)) for length in lengths]
    plan = plan_texts(questions, abilities, BatchRule(token_budget=200, shortest_prefix=8), max_tokens=max_tokens)
    assert sorted(place for batch in plan for place in batch.questions) == list(range(len(lengths)))
    for batch in plan:
        longest = max(lengths[place] for place in batch.questions)
        assert len(batch.questions) == 1 or len(batch.questions) * (longest + max_tokens / GENERATED_PER_READ) <= 200
        small = abilities.window is not None and max(lengths) + max_tokens > abilities.window
        if abilities.cache and (small or not abilities.gaps):
            assert len({lengths[place] for place in batch.questions}) == 1
