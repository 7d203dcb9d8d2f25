"""What was settled before anything was scored?  The plan that `evalspec lock` signs, and what a run made of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from evalspec.artifacts.base import Artifact, Digest, FormatOne, Identifier, JsonValue, canonical_json, sha256_hex

LOCK = "lock.dsse.json"
"""The name of a lock in a run directory; beside a study it has the study's name before it."""

SELF_ASSERTED = "self-asserted: no timestamp authority"

DIGESTS = MappingProxyType({"checkpoint": "weights_sha256", "recorded": "sha256", "earlier_run": "responses_sha256"})
"""Under which key of its identity a model's digest stands, by what it is; one behind a server has none."""


def _real_time(text: str) -> str:
    datetime.fromisoformat(text)
    return text


class _Said(Artifact):
    """Part of an in-toto predicate, whose keys are written in camel case."""

    model_config = ConfigDict(alias_generator=to_camel)


class LockedBenchmark(_Said):
    """A benchmark as it was settled: its source, the drawn questions, and the prompt with its worked examples, each by digest."""

    id: Identifier
    source_sha256: Digest
    questions: int
    questions_sha256: Digest
    prompt_sha256: Digest


class LockedModel(_Said):
    """A model as it was settled: the root over its weights (OpenSSF model signing, file method), or its recorded responses, or an earlier run's.

    Of a served model there is no digest: its weights cannot be known.
    """

    id: Identifier
    kind: Literal["checkpoint", "recorded", "served", "earlier_run"]
    sha256: Digest | None


class LockedAnalysis(_Said):
    """An analysis as it was settled: whether the study calls it planned, and the digest of the request with all of its options."""

    id: Identifier
    kind: Identifier
    planned: bool
    sha256: Digest


class Before(_Said):
    """What was known when the plan was locked, as far as the cache folder of whoever locked it tells.

    `answers` of `asked` ones lay in the journal for exactly these questions, prompts and weights; `replayed` are models whose responses were
    recorded earlier; `looks` is how many different sets of answers the checks had judged.
    """

    answers: int
    asked: int
    replayed: tuple[Identifier, ...] = ()
    looks: int | None = None

    @property
    def any(self) -> bool:
        """Whether answers may have been known."""
        return bool(self.answers or self.replayed or self.looks)


class Earlier(_Said):
    """Earlier attempts at the same study that the cache folder and the history of the lock file know.

    `locks` and `runs` count different protocols; `seeds` are all that were used; `commits` is how many commits touched the lock file, None
    where there is no repository.
    """

    locks: int = 0
    runs: int = 0
    seeds: tuple[int, ...] = ()
    commits: int | None = None


class Lock(_Said):
    """A plan, whole and by digests, with when and by what it was locked and what was known by then.

    `locked_at` is the signer's own word. `signer_certificate` only lets anybody check the signature; whose key that is, it cannot show.
    Raises ValueError where a digest is not that of the content beside it.
    """

    format_version: FormatOne = 1
    locked_at: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"), AfterValidator(_real_time)]
    time_authority: Literal["self-asserted: no timestamp authority"] = "self-asserted: no timestamp authority"
    versions: dict[str, str]
    study_source_sha256: Digest
    study_sha256: Digest
    protocol_sha256: Digest
    benchmarks: tuple[LockedBenchmark, ...]
    models: tuple[LockedModel, ...]
    analyses: tuple[LockedAnalysis, ...]
    thresholds_sha256: Digest | None
    before: Before
    earlier: Earlier
    replaces: Digest | None = Field(default=None, description="The lock file in whose place this one was put.")
    git_commit: str | None = None
    git_dirty: bool | None = None
    signer_certificate: str
    study: dict[str, JsonValue]
    protocol: dict[str, JsonValue]

    @model_validator(mode="after")
    def _digests_fit(self) -> Self:
        for name, stated, content in (("study", self.study_sha256, self.study), ("protocol", self.protocol_sha256, self.protocol)):
            if sha256_hex(canonical_json(content)) != stated:
                raise ValueError(f"the digest of the {name} is not that of the {name} in the lock")
        if self.study.get("source_sha256") != self.study_source_sha256 or self.protocol.get("study_sha256") != self.study_sha256:
            raise ValueError("study and protocol of the lock do not belong together")
        return self

    @model_validator(mode="after")
    def _lists_fit(self) -> Self:
        """Hold the lists that people read against the protocol beside them; one of another version's form names nothing here."""
        try:
            found = listed(self.protocol)
        except (KeyError, TypeError):
            return self
        for name in ("benchmarks", "models", "analyses", "thresholds_sha256"):
            if getattr(self, name) != getattr(found, name):
                raise ValueError(f"the {name.removesuffix('_sha256')} that the lock lists are not those of the protocol in it")
        return self

    @property
    def seed(self) -> JsonValue:
        """The seed that was settled."""
        return self.protocol.get("seed")


