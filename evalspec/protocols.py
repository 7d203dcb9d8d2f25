"""Where can others plug in?  Analyses, executors, journals, signers: every plug in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from pydantic import BaseModel, JsonValue

if TYPE_CHECKING:  # every verb imports this module, and most need few of these types
    import numpy as np

    from evalspec.artifacts.findings import Estimate
    from evalspec.artifacts.journal import JobRecord
    from evalspec.artifacts.questions import QuestionBank
    from evalspec.artifacts.responses import Responses
    from evalspec.artifacts.schedule import Device
    from evalspec.artifacts.study import Model
    from evalspec.artifacts.thresholds import Check
    from evalspec.artifacts.verdict import CheckResult
    from evalspec.artifacts.work import WorkerEvent, WorkOrder
    from evalspec.errors import Diagnostic

OptionsT = TypeVar("OptionsT", bound=BaseModel)
ResultT = TypeVar("ResultT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a long step is: `done` of `total` units, what is under way, and once what a user should know and cannot see otherwise."""

    stage: str
    done: int
    total: int
    unit: str
    note: str = ""
    warning: str = ""


ProgressSink = Callable[[Progress], None]


def ignore_progress(_progress: Progress) -> None:
    """Drop progress reports."""


Judge = Callable[["Responses"], "tuple[CheckResult, ...]"]
"""Says what the checks of the study would come to on these responses, by the analyses that they name."""


@dataclass(frozen=True, slots=True)
class Background:
    """What is known beside the responses: models as the study declares them, how to read fully disclosed questions, outside tables by SHA-256."""

    models: tuple[Model, ...] = ()
    read_questions: Callable[[], QuestionBank] | None = None
    tables: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Context:
    """What an analysis may use beside responses and options: its own random stream, outside tables by their SHA-256, a progress sink.

    `rng` comes from `SeedSequence(study.seed, spawn_key=digest of the analysis id)`, so adding an analysis moves no other's numbers.
    `checks` are the study's own; `judge` says what they would come to on other responses, where that can be told; `unordered` are the ids of those
    for whose metric no one way of counting uncertain answers is known to be the worst. Of `background` only what a signed run holds may be used,
    so that results can be computed again from its files.
    """

    rng: np.random.Generator
    planned: bool = True
    basis: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, bytes] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    judge: Judge | None = None
    unordered: frozenset[str] = frozenset()
    background: Background = field(default_factory=Background)
    progress: ProgressSink = ignore_progress


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison that an analysis will test, as far as it is known before scoring; `alpha` is after the worst case of its correction.

    `exact` and `mid_p` are McNemar's tests, two-sided at `alpha`. `score`, `fay_lumbard` and `e_value` are one-sided at `alpha`: they show that
    the difference lies above `limit`, and with `both_limits` also below the opposite one.
    """

    label: str
    alpha: float
    test: str
    discordance: float | None = None
    limit: float = 0.0
    both_limits: bool = False


@dataclass(frozen=True, slots=True)
class PlannedLooks:
    """Which one of several planned looks a test is, with the questions and the alpha that the last of them has."""

    this: int
    count: int
    last_questions: int
    last_alpha: float


@dataclass(frozen=True, slots=True)
class CheckTest:
    """How a check of an estimate against a limit is decided, as far as it is known before scoring.

    `test` is one that a `Comparison` names, or the interval whose bound must clear the limit (`wilson`, `clopper_pearson`, `jeffreys`).
    `alpha` is the chance of a false pass where the truth lies at the limit, on its one side, at this look where `looks` are planned; with
    `shared_by_subjects` it is that of all subjects of the analysis together, each of which gets its part. `no_difference` says that passing is
    planned for models that do not differ. With `exact_means` Gaffke's test takes the place of McNemar's where scores are fractional or questions
    come in clusters. `macro` says that every subject counts the same, so that questions may weigh differently. Of `directions` of pairs that are
    tested together, one must stand at `alpha` / `directions` for any to be separated.
    """

    test: str
    alpha: float
    discordance: float | None = None
    no_difference: bool = False
    looks: PlannedLooks | None = None
    shared_by_subjects: bool = False
    exact_means: bool = False
    macro: bool = False
    directions: int | None = None


@dataclass(frozen=True, slots=True)
class DeclaredDesign:
    """What is known of a benchmark's questions before scoring: whether they come in clusters, and whether scores may be other than 0 and 1."""

    clusters: bool = False
    fractional: bool = False


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a curve: the value `y` at `x`, and the band about it where it has one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


class Axes(Protocol):
    """A drawing surface for one chart of rows or of curves; values are in the units of the result, formatting is the surface's."""

    def caption(self, text: str) -> None:
        """Set what the chart shows, in words that can stand for it."""

    def scale(self, label: str, *, percent: bool = True, whole: bool = False, span: tuple[float, float] | None = None) -> None:
        """Name the axis of values (horizontal for rows, vertical for curves); say whether they are shown as percent, or are whole numbers.

        The axis reaches at least over `span`.
        """

    def interval(self, label: str, value: float | None, low: float | None, high: float | None, *, group: str = "", muted: bool = False) -> None:
        """Add a row: a point with its interval under a group heading; None draws the row as undefined, `muted` less strongly."""

    def reference(self, value: float, label: str) -> None:
        """Draw a line at `value` of the axis of values."""

    def across(self, label: str, *, logarithmic: bool = False) -> None:
        """Name the axis along which curves run, such as a number of questions."""

    def curve(self, label: str, points: Sequence[Point], *, group: str = "", muted: bool = False) -> None:
        """Add a curve to the panel under a group heading, with its band where points have one; `muted` draws it less strongly."""

    def mark(self, x: float, y: float, *, group: str = "") -> None:
        """Mark a point in the panel under a group heading, with a line from it to the axis along which curves run."""

    def scatter(self, label: str, points: Sequence[Point], *, group: str = "", muted: bool = False) -> None:
        """Add a cloud of points to the panel under a group heading, which has a curve too; `muted` draws it less strongly."""


