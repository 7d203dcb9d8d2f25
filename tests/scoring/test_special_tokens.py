from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from evalspec.artifacts.study import LetterScoring, OptionScoring
from evalspec.scoring.checkpoint import added_tokens, plan_tokens
from evalspec.scoring.execute import ScoringTask
from evalspec.scoring.special_tokens import special_token_warnings

pytest.importorskip("transformers")


def test_questions_that_hold_special_tokens_are_counted_and_the_first_is_named_with_the_models(
    make: SimpleNamespace, llama: Path, tmp_path: Path
) -> None:
    plain = make.questions(6)
    held = (*plain[:3], replace(plain[3], stem="What ends a text, <eos>?"), replace(plain[4], choices=("<eos>", "<bos>", "c", "d")), plain[5])
    folders = {"m": llama, "same": llama, "bare": make.checkpoint(tmp_path / "bare", seed=3)}
    (folders["bare"] / "tokenizer.json").unlink()
    identities = {model: make.identity(folder) if model != "bare" else make.identity(llama) for model, folder in folders.items()}
    benchmarks = [
        make.benchmark("clean", plain, LetterScoring(method="letter")),
        make.benchmark("b", held, OptionScoring(method="option"), public=lambda name: f"public-{name}"),
    ]
    task = ScoringTask(make.protocol(identities, benchmarks), {"clean": plain, "b": held}, folders, {})
    (told,) = special_token_warnings(task.orders(), task.protocol, task.questions)
    assert told == (
        "benchmark 'b': 2 of 6 questions, first 'public-q003', hold texts that are special tokens of m, same ('<bos>', '<eos>'); "
        "they are read as these tokens, not as their letters"
    )
    assert added_tokens(llama) == ("<bos>", "<eos>", "<pad>")
    rows = [question.rows[0] for question in plan_tokens(llama, task.orders()[0].works[1], model="m").questions]
    assert [2 in row for row in rows] == [False, False, False, True, False, False], "it is the token that is read"
