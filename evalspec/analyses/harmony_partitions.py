"""Into which groups do the questions of a benchmark fall?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalspec.analyses.designs import subject_labels
from evalspec.analyses.harmony_results import PartitionSummary
from evalspec.artifacts.base import sha256_hex

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from evalspec.artifacts.responses import BenchmarkResponses

DECLARED = "Harmony over declared subjects (not the induced partition of the published method)"
ONE_GROUP = "all questions are of one subject"


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """The group of each question as a position in `names`, shape (Q,), with what the report says of it.

    `from_answers` marks groups that the models' own answers made: tests against the same answers would be circular. `nearby` holds the groups
    for nearly as many of them, where their number was chosen.
    """

    names: tuple[str, ...]
    codes: NDArray[np.int64]
    summary: PartitionSummary
    from_answers: bool = False
    nearby: tuple[NDArray[np.int64], ...] = ()


def declared_partition(benchmark: BenchmarkResponses) -> Partition:
    """Return the subjects that the questions name; raises ValueError with the reason where they make no groups."""
    import numpy as np

    labels = subject_labels(benchmark)
    without = int(np.sum(labels == ""))
    if without:
        raise ValueError(f"{without:,} of {labels.size:,} questions have no subject")
    names, codes = np.unique(labels, return_inverse=True)
    if names.size < 2:
        raise ValueError(ONE_GROUP)
    summary = PartitionSummary(
        benchmark=benchmark.benchmark,
        source="declared",
        label=DECLARED,
        k=names.size,
        smallest=int(np.bincount(codes).min()),
        labels_sha256=labels_digest(benchmark.questions, labels.tolist()),
    )
    return Partition(tuple(names.tolist()), codes.astype(np.int64), summary)


def labels_digest(questions: Sequence[str], labels: Sequence[str]) -> str:
    """Return the SHA-256 over lines of question id, tab and group, sorted: which questions stand together, whatever their order."""
    return sha256_hex("".join(f"{question}\t{label}\n" for question, label in sorted(zip(questions, labels, strict=True))).encode())
