"""Which demonstration questions do the two benchmarks hold?

Run `python specs/demo/make_questions.py`: it writes `everyday.jsonl` (four choices) and `triples.jsonl` (three) beside
itself, always the same bytes. Every question is held out (see `subjects.held_out`), so no checkpoint was trained on it.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

from subjects import EVERYDAY, LETTERS, TRIPLES, Question, Subject, draw_question, held_out

SEED = 20261129
MOST_DRAWS = 100_000
FOLDER = Path(__file__).resolve().parent
BENCHMARKS: dict[str, tuple[tuple[Subject, ...], int]] = {
    "everyday": (EVERYDAY, 40),
    "triples": (TRIPLES, 36),
}


def benchmark_questions(name: str) -> list[Question]:
    """Give the questions of a benchmark, subject by subject."""
    subjects, per_subject = BENCHMARKS[name]
    return [question for subject in subjects for question in balanced_questions(subject, per_subject)]


def balanced_questions(subject: Subject, count: int) -> list[Question]:
    """Draw `count` different held-out questions in which every choice is right equally often."""
    random = Random(f"{SEED}/{subject.name}")
    room = dict.fromkeys(range(len(subject.choices)), count // len(subject.choices))
    chosen: dict[str, Question] = {}
    for _ in range(MOST_DRAWS):
        if not any(room.values()):
            return list(chosen.values())
        question = draw_question(subject, random)
        if held_out(question.text) and question.text not in chosen and room[question.answer]:
            chosen[question.text] = question
            room[question.answer] -= 1
    raise ValueError(f'"{subject.name}" has too few held-out questions for {count}: {room} are missing by answer')


def as_lines(questions: list[Question]) -> str:
    """Write questions as JSON Lines, with an id that counts within the subject."""
    seen: dict[str, int] = {}
    lines = []
    for question in questions:
        seen[question.subject] = seen.get(question.subject, 0) + 1
        record = {
            "id": f"{question.subject.replace(' ', '-')}-{seen[question.subject]:03d}",
            "subject": question.subject,
            "question": question.text,
            "choices": list(question.choices),
            "answer": LETTERS[question.answer],
        }
        lines.append(json.dumps(record, ensure_ascii=False) + "\n")
    return "".join(lines)


def main() -> None:
    """Write both benchmark files and say how many questions each holds."""
    for name in BENCHMARKS:
        questions = benchmark_questions(name)
        (FOLDER / f"{name}.jsonl").write_text(as_lines(questions), encoding="utf-8", newline="\n")
        print(f"{name}.jsonl: {len(questions)} questions")


if __name__ == "__main__":
    main()
