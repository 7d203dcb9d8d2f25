"""A GGUF file, as llama.cpp's own converter writes one, is scored as the checkpoint that it holds, and by nothing else."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from evalspec.artifacts.sources import GgufFile
from evalspec.artifacts.study import LetterScoring, OptionScoring
from evalspec.artifacts.work import work_of
from evalspec.cli import main
from evalspec.errors import MissingLibrary, ScoringError
from evalspec.planning.checkpoints import find_checkpoint, identify
from evalspec.protocols import ignore_progress
from evalspec.scoring.checkpoint import plan_tokens
from evalspec.scoring.execute import ScoringTask, score
from evalspec.scoring.tokens import encode_work

torch = pytest.importorskip("torch")
causal_lm = pytest.importorskip("evalspec.scoring.causal_lm")
pytest.importorskip("gguf", reason="the extra 'gguf' is not installed")
pytest.importorskip("accelerate", reason="the extra 'gguf' is not installed")

PUBLIC = Path(os.environ.get("EVALSPEC_MODELS", Path(__file__).parents[2] / ".cache" / "public-models"))


@pytest.fixture(scope="module")
def folder(make: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`plain`, the checkpoint that `model.gguf` was written from in Q8_0, and `rounded`, what that file holds."""
    folder = tmp_path_factory.mktemp("gguf")
    make.checkpoint(folder / "plain", dtype="float32")
    write_gguf(folder / "plain", folder / "model.gguf")
    rounded(folder / "plain", folder / "rounded")
    return folder


def values(place: Path, make: SimpleNamespace, scoring: Any, precision: str) -> np.ndarray:
    questions = make.questions(12)
    scorer = causal_lm.load(place, model="m", precision=precision)
    encoded = encode_work(work_of(make.benchmark("b", questions, scoring), questions), scorer.vocabulary)
    return np.array(scorer.logprobs(encoded.questions))


@pytest.mark.parametrize("scoring", [LetterScoring(method="letter"), OptionScoring(method="option")])
def test_the_file_is_scored_as_the_dequantised_checkpoint(folder: Path, make: SimpleNamespace, scoring: Any) -> None:
    expected = values(folder / "rounded", make, scoring, "float32")
    np.testing.assert_allclose(values(folder / "model.gguf", make, scoring, "float32"), expected, atol=1e-5)  # sums in another order
    assert np.abs(values(folder / "plain", make, scoring, "float32") - expected).max() > 1e-4, "Q8_0 rounds: else nothing was dequantised"


def test_the_declared_precision_is_the_one_that_computes(folder: Path) -> None:
    for precision in ("float32", "bfloat16", "float16"):
        scorer = causal_lm.load(folder / "model.gguf", model="m", precision=precision)
        assert {parameter.dtype for name, parameter in scorer.model.named_parameters() if "head" not in name} == {getattr(torch, precision)}
        assert scorer.dtype.startswith(precision)


def test_tokens_are_counted_before_the_run_as_the_run_counts_them(folder: Path, make: SimpleNamespace) -> None:
    questions = make.questions(12)
    work = work_of(make.benchmark("b", questions, LetterScoring(method="letter")), questions)
    assert plan_tokens(folder / "model.gguf", work, model="m") == plan_tokens(folder / "plain", work, model="m")


def test_no_file_beside_it_has_a_say(folder: Path, make: SimpleNamespace, tmp_path: Path) -> None:
    shutil.copy(folder / "model.gguf", tmp_path / "model.gguf")
    alone = values(tmp_path / "model.gguf", make, LetterScoring(method="letter"), "float32")
    for name in ("config.json", "tokenizer_config.json", "generation_config.json"):
        (tmp_path / name).write_text(json.dumps({"auto_map": {"AutoTokenizer": "evil.Evil"}, "model_type": "gpt2"}), encoding="utf-8")
    assert np.array_equal(values(tmp_path / "model.gguf", make, LetterScoring(method="letter"), "float32"), alone)


def test_an_architecture_that_transformers_does_not_read_is_said_plainly(folder: Path, tmp_path: Path) -> None:
    strange = write_gguf(folder / "plain", tmp_path / "strange.gguf", architecture="rwkv6")
    with pytest.raises(ScoringError, match=r"cannot be loaded from 'strange\.gguf'.*rwkv6"):
        causal_lm.load(strange, model="m", precision="float32")


def test_a_missing_library_is_named_with_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(MissingLibrary, match=r"reading 'model\.gguf' needs the library 'gguf'") as caught:
        causal_lm.load(folder / "model.gguf", model="m", precision="float32")
    assert "`gguf`" in str(caught.value.diagnostics[0].hint)


def test_a_file_that_was_altered_after_planning_is_not_scored(folder: Path, make: SimpleNamespace, tmp_path: Path) -> None:
    shutil.copy(folder / "model.gguf", tmp_path / "model.gguf")
    found = find_checkpoint(GgufFile(gguf="model.gguf"), folder=tmp_path, root=tmp_path, hub_cache=tmp_path)
    questions = make.questions(6)
    protocol = make.protocol({"m": identify(found)}, [make.benchmark("b", questions, LetterScoring(method="letter"))], precision="float32")
    task = ScoringTask(protocol=protocol, questions={"b": questions}, folders={"m": tmp_path}, records={})
    content = bytearray((tmp_path / "model.gguf").read_bytes())
    content[-1] ^= 1
    (tmp_path / "model.gguf").write_bytes(content)
    with pytest.raises(ScoringError, match=r"model\.gguf is not the file that the protocol names"):
        score(task, make.executor(), make.journal(tmp_path / "journal"), ignore_progress)


