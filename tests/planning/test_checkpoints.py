"""A checkpoint is identified from its files; folders that could run code or leave their place are refused."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from evalspec.artifacts.sources import HubCheckpoint, LocalCheckpoint
from evalspec.errors import InputError
from evalspec.planning.checkpoints import CheckpointFolder, find_checkpoint, identify
from evalspec.planning.digests import RememberedDigests, file_sha256
from evalspec.planning.memory import RUNTIME_BYTES, memory_need

REVISION = "0123456789abcdef0123456789abcdef01234567"


def located(folder: Path) -> CheckpointFolder:
    return find_checkpoint(LocalCheckpoint(path="model"), folder=folder.parent, root=folder.parent, hub_cache=folder)


def refusal(folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        identify(located(folder))
    return str(caught.value)


def test_identity_covers_every_file_that_matters_and_no_other(checkpoint: Path) -> None:
    identity = identify(located(checkpoint))
    assert [file.name for file in identity.files] == ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    assert identity.files[1].sha256 == hashlib.sha256((checkpoint / "model.safetensors").read_bytes()).hexdigest()
    assert (identity.architecture, identity.parameters, identity.stored_dtype, identity.origin) == ("LlamaForCausalLM", 384, "bfloat16", "model")


def test_the_combined_digest_is_over_the_raw_digests_in_name_order(checkpoint: Path) -> None:
    identity = identify(located(checkpoint))
    names = sorted(["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"])
    raw = [hashlib.sha256((checkpoint / name).read_bytes()).digest() for name in names]
    assert identity.weights_sha256 == hashlib.sha256(b"".join(raw)).hexdigest()
    assert identity.tokenizer_sha256 == hashlib.sha256(b"".join(raw[2:])).hexdigest()


def test_the_combined_digest_is_the_root_that_openssf_model_signing_signs(checkpoint: Path) -> None:
    """Expected: model-signing 1.1.1, `Payload(hashing.Config().hash(folder))`, over the same folder without its README.md."""
    assert identify(located(checkpoint)).weights_sha256 == "f3584c09e68a3470bd231481311576ca73d18255328fd0f8589cba9676bf481a"


def test_weights_in_several_files_are_counted_by_their_index(checkpoint: Path, tensors: Callable[..., bytes]) -> None:
    (checkpoint / "model.safetensors").unlink()
    (checkpoint / "model-00001-of-00002.safetensors").write_bytes(tensors(a=("F32", [4], 16)))
    (checkpoint / "model-00002-of-00002.safetensors").write_bytes(tensors(b=("BF16", [3], 6)))
    places = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    (checkpoint / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    identity = identify(located(checkpoint))
    assert (identity.parameters, identity.stored_dtype) == (7, "float32")
    assert {"model.safetensors.index.json", *places.values()} <= {file.name for file in identity.files}
    (checkpoint / "model-00002-of-00002.safetensors").unlink()
    assert "lacks model-00002-of-00002.safetensors" in refusal(checkpoint)


@pytest.mark.parametrize("name", ["../secret.safetensors", "/etc/passwd", "weights.bin", "a\\b.safetensors"])
def test_an_index_may_name_safetensors_files_of_its_folder_only(checkpoint: Path, name: str) -> None:
    (checkpoint / "model.safetensors").unlink()
    (checkpoint / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": name}}))
    assert "which is no safetensors file of this folder" in refusal(checkpoint)


def test_a_tensor_in_two_files_is_refused(checkpoint: Path, tensors: Callable[..., bytes]) -> None:
    (checkpoint / "model.safetensors").unlink()
    for name in ("x.safetensors", "y.safetensors"):
        (checkpoint / name).write_bytes(tensors(a=("F32", [4], 16)))
    (checkpoint / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "x.safetensors", "b": "y.safetensors"}}))
    assert "is in two files" in refusal(checkpoint)


def test_folders_that_lack_something_are_refused_with_what_to_do(checkpoint: Path) -> None:
    (checkpoint / "pytorch_model.bin").write_bytes(b"")
    (checkpoint / "model.safetensors").rename(checkpoint / "kept")
    assert "pickle files, which can run code" in refusal(checkpoint)
    (checkpoint / "kept").rename(checkpoint / "model.safetensors")
    (checkpoint / "tokenizer.json").unlink()
    assert "tokenizer.save_pretrained" in refusal(checkpoint)
    (checkpoint / "config.json").unlink()
    assert "no config.json" in refusal(checkpoint)


@pytest.mark.parametrize("content", [{"auto_map": {"AutoModel": "x.Y"}}, {"text_config": {"auto_map": {}}}])
def test_models_that_bring_their_own_code_are_refused(checkpoint: Path, content: dict[str, object]) -> None:
    config = json.loads((checkpoint / "config.json").read_text())
    (checkpoint / "config.json").write_text(json.dumps({**config, **content}))
    assert "config.json asks to run code" in refusal(checkpoint)
    (checkpoint / "config.json").write_text(json.dumps(config))
    (checkpoint / "tokenizer_config.json").write_text(json.dumps(content))
    assert "tokenizer_config.json asks to run code" in refusal(checkpoint)


@pytest.mark.parametrize(
    ("file", "entry"),
    [
        ("config.json", {"transformers_weights": "adapter_model.bin"}),
        ("config.json", {"transformers_weights": "sub/other.safetensors"}),
        ("tokenizer_config.json", {"fast_tokenizer_files": ["tokenizer.5.0.0.json"]}),
    ],
)
def test_settings_that_send_a_library_to_files_without_a_digest_are_refused(checkpoint: Path, file: str, entry: dict[str, object]) -> None:
    content = json.loads((checkpoint / file).read_text())
    (checkpoint / file).write_text(json.dumps({**content, **entry}))
    assert f"{file} names other files to read ('{next(iter(entry))}')" in refusal(checkpoint)


def test_an_adapter_in_the_folder_is_refused_because_some_installations_would_add_it(checkpoint: Path) -> None:
    (checkpoint / "adapter_config.json").write_text("{}")
    assert "adapter_config.json belongs to an adapter" in refusal(checkpoint)


@pytest.mark.parametrize("content", ["[]", "{", "[" * 100_000, '{"architectures": []}', '{"architectures": ["a b"]}'])
def test_a_config_that_is_none_is_refused(checkpoint: Path, content: str) -> None:
    (checkpoint / "config.json").write_text(content)
    assert "model/config.json" in refusal(checkpoint)


@pytest.mark.parametrize("value", ["x", 1, True, [], 10**299, float("inf")])
def test_settings_of_the_text_model_that_are_no_object_are_a_fault_of_the_file(checkpoint: Path, value: object) -> None:
    config = json.loads((checkpoint / "config.json").read_text())
    (checkpoint / "config.json").write_text(json.dumps({**config, "text_config": value}))
    assert refusal(checkpoint).startswith("model/config.json: text_config is not a JSON object")


@pytest.mark.parametrize("key", sorted(["hidden_size", "num_attention_heads", "vocab_size", "num_hidden_layers", "intermediate_size", "head_dim"]))
@pytest.mark.parametrize("value", ["x", -1, 0, 1.5, [], {}, True, 10**299, float("nan")])
def test_sizes_of_wrong_types_are_a_fault_of_the_file(checkpoint: Path, key: str, value: object) -> None:
    config = json.loads((checkpoint / "config.json").read_text())
    (checkpoint / "config.json").write_text(json.dumps({**config, key: value}))
    with pytest.raises(InputError, match=rf"model/config\.json has an impossible {key}"):
        memory_need(located(checkpoint), model="m", precision="float32", token_budget=64)


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", "generation_config.json", "chat_template.jinja", "other.safetensors"])
def test_what_is_no_file_where_a_checkpoint_has_one_is_refused_without_being_opened(checkpoint: Path, name: str) -> None:
    (checkpoint / name).unlink(missing_ok=True)
    for make in (os.mkfifo, os.mkdir, lambda path: path.symlink_to(path.name), lambda path: path.symlink_to("absent")):
        make(checkpoint / name)
        assert f"{name} is no file that can be read" in refusal(checkpoint)
        (checkpoint / name).rmdir() if (checkpoint / name).is_dir() else (checkpoint / name).unlink()


def test_links_that_leave_the_root_are_refused(checkpoint: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.safetensors"
    (checkpoint / "model.safetensors").rename(outside)
    (checkpoint / "model.safetensors").symlink_to(outside)
    assert "model.safetensors is a link that leads outside" in refusal(checkpoint)
    with pytest.raises(InputError, match="leads outside"):
        find_checkpoint(LocalCheckpoint(path="../.."), folder=checkpoint, root=checkpoint, hub_cache=tmp_path)
    with pytest.raises(InputError, match="there is no folder 'absent'"):
        find_checkpoint(LocalCheckpoint(path="absent"), folder=checkpoint, root=checkpoint, hub_cache=tmp_path)


def test_a_hub_model_is_found_in_the_cache_through_its_links_into_blobs(checkpoint: Path, tmp_path: Path) -> None:
    repository = tmp_path / "hub" / "models--org--name"
    snapshot = repository / "snapshots" / REVISION
    (repository / "blobs").mkdir(parents=True)
    snapshot.mkdir(parents=True)
    for file in checkpoint.iterdir():
        (repository / "blobs" / file.name).write_bytes(file.read_bytes())
        (snapshot / file.name).symlink_to(Path("..", "..", "blobs", file.name))
    source = HubCheckpoint(hub="org/name", revision=REVISION)
    found = find_checkpoint(source, folder=checkpoint, root=checkpoint, hub_cache=tmp_path / "hub")
    identity = identify(found)
    assert identity.origin == f"org/name@{REVISION}"
    assert identity.weights_sha256 == identify(located(checkpoint)).weights_sha256
    (snapshot / "config.json").unlink()
    (snapshot / "config.json").symlink_to(checkpoint / "config.json")
    with pytest.raises(InputError, match="leads outside"):
        identify(found)


def test_a_hub_model_that_is_not_cached_is_refused_with_the_command_that_fetches_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"hf download org/name --revision {REVISION}"):
        find_checkpoint(HubCheckpoint(hub="org/name", revision=REVISION), folder=tmp_path, root=tmp_path, hub_cache=tmp_path)


@pytest.mark.parametrize("lost", ["model.safetensors", "tokenizer.json", "config.json"])
@pytest.mark.parametrize("how", ["absent", "a link to nothing"])
def test_a_hub_model_that_was_fetched_in_part_is_refused_with_the_command_that_completes_it(
    checkpoint: Path, tmp_path: Path, lost: str, how: str
) -> None:
    snapshot = tmp_path / "hub" / "models--org--name" / "snapshots" / REVISION
    snapshot.mkdir(parents=True)
    for file in checkpoint.iterdir():
        (snapshot / file.name).write_bytes(file.read_bytes())
    (snapshot / lost).unlink()
    if how != "absent":
        (snapshot / lost).symlink_to("../../blobs/absent")
    found = find_checkpoint(HubCheckpoint(hub="org/name", revision=REVISION), folder=tmp_path, root=tmp_path, hub_cache=tmp_path / "hub")
    with pytest.raises(InputError, match=lost.partition(".")[0]) as caught:
        identify(found)
    assert f"fetch what it lacks: hf download org/name --revision {REVISION}" in str(caught.value.diagnostics[0].hint)


def test_memory_follows_the_stated_formula(checkpoint: Path) -> None:
    need = memory_need(located(checkpoint), model="m", precision="float32", token_budget=1000)
    activations = 1000 * 4 * (4 * 8 + 3 * 16 + 2 * (2 + 2 * 2) * 4)
    logits = 16 * 32 * (4 + 4)
    assert (need.parameters, need.weights_bytes) == (384, 384 * 4)
    assert need.total_bytes == int((384 * 4 + activations + logits) * 1.1) + RUNTIME_BYTES
    assert memory_need(located(checkpoint), model="m", precision="as_shipped", token_budget=1000).weights_bytes == 384 * 2


def test_memory_of_gpt2_and_of_nested_configurations_is_known(checkpoint: Path) -> None:
    sizes = {"n_embd": 8, "n_layer": 1, "n_head": 2, "vocab_size": 32, "n_inner": None}
    for config in (sizes, {"text_config": sizes}):
        (checkpoint / "config.json").write_text(json.dumps(config))
        assert memory_need(located(checkpoint), model="m", precision="float32", token_budget=64).working_bytes > RUNTIME_BYTES
    for broken in ({**sizes, "n_head": 0}, {**sizes, "n_head": "2"}, {**sizes, "vocab_size": None}):
        (checkpoint / "config.json").write_text(json.dumps(broken))
        with pytest.raises(InputError, match="planning reads the sizes"):
            memory_need(located(checkpoint), model="m", precision="float32", token_budget=64)


def test_digests_are_remembered_until_a_file_is_touched(tmp_path: Path) -> None:
    file = tmp_path / "weights"
    file.write_bytes(b"one")
    digests = RememberedDigests()
    assert digests(file) == file_sha256(file) == hashlib.sha256(b"one").hexdigest()
    again = RememberedDigests.from_json(digests.to_json())
    state = file.stat()
    file.write_bytes(b"two")
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))  # the time of writing can be set, that of the last change of the file cannot
    assert again(file) == hashlib.sha256(b"two").hexdigest()


@pytest.mark.parametrize(
    "content",
    [
        b"", b"[]", b'{"a": 1}', b'{"a": "short"}', b"\xff", b"[" * 100_000, b'{"a":' * 900 + b"1" + b"}" * 900, b'{"a": ' + b"9" * 5000 + b"}",
        b'{"a": "' + b"g" * 64 + b'"}', b'{"\\ud800": "' + b"a" * 64 + b'"}', b'{"a": NaN}',
    ],
)  # fmt: skip
def test_remembered_digests_that_do_not_fit_are_forgotten(content: bytes) -> None:
    assert RememberedDigests.from_json(content).known == {}


def test_the_demonstration_checkpoints_are_identified(root: Path) -> None:
    folder = root / "specs" / "demo" / "checkpoints"
    for path in sorted(path for path in folder.iterdir() if (path / "config.json").is_file()):
        found = find_checkpoint(LocalCheckpoint(path=path.name), folder=folder, root=root, hub_cache=folder)
        identity = identify(found)
        assert 0 < identity.parameters < 2_000_000
        assert memory_need(found, model="m", precision="as_shipped", token_budget=4096).parameters == identity.parameters
