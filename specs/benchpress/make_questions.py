"""Which questions does specs/benchpress.yaml ask?  Stand-ins with the true ids, as the responses that it replays come without any text.

Run it again with the table of responses where that has changed: `python specs/benchpress/make_questions.py TABLE.csv.gz`.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

QUESTIONS = Path(__file__).parent / "questions.jsonl"


def main() -> None:
    """Write a line per row of the table."""
    with gzip.open(sys.argv[1], "rt", encoding="utf-8") as lines:
        next(lines)
        ids = [line.split(",", 1)[0] for line in lines]
    standing_in = {"question": "not published", "choices": ["choice A", "choice B", "choice C", "choice D"], "answer": "A"}
    QUESTIONS.write_text("".join(json.dumps({"id": identifier, **standing_in}) + "\n" for identifier in ids), encoding="utf-8")


if __name__ == "__main__":
    main()