@dataclass(frozen=True, slots=True)
class Listed:
    """What a lock lists of its protocol, for people."""

    benchmarks: tuple[LockedBenchmark, ...]
    models: tuple[LockedModel, ...]
    analyses: tuple[LockedAnalysis, ...]
    thresholds_sha256: Digest | None


def listed(protocol: Mapping[str, Any]) -> Listed:  # Any: a protocol as JSON, whose keys another version may have named otherwise
    """Return what a lock lists of a protocol; raises KeyError or TypeError for one of another version's form."""
    thresholds = protocol["thresholds"]
    return Listed(
        tuple(map(_benchmark, protocol["benchmarks"])),
        tuple(_model(entry["id"], entry["identity"]) for entry in protocol["models"]),
        tuple(LockedAnalysis(id=one["id"], kind=one["kind"], planned=one["planned"], sha256=_digest(one)) for one in protocol["analyses"]),
        None if thresholds is None else _digest(thresholds),
    )


def _benchmark(entry: Mapping[str, Any]) -> LockedBenchmark:
    return LockedBenchmark(
        id=entry["id"],
        source_sha256=entry["source_sha256"],
        questions=len(entry["questions"]),
        questions_sha256=_digest([question["sha256"] for question in entry["questions"]]),
        prompt_sha256=_digest([entry["prompt"], entry["preambles"]]),
    )


def _model(name: str, identity: Mapping[str, Any]) -> LockedModel:
    return LockedModel(id=name, kind=identity["kind"], sha256=identity.get(DIGESTS.get(identity["kind"], "")))


def _digest(content: JsonValue) -> str:
    return sha256_hex(canonical_json(content))


@dataclass(frozen=True, slots=True)
class Deviation:
    """A place at which a run is not as locked: a JSON pointer into `file`, in which entries of lists go by their ids; values as short JSON text.

    None stands for what the one side does not have.
    """

    file: str
    path: str
    locked: str | None
    run: str | None

    def __str__(self) -> str:
        return f"{self.file}{self.path}: locked {self.locked or 'nothing'}, now {self.run or 'nothing'}"


@dataclass(frozen=True, slots=True)
class Standing:
    """How one analysis of a run stands to the lock; `why` is what keeps it from being planned."""

    analysis: str
    kind: str
    planned: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class LockedPlan:
    """A lock whose signature holds, beside the run that it was made for; `signer` is the name that its certificate claims."""

    lock: Lock
    sha256: str
    fingerprint: str
    signer: str
    deviations: tuple[Deviation, ...]
    standings: tuple[Standing, ...]

    @property
    def as_locked(self) -> bool:
        """Whether nothing of the run is other than locked."""
        return not self.deviations

    @property
    def unplanned(self) -> frozenset[str]:
        """The analyses that the lock does not make planned ones."""
        return frozenset(standing.analysis for standing in self.standings if not standing.planned)

    @property
    def limits_moved(self) -> bool:
        """Whether a check or the rule over all checks is other than locked."""
        return any(deviation.path.startswith("/thresholds") for deviation in self.deviations)

    def describe(self) -> Iterator[str]:
        """Yield in plain lines what is locked, by whom, and how the run stands to it."""
        yield f"plan locked {self.lock.locked_at} ({SELF_ASSERTED}) by {self.signer}, key {self.fingerprint}"
        if self.as_locked:
            yield "as locked"
        else:
            yield f"not as locked: {len(self.deviations)} deviation{'s' if len(self.deviations) > 1 else ''}"
