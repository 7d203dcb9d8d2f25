"""Do groups, target and sample of a benchmark fit each other, and the analyses that rest on them?"""

from __future__ import annotations

from collections.abc import Iterator

from evalspec.language.draft import Draft, Entry, in_clusters
from evalspec.language.faults import Fault, lookup, name_of
from evalspec.language.positions import Pointer

WITHOUT_DRAW = "intervals"
"""The kind of analysis that speaks of chosen questions, without an interval."""

SUBGROUPS = "subgroups"
"""The kind of analysis that speaks of single subjects."""


def designs(draft: Draft) -> Iterator[Fault]:
    """Yield the faults of how questions are grouped and drawn."""
    for pointer, benchmark in draft.entries("benchmark"):
        name = name_of(pointer, draft.written)
        yield from _clusters(benchmark, pointer, name)
        yield from _pool(benchmark, pointer, name)
        yield from _chosen(benchmark, pointer, name)


def analyses_need_subjects(draft: Draft) -> Iterator[Fault]:
    """Yield a fault for every analysis that speaks of subjects on a benchmark that gives them no role."""
    for pointer, analysis in draft.entries("analysis"):
        for identifier in draft.benchmarks_of(analysis) or ():
            benchmark = draft.find("benchmark", identifier)
            if benchmark is not None:
                yield from _subjects(analysis, benchmark, pointer, name_of(pointer, draft.written))
                yield from _drawn(analysis, benchmark, pointer, name_of(pointer, draft.written))


def _clusters(benchmark: Entry, pointer: Pointer, name: str) -> Iterator[Fault]:
    subject, cluster = lookup(benchmark, ("groups", "subject")), lookup(benchmark, ("groups", "cluster"))
    if subject == "clusters" and cluster == "clusters":
        message = f"{name} declares two kinds of clusters, subjects and a field of their own"
        yield Fault((*pointer, "groups", "cluster"), message, "keep the larger groups: clusters inside them are allowed for already", "key")
    elif "clusters" in (subject, cluster) and lookup(benchmark, ("sample", "allocation")) == "equal":
        message = f"{name} draws equally many questions from each subject and declares clusters; such weighted clusters are not computed"
        yield Fault((*pointer, "sample", "allocation"), message, "write allocation: proportional")


def _pool(benchmark: Entry, pointer: Pointer, name: str) -> Iterator[Fault]:
    if benchmark.get("target") != "this_pool":
        return
    method = lookup(benchmark, ("sample", "method")) or "all"
    if method in ("all", "ids", "chosen"):
        drawn = (
            "takes every question of it" if method == "all" else f"{'names' if method == 'ids' else 'chooses'} its questions instead of drawing them"
        )
        message = f"{name} asks about this pool of questions alone, and its sample {drawn}"
        hint = (
            "with all of a pool asked nothing is uncertain about it" if method == "all" else "questions that are chosen say nothing sure about others"
        )
        yield Fault((*pointer, "target"), message, f"{hint}: delete the key, or draw a simple or stratified sample")
    if in_clusters(benchmark):
        message = f"{name} asks about this pool of questions alone, and declares clusters, which stand for others like them"
        yield Fault((*pointer, "target"), message, "delete the key, or declare no clusters")


def _chosen(benchmark: Entry, pointer: Pointer, name: str) -> Iterator[Fault]:
    if lookup(benchmark, ("sample", "method")) == "chosen" and in_clusters(benchmark):
        message = f"{name} chooses its questions by what other models made of them, and declares clusters, which only a random draw can speak for"
        yield Fault((*pointer, "groups"), message, "delete the key, or draw a simple sample", "key")


def _drawn(analysis: Entry, benchmark: Entry, pointer: Pointer, name: str) -> Iterator[Fault]:
    """Yield a fault for an analysis that rests on random questions where they are chosen; only the weighted estimate can be had from those."""
    if lookup(benchmark, ("sample", "method")) != "chosen" or (analysis.get("kind") == WITHOUT_DRAW and analysis.get("average") != "macro"):
        return
    key = "average" if analysis.get("kind") == WITHOUT_DRAW else "kind"
    message = (
        f'{name} rests on questions that were drawn at random, and those of benchmark "{benchmark.get("id")}" are chosen by other models\' answers'
    )
    yield Fault(
        (*pointer, key), message, f"{WITHOUT_DRAW} alone, without average: macro, speaks of them; name other benchmarks, or draw a simple sample"
    )


def _subjects(analysis: Entry, benchmark: Entry, pointer: Pointer, name: str) -> Iterator[Fault]:
    role, other = lookup(benchmark, ("groups", "subject")), f'benchmark "{benchmark.get("id")}"'
    if analysis.get("kind") == SUBGROUPS and role != "strata":
        message = f"{name} speaks of single subjects, and {other} does not declare them as strata"
        yield Fault((*pointer, "kind"), message, "add groups: {subject: strata} to the benchmark, or name other benchmarks")
    if analysis.get("average") == "macro" and role is None:
        message = f"{name} averages over subjects, and {other} gives them no role"
        yield Fault((*pointer, "average"), message, "add groups: {subject: strata} or {subject: clusters} to the benchmark, or write average: micro")
    elif analysis.get("average") == "macro" and lookup(benchmark, ("groups", "cluster")) == "clusters":
        message = f"{name} averages over subjects, and {other} has clusters inside them; that average is not computed"
        yield Fault((*pointer, "average"), message, "write average: micro")
