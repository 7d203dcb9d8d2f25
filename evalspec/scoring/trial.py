"""What does a server give?  Tried out once, with a text of ours, before any question is sent and anything is spent on one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from evalspec.artifacts.base import JsonValue
from evalspec.artifacts.served import ServedIdentity, ServerAbilities
from evalspec.artifacts.work import BenchmarkWork
from evalspec.scoring.forms import ID, forms_of, letter_request, option_request
from evalspec.scoring.replies import Listed, Usage, echoed_answer, listed_tokens, most_tokens, refuse_wild, usage_of
from evalspec.scoring.server import RefusedError, Server, ServerError

LISTS = (20, 5)
"""How many of the likeliest tokens are asked for: what most servers name at most, and what the others do."""

TRIED = "The answer is"
ALIKE = 1e-3
"""Within this, a log-probability is the same when the server is told which tokens it may pick."""

UNPRICED = "delete the keys price and max_cost"
NO_COMPLETIONS = "where the server answers chats alone, letters can be compared with `chat: true`"


async def try_out(server: Server, identity: ServedIdentity, works: Sequence[BenchmarkWork], *, counted: bool) -> ServerAbilities:
    """Return what a server gives for benchmarks that are asked in one way; `counted` says that it must tell how many tokens it charges.

    Raises ServerError where it does not give what is needed.
    """
    method, chat = works[0].scoring.method, works[0].scoring.chat
    try:
        if method == "option":
            return await _try_options(server, identity.model, counted=counted)
        found = await _try_letters(server, identity.model, chat=chat, counted=counted)
        asked = (forms_of(question, chat=chat, merge=identity.merge_variants) for work in works for question in work.questions)
        ids = await _ids(server, identity, dict.fromkeys(form for forms in asked for some in forms for form in some), chat=chat)
        return await _try_ids(server, identity.model, found, ids, chat=chat) if ids else found
    except ValueError as error:
        raise ServerError(f"tried out, {error}", hint=_remedy(method, chat=chat)) from error


async def _try_options(server: Server, name: str, *, counted: bool) -> ServerAbilities:
    failed: Exception | None = None
    for tokens in (0, 1):
        abilities = ServerAbilities(echo_tokens=tokens)
        try:
            reply = await server.ask(*option_request(name, f"{TRIED} red", abilities))
            echoed_answer(reply.content, prompt=f"{TRIED} red", answer=" red")
            _refuse_uncounted(reply.content, counted=counted)
        except (RefusedError, ValueError) as error:
            failed = error
        else:
            return abilities
    assert failed is not None
    if isinstance(failed, RefusedError):
        raise ServerError(f"asked for the probabilities of a given text, {failed.problem}", said=failed.said, hint=_remedy("option", chat=False))
    raise failed


async def _try_letters(server: Server, name: str, *, chat: bool, counted: bool) -> ServerAbilities:
    refused: RefusedError | None = None
    for most in LISTS:
        try:
            reply = await server.ask(*letter_request(name, f"{TRIED}:", ServerAbilities(listed=most), chat=chat))
        except RefusedError as error:
            refused = error
            continue
        _refuse_uncounted(reply.content, counted=counted)
        return ServerAbilities(listed=min(most, len(listed_tokens(reply.content, most=most).logprobs)))
    assert refused is not None
    raise ServerError(f"asked for its likeliest tokens, {refused.problem}", said=refused.said, hint=_remedy("letter", chat=chat))


def _refuse_uncounted(content: dict[str, JsonValue], *, counted: bool) -> None:
    if not counted:
        return
    found = usage_of(content)
    if found is None:
        raise ServerError("it does not tell how many tokens it counts, so that no cost can be", hint=UNPRICED)
    try:
        refuse_wild(found, Usage(most_tokens(TRIED, " red"), 1))
    except ValueError as error:
        raise ServerError(f"tried out, {error}, so that no cost can be known", hint=UNPRICED) from error


async def _ids(server: Server, identity: ServedIdentity, forms: Iterable[str], *, chat: bool) -> dict[str, int]:
    """Return the token id of each text; empty where the server does not tell, or where one of them is not one token of its own."""
    address, ids = identity.endpoint.removesuffix("/v1") + "/tokenize", dict[str, int]()

    async def tokens(text: str) -> list[JsonValue]:
        reply = await server.ask(address, {"model": identity.model, "prompt": text, "add_special_tokens": False})
        found = reply.content.get("tokens")
        return found if isinstance(found, list) else []

    try:
        for form in forms:
            for before in ("\n" if chat and not form.startswith(" ") else ":", "\n", ""):
                whole, context = await tokens(before + form), await tokens(before) if before else []
                if len(whole) == len(context) + 1 and whole[:-1] == context and isinstance(whole[-1], int):
                    ids[form] = whole[-1]
                    break
            else:
                return {}
    except ServerError:
        return {}
    return ids if len(set(ids.values())) == len(ids) else {}


async def _try_ids(server: Server, name: str, found: ServerAbilities, ids: Mapping[str, int], *, chat: bool) -> ServerAbilities:
    """Return the most that a server offers where the ids of the letters are known; what it was found to give before where it offers no more."""
    named = found.model_copy(update={"ids": tuple(sorted(ids.items()))})
    plain: Listed | None = None
    for abilities in (named.model_copy(update={"exact": True}), named, named.model_copy(update={"steered": True})):
        listed = await _listed_by_id(server, name, abilities, chat=chat)
        if abilities.exact and listed is not None and all(f"{ID}{number}" in listed.logprobs for number in ids.values()):
            return abilities
        if abilities.steered and plain is not None and listed is not None and _is_steered(plain, listed, ids):
            return abilities
        plain = None if abilities.exact else listed or plain
    return found if plain is None else named


async def _listed_by_id(server: Server, name: str, abilities: ServerAbilities, *, chat: bool) -> Listed | None:
    """Return the tokens that a server lists by their ids; None where it refuses or writes them otherwise."""
    try:
        reply = await server.ask(*letter_request(name, f"{TRIED}:", abilities, chat=chat))
        listed = listed_tokens(reply.content, most=abilities.listed)
    except (RefusedError, ValueError):
        return None
    return listed if all(token.startswith(ID) for token in listed.logprobs) else None


def _is_steered(plain: Listed, steered: Listed, ids: Mapping[str, int]) -> bool:
    """Return whether a server picked one of the letters and gave the same probabilities, not such as were spread over the letters alone."""
    alike = (math.isclose(value, steered.logprobs[token], abs_tol=ALIKE) for token, value in plain.logprobs.items() if token in steered.logprobs)
    return steered.picked in {f"{ID}{number}" for number in ids.values()} and plain.picked in steered.logprobs and all(alike)


def _remedy(method: str, *, chat: bool) -> str:
    if method == "option":
        return "not every server gives the probabilities of a given text: compare letters instead (`scoring: {method: letter}`)"
    return "this needs a server that gives the log-probabilities of tokens" if chat else NO_COMPLETIONS
