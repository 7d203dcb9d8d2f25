"""Which checks rest on a bound that keeps its error rate other than at every sample size, and what would keep it better?

What a bound is called follows from how the questions came about and from the kind of scores, as in the analyses themselves.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping

from evalspec.artifacts.protocol import Protocol, ProtocolBenchmark
from evalspec.artifacts.thresholds import Check
from evalspec.artifacts.work import repeats_of
from evalspec.protocols import CheckTest
from evalspec.statistics.gaffke import fewest_draws
from evalspec.statistics.guarantees import Guarantee, guarantee

EXACT, OF_SHARES = "clopper_pearson", ("wilson", "jeffreys")

APPROXIMATE = {
    "wilson": ("a bound of Wilson's interval", "clopper_pearson keeps it at every size"),
    "jeffreys": ("a bound of Jeffreys' interval", "clopper_pearson keeps it at every size"),
    "score": ("Tango's score bound", "{} kept it wherever it was computed"),
    "mid_p": ("the mid-p version of McNemar's test", "test exact keeps it at every size"),
    "ranks_holm": (
        "ranks by two-sided tests and Holm's method",
        "{} covers separations the wrong way round too, and keeps it for right and wrong answers of independent questions at every size",
    ),
    "ranks_max_t": ("ranks by max-T", "{} keeps it for right and wrong answers of independent questions at every size"),
}
"""Bounds that are cleared too often for some truths at the limit, and what to take instead."""

BOUNDS = {
    "t": "Student's t test",
    "cr2_t": "Student's t test",
    "cluster_sign_flip": "a test that flips the signs of whole clusters",
    "gaffke": "Gaffke's bound",
    "gaffke_clustered": "Gaffke's bound",
    "gaffke_weighted": "Gaffke's bound",
}
KEPT: Mapping[Guarantee, str] = {
    "conjectured": "it keeps its error rate by a conjecture that calculation supports, without known counterexample",
    "approximate": "it keeps its error rate approximately",
}
INSTEAD = "; {} takes Gaffke's bound there"
FURTHER = {
    "gaffke_weighted": " where questions weigh alike; where they do not, calculation alone supports it",
    "gaffke_clustered": " for clusters that are independent draws, whose sizes say nothing about their scores",
    "cluster_sign_flip": ", and not where one model varies much more between clusters than the other" + INSTEAD,
    **dict.fromkeys(("t", "cr2_t"), INSTEAD),
}
UNEQUAL = "; where they differ in size and every question counts the same, calculation alone supports it"

METHODS = {"subgroups": "method clopper_pearson", "article_compat": "noninferiority by method exact"}
"""What takes the bounds that keep their error rate, where it is not method exact of the same analysis."""


def guarantee_warnings(protocol: Protocol, tests: Mapping[str, CheckTest | None]) -> Iterator[str]:
    """Yield a warning for every check whose bound does not keep its error rate at every sample size, as its questions come about."""
    requests = {request.id: request for request in protocol.analyses}
    for check in protocol.thresholds.checks if protocol.thresholds else ():
        tested = tests.get(check.id)
        if tested is None or check.bound == "value":
            continue
        request = requests[check.analysis]
        for name in (check.benchmark,) if check.benchmark else request.benchmarks:
            benchmark, place = protocol.benchmark(name), f"check '{check.id}' on '{name}'"
            if benchmark.sample.method == "chosen":
                continue
            rests_on = _rests_on(check, tested, benchmark)
            if rests_on:
                yield f"{place} rests on {rests_on.format(METHODS.get(request.kind, 'method exact'))}"
            short = too_few_clusters(check, tested, benchmark) or _too_few_questions(tested, benchmark)
            if short:
                yield f"{place} {short}"


def _rests_on(check: Check, tested: CheckTest, benchmark: ProtocolBenchmark) -> str | None:
    found = _named_bound(check, tested, benchmark)
    if found is None:
        bound, better = APPROXIMATE.get(tested.test, (None, ""))
        if tested.test in OF_SHARES and (benchmark.clusters is not None or _uneven(check, tested, benchmark)):
            better = f"{EXACT} takes Gaffke's bound there"
        return f"{bound}, which keeps its error rate approximately only; {better}" if bound else None
    method, reason = found
    further = UNEQUAL if method == "gaffke_clustered" and len(set(Counter(benchmark.cluster_labels()).values())) > 1 else ""
    return f"{BOUNDS[method]}, since {reason}; {KEPT[guarantee(method)]}{FURTHER.get(method, '')}{further}"


def _named_bound(check: Check, tested: CheckTest, benchmark: ProtocolBenchmark) -> tuple[str, str] | None:
    """Return what results will call the bound, and why it is not the one for independent right and wrong answers; None where it is."""
    test = tested.test
    if test in ("ranks_max_t", "e_value"):
        return None
    exact = tested.exact_means or test in (EXACT, "fay_lumbard")
    if benchmark.clusters is not None:
        if test in OF_SHARES:
            return None
        named = "gaffke_clustered" if exact else "cr2_t" if test == "score" else "cluster_sign_flip"
        return named, "questions come in clusters"
    fractional = why_fractional(benchmark)
    if test == EXACT and _uneven(check, tested, benchmark):
        return "gaffke_weighted", "questions weigh differently"
    return ("gaffke" if exact else "t", fractional) if fractional else None


def _uneven(check: Check, tested: CheckTest, benchmark: ProtocolBenchmark) -> bool:
    """Whether the questions of a check weigh differently: those of one subject weigh alike."""
    return check.subject is None and (tested.macro or benchmark.weighted)


def why_fractional(benchmark: ProtocolBenchmark) -> str | None:
    """Return why scores are other than 0 and 1, as far as it is known before scoring."""
    if benchmark.score is not None:
        return "scores are not right or wrong"
    return "answers are averaged over repeats" if repeats_of(benchmark.scoring) > 1 else None


def too_few_clusters(check: Check, tested: CheckTest, benchmark: ProtocolBenchmark) -> str | None:
    """Return that even clusters without any doubt would be too few for Gaffke's bound to clear the limit of a check; None where they are enough."""
    if benchmark.clusters is None or tested.test not in (EXACT, "fay_lumbard"):
        return None
    floor = tested.test == EXACT
    share = (check.limit if check.lower else 1.0 - check.limit) if floor else 1.0 - abs(check.limit)
    if not 0.0 < share < 1.0 or not (floor or tested.no_difference):
        return None
    labelled = zip(benchmark.questions, benchmark.cluster_labels(), strict=True)
    count = len({label for question, label in labelled if check.subject in (None, question.subject)})
    fewest = fewest_draws(share, alpha=tested.alpha)
    best = f"{'right' if check.lower else 'wrong'} answers alone" if floor else "models that do not differ on any question"
    if count >= fewest:
        return None
    return f"is not cleared by {best} with {count} clusters: that takes at least {fewest}, of one size, at an alpha of {tested.alpha:.4g}"


def _too_few_questions(tested: CheckTest, benchmark: ProtocolBenchmark) -> str | None:
    """Return that even a model that alone is right on every question would be separated from no other, if no two of them count as one."""
    if not tested.directions or benchmark.clusters is not None or benchmark.pool is not None or why_fractional(benchmark):
        return None
    count, fewest = len(benchmark.questions), math.ceil(math.log2(tested.directions / tested.alpha))
    if count >= fewest:
        return None
    together = f"{tested.directions:,} directions of pairs are tested together, which takes at least {fewest}"
    at = f"at an alpha of {tested.alpha:.4g}"
    return f"rests on ranks, and {at} {count} questions separate no two models, unless some answer alike throughout: {together}"
