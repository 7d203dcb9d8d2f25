"""How often has this gate judged answers to these questions?  Counted in the cache folder, as far as that folder saw the runs.

A look is a set of answers that the checks were held against. The same answers judged again are the same look, whatever else changed; other
answers to the same questions, of another checkpoint or to more of them, are another one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import TypeAdapter

from evalspec.artifacts.base import Digest, canonical_json, sha256_hex
from evalspec.artifacts.protocol import Protocol
from evalspec.artifacts.responses import Responses
from evalspec.artifacts.thresholds import Check
from evalspec.errors import InputError
from evalspec.foreign import read_file
from evalspec.places import write_privately

LOOKS = "looks.json"
_SEEN: TypeAdapter[dict[Digest, list[Digest]]] = TypeAdapter(dict[Digest, list[Digest]])


def count_looks(cache: Path, protocol: Protocol, responses: Responses) -> int | None:
    """Record this look and return how many different ones its gate has had; None for a study without thresholds.

    A record that cannot be read is begun anew.
    """
    if protocol.thresholds is None:
        return None
    path = cache / LOOKS
    seen, gate, look = _seen(path), _gate(protocol), _look(protocol, responses)
    looks = dict.fromkeys([*seen.get(gate, []), look])
    write_privately(path, canonical_json({**seen, gate: list(looks)}))
    return len(looks)


def known_looks(cache: Path, protocol: Protocol) -> int | None:
    """Return how many different looks this gate has had so far; None for a study without thresholds."""
    return None if protocol.thresholds is None else len(_seen(cache / LOOKS).get(_gate(protocol), []))


def _seen(path: Path) -> dict[str, list[str]]:
    """Return the looks by gate; none where they cannot be read."""
    try:
        return _SEEN.validate_json(read_file(path, name=LOOKS))
    except (InputError, ValueError):
        return {}


def _gate(protocol: Protocol) -> str:
    """Return what stays the same from look to look: the claims, and where the questions come from."""
    sources = {name: protocol.benchmark(name).source_sha256 for name in _benchmarks(protocol)}
    claims = [check.model_dump(mode="json", exclude={"id", "analysis", "assume"}) for check in _checks(protocol)]
    return sha256_hex(canonical_json([sorted(sources.items()), claims]))


def _look(protocol: Protocol, responses: Responses) -> str:
    """Return the answers that the checks rest on, whatever the order of questions."""
    named = {model for check in _checks(protocol) for model in (check.model, check.baseline) if model is not None}
    content = []
    for name in _benchmarks(protocol):
        entry = responses.benchmark(name)
        order = [place for _, place in sorted((question, place) for place, question in enumerate(entry.questions))]
        rows = [
            [model, sha256_hex(entry.scores[row][order].tobytes()), sha256_hex(entry.reasons[row][order].tobytes())]
            for row, model in enumerate(entry.models)
            if model in named
        ]
        content.append([name, [entry.questions[place] for place in order], rows])
    return sha256_hex(canonical_json(content))


def _checks(protocol: Protocol) -> tuple[Check, ...]:
    return protocol.thresholds.checks if protocol.thresholds else ()


def _benchmarks(protocol: Protocol) -> Iterator[str]:
    covered = {request.id: request.benchmarks for request in protocol.analyses}
    named = {name for check in _checks(protocol) for name in ((check.benchmark,) if check.benchmark else covered[check.analysis])}
    yield from sorted(named)
