"""Which responses does the example of harmony rest on?

Run `python specs/harmony/make_responses.py`: it writes questions and responses of two benchmarks beside itself, always the same bytes. All of
it is synthetic: five made-up models that are right in a stated share of each subject, and questions that are lists of words.
"""

from __future__ import annotations

import json
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
CHOICES = ("the right answer", "a wrong answer")
STEP = 37
"""Coprime with the number of questions of every subject, so that multiples of it reach each question once."""

SUBJECTS = {
    "astronomy": ("comet", "orbit", "galaxy", "eclipse", "nebula", "asteroid", "telescope", "supernova", "meteor", "quasar", "planet", "pulsar"),
    "biology": ("cell", "enzyme", "membrane", "protein", "tissue", "genome", "mitosis", "nucleus", "bacteria", "fungus", "organism", "spore"),
    "cooking": ("butter", "oven", "recipe", "pepper", "onion", "dough", "simmer", "vinegar", "garlic", "flour", "saucepan", "marinade"),
    "economics": ("tariff", "inflation", "deficit", "auction", "currency", "export", "subsidy", "interest", "dividend", "demand", "wage", "credit"),
    "geology": ("basalt", "granite", "magma", "fault", "sediment", "fossil", "mineral", "quartz", "erosion", "glacier", "crater", "limestone"),
    "history": ("treaty", "empire", "siege", "dynasty", "monarch", "crusade", "parliament", "colony", "revolt", "battle", "throne", "senate"),
    "law": ("contract", "verdict", "plaintiff", "statute", "appeal", "jury", "felony", "tribunal", "testimony", "warrant", "lawsuit", "clause"),
    "music": ("chord", "rhythm", "melody", "violin", "opera", "sonata", "tempo", "choir", "trumpet", "harmony", "quartet", "refrain"),
}
SIZES = {
    "balanced": dict.fromkeys(SUBJECTS, 100),
    "lopsided": dict(zip(SUBJECTS, (480, 100, 60, 40, 40, 40, 32, 32), strict=True)),
}
MODELS = {
    "even": (0.75,) * 8,
    "split": (0.95, 0.55) * 4,
    "one-fails": (0.85,) * 7 + (0.35,),
    "spread": (0.95, 0.90, 0.84, 0.78, 0.72, 0.66, 0.60, 0.55),
    "large-only": (0.95, *(0.60,) * 7),
}
"""The share of right answers in each subject, in the order of the subjects."""


def questions(benchmark: str) -> str:
    """Give the questions of a benchmark as JSONL: six words of the subject's twelve."""
    lines = [
        {
            "id": f"{benchmark}/{subject}-{number:03}",
            "question": "Synthetic question: " + ", ".join(SUBJECTS[subject][(number + place * (1 + number // 12 % 5)) % 12] for place in range(6)),
            "choices": CHOICES,
            "answer": "A",
            "subject": subject,
        }
        for subject, size in SIZES[benchmark].items()
        for number in range(size)
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)


def responses() -> str:
    """Give the scores on both benchmarks as a wide CSV table: a row per question, a column per model."""
    rows = [",".join(["question_id", *MODELS])]
    for benchmark, sizes in SIZES.items():
        for place, (subject, size) in enumerate(sizes.items()):
            right = [round(shares[place] * size) for shares in MODELS.values()]
            for number in range(size):
                scores = (int((number * STEP + 13 * model) % size < count) for model, count in enumerate(right))
                rows.append(",".join([f"{benchmark}/{subject}-{number:03}", *map(str, scores)]))
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    for name in SIZES:
        (FOLDER / f"{name}.jsonl").write_text(questions(name), encoding="utf-8")
    (FOLDER / "responses.csv").write_text(responses(), encoding="utf-8")
