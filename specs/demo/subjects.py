"""What do the demonstration questions ask, and which of them may a model be trained on?

Every subject has fixed choices in a fixed order and a rule that draws a question from a seeded generator.
A question is held out when the SHA-256 of its text, modulo 5, is 0: training sees only the other four fifths.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

LETTERS = "ABCD"
HELD_OUT_ONE_IN = 5


@dataclass(frozen=True, slots=True)
class Question:
    """One multiple-choice question; `answer` is the index of the right choice."""

    subject: str
    text: str
    choices: tuple[str, ...]
    answer: int


@dataclass(frozen=True, slots=True)
class Subject:
    """A family of questions with the same choices; `draw` gives a text and the index of its answer."""

    name: str
    choices: tuple[str, ...]
    draw: Callable[[Random], tuple[str, int]]


def held_out(text: str) -> bool:
    """Tell whether a question with this text is kept away from training."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8")).digest(), "big") % HELD_OUT_ONE_IN == 0


def draw_question(subject: Subject, random: Random) -> Question:
    """Draw one question of the subject, held out or not."""
    text, answer = subject.draw(random)
    return Question(subject.name, text, subject.choices, answer)


def training_questions(seed: int) -> Iterator[Question]:
    """Yield without end the questions that a model with this seed is trained on."""
    random = Random(seed)
    subjects = EVERYDAY + TRIPLES
    while True:
        question = draw_question(random.choice(subjects), random)
        if not held_out(question.text):
            yield question


def letter_prompt(question: Question) -> str:
    """Write the question with its choices; the continuation is a space and a letter."""
    choices = "".join(f"{letter}. {choice}\n" for letter, choice in zip(LETTERS, question.choices, strict=False))
    return f"{question.text}\n{choices}Answer:"


def option_prompt(question: Question) -> str:
    """Write the question alone; the continuation is a space and the text of a choice."""
    return f"{question.text}\nAnswer:"


def word_lists(*texts: str) -> tuple[tuple[str, ...], ...]:
    """Split each text into its words: one list of words per answer."""
    return tuple(tuple(text.split()) for text in texts)


(NAMES,) = word_lists("Ada Ben Clara David Elena Felix Grace Hugo Ines Jonas Karin Leo Maria Nina Oscar Paula")

COUNTRIES = word_lists(
    "Angola Chad Egypt Gabon Ghana Kenya Libya Mali Morocco Niger Nigeria Senegal Tunisia Zambia",
    "Argentina Belize Bolivia Brazil Canada Chile Colombia Cuba Ecuador Guatemala Mexico Panama Peru Uruguay",
    "Bhutan Cambodia China India Iran Iraq Japan Laos Malaysia Mongolia Nepal Pakistan Thailand Vietnam",
    "Austria Belgium Croatia Denmark Finland France Germany Greece Ireland Norway Poland Portugal Spain Sweden",
)
MONTHS = word_lists("March April May", "June July August", "September October November", "December January February")
ANIMALS = word_lists(
    "snake worm snail salmon trout shark whale dolphin clam eel",
    "hen duck goose swan penguin robin sparrow pigeon crow parrot",
    "cow horse dog cat sheep goat pig mouse rabbit bear",
    "bee wasp fly moth beetle cricket butterfly mosquito grasshopper ladybird",
)
WORDS = word_lists(
    "planet river window village meadow city teacher mountain bread kitchen forest island jacket ladder",
    "bring carry forget explain arrive belong decide allow follow listen become remember sing write",
    "happy tall angry heavy clever curious hungry famous honest gentle wooden lazy huge modern",
    "quickly often never always slowly seldom almost perhaps gladly rarely badly soon quietly too",
)
MATTER = word_lists(
    "iron granite glass wood copper gold marble brick stone coal steel paper",
    "milk petrol vinegar water juice blood ink beer coffee tea wine honey",
    "oxygen helium nitrogen xenon air methane argon hydrogen neon ozone chlorine propane",
)
VERBS = (
    ("visited", "visits", "will visit"),
    ("painted", "paints", "will paint"),
    ("cleaned", "cleans", "will clean"),
    ("sold", "sells", "will sell"),
    ("found", "finds", "will find"),
    ("drew", "draws", "will draw"),
    ("saw", "sees", "will see"),
    ("bought", "buys", "will buy"),
)
PLACES = ("house", "garden", "boat", "shop", "castle", "bridge", "tower", "farm")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
SYMBOLS = "kmprstvz"


def from_lists(lists: tuple[tuple[str, ...], ...], *templates: str) -> Callable[[Random], tuple[str, int]]:
    """Give a rule that fills a template with a word; the list that holds the word is the answer."""

    def draw(random: Random) -> tuple[str, int]:
        answer = random.randrange(len(lists))
        word, template = random.choice(lists[answer]), random.choice(templates)
        return template.format(word=word, name=random.choice(NAMES), place=random.choice(COUNTRIES[3])), answer

    return draw


def draw_largest(random: Random) -> tuple[str, int]:
    """Ask which of four different numbers is the largest."""
    numbers = random.sample(range(1, 50), 4)
    return "Which number is the largest: {}, {}, {} or {}?".format(*numbers), numbers.index(max(numbers))


