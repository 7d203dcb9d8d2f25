"""Whatever a model was found to be able to do, its answers are those of each question read alone; one that cannot share is scored all the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import wraps
from typing import Any

import numpy as np
import pytest

from evalspec.artifacts.protocol import BatchRule
from evalspec.artifacts.work import Answer, EncodedQuestion
from evalspec.errors import ScoringError
from evalspec.scoring.batching import plan_questions
from evalspec.scoring.sharing import ROW_BY_ROW, Sharing
from evalspec.scoring.tokens import Vocabulary

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
causal_lm = pytest.importorskip("evalspec.scoring.causal_lm")
abilities = pytest.importorskip("evalspec.scoring.abilities")

ROUNDING = 1e-5
"""Float32 sums in another order, relative to log-probabilities of size one to ten."""

WORDS = 100
SHAPE = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16}
STRETCHED = {
    "rope_type": "longrope",
    "rope_theta": 1e4,
    "short_factor": [1.0] * 8,
    "long_factor": [1.0 + place for place in range(8)],
    "original_max_position_embeddings": 48,
}
LLAMA4 = {**SHAPE, "num_local_experts": 2, "intermediate_size_mlp": 64, "layer_types": ["chunked_attention", "full_attention"]}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("LlamaConfig", SHAPE),
    "gpt_neo, a window by columns": (
        "GPTNeoConfig",
        {"hidden_size": 32, "num_heads": 2, "num_layers": 2, "attention_types": [[["global", "local"], 1]], "window_size": 16},
    ),
    "llama4, chunks shorter than what is tried": ("Llama4TextConfig", {**LLAMA4, "attention_chunk_size": 5}),
    "llama4, chunks": ("Llama4TextConfig", {**LLAMA4, "attention_chunk_size": 32}),
    "llama4, chunks that no row exceeds": ("Llama4TextConfig", {**LLAMA4, "attention_chunk_size": 96}),
    "phi3, positions that stretch": (
        "Phi3Config", {**SHAPE, "max_position_embeddings": 256, "original_max_position_embeddings": 48, "rope_parameters": STRETCHED}
    ),
    "mistral, a window of one": ("MistralConfig", {**SHAPE, "sliding_window": 1}),
    "mistral, a window as long as the longest row": ("MistralConfig", {**SHAPE, "sliding_window": 68}),
}  # fmt: skip
ENCODER = {name: size for name, size in SHAPE.items() if name not in {"num_key_value_heads", "head_dim"}}
ENCODERS = {
    "BertConfig": ENCODER,
    "ElectraConfig": {**ENCODER, "embedding_size": 32},
    "CamembertConfig": ENCODER,
    "RobertaConfig": {**ENCODER, "num_hidden_layers": 1},
}


def scorer_of(name: str, dtype: Any = torch.float32) -> Any:
    architecture, settings = MODELS[name]
    return scorer_by(architecture, {"initializer_range": 0.3, **settings}, dtype)


def scorer_by(architecture: str, settings: dict[str, Any], dtype: Any) -> Any:
    config = getattr(transformers, architecture)(**{"vocab_size": WORDS, "pad_token_id": 0, **settings})
    torch.manual_seed(1)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype).eval()
    return causal_lm.scorer_of(model, Vocabulary("m", lambda texts: [[] for _ in texts], (), None), packing=True)


@pytest.fixture(scope="module", autouse=True)
def settled() -> None:
    from evalspec.scoring.arithmetic import settle_arithmetic

    settle_arithmetic(1)


def questions(lengths: Sequence[int], *, common: int = 0) -> tuple[EncodedQuestion, ...]:
    """Prompts of random ids that begin alike, with answers of which some begin alike, some are part of another one, and one stands twice."""
    random = np.random.default_rng(1)
    start = tuple(random.integers(3, WORDS, common).tolist())
    asked = []
    for length in lengths:
        prompt = start + tuple(random.integers(3, WORDS, length).tolist())
        texts = [tuple(random.integers(3, WORDS, count).tolist()) for count in (1, 3, 8)]
        endings = [*texts, texts[2][:4], texts[1], (*texts[2], 5)]
        rows = list(dict.fromkeys(prompt + ending[:-1] for ending in endings))
        asked.append(EncodedQuestion(tuple(rows), tuple(Answer(rows.index(prompt + ending[:-1]), len(prompt) - 1, ending) for ending in endings)))
    return tuple(asked)


JOBS = {
    "prompts of every length": questions([1, 2, 60, 9, 9, 33, 1]),
    "one prompt of one id": questions([1]),
    "short prompts": questions([1, 3, 5]),
    "a common beginning": questions([1, 20, 9, 2], common=40),
}


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("without", [{}, {"cache": False}, {"packing": None}, {"packing": None, "cache": False}], ids=str)
def test_a_batch_is_answered_as_if_each_question_stood_alone(name: str, job: str, without: dict[str, Any]) -> None:
    scorer, asked = scorer_of(name), JOBS[job]
    alone = [scorer.logprobs([question])[0] for question in asked]
    for batch in plan_questions(asked, replace(scorer.abilities, **without), BatchRule(shortest_prefix=20, token_budget=1024)):
        together = scorer.logprobs([asked[place] for place in batch.questions], scorer.reading(batch.sharing))
        for place, found in zip(batch.questions, together, strict=True):
            np.testing.assert_allclose(found, alone[place], rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_model_that_is_off_by_more_than_rounding_is_found_out(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = transformers.LlamaForCausalLM.forward

    @wraps(whole)
    def shifted(self: Any, *given: Any, **more: Any) -> Any:
        found = whole(self, *given, **more)
        if more.get("attention_mask") is not None or more.get("past_key_values") is not None or more.get("cache") is not None:
            found.logits += 0.002 * torch.arange(WORDS) / WORDS
        return found

    assert scorer_of("llama", dtype).abilities.packing == ROW_BY_ROW
    monkeypatch.setattr(transformers.LlamaForCausalLM, "forward", shifted)
    found = scorer_of("llama", dtype).abilities
    assert (found.branches, found.cache) == (False, False)


@pytest.mark.parametrize("architecture", ENCODERS)
@pytest.mark.parametrize(("dtype", "spread"), [(torch.float32, 0.02), (torch.float32, 0.3), (torch.bfloat16, 0.3)], ids=str)
def test_a_model_that_sees_what_follows_is_refused_and_as_a_decoder_it_is_scored(architecture: str, dtype: Any, spread: float) -> None:
    settings = {**ENCODERS[architecture], "initializer_range": spread}
    with pytest.raises(ScoringError, match="model 'm' is no causal language model: ids that follow change the logits before them") as caught:
        scorer_by(architecture, settings, dtype)
    assert '"is_decoder": true' in str(caught.value.diagnostics[0].hint)
    scorer, asked = scorer_by(architecture, {**settings, "is_decoder": True}, dtype), questions([9, 2])
    alone = [scorer.logprobs([question])[0] for question in asked]
    rounding = ROUNDING if dtype == torch.float32 else 0.05
    np.testing.assert_allclose(scorer.logprobs(asked), alone, rtol=rounding, atol=rounding)


def test_one_short_forward_tells_whether_a_model_sees_what_follows() -> None:
    model, read = scorer_of("llama").model, list[int]()
    model.model.embed_tokens.register_forward_hook(lambda _module, given, _found: read.append(given[0].numel()))
    assert not abilities.sees_what_follows(model)
    assert sum(read) < 30


@pytest.mark.parametrize(("window", "most"), [(64, 1200), (1024, 12_000), (2047, 600), (4096, 600)])
def test_what_is_read_to_try_a_model_is_little(window: int, most: int) -> None:
    config = transformers.MistralConfig(**SHAPE, vocab_size=WORDS, initializer_range=0.3, sliding_window=window)
    torch.manual_seed(1)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    read: list[int] = []
    model.model.embed_tokens.register_forward_hook(lambda _module, given, _found: read.append(given[0].numel()))
    found = abilities.learn_abilities(model, ROW_BY_ROW)
    assert sum(read) < most
    assert (found.packing, found.longest_packed) == (ROW_BY_ROW, window if window > 1024 else None)


def test_a_common_beginning_is_read_without_the_logits_of_every_id() -> None:
    scorer, read = scorer_of("llama"), list[int]()
    scorer.model.get_output_embeddings().register_forward_hook(lambda _module, _given, found: read.append(found.shape[-2]))
    assert len(scorer.reading(Sharing(tuple(range(3, 43)))).layers) == 2
    assert read == [1]
