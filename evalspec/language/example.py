"""Which questions and answers does a first study come with?  Twenty-four questions of ours, and invented answers of two systems to them."""

from __future__ import annotations

import json

from evalspec.artifacts.questions import LETTERS, Question

CLOCK = "clock and calendar"
COLOUR = "things around us"

_ASKED: tuple[tuple[str, str, tuple[str, ...], int], ...] = (
    (CLOCK, "How many minutes are there in two hours?", ("90", "100", "120", "200"), 2),
    (CLOCK, "Which day comes three days after Monday?", ("Wednesday", "Thursday", "Friday", "Sunday"), 1),
    (CLOCK, "A film starts at 19:40 and lasts 95 minutes. When does it end?", ("20:35", "21:05", "21:15", "21:35"), 2),
    (CLOCK, "How many days does September have?", ("28", "29", "30", "31"), 2),
    (CLOCK, "Which month comes directly before May?", ("March", "April", "June", "July"), 1),
    (CLOCK, "What is a quarter of an hour?", ("4 minutes", "15 minutes", "25 minutes", "40 minutes"), 1),
    (CLOCK, "How many hours are there in three days?", ("36", "48", "60", "72"), 3),
    (CLOCK, "A train leaves at 8:50 and arrives at 10:20. How long is the ride?", ("70 minutes", "80 minutes", "90 minutes", "130 minutes"), 2),
    (CLOCK, "Which of these years was a leap year?", ("2019", "2021", "2022", "2024"), 3),
    (CLOCK, "How many months have exactly 31 days?", ("5", "6", "7", "8"), 2),
    (CLOCK, "It is noon. What time was it five hours ago?", ("5:00", "7:00", "8:00", "17:00"), 1),
    (CLOCK, "How many weeks are there in 42 days?", ("4", "5", "6", "7"), 2),
    (COLOUR, "Which of these is used to cut paper?", ("spoon", "scissors", "pillow", "ladder"), 1),
    (COLOUR, "What does a kettle do?", ("boils water", "cools rooms", "dries hair", "plays music"), 0),
    (COLOUR, "Which of these melts in the sun?", ("stone", "glass", "butter", "paper"), 2),
    (COLOUR, "Where are eggs laid?", ("in a nest", "in a drawer", "in a cloud", "in a shoe"), 0),
    (COLOUR, "Which of these has no wheels?", ("bicycle", "bus", "sledge", "pram"), 2),
    (COLOUR, "What is bread made from?", ("sand", "flour", "wool", "oil paint"), 1),
    (COLOUR, "Which of these grows on trees?", ("potatoes", "carrots", "cherries", "mushrooms"), 2),
    (COLOUR, "What keeps rain off your head?", ("umbrella", "belt", "ruler", "spade"), 0),
    (COLOUR, "Which of these is the heaviest?", ("feather", "pencil", "apple", "piano"), 3),
    (COLOUR, "What do you need to open a locked door?", ("a key", "a fork", "a stamp", "a candle"), 0),
    (COLOUR, "Which animal gives us wool?", ("frog", "sheep", "trout", "crow"), 1),
    (COLOUR, "Which of these floats on water?", ("brick", "coin", "cork", "anvil"), 2),
)
_WRONG = {"candidate": (8,), "baseline": (2, 6, 7, 8, 9, 13, 20, 23)}
"""Which questions, counted from 0, the two invented systems get wrong."""

SYSTEMS = tuple(_WRONG)


def example_questions() -> tuple[Question, ...]:
    """Return the questions of a first study."""
    return tuple(Question(f"q{number:02}", stem, choices, answer, subject) for number, (subject, stem, choices, answer) in enumerate(_ASKED, start=1))


def questions_jsonl() -> str:
    """Return the questions as the text of a JSONL file."""
    rows = [
        {"id": asked.id, "subject": asked.subject, "question": asked.stem, "choices": asked.choices, "answer": asked.letter}
        for asked in example_questions()
    ]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def recorded_csv() -> str:
    """Return the invented answers as the text of a CSV file with one row for each question and system."""
    lines = ["question_id,model,choice"]
    for system, wrong in _WRONG.items():
        for index, asked in enumerate(example_questions()):
            choice = (asked.answer + 1) % len(asked.choices) if index in wrong else asked.answer
            lines.append(f"{asked.id},{system},{LETTERS[choice]}")
    return "\n".join(lines) + "\n"