def draw_remainder(random: Random) -> tuple[str, int]:
    """Ask what is left when a number is divided by four."""
    number = random.randrange(4, 60)
    template = random.choice(
        (
            "What is the remainder when {number} is divided by 4?",
            "{name} shares {number} nuts fairly among 4 children. How many are left over?",
            "{name} packs {number} eggs into boxes of 4. How many eggs remain?",
        )
    )
    return template.format(number=number, name=random.choice(NAMES)), number % 4


def draw_weekday(random: Random) -> tuple[str, int]:
    """Ask how far one day of the week is from another, one to four days on."""
    start, distance = random.randrange(7), random.randrange(4)
    template = random.choice(
        (
            "{name} leaves on {first} and returns on the next {second}. After how many days?",
            "{name} counts the days from {first} to the next {second}. How many are there?",
        )
    )
    second = DAYS[(start + distance + 1) % 7]
    return template.format(name=random.choice(NAMES), first=DAYS[start], second=second), distance


def draw_count(random: Random) -> tuple[str, int]:
    """Ask how often a letter occurs in a row of six."""
    answer = random.randrange(4)
    wanted, *others = random.sample(SYMBOLS, len(SYMBOLS))
    row = [wanted] * (answer + 1) + random.choices(others, k=5 - answer)
    random.shuffle(row)
    return f"How many times is {wanted} in the row {' '.join(row)}?", answer


def draw_order(random: Random) -> tuple[str, int]:
    """Ask whether a number is smaller than, equal to or larger than another."""
    first, second, answer = ordered_pair(random, limit=50)
    template = random.choice(
        (
            "How does the number {first} compare with {second}?",
            "{name} has {first} stamps and needs {second}. How does the first number compare?",
        )
    )
    return template.format(first=first, second=second, name=random.choice(NAMES)), answer


def draw_sign(random: Random) -> tuple[str, int]:
    """Ask for the sign of a difference, told as money or as a sum."""
    first, second, answer = ordered_pair(random, limit=50)
    template = random.choice(("What is the sign of {first} - {second}?", "{name} earns {first} and spends {second}. What is the balance?"))
    return template.format(first=first, second=second, name=random.choice(NAMES)), answer


def ordered_pair(random: Random, *, limit: int) -> tuple[int, int, int]:
    """Draw two numbers below `limit` and 0, 1 or 2: the first is smaller, equal or larger."""
    low, high = sorted(random.sample(range(1, limit), 2))
    answer = random.randrange(3)
    return ((low, high), (high, high), (high, low))[answer] + (answer,)


def draw_parity(random: Random) -> tuple[str, int]:
    """Ask which of two numbers are even."""
    answer = random.randrange(3)
    odd = ((0, 0), (1, 1), random.choice(((0, 1), (1, 0))))[answer]
    first, second = (2 * random.randrange(1, 25) + bit for bit in odd)
    return f"Are the numbers {first} and {second} even or odd?", answer


def draw_tense(random: Random) -> tuple[str, int]:
    """Ask whether a sentence speaks of the past, the present or the future."""
    answer = random.randrange(3)
    verb, place = random.choice(VERBS)[answer], random.choice(PLACES)
    return f"{random.choice(NAMES)} {verb} the {place}. When does it happen?", answer


EVERYDAY = (
    Subject(
        "continents",
        ("Africa", "America", "Asia", "Europe"),
        from_lists(
            COUNTRIES,
            "On which continent is {word}?",
            "{name} lives in {word}. Which continent is that?",
            "{name} wants to see {word}. Which continent is the goal?",
        ),
    ),
    Subject(
        "seasons",
        ("spring", "summer", "autumn", "winter"),
        from_lists(
            MONTHS,
            "{name} is in {place} in {word}. Which season is it there?",
            "Which season is it in {place} in {word}?",
        ),
    ),
    Subject(
        "legs",
        ("none", "two", "four", "six"),
        from_lists(
            ANIMALS,
            "How many legs has one healthy {word}?",
            "{name} draws one {word}. How many legs should it get?",
            "{name} sees one {word}. How many legs has it?",
        ),
    ),
    Subject(
        "word class",
        ("noun", "verb", "adjective", "adverb"),
        from_lists(
            WORDS,
            'Which kind of word is "{word}"?',
            '{name} looks up the word "{word}". Which kind of word is it?',
            '{name} spells "{word}". Which kind of word is that?',
        ),
    ),
    Subject("largest number", ("the first", "the second", "the third", "the fourth"), draw_largest),
    Subject("remainders", ("0", "1", "2", "3"), draw_remainder),
    Subject("weekdays", ("one day", "two days", "three days", "four days"), draw_weekday),
    Subject("counting", ("once", "twice", "three times", "four times"), draw_count),
)
TRIPLES = (
    Subject("order", ("smaller", "equal", "larger"), draw_order),
    Subject("sign", ("negative", "zero", "positive"), draw_sign),
    Subject("parity", ("both even", "both odd", "one of each"), draw_parity),
    Subject("tense", ("past", "present", "future"), draw_tense),
    Subject(
        "matter",
        ("solid", "liquid", "gas"),
        from_lists(
            MATTER,
            "In a room in {place}, at 20 degrees, what is {word}?",
            "{name} has some {word}. What state is it in?",
        ),
    ),
)
