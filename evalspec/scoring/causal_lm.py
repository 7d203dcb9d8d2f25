"""What log-probabilities does a causal language model give to answers?  With `generation` and `packing`, all that computes with torch.

Rows are padded on the right: causality makes padding harmless. A mask is passed only where answers are branches of a row.
Rows end to end have no padding, and an attention that keeps them apart.
The model's own forward pass does head, scale and soft-cap, at the few positions that are needed; a linear head computes in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import torch
import transformers
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, AutoTokenizer

from evalspec.artifacts.base import Precision
from evalspec.artifacts.journal import TopTokens
from evalspec.artifacts.work import EncodedQuestion
from evalspec.errors import ScoringError
from evalspec.scoring.abilities import learn_abilities, sees_what_follows
from evalspec.scoring.arithmetic import Float32Head, describe, products
from evalspec.scoring.checkpoint import SAVE_AGAIN, chat_of, context_length, foreign_errors, read_config
from evalspec.scoring.forward_pass import Positions, cache_for, logits_at, position_style, read_into_cache, tree_mask
from evalspec.scoring.gguf_source import alone, is_gguf
from evalspec.scoring.packing import END_TO_END, attending, packing_for, told_of, worth_while
from evalspec.scoring.sharing import SEPARATE, Abilities, Layout, Sharing, lay_out
from evalspec.scoring.tokens import Vocabulary, learn_prefix

OLDEST_TRANSFORMERS = (5, 3)


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """How the rows of a job are read: what they share, and the keys and values of its prefix, layer by layer."""

    sharing: Sharing = SEPARATE
    layers: tuple[tuple[Tensor, Tensor], ...] = ()


@dataclass(frozen=True, slots=True)
class Answered:
    """What a model says about one question: the summed log-probability of each answer, in nats, and its answer distribution where asked for."""

    logprobs: tuple[float, ...]
    distribution: TopTokens | None = None


@dataclass(frozen=True, slots=True)
class CausalLM:
    """A loaded model with its vocabulary; `head` and `dtype` say in which arithmetic it computes."""

    vocabulary: Vocabulary
    model: Any  # a transformers model: the library has no usable static types
    head: str
    dtype: str
    positions: Positions
    abilities: Abilities

    @property
    def attention(self) -> str:
        """Which attention computes rows that are padded, or branches, by transformers' name."""
        return str(self.model.config.get_text_config(decoder=True)._attn_implementation)  # noqa: SLF001 - there is no public name

    @property
    def keeper(self) -> str:
        """What keeps rows apart that are laid end to end."""
        return packing_for(self.model.device, self.model.dtype).keeper

    def reading(self, sharing: Sharing) -> Reading:
        """Read the prefix that the rows of a job share, once."""
        with torch.inference_mode(), products(self.model, self.model.dtype):
            return Reading(sharing, tuple(read_into_cache(self.model, sharing.prefix)) if sharing.prefix else ())

    def logprobs(self, batch: Sequence[EncodedQuestion], reading: Reading | None = None) -> list[tuple[float, ...]]:
        """Return, per question, the sum of each answer's token log-probabilities in nats; not finite where the model's are not."""
        return [answered.logprobs for answered in self.answer(batch, reading)]

    def answer(self, batch: Sequence[EncodedQuestion], reading: Reading | None = None, *, distribution: int | None = None) -> list[Answered]:
        """Return the log-probabilities of every answer, and the `distribution` most probable tokens of each question's answer distribution."""
        reading = reading or Reading()
        layout = lay_out(batch, reading.sharing)
        with torch.inference_mode(), products(self.model, self.model.dtype):
            logits = self._logits(layout, reading)
            mark, targets = self._here(layout.mark), self._here(layout.targets)
            normalisers = torch.logsumexp(logits, dim=-1)
            values = (logits[mark, targets] - normalisers[mark]).double().cpu().numpy()
            tops = _top_tokens(logits - normalisers[:, None], batch, layout, distribution) if distribution else [None] * len(batch)
        sums = np.add.reduceat(values, layout.first).tolist()
        ends = np.cumsum([len(question.answers) for question in batch]).tolist()
        return [Answered(tuple(sums[end - len(question.answers) : end]), top) for question, end, top in zip(batch, ends, tops, strict=True)]

    def _logits(self, layout: Layout, reading: Reading) -> Tensor:
        """Return float32 logits (marks, vocabulary) at the places that the layout keeps, along the rows."""
        kept = self._here(layout.kept)
        given = {"input_ids": self._here(layout.ids), "use_cache": bool(reading.layers), **self._context(layout, reading)}
        with attending(self.model, END_TO_END) if layout.lengths else nullcontext():
            return self.logits_at(kept, given)

    def logits_at(self, kept: Tensor, given: dict[str, Any]) -> Tensor:  # Any: arguments of a transformers model
        """Return float32 logits (marks, vocabulary) where `kept` (R, T) marks the rows that the model is given, along them."""
        return logits_at(self.model, self.positions, kept, given)

    def _context(self, layout: Layout, reading: Reading) -> dict[str, Any]:  # Any: arguments of a transformers model
        """Return what the model is told beside the ids; nothing for rows that are whole and alone, which causality alone keeps right."""
        context: dict[str, Any] = {}
        before = len(reading.sharing.prefix)
        rows, width = layout.ids.shape
        if before:
            context |= cache_for(self.model, reading.layers, rows)
            context["position_ids"] = torch.arange(before, before + width, device=self.model.device).expand(rows, -1)
        if layout.lengths:
            context |= told_of(layout, self.model)
        elif layout.positions is not None and layout.branches is not None:
            context["position_ids"] = self._here(layout.positions)
            context["attention_mask"] = tree_mask(self._here(layout.branches), before, self.model.dtype)
        return context

    def _here(self, indices: NDArray[np.int64] | NDArray[np.bool_]) -> Tensor:
        return torch.from_numpy(indices).to(self.model.device)


