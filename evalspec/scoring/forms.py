"""What is a server sent, and under which texts does it list a letter?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evalspec.artifacts.base import JsonValue
from evalspec.artifacts.prompts import split_prompt
from evalspec.artifacts.served import ServerAbilities
from evalspec.artifacts.work import AskedQuestion

ID = "token_id:"
"""How servers write a token by its id."""

Body = dict[str, JsonValue]
"""The JSON object that a request carries."""


def forms_of(question: AskedQuestion, *, chat: bool, merge: bool) -> tuple[tuple[str, ...], ...]:
    """Return, per letter, the texts whose probabilities stand for it: the one that follows the prompt, and with `merge` the other one too.

    >>> forms_of(AskedQuestion(name="q", sha256="0" * 64, prompt="Answer:", answers=("A", "B")), chat=False, merge=True)
    ((' A', 'A'), (' B', 'B'))
    """
    lead = "" if chat else split_prompt(question.prompt)[1]
    return tuple(tuple(dict.fromkeys([lead + letter, *([letter, f" {letter}"] if merge else [])])) for letter in question.answers)


def letter_request(name: str, prompt: str, abilities: ServerAbilities, *, chat: bool) -> tuple[str, Body]:
    """Return address and body of the request whose reply lists the likeliest next tokens."""
    ids: list[JsonValue] = [number for _, number in abilities.ids]
    body: Body = {"model": name, "max_tokens": 1, "temperature": 0}
    body |= {"return_tokens_as_token_ids": True} if ids else {}
    body |= {"logprob_token_ids": ids} if abilities.exact else {}
    body |= {"allowed_token_ids": ids} if abilities.steered else {}
    if chat:
        messages: list[JsonValue] = [{"role": "user", "content": prompt}]
        return "chat/completions", body | {"messages": messages, "logprobs": True, "top_logprobs": abilities.listed}
    return "completions", body | {"prompt": prompt, "logprobs": abilities.listed}


def option_request(name: str, prompt: str, abilities: ServerAbilities) -> tuple[str, Body]:
    """Return address and body of the request whose reply echoes a prompt with the log-probabilities of its tokens."""
    body: Body = {"model": name, "prompt": prompt, "echo": True, "logprobs": 1, "max_tokens": abilities.echo_tokens or 0, "temperature": 0}
    return "completions", body


def keys_of(forms: Sequence[Sequence[str]], abilities: ServerAbilities) -> Iterator[list[str]]:
    """Yield, per letter, what its texts are called in the lists of a server."""
    ids = dict(abilities.ids)
    for some in forms:
        yield [f"{ID}{ids[form]}" if ids else form for form in some]
