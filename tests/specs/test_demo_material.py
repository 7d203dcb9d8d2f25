"""The demonstration questions and checkpoints are what their README says."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the demonstration checkpoints need torch")
transformers = pytest.importorskip("transformers", reason="the demonstration checkpoints need transformers")

DEMO = Path(__file__).resolve().parents[2] / "specs" / "demo"
CHECKPOINTS = DEMO / "checkpoints"
MANIFEST = json.loads((CHECKPOINTS / "MANIFEST.json").read_text(encoding="utf-8"))
NAMES = sorted(MANIFEST)
CHOICES = {"everyday": 4, "triples": 3}
LARGEST_FILE = 2_000_000
LARGEST_FOLDER = 8_000_000
ROUNDING_FLIPS = 3  # another processor may decide near ties differently


@pytest.fixture(scope="module")
def scripts() -> Iterator[dict[str, ModuleType]]:
    """Import the scripts of the folder as they import each other: from the folder itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DEMO))
        import make_questions
        import subjects

        yield {"make_questions": make_questions, "subjects": subjects}
    for name in ("make_questions", "subjects"):
        sys.modules.pop(name, None)


@cache
def records(benchmark: str) -> list[dict[str, Any]]:
    lines = (DEMO / f"{benchmark}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def all_records() -> list[dict[str, Any]]:
    return [record for benchmark in CHOICES for record in records(benchmark)]


def letter_prompt(record: dict[str, Any]) -> str:
    choices = "".join(f"{letter}. {choice}\n" for letter, choice in zip("ABCD", record["choices"], strict=False))
    return f"{record['question']}\n{choices}Answer:"


@cache
def tokenizer(name: str) -> Any:
    return transformers.AutoTokenizer.from_pretrained(CHECKPOINTS / name, local_files_only=True)


def load_model(name: str) -> Any:
    return transformers.AutoModelForCausalLM.from_pretrained(
        CHECKPOINTS / name, local_files_only=True, use_safetensors=True, dtype=torch.float32
    ).eval()


@pytest.mark.parametrize("benchmark", CHOICES)
def test_every_question_is_well_formed(benchmark: str) -> None:
    for record in records(benchmark):
        assert list(record) == ["id", "subject", "question", "choices", "answer"]
        assert len(record["choices"]) == CHOICES[benchmark]
        assert len(set(record["choices"])) == CHOICES[benchmark]
        assert record["answer"] in "ABCD"[: CHOICES[benchmark]]
        assert all(text.strip() == text != "" for text in [record["subject"], record["question"], *record["choices"]])


def test_ids_and_questions_are_unique_over_both_benchmarks() -> None:
    assert len(all_records()) >= 480
    assert len({record["id"] for record in all_records()}) == len(all_records())
    assert len({record["question"] for record in all_records()}) == len(all_records())
    assert len({record["subject"] for record in all_records()}) >= 6


def test_every_choice_is_right_equally_often_within_a_subject() -> None:
    counts: dict[tuple[str, str], int] = {}
    for record in all_records():
        counts[record["subject"], record["answer"]] = counts.get((record["subject"], record["answer"]), 0) + 1
    assert {counts[key] for key in counts if len(key[1]) == 1} <= {10, 12}


@pytest.mark.parametrize("benchmark", CHOICES)
def test_the_script_writes_the_same_bytes_again(scripts: dict[str, ModuleType], benchmark: str) -> None:
    script = scripts["make_questions"]
    expected = (DEMO / f"{benchmark}.jsonl").read_text(encoding="utf-8")
    assert expected == script.as_lines(script.benchmark_questions(benchmark))


def test_every_benchmark_question_is_held_out(scripts: dict[str, ModuleType]) -> None:
    assert all(scripts["subjects"].held_out(record["question"]) for record in all_records())


@pytest.mark.parametrize("name", NAMES)
def test_training_questions_hold_no_benchmark_question(scripts: dict[str, ModuleType], name: str) -> None:
    kept = {record["question"] for record in all_records()}
    trained = islice(scripts["subjects"].training_questions(MANIFEST[name]["recipe"]["seed"]), 2_000)
    assert kept.isdisjoint(question.text for question in trained)


def test_folder_and_files_are_small() -> None:
    sizes = [path.stat().st_size for path in DEMO.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert max(sizes) <= LARGEST_FILE
    assert sum(sizes) <= LARGEST_FOLDER


@pytest.mark.parametrize("name", NAMES)
def test_manifest_digests_match_the_files(name: str) -> None:
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (CHECKPOINTS / name).iterdir()}
    assert MANIFEST[name]["files"] == found


def test_all_checkpoints_but_the_bos_one_share_a_tokenizer() -> None:
    digests = {name: MANIFEST[name]["files"]["tokenizer.json"] for name in NAMES}
    assert len({digests[name] for name in NAMES if name != "demo-bos"}) == 1
    assert digests["demo-bos"] != digests["demo-mid"]


@pytest.mark.parametrize("name", ["demo-mid", "demo-bos"])
def test_every_letter_is_one_token_joined_to_its_prompt(name: str) -> None:
    prompts = [letter_prompt(record) for record in all_records()]
    alone = tokenizer(name)(prompts)["input_ids"]
    ids = set()
    for letter in "ABCD":
        joined = tokenizer(name)([f"{prompt} {letter}" for prompt in prompts])["input_ids"]
        assert alone == [tokens[:-1] for tokens in joined]
        (letter_id,) = {tokens[-1] for tokens in joined}
        ids.add(letter_id)
    assert len(ids) == 4


@pytest.mark.parametrize("name", ["demo-mid", "demo-bos"])
def test_every_option_joins_its_prompt_without_a_merge(name: str) -> None:
    pairs = [(f"{record['question']}\nAnswer:", choice) for record in all_records() for choice in record["choices"]]
    starts = tokenizer(name)([prompt for prompt, _ in pairs])["input_ids"]
    wholes = tokenizer(name)([f"{prompt} {choice}" for prompt, choice in pairs])["input_ids"]
    assert starts == [whole[: len(start)] for start, whole in zip(starts, wholes, strict=True)]
    assert all(len(whole) > len(start) for start, whole in zip(starts, wholes, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_only_the_bos_checkpoint_begins_with_one_bos(name: str) -> None:
    ids = tokenizer(name)("x")["input_ids"]
    expected = 1 if name == "demo-bos" else 0
    assert expected == ids.count(tokenizer(name).bos_token_id)
    assert (ids[0] == tokenizer(name).bos_token_id) is (name == "demo-bos")


@pytest.mark.parametrize("name", NAMES)
def test_checkpoints_beat_chance_on_letters_as_the_manifest_says(name: str) -> None:
    model, encode = load_model(name), tokenizer(name)
    letters = [encode(f"x {letter}")["input_ids"][-1] for letter in "ABCD"]
    questions, right = records("everyday"), 0
    with torch.inference_mode():
        for batch in (questions[start : start + 64] for start in range(0, len(questions), 64)):
            ids = [encode(letter_prompt(record))["input_ids"] for record in batch]
            longest = max(map(len, ids))
            padded = torch.tensor([row + [encode.pad_token_id] * (longest - len(row)) for row in ids])
            logits = model(padded).logits[torch.arange(len(ids)), [len(row) - 1 for row in ids]]
            chosen = logits[:, letters].argmax(dim=-1).tolist()
            right += sum("ABCD"[choice] == record["answer"] for choice, record in zip(chosen, batch, strict=True))
    # Always guessing gives 80 of 320 right with a standard deviation of 7.7; 105 is more than three of them above.
    assert right >= 105
    assert right == pytest.approx(320 * MANIFEST[name]["accuracy"]["everyday"]["letters"], abs=ROUNDING_FLIPS)