def _top_tokens(logprobs: Tensor, batch: Sequence[EncodedQuestion], layout: Layout, kept: int) -> list[TopTokens | None]:
    """Return each question's answer distribution: its log-probabilities averaged along the reference answer, scaled to sum to 1 again.

    Reference: Uzunoglu, Li and Khashabi (2025), arXiv:2509.25671.
    """
    ends = np.append(layout.first[1:], len(layout.mark))
    tops: list[TopTokens | None] = []
    answer = 0
    for question in batch:
        if question.reference is None:
            tops.append(None)
        else:
            place = answer + question.reference
            marks = torch.from_numpy(layout.mark[layout.first[place] : ends[place]]).to(logprobs.device)
            mean = torch.softmax(logprobs[marks].mean(dim=0), dim=-1)
            best = torch.topk(mean, min(kept, mean.shape[0]))
            tops.append(TopTokens(tokens=tuple(best.indices.tolist()), probabilities=tuple(best.values.double().tolist())))
        answer += len(question.answers)
    return tops


def load(place: Path, *, model: str, precision: Precision, device: str = "cpu", packing: bool | None = None) -> CausalLM:
    """Load a checkpoint, a folder or a GGUF file, for scoring; raises ScoringError when it cannot be loaded whole and without foreign code.

    On the device `auto` its layers are spread over all accelerators. `packing` is as for `scorer_of`.
    """
    _refuse_old_transformers()
    config = {} if is_gguf(place) else read_config(place)
    transformers.utils.logging.disable_progress_bar()
    with foreign_errors(f"model '{model}' cannot be loaded from '{place.name}'"), _opened(place) as source:
        tokenizer = AutoTokenizer.from_pretrained(**source)
        loaded, report = AutoModelForCausalLM.from_pretrained(
            **source,
            use_safetensors=True,
            dtype="auto" if precision == "as_shipped" else getattr(torch, precision),
            output_loading_info=True,
            **({"device_map": "auto"} if device == "auto" else {}),
        )
        config = config or loaded.config.to_dict()
    wrong = sorted(map(str, [*report["missing_keys"], *report["mismatched_keys"]]))
    if wrong:
        raise ScoringError(
            f"model '{model}': the checkpoint '{place.name}' lacks the weight '{wrong[0]}'"
            + (f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""),
            hint="a missing weight would be filled with random numbers; take the complete checkpoint",
        )
    loaded.eval()
    if device != "auto":
        loaded.to(device)
    vocabulary = _vocabulary(tokenizer, model, config, _ends(loaded, tokenizer))
    with foreign_errors(f"model '{model}' from '{place.name}' cannot compute", hint="its config.json may be at fault"):
        return scorer_of(loaded, vocabulary, packing=packing)


