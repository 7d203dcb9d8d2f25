"""Where is a run other than its locked plan?  Study and protocol compared value by value; entries of lists are matched by their ids."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from evalspec.artifacts.base import JsonValue
from evalspec.artifacts.lock import Deviation, Lock, Standing
from evalspec.artifacts.protocol import Protocol
from evalspec.artifacts.study import Study

STUDY, PROTOCOL = "study.json", "protocol.json"
IN_THE_PROTOCOL = ("models", "benchmarks", "analyses", "thresholds", "seed")
"""Parts of the study that the protocol holds too, in more detail."""

ONLY_DIGESTS = frozenset({"/source_sha256", "/study_sha256"})
"""Digests that move with every letter of study.yaml, comments included; what they stand for is compared itself."""

SILENT = frozenset({"questions", "preambles", "ids"})
"""Lists of questions and worked examples: told by how many differ and never by what they are, since one side may not disclose them."""

LONGEST = 160
_ORDER = {"full": 0, "ids": 1, "none": 2}

Object = dict[str, JsonValue]


def deviations(lock: Lock, study: Study, protocol: Protocol) -> tuple[Deviation, ...]:
    """Return every place at which study or protocol of a run are not those of the lock; other comments or layout of study.yaml are none."""
    return _deviations(lock, _plain(study), _plain(protocol))


def standings(lock: Lock, protocol: Protocol) -> tuple[Standing, ...]:
    """Return how each analysis of a run stands to the lock: planned is what was locked as such and runs on what was locked."""
    now = _plain(protocol)
    locked = {str(entry["id"]): entry for entry in _entries(lock.protocol.get("analyses"))}
    return tuple(
        Standing(str(entry["id"]), str(entry["kind"]), planned=not why, why=why)
        for entry in _entries(now["analyses"])
        for why in [_why_not(entry, locked.get(str(entry["id"])), lock.protocol, now)]
    )


def tells_more(lock: Lock, protocol: Protocol) -> tuple[str, ...]:
    """Return the benchmarks of which the lock discloses more than the protocol allows, so that it may not travel with the run."""
    before = {str(entry["id"]): str(entry.get("disclosure")) for entry in _entries(lock.protocol.get("benchmarks"))}
    least = {benchmark.id: benchmark.disclosure for benchmark in protocol.benchmarks}
    return tuple(name for name, told in before.items() if _ORDER.get(told, 0) < _ORDER[least.get(name, "full")])


def _deviations(lock: Lock, study: Object, protocol: Object) -> tuple[Deviation, ...]:
    apart = [_without(side, *IN_THE_PROTOCOL) for side in (lock.study, study)]
    found = (*_differences(STUDY, "", *apart), *_differences(PROTOCOL, "", lock.protocol, protocol), *_declared(lock, study))
    return tuple(found)


def _declared(lock: Lock, study: Object) -> Iterator[Deviation]:
    """Compare what the study says of models and benchmarks beyond what the protocol holds, such as a licence or a family."""
    for part in ("models", "benchmarks"):
        before, now = _by_name(_entries(lock.study.get(part))), _by_name(_entries(study[part]))
        for name in before.keys() & now.keys():
            yield from _differences(STUDY, f"/{part}/{_token(name)}", _beyond(before[name]), _beyond(now[name]))


def _beyond(entry: Object) -> Object:
    """Return what of a model or benchmark only the study says: not sources, which digests stand for, nor what the protocol repeats."""
    return _without(entry, "source", "precision", "sample", "groups", "target", "missing", "scoring", "disclosure")


def _differences(file: str, path: str, locked: JsonValue, now: JsonValue) -> Iterator[Deviation]:
    if path in ONLY_DIGESTS or (locked == now and type(locked) is type(now)):
        return
    if isinstance(locked, dict) and isinstance(now, dict):
        for key in sorted({*locked, *now}):
            place = f"{path}/{_token(key)}"
            if key in SILENT and isinstance(locked.get(key, []), list) and isinstance(now.get(key, []), list):
                yield from _silently(file, place, _list(locked.get(key)), _list(now.get(key)))
            elif key in locked and key in now:
                yield from _differences(file, place, locked[key], now[key])
            else:
                yield Deviation(file, place, _shown(locked.get(key)), _shown(now.get(key)))
    elif _have_names(locked) and _have_names(now):
        yield from _between_lists(file, path, _entries(locked), _entries(now))
    else:
        yield Deviation(file, path, _shown(locked), _shown(now))


def _between_lists(file: str, path: str, locked: Sequence[Object], now: Sequence[Object]) -> Iterator[Deviation]:
    before, after = _by_name(locked), _by_name(now)
    for name in dict.fromkeys([*before, *after]):
        place = f"{path}/{_token(name)}"
        if name in before and name in after:
            yield from _differences(file, place, before[name], after[name])
        else:
            yield Deviation(file, place, _named(before.get(name)), _named(after.get(name)))
    common = [name for name in before if name in after]
    if common != [name for name in after if name in before]:
        yield Deviation(file, path, ", ".join(common), ", ".join(name for name in after if name in before))


def _silently(file: str, path: str, locked: Sequence[JsonValue], now: Sequence[JsonValue]) -> Iterator[Deviation]:
    """Say how two lists of questions differ without saying anything of what is in them."""
    if locked == now:
        return
    before, after = ({json.dumps(entry, sort_keys=True) for entry in side} for side in (locked, now))
    yield Deviation(file, path, _counted(locked), f"{_counted(now)}, {len(before & after):,} of them as locked")


def _counted(entries: Sequence[JsonValue]) -> str:
    return "1 entry" if len(entries) == 1 else f"{len(entries):,} entries"


def _why_not(entry: Object, locked: Object | None, before: Object, now: Object) -> str:
    """Return what keeps an analysis from being a planned one; nothing where it is one."""
    if not entry["planned"]:
        return "the study calls it exploratory"
    if locked is None:
        return "not in the lock"
    asked = [{str(one["id"]): _without(one, "source", "licence") for one in _entries(side.get("benchmarks"))} for side in (before, now)]
    reasons = {
        "exploratory in the lock": not locked.get("planned"),
        "changed since the lock": any(entry[part] != locked.get(part) for part in ("kind", "options", "benchmarks")),
        "over other models than locked": _systems(before) != _systems(now),
        "on other questions, or asked otherwise, than locked": any(
            asked[0].get(str(name)) != asked[1].get(str(name)) for name in _list(entry["benchmarks"])
        ),
        "under another seed than locked": before.get("seed") != now["seed"],
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _systems(protocol: Object) -> list[Object]:
    """Return the models by what they are, wherever they lie."""
    models = _entries(protocol.get("models"))
    identities = [model.get("identity") for model in models]
    return [{**model, "identity": _without(one, "origin") if isinstance(one, dict) else None} for model, one in zip(models, identities, strict=True)]


def _without(entry: Object, *names: str) -> Object:
    return {key: value for key, value in entry.items() if key not in names}


def _plain(artifact: Study | Protocol) -> dict[str, JsonValue]:
    """Return what the artifact's file holds."""
    content: dict[str, JsonValue] = json.loads(artifact.to_json())
    return content


def _entries(value: JsonValue) -> list[Object]:
    return [entry for entry in _list(value) if isinstance(entry, dict)]


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _have_names(value: JsonValue) -> bool:
    return isinstance(value, list) and len(value) > 0 and len(_by_name(_entries(value))) == len(value)


def _by_name(entries: Sequence[Object]) -> dict[str, Object]:
    """Return entries by their id, or by their name where they have none; those that have neither are left out."""
    return {str(name): entry for entry in entries for name in [entry.get("id") or entry.get("name")] if name}


def _named(entry: Object | None) -> str | None:
    """Say that only one side has an entry; what it holds stands in the files."""
    return None if entry is None else f"there ({entry['kind']})" if "kind" in entry else "there"


def _shown(value: JsonValue) -> str | None:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return None if value is None else text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _token(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