@dataclass(frozen=True, slots=True)
class Analysis(Generic[OptionsT, ResultT]):
    """A statistical question that a study can ask.

    `examine` tells, before anything is scored, every fault of the outside tables that the options name, given their bytes by digest.
    `predictions` are those of `metrics` that are predicted and not measured: no check may rest on one.
    `pair_metrics` are those of `metrics` whose estimates are of two models; a threshold on one of them names a baseline. Which model stands first
    matters to a difference alone: an estimate of another unit must say the same of both orders.
    `ordered` are those of `metrics` that can only get worse for a model as its own answers turn wrong and the other models' right, and that rest on
    the answers of the models of their estimate alone, a rank on those of all. Where answers are missing, a check of any other metric cannot pass.
    `estimates` names the analysis by its kind; `analyses.analyse` puts the study's own id, basis and planned flag in its place.
    `comparisons` says, for options, model ids and the number of benchmarks, what will be tested, so that `plan` can forecast power.
    `check_test` says, for options, a check, model ids and the number of benchmarks, how that check is decided, None where that is not known.
    `refuses` says, for options and what is declared of a benchmark, why nothing of it is computed there, None where something is or may be.
    `stricter` gives options whose every error rate is divided by a number, which `require: any` asks for; where it takes estimates one by one, it
    must drop the correction for the family that they belong to, since the checks are corrected for their own number.
    `gate_defaults` are options that, left open, take another value than usual where a check holds a bound of the analysis against a limit.
    `least_models` is how many models a study must have for it to say anything; `most_models` how many it may have where an option has a value, as
    in `{("method", "max_t"): 100}`.
    `tolerance` is relative: how far real numbers may move when they are recomputed on another machine.
    `sources` are all works that it may rest on; `sources_used` says on which of them a result does, where that depends on what was computed.
    """

    kind: str
    options: type[OptionsT]
    result: type[ResultT]
    compute: Callable[[Responses, OptionsT, Context], ResultT]
    metrics: tuple[str, ...]
    estimates: Callable[[ResultT], tuple[Estimate, ...]]
    tolerance: float
    template: str
    pair_metrics: tuple[str, ...] = ()
    ordered: tuple[str, ...] = ()
    predictions: tuple[str, ...] = ()
    examine: Callable[[OptionsT, Mapping[str, bytes]], Iterable[Diagnostic]] | None = None
    plot: Callable[[ResultT, Axes], None] | None = None
    further_plots: tuple[Callable[[ResultT, Axes], None], ...] = ()
    comparisons: Callable[[OptionsT, Sequence[str], int], tuple[Comparison, ...]] | None = None
    check_test: Callable[[OptionsT, Check, Sequence[str], int], CheckTest | None] | None = None
    refuses: Callable[[OptionsT, DeclaredDesign], str | None] | None = None
    stricter: Callable[[OptionsT, int], OptionsT] | None = None
    gate_defaults: Mapping[str, JsonValue] = field(default_factory=dict)
    least_models: int = 1
    most_models: Mapping[tuple[str, str], int] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    sources_used: Callable[[ResultT], tuple[str, ...]] | None = None


AnyAnalysis = Analysis[Any, Any]
"""An analysis whose own types only it knows (Any: a catalogue holds many kinds)."""

Catalogue = Mapping[str, AnyAnalysis]
"""Every analysis that can be asked for, by kind."""


class Executor(Protocol):
    """Devices, and a way to run the scoring worker on them: where it runs."""

    def devices(self) -> tuple[Device, ...]:
        """Return the devices that can score."""

    def run(self, orders: Sequence[WorkOrder], journal: Journal, tell: Callable[[WorkerEvent], None]) -> None:
        """Score what the journal lacks; raises ScoringError when a model cannot be scored."""


class Journal(Protocol):
    """Finished batches, by the id of their job."""

    @property
    def folder(self) -> Path:
        """Where the journal is kept."""

    @property
    def secret_file(self) -> Path | None:
        """Where the secret is kept under which its lines are written; None where there is no such place."""

    def read(self, job: str) -> JobRecord:
        """Return what is recorded of a job, empty when nothing is; changes nothing."""


class Signer(Protocol):
    """A private key that signs, and the certificate that others know it by."""

    @property
    def fingerprint(self) -> str:
        """`SHA256:` and the base64 of the SHA-256 of the public key (SPKI, DER)."""

    @property
    def certificate_pem(self) -> bytes:
        """The signer's certificate."""

    def sign(self, message: bytes) -> bytes:
        """Return the ECDSA P-256 / SHA-256 signature of `message` in DER."""
