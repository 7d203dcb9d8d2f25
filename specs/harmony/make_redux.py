"""Which questions does specs/harmony-redux.yaml ask?  Stand-ins with the true ids and subjects, as the answers that it replays come without any text.

They are made beside the study from the table of answers, of which nothing is kept in the repository:
`python specs/harmony/make_redux.py ../shared/data/mmlu_redux_helm_correct_14models.csv.gz`.
"""

from __future__ import annotations

import csv
import gzip
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

QUESTIONS = Path(__file__).with_name("redux.parquet")
CHOICES = ["choice A", "choice B", "choice C", "choice D"]


def make(table: Path, questions: Path) -> None:
    """Write a question per row of a table of answers."""
    with gzip.open(table, "rt", encoding="utf-8", newline="") as stream:
        asked = [(row["item_id"], row["subject"].replace("_", " ")) for row in csv.DictReader(stream)]
    columns = {
        "id": [identifier for identifier, _ in asked],
        "subject": [subject for _, subject in asked],
        "question": ["not published"] * len(asked),
        "choices": [CHOICES] * len(asked),
        "answer": ["A"] * len(asked),
    }
    pq.write_table(pa.table(columns), questions, compression="zstd")


if __name__ == "__main__":
    make(Path(sys.argv[1]), QUESTIONS)
