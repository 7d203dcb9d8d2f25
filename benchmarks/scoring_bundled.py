"""How many letters per CPU second do the bundled checkpoints give?  2,000 questions each, one thread, loading not counted."""

from __future__ import annotations

import json
import time

from benchmarks.measuring import ROOT, conclude, peak_mib

QUESTIONS = 2000
BAR = 500.0


def main() -> None:
    """Score the largest checkpoints and print the slowest rate."""
    from evalspec.artifacts.protocol import BatchRule
    from evalspec.artifacts.study import LetterScoring
    from evalspec.artifacts.work import AskedQuestion, BenchmarkWork
    from evalspec.scoring.arithmetic import settle_arithmetic
    from evalspec.scoring.batching import plan_batches
    from evalspec.scoring.causal_lm import load
    from evalspec.scoring.tokens import encode_work

    settle_arithmetic(1)
    rates = {}
    for folder in sorted((ROOT / "specs" / "demo" / "checkpoints").iterdir()):
        if not folder.is_dir():
            continue
        work = BenchmarkWork(benchmark="bundled", scoring=LetterScoring(method="letter"), prompt="", questions=_questions(AskedQuestion))
        model = load(folder, model=folder.name, precision="as_shipped")
        started = time.process_time()
        encoded = encode_work(work, model.vocabulary).questions
        plan = plan_batches([question.longest for question in encoded], [len(question.rows) for question in encoded], BatchRule())
        for batch in plan:
            model.logprobs([encoded[index] for index in batch])
        rates[folder.name] = round(QUESTIONS / (time.process_time() - started))
    slowest = min(rates.values())
    figures = {
        "letters_per_cpu_s": rates,
        "slowest": slowest,
        "bar": BAR,
        "of_limit": round(slowest / BAR, 2),
        "peak_mib": peak_mib(),
        "agree": slowest >= BAR,
    }
    conclude("scoring_bundled", f"{QUESTIONS} questions by letter, each bundled checkpoint, one thread", figures)


def _questions(kind: type) -> tuple[object, ...]:
    lines = (ROOT / "specs" / "demo" / "everyday.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    chosen = [rows[index % len(rows)] for index in range(QUESTIONS)]
    return tuple(
        kind(name=f"q{index}", sha256=f"{index:064x}", prompt=_prompt(row), answers=tuple("ABCDEFGH"[: len(row["choices"])]))
        for index, row in enumerate(chosen)
    )


def _prompt(row: dict[str, object]) -> str:
    choices = row["choices"]
    assert isinstance(choices, list)
    return f"{row['question']}\n" + "\n".join(f"{letter}. {text}" for letter, text in zip("ABCDEFGH", choices, strict=False)) + "\nAnswer:"


if __name__ == "__main__":
    main()
