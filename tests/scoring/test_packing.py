"""Rows that are laid end to end are answered as if each stood alone; a model that mixes them is found out before it answers anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from evalspec.artifacts.protocol import BatchRule
from evalspec.artifacts.study import LetterScoring, OptionScoring
from evalspec.artifacts.work import BenchmarkWork, work_of
from evalspec.scoring.batching import plan_questions
from evalspec.scoring.sharing import BY_KERNEL, ROW_BY_ROW, Abilities, Sharing
from evalspec.scoring.tokens import EncodedWork, encode_work

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
causal_lm = pytest.importorskip("evalspec.scoring.causal_lm")
packing = pytest.importorskip("evalspec.scoring.packing")

ROUNDING = 1e-5
"""Float32 sums in another order, relative to log-probabilities of size one to ten."""

LETTERS, TEXTS = LetterScoring(method="letter"), OptionScoring(method="option", distribution=8)
PACKED = Sharing(packing=True)
BUDGET = 900


def attended(
    lengths: tuple[int, ...], *, heads: int = 4, dtype: Any = torch.float32, device: str = "cpu", **told: Any
) -> tuple[Any, tuple[Any, ...]]:
    """What the attention gives for random queries, keys and values of rows of these lengths, and what it was given."""
    torch.manual_seed(1)
    states = [torch.randn(1, count, sum(lengths), 16, device=device, dtype=dtype) for count in (heads, 2, 2)]
    told = {**packing.boundaries(lengths, torch.device(device)), "scaling": 0.3, **told}
    return packing.attend(torch.nn.Module(), *states, None, **told)[0], tuple(states)


def by_hand(states: tuple[Any, ...], lengths: tuple[int, ...], window: int | None) -> Any:
    """Softmax of the products, id by id, over what it may see."""
    query, key, value = (each[0].double() for each in states)
    rows, start = torch.zeros(sum(lengths), *query.shape[::2], dtype=torch.float64), 0
    for length in lengths:
        for place in range(length):
            first = start if window is None else max(start, start + place - window + 1)
            for head in range(query.shape[0]):
                group = head * key.shape[0] // query.shape[0]
                weights = torch.softmax(0.3 * key[group, first : start + place + 1] @ query[head, start + place], dim=0)
                rows[start + place, head] = weights @ value[group, first : start + place + 1]
        start += length
    return rows[None]


@pytest.mark.parametrize("window", [None, 1, 3, 5, 6, 100])
@pytest.mark.parametrize("heads", [2, 4])
def test_an_id_sees_its_own_row_up_to_itself_and_no_further_than_the_window(window: int | None, heads: int) -> None:
    lengths = (5, 1, 6)
    found, states = attended(lengths, heads=heads, sliding_window=window)
    torch.testing.assert_close(found.double(), by_hand(states, lengths, window), atol=1e-6, rtol=1e-6)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="the kernel needs an accelerator")
@pytest.mark.parametrize("window", [None, 1, 3, 100])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_kernel_gives_what_row_by_row_gives(window: int | None, dtype: Any) -> None:
    lengths = (5, 1, 130)
    found, states = attended(lengths, dtype=dtype, device="cuda", sliding_window=window)
    wide = tuple(each.cpu().float() for each in states)
    torch.testing.assert_close(found.cpu().double(), by_hand(wide, lengths, window), atol=2e-2, rtol=2e-2)


@pytest.mark.parametrize(
    "told",
    [{"softcap": 50.0}, {"s_aux": torch.zeros(4)}, {"position_bias": torch.zeros(1)}, {"dropout": 0.1}, {"is_causal": False}, {"novel": 1},
     {"cu_seq_lens_q": None}, {"max_length_q": None}],
)  # fmt: skip
def test_whatever_else_a_model_asks_of_its_attention_is_refused(told: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="rows"):
        attended((3, 2), **told)


def test_a_mask_is_refused() -> None:
    _, states = attended((3, 2))
    with pytest.raises(ValueError, match="a mask"):
        packing.attend(torch.nn.Module(), *states, torch.zeros(1, 1, 5, 5), **packing.boundaries((3, 2), torch.device("cpu")))


ARCHITECTURES: dict[str, tuple[str, dict[str, Any], bool]] = {
    "llama": ("LlamaConfig", {}, True),
    "qwen2": ("Qwen2Config", {}, True),
    "qwen3": ("Qwen3Config", {"head_dim": 16}, True),
    "gpt2, learned positions": ("GPT2Config", {"n_embd": 32, "n_layer": 2, "n_head": 2}, True),
    "gemma3, narrow window": (
        "Gemma3TextConfig", {"head_dim": 16, "sliding_window": 16, "layer_types": ["full_attention", "sliding_attention"]}, True
    ),
    "mistral, narrow window": ("MistralConfig", {"sliding_window": 12}, True),
    "gemma2 without caps": ("Gemma2Config", {"head_dim": 16, "attn_logit_softcapping": None, "sliding_window": 12}, True),
    "gemma2, soft-capped": ("Gemma2Config", {"head_dim": 16}, False),
    "gpt_oss, sinks": ("GptOssConfig", {"head_dim": 16, "num_local_experts": 2, "num_experts_per_tok": 1}, False),
    "falcon, attention of its own": ("FalconConfig", {}, False),
    "bloom, places by order": ("BloomConfig", {"n_layer": 2, "n_head": 2}, False),
    "llama4, chunks": ("Llama4TextConfig", {"head_dim": 16, "num_local_experts": 2, "intermediate_size_mlp": 64}, False),
}  # fmt: skip
ABLE = [name for name, (*_, able) in ARCHITECTURES.items() if able]


@pytest.fixture(scope="module")
def saved(llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Random float32 models with the tokenizer of the llama."""
    tokenizer, folders = transformers.AutoTokenizer.from_pretrained(llama), dict[str, Path]()

    def save(architecture: str) -> Path:
        if architecture not in folders:
            folder = folders[architecture] = tmp_path_factory.mktemp("model")
            name, extra, _ = ARCHITECTURES[architecture]
            shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1}
            special = {"vocab_size": len(tokenizer), "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
            torch.manual_seed(1)
            model = transformers.AutoModelForCausalLM.from_config(
                getattr(transformers, name)(**special, **{"initializer_range": 0.3} | shape | extra)
            )
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
        return folders[architecture]

    return save


@pytest.fixture(scope="module", autouse=True)
def settled() -> None:
    """As a worker settles it: on several threads last bits may move from run to run."""
    from evalspec.scoring.arithmetic import settle_arithmetic

    settle_arithmetic(1)


def loaded(folder: Path) -> Any:
    return causal_lm.load(folder, model="m", precision="float32", packing=True)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_whether_a_model_keeps_rows_apart_is_found_out(saved: Callable[[str], Path], architecture: str) -> None:
    scorer = loaded(saved(architecture))
    assert (scorer.abilities.packing == ROW_BY_ROW) == ARCHITECTURES[architecture][2]
    assert scorer.attention in {"sdpa", "eager"}, "what was tried is not left behind"


def test_rows_are_laid_end_to_end_on_a_processor_and_where_there_is_a_kernel_unless_the_run_forbids_it(saved: Callable[[str], Path]) -> None:
    assert causal_lm.load(saved("llama"), model="m", precision="float32").abilities.packing == ROW_BY_ROW
    assert causal_lm.load(saved("llama"), model="m", precision="float32", packing=False).abilities.packing is None
    where = [(torch.device(device), dtype) for device in ("cpu", "cuda") for dtype in (torch.float32, torch.bfloat16)]
    assert [packing.worth_while(*one) for one in where] == [True, True, False, True]
    assert [packing.packing_for(*one) for one in where] == [ROW_BY_ROW, ROW_BY_ROW, ROW_BY_ROW, BY_KERNEL]


def encoded(make: SimpleNamespace, scorer: Any, scoring: Any) -> tuple[BenchmarkWork, EncodedWork]:
    questions = make.questions(24)
    work = work_of(make.benchmark("b", questions, scoring), questions)
    return work, encode_work(work, scorer.vocabulary)


@pytest.mark.parametrize("scoring", [LETTERS, TEXTS], ids=["letters", "texts"])
@pytest.mark.parametrize("architecture", ABLE)
def test_rows_end_to_end_are_answered_as_if_each_stood_alone(
    make: SimpleNamespace, saved: Callable[[str], Path], architecture: str, scoring: Any
) -> None:
    scorer = loaded(saved(architecture))
    _, texts = encoded(make, scorer, scoring)
    plan = plan_questions(texts.questions, Abilities(packing=BY_KERNEL), BatchRule(token_budget=BUDGET))
    assert {batch.sharing for batch in plan} == {PACKED}
    assert max(len(batch.questions) for batch in plan) > 3
    for batch in plan:
        together = scorer.answer([texts.questions[place] for place in batch.questions], causal_lm.Reading(PACKED), distribution=8)
        for place, found in zip(batch.questions, together, strict=True):
            (alone,) = scorer.answer([texts.questions[place]], distribution=8)
            np.testing.assert_allclose(found.logprobs, alone.logprobs, rtol=ROUNDING, atol=ROUNDING)
            assert np.argmax(found.logprobs) == np.argmax(alone.logprobs)
            if alone.distribution is not None:
                np.testing.assert_allclose(found.distribution.probabilities, alone.distribution.probabilities, atol=ROUNDING)
                assert found.distribution.tokens == alone.distribution.tokens


@pytest.mark.parametrize("architecture", ABLE)
def test_trees_end_to_end_are_answered_as_if_each_text_stood_alone(make: SimpleNamespace, saved: Callable[[str], Path], architecture: str) -> None:
    scorer = loaded(saved(architecture))
    _, texts = encoded(make, scorer, TEXTS)
    longest = max(question.longest for question in texts.questions)
    plan = plan_questions(texts.questions, replace(scorer.abilities, cache=False), BatchRule(token_budget=BUDGET))
    trees = scorer.abilities.window is None or longest <= scorer.abilities.window
    assert {batch.sharing for batch in plan} == {Sharing(branches=trees, packing=True)}
    for batch in plan:
        together = scorer.answer([texts.questions[place] for place in batch.questions], causal_lm.Reading(batch.sharing), distribution=8)
        for place, found in zip(batch.questions, together, strict=True):
            (alone,) = scorer.answer([texts.questions[place]], distribution=8)
            np.testing.assert_allclose(found.logprobs, alone.logprobs, rtol=ROUNDING, atol=ROUNDING)
            np.testing.assert_allclose(found.distribution.probabilities, alone.distribution.probabilities, atol=ROUNDING)


def test_a_model_that_lets_texts_of_a_question_see_each_other_is_found_out(saved: Callable[[str], Path], attending_by: Callable[[Any], None]) -> None:
    def without_masks(*states: Any, branch_masks: Any = None, **told: Any) -> Any:
        return packing.attend(*states, branch_masks=None if branch_masks is None else [None] * len(branch_masks), **told)

    attending_by(without_masks)
    assert loaded(saved("llama")).abilities.packing == replace(ROW_BY_ROW, branches=False)


@pytest.mark.parametrize("architecture", ABLE)
def test_another_row_moves_no_bit(make: SimpleNamespace, saved: Callable[[str], Path], architecture: str) -> None:
    scorer = loaded(saved(architecture))
    _, texts = encoded(make, scorer, LETTERS)
    batch = list(texts.questions[:5])
    before = scorer.logprobs(batch, causal_lm.Reading(PACKED))
    for place, question in enumerate(batch):
        changed = replace(question, rows=tuple(tuple(reversed(row)) for row in question.rows))
        after = scorer.logprobs([*batch[:place], changed, *batch[place + 1 :]], causal_lm.Reading(PACKED))
        assert [one == other for one, other in zip(after, before, strict=True)] == [number != place for number in range(5)]


@pytest.fixture
def attending_by() -> Iterator[Callable[[Any], None]]:
    """Put another attention in the place of ours."""
    yield lambda attention: transformers.AttentionInterface.register(packing.END_TO_END, attention)
    transformers.AttentionInterface.register(packing.END_TO_END, packing.attend)


@pytest.mark.parametrize("architecture", ABLE)
def test_a_model_whose_rows_see_each_other_is_found_out(saved: Callable[[str], Path], attending_by: Callable[[Any], None], architecture: str) -> None:
    attending_by(transformers.modeling_utils.ALL_ATTENTION_FUNCTIONS["sdpa"])
    assert loaded(saved(architecture)).abilities.packing is None


@pytest.mark.parametrize("architecture", ABLE)
def test_a_model_whose_rows_end_elsewhere_is_found_out(saved: Callable[[str], Path], attending_by: Callable[[Any], None], architecture: str) -> None:
    def shifted(*states: Any, cu_seq_lens_q: Any, **told: Any) -> Any:
        moved = cu_seq_lens_q.clone()
        moved[1] += 1
        return packing.attend(*states, cu_seq_lens_q=moved, **told)

    attending_by(shifted)
    assert loaded(saved(architecture)).abilities.packing is None


@pytest.mark.parametrize("off", [None, 1], ids=["no window", "a window that is one too wide"])
@pytest.mark.parametrize("architecture", [name for name in ABLE if "sliding_window" in ARCHITECTURES[name][1]])
def test_a_model_that_looks_further_than_its_window_is_found_out(
    saved: Callable[[str], Path], attending_by: Callable[[Any], None], architecture: str, off: int | None
) -> None:
    def wide(*states: Any, sliding_window: int | None = None, **told: Any) -> Any:
        return packing.attend(*states, sliding_window=None if sliding_window is None or off is None else sliding_window + off, **told)

    attending_by(wide)
    assert loaded(saved(architecture)).abilities.packing is None


def test_a_model_that_does_not_begin_to_count_anew_is_found_out(saved: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    whole = transformers.GPT2LMHeadModel.forward

    def without_positions(self: Any, *given: Any, position_ids: Any = None, **more: Any) -> Any:
        told = {} if "cu_seq_lens_q" in more else {"position_ids": position_ids}
        return whole(self, *given, **told, **more)

    monkeypatch.setattr(transformers.GPT2LMHeadModel, "forward", without_positions)
    assert loaded(saved("gpt2, learned positions")).abilities.packing is None


@pytest.mark.parametrize(
    ("settings", "longest", "stretched_from"),
    [
        ({"sliding_window": 8192}, 8192, None),
        ({"sliding_window": 64}, None, None),
        ({"rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4, "original_max_position_embeddings": 96}}, None, 96),
    ],
    ids=["a window too wide to be tried", "a window that was tried", "positions that stretch with the longest row"],
)
def test_rows_are_laid_end_to_end_up_to_the_length_for_which_it_was_found_out(
    settings: dict[str, Any], longest: int | None, stretched_from: int | None
) -> None:
    from evalspec.scoring.abilities import learn_abilities

    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1}
    config = transformers.MistralConfig(vocab_size=100, initializer_range=0.3, **shape, **({"sliding_window": None} | settings))
    torch.manual_seed(1)
    abilities = learn_abilities(transformers.AutoModelForCausalLM.from_config(config).eval(), ROW_BY_ROW)
    assert (abilities.packing, abilities.longest_packed, abilities.stretched_from) == (ROW_BY_ROW, longest, stretched_from)