STUDY = """
apiVersion: evalspec/v1
title: Does the quantised file answer as its checkpoint does?
seed: 7
models:
  - {{id: file, source: {{gguf: model.gguf}}{precision}}}
  - {{id: folder, source: {{path: rounded}}}}
benchmarks:
  - {{id: words, source: {{file: questions.jsonl}}, scoring: {{method: letter}}}}
analyses:
  - {{id: accuracy, kind: intervals}}
"""


def told(*arguments: str, cwd: Path) -> tuple[int, str]:
    out = io.StringIO()
    with contextlib.chdir(cwd), contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = main(list(arguments))
    return code, out.getvalue()


def study_in(folder: Path, make: SimpleNamespace, precision: str) -> Path:
    lines = [
        json.dumps({"id": one.id, "question": one.stem, "choices": list(one.choices), "answer": "ABCD"[one.answer]}) for one in make.questions(20)
    ]
    (folder / "questions.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (folder / "study.yaml").write_text(STUDY.format(precision=precision), encoding="utf-8")
    return folder


def test_a_study_must_declare_the_precision_of_a_gguf_file(folder: Path, make: SimpleNamespace) -> None:
    for precision in ("", ", precision: as_shipped"):
        code, text = told("validate", "study.yaml", cwd=study_in(folder, make, precision))
        assert (code, "no precision is declared for that" in text) == (2, True)


@pytest.mark.slow
def test_a_study_of_a_gguf_file_runs_and_its_report_says_what_was_dequantised(folder: Path, make: SimpleNamespace) -> None:
    study_in(folder, make, ", precision: float32")
    code, text = told("plan", "study.yaml", cwd=folder)
    assert code == 0, text
    assert "GGUF Q8_0, F32" in text
    assert "float32, dequantised" in text
    code, text = told("run", "study.yaml", "--no-pdf", "--throwaway-key", cwd=folder)
    assert code == 0, text
    report = (folder / "reports" / "study" / "report.html").read_text(encoding="utf-8")
    assert "weights dequantised from Q8_0, F32" in report
    code, text = told("verify", "reports/study", "--trust", "reports/study.trust.yaml", "--rescore", "5", cwd=folder)
    assert code == 0, text


@pytest.mark.slow
def test_the_converted_public_model_answers_as_its_gguf_file(make: SimpleNamespace) -> None:
    file, converted = PUBLIC / "smollm2-135m-instruct.gguf", PUBLIC / "smollm2-135m-instruct"
    if not (file.is_file() and converted.is_dir()):
        pytest.skip("the public model is not here: python specs/public/fetch_models.py --keep-gguf")
    scoring = LetterScoring(method="letter")
    expected = values(converted, make, scoring, "as_shipped")
    np.testing.assert_allclose(values(file, make, scoring, "bfloat16"), expected, atol=1e-6)


def write_gguf(checkpoint: Path, target: Path, quantisation: str = "Q8_0", *, architecture: str = "llama") -> Path:
    """Write a Llama checkpoint of this suite to a GGUF file; matrices in `quantisation`, everything else in F32."""
    import gguf
    from safetensors.torch import load_file

    config = json.loads((checkpoint / "config.json").read_text(encoding="utf-8"))
    writer = gguf.GGUFWriter(target, architecture)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    _add_tokenizer(writer, json.loads((checkpoint / "tokenizer.json").read_text(encoding="utf-8")))
    kind = gguf.GGMLQuantizationType[quantisation]
    for name, tensor in load_file(checkpoint / "model.safetensors").items():
        values = _as_ggml(name, tensor.float().numpy(), config)
        if values.ndim == 2:
            writer.add_tensor(_ggml_name(name), gguf.quantize(values, kind), raw_dtype=kind)
        else:
            writer.add_tensor(_ggml_name(name), values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target


def rounded(checkpoint: Path, target: Path, quantisation: str = "Q8_0") -> Path:
    """Write the same checkpoint with its matrices quantised and dequantised, in float32: what a GGUF file of it holds."""
    import gguf
    import torch
    from safetensors.torch import load_file, save_file

    shutil.copytree(checkpoint, target)
    config = json.loads((checkpoint / "config.json").read_text(encoding="utf-8"))
    (target / "config.json").write_text(json.dumps(config | {"dtype": "float32"}), encoding="utf-8")
    kind = gguf.GGMLQuantizationType[quantisation]
    held = {}
    for name, tensor in load_file(checkpoint / "model.safetensors").items():
        values = tensor.float().numpy()
        held[name] = torch.from_numpy(gguf.dequantize(gguf.quantize(values, kind), kind) if values.ndim == 2 else values).contiguous()
    save_file(held, target / "model.safetensors", metadata={"format": "pt"})
    return target


def _add_tokenizer(writer: Any, tokenizer: dict[str, Any]) -> None:
    vocabulary = tokenizer["model"]["vocab"]
    special = {token["id"] for token in tokenizer["added_tokens"]}
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([token for token, _ in sorted(vocabulary.items(), key=lambda entry: entry[1])])
    writer.add_token_types([3 if number in special else 1 for number in range(len(vocabulary))])
    writer.add_token_merges([" ".join(merge) for merge in tokenizer["model"]["merges"]])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(0)
    writer.add_add_bos_token(False)


NAMES = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}  # fmt: skip


def _ggml_name(name: str) -> str:
    if name.startswith("model.layers."):
        _, _, layer, *part, _ = name.split(".")
        return f"blk.{layer}.{NAMES['.'.join(part)]}.weight"
    return {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight", "lm_head.weight": "output.weight"}[name]


def _as_ggml(name: str, values: np.ndarray, config: dict[str, Any]) -> np.ndarray:
    """GGML pairs rotary dimensions in turn, transformers by halves: rows of queries and keys change places."""
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}.get(name.split(".")[-2])
    if heads is None:
        return values
    rows, columns = values.shape
    return np.ascontiguousarray(values.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns))