def scorer_of(model: Any, vocabulary: Vocabulary, *, packing: bool | None = None) -> CausalLM:  # Any: a transformers model
    """Return a model that is in its place, with a head that computes in float32, and what it was found to be able to do.

    `packing` says whether it is tried if rows can be laid end to end; without a word, where that is worth while. Raises ScoringError for a model
    that is not causal.
    """
    head = _use_float32_head(model)
    where = model.device, model.dtype
    tried = worth_while(*where) if packing is None else packing
    with products(model, model.dtype):
        if sees_what_follows(model):
            raise _not_causal(vocabulary.model)
        abilities = learn_abilities(model, packing_for(*where) if tried else None)
    return CausalLM(vocabulary, model, head, describe(model, model.dtype), position_style(model), abilities)


def _not_causal(model: str) -> ScoringError:
    return ScoringError(
        f"model '{model}' is no causal language model: ids that follow change the logits before them, so that these predict no next token and depend "
        "on padding",
        hint="encoders such as BERT cannot be scored; where this model was trained to predict next tokens, its config.json has to say so, for BERT "
        'and its kin by "is_decoder": true',
    )


def _opened(place: Path) -> AbstractContextManager[dict[str, Any]]:  # Any: arguments of a foreign function
    """Return what transformers is told of a checkpoint."""
    if is_gguf(place):
        return alone(place)
    return nullcontext({"pretrained_model_name_or_path": place, "local_files_only": True, "trust_remote_code": False})


def _refuse_old_transformers() -> None:
    """Before 5.3 a nested configuration could run code of its own (CVE-2026-5241), and 4.x reads the rope settings of 5.x checkpoints wrongly."""
    if tuple(int(part) for part in transformers.__version__.split(".")[:2]) < OLDEST_TRANSFORMERS:
        raise ScoringError(f"transformers {transformers.__version__} is too old; 5.3 or newer is needed", hint="install the extra `score` again")


def versions() -> dict[str, str]:
    """Return the versions of the libraries that compute."""
    return {"torch": torch.__version__, "transformers": transformers.__version__, "tokenizers": tokenizers.__version__}


def _use_float32_head(model: Any) -> str:  # Any: a transformers model
    head = model.get_output_embeddings()
    if type(head) is not nn.Linear:
        return "the model's own"
    if head.weight.dtype == torch.float32:
        return "the model's own, float32"
    model.set_output_embeddings(Float32Head(head))
    return "float32 copy"


def _ends(model: Any, tokenizer: Any) -> tuple[int, ...]:  # Any: a transformers model and its tokenizer
    """Return the ids that end a text: those of the model's settings for generation, its own and its tokenizer's, which need not agree."""
    told = (getattr(model.generation_config, "eos_token_id", None), model.config.get_text_config(decoder=True).eos_token_id, tokenizer.eos_token_id)
    ids = {number for one in told for number in (one if isinstance(one, list | tuple) else [one])}
    return tuple(sorted(number for number in ids if isinstance(number, int) and number >= 0))


def _vocabulary(
    tokenizer: Any,  # Any: a transformers tokenizer
    model: str,
    config: dict[str, Any],  # Any: the schema of each architecture
    ends: tuple[int, ...],
) -> Vocabulary:
    def decode(ids: Sequence[int]) -> str:
        with foreign_errors(f"model '{model}': its tokenizer fails", hint=SAVE_AGAIN):
            return str(tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False))

    def tokenize(texts: list[str]) -> list[list[int]]:
        with foreign_errors(f"model '{model}': its tokenizer fails", hint=SAVE_AGAIN):
            ids = tokenizer(texts, add_special_tokens=False, verbose=False, return_attention_mask=False, return_token_type_ids=False)["input_ids"]
            return [list(row) for row in ids]

    with foreign_errors(f"model '{model}': its tokenizer fails", hint=SAVE_AGAIN):
        marked = tokenizer("x")["input_ids"]
    try:
        prefix = learn_prefix(tokenize(["x"])[0], marked)
    except ValueError as error:
        raise ScoringError(
            f"model '{model}': {error}", hint="the tokenizer changes a text when special tokens are added; it cannot be scored"
        ) from error
    return Vocabulary(model, tokenize, prefix, context_length(config), chat_of(tokenizer, model), decode, ends)
