"""Which responses does the replay of the article rest on?

Run `python specs/article/make_responses.py`: from `patterns.json` it writes `questions.jsonl` and `responses.csv` beside itself, always
the same bytes. All of it is synthetic; no model answered anything.
"""

from __future__ import annotations

import json
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
CHOICES = ("the right answer", "a wrong answer")


def response_rows() -> list[str]:
    """Give one string of 0 and 1 per question, one mark per model, patterns in ascending order."""
    counts = json.loads((FOLDER / "patterns.json").read_text(encoding="utf-8"))
    return [pattern for pattern, count in sorted(counts.items()) for _ in range(count)]


def questions(rows: list[str]) -> str:
    """Give a placeholder per row, as JSONL."""
    lines = (
        json.dumps({"id": f"synthetic-{number:04}", "question": f"Synthetic question {number:04}", "choices": CHOICES, "answer": "A"})
        for number in range(1, len(rows) + 1)
    )
    return "".join(f"{line}\n" for line in lines)


def responses(rows: list[str]) -> str:
    """Give the scores as a wide CSV table: a row per question, a column per model."""
    header = ",".join(["question_id", *(f"model-{number}" for number in range(1, len(rows[0]) + 1))])
    return "\n".join([header, *(f"synthetic-{number:04},{','.join(row)}" for number, row in enumerate(rows, start=1))]) + "\n"


if __name__ == "__main__":
    (FOLDER / "questions.jsonl").write_text(questions(response_rows()), encoding="utf-8")
    (FOLDER / "responses.csv").write_text(responses(response_rows()), encoding="utf-8")
