"""Which groups do the questions' words, or the models' answer distributions, make?

Both are made from questions in the order of their ids, so that the order of a file moves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from evalspec.analyses.designs import weighted
from evalspec.analyses.harmony_partitions import Partition, labels_digest
from evalspec.analyses.harmony_results import EmbeddingOptions, InducedOptions, PartitionSummary, PredictiveOptions, Stability, SweptGroups
from evalspec.analyses.harmony_vectors import directions_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from evalspec.artifacts.questions import QuestionSet
    from evalspec.artifacts.responses import AnswerTokens, BenchmarkResponses
    from evalspec.statistics.partitions import Grouper, SweptGroupings
    from evalspec.statistics.spectral import SpectralCoordinates

WEIGHTED = "a weighted sample has declared subjects, and no other groups are made of it"
BASELINE = "(the published method has embeddings as a baseline only)"
NO_ENCODER = "no encoder is named"
NO_TEXTS = "the texts of the questions are not disclosed, so nobody could make the same groups from this run's files"
NO_DISTRIBUTIONS = "no answer distributions are recorded"
CHOICES_ONLY = "only the probabilities of the choices are recorded; groups made from them follow the letter or the right answer, not what is asked"
CHOICES_DIFFER = "questions differ in their number of choices, so their distributions cannot be compared"
SOME_MISSING = "some questions have no answer distribution from every model"
FOLLOWS = "the groups follow what the model answered, not what was asked"

HALVES = 10
NEARBY = 2
FEWEST_TOKENS = 31
TOLD_WORDS = 3
LEAST_SILHOUETTE = 0.10
LEAST_SEED_AGREEMENT = 0.8
MOST_LIKE_CHOICE, MOST_LIKE_CORRECTNESS = 0.5, 0.3


@dataclass(frozen=True, slots=True, eq=False)
class AnswerDistributions:
    """Answer distributions of some models, each of shape (Q, V), by position of the model; `over` says over what.

    Distributions over `answer_tokens` mean the same for every question; those over `choices` are letters or options. `told_apart` is the share
    of them that stands in tokens of their own.
    """

    over: Literal["answer_tokens", "choices"]
    tables: dict[int, NDArray[np.float64]]
    told_apart: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Likeness:
    """Adjusted Rand indices of groups with the chosen options and with right and wrong; None where neither is known."""

    choice: float | None
    correctness: float | None

    @property
    def circular(self) -> bool:
        """Whether the groups are little more than the answers themselves."""
        return (self.choice or 0.0) > MOST_LIKE_CHOICE or (self.correctness or 0.0) > MOST_LIKE_CORRECTNESS


@dataclass(frozen=True, slots=True, eq=False)
class Grouped:
    """Groupings of the questions in the order of their ids, and how to make more of them."""

    swept: SweptGroupings
    again: Grouper
    parts: int = 1
    coordinates: SpectralCoordinates | None = None


def recorded_distributions(benchmark: BenchmarkResponses, options: PredictiveOptions) -> AnswerDistributions:
    """Return the answer distributions that the responses hold; raises ValueError with the reason where there are none to compare."""
    import numpy as np

    if benchmark.distributions is not None:
        return _over_tokens(benchmark.distributions, options)
    if benchmark.logprobs is None or not np.isfinite(benchmark.logprobs).any():
        raise ValueError(NO_DISTRIBUTIONS)
    tables = {}
    for row, logprobs in enumerate(benchmark.logprobs):
        known = ~np.isnan(logprobs)
        if known.any():
            if not known.all():
                raise ValueError(CHOICES_DIFFER if known.any(axis=1).all() else SOME_MISSING)
            raised = np.exp(logprobs - logprobs.max(axis=1, keepdims=True))
            tables[row] = raised / raised.sum(axis=1, keepdims=True)
    return AnswerDistributions("choices", tables)


def _over_tokens(recorded: AnswerTokens, options: PredictiveOptions) -> AnswerDistributions:
    """Return the distributions of each model that has any, over its most probable tokens and all others together."""
    from evalspec.statistics.answer_tokens import most_probable

    known = recorded.tokens >= 0
    models = [row for row in range(len(known)) if known[row].any()]
    if not known[models].any(axis=2).all():
        raise ValueError(SOME_MISSING)
    together = len(models) if options.shared == "consensus" else 1
    most = max(FEWEST_TOKENS, options.tokens // max(1, together))
    found = {row: most_probable(recorded.tokens[row], recorded.probabilities[row], most=most) for row in models}
    return AnswerDistributions(
        "answer_tokens", {row: table.probabilities for row, table in found.items()}, {row: table.told_apart for row, table in found.items()}
    )


def predictive_partition(
    benchmark: BenchmarkResponses,
    recorded: AnswerDistributions,
    models: Sequence[int],
    options: PredictiveOptions,
    rng: np.random.Generator,
) -> Partition:
    """Return the groups by spectral clustering of the mean divergence over the distributions of these models; raises ValueError with the reason."""
    import numpy as np

    from evalspec.statistics.answer_similarity import answer_similarity, require_distinct
    from evalspec.statistics.partitions import SweptGroupings
    from evalspec.statistics.silhouettes import divergence_silhouettes, similarity_silhouettes
    from evalspec.statistics.spectral import qr_groups, spectral_coordinates, spectral_groups

    order, numbers = _in_id_order(benchmark), range(options.k[0], options.k[1] + 1)
    ordered = [recorded.tables[model][order] for model in models]
    require_distinct(ordered, at_least=2 * options.k[1])
    similarity = answer_similarity(ordered, tau=options.tau, clamp=options.clamp)
    coordinates = spectral_coordinates(similarity, count=options.k[1], rng=rng)
    if coordinates.parts > options.k[1]:
        raise ValueError(f"the questions fall into more than {options.k[1]} parts that are not alike at all")
    by_qr = options.labels == "cluster_qr"
    labels = (
        tuple(qr_groups(coordinates, number) for number in numbers)
        if by_qr
        else spectral_groups(coordinates, numbers, starts=options.n_init, rng=rng)
    )
    measures = (similarity_silhouettes(similarity, labels), divergence_silhouettes(similarity, labels))
    chosen, other = measures if options.silhouette == "1-S" else measures[::-1]

    def again(which: NDArray[np.intp], number: int, stream: np.random.Generator) -> NDArray[np.int64]:
        found = coordinates if which.size == order.size else spectral_coordinates(similarity.among(which), count=number, rng=stream)
        return qr_groups(found, number) if by_qr else spectral_groups(found, [number], starts=options.n_init, rng=stream)[0]

    grouped = Grouped(SweptGroupings(tuple(numbers), labels, chosen, other), again, coordinates.parts, coordinates)
    named = tuple(benchmark.models[model] for model in models)
    shared = f"mean of {len(named)} models" if len(named) > 1 else named[0]
    over = "tokens of the answer" if recorded.over == "answer_tokens" else "choices"
    label = (
        f"predictive similarity ({shared}), p-bar over the {over}, tau = {options.tau:g}, clamp = {options.clamp:g}, "
        f"silhouette by {options.silhouette}: constants chosen by evalspec, not by the published method"
    )
    apart = [recorded.told_apart[model] for model in models if model in recorded.told_apart]
    told_apart = float(np.mean(apart)) if apart else None
    summary = PartitionSummary(benchmark=benchmark.benchmark, source="predictive", label=label, models=named, told_apart=told_apart)
    return _partition(benchmark, grouped, summary, options, rng)


def word_partition(benchmark: BenchmarkResponses, questions: QuestionSet | None, options: EmbeddingOptions, rng: np.random.Generator) -> Partition:
    """Return the groups by the words of the questions and their choices, named by them; raises ValueError with the reason."""
    from evalspec.statistics.word_vectors import word_vectors

    if questions is None:
        raise ValueError(NO_TEXTS)
    known = questions.by_id()
    asked = [known[benchmark.questions[place]] for place in _in_id_order(benchmark)]
    vectors = word_vectors([" ".join((question.stem, *question.choices)) for question in asked], dimensions=options.dimensions, rng=rng)
    label = f"text-embedding partition: TF-IDF, {options.dimensions} singular vectors, k-means {BASELINE}"
    swept = _sweep_directions(vectors.directions, options, rng)
    partition = _partition(benchmark, swept, PartitionSummary(benchmark=benchmark.benchmark, source="embedding", label=label), options, rng)
    told = vectors.telling_words(swept.swept.labels[swept.swept.best], count=TOLD_WORDS)
    names = tuple(": ".join((name, ", ".join(words))) if words else name for name, words in zip(partition.names, told, strict=True))
    return replace(partition, names=names)


def encoded_partition(benchmark: BenchmarkResponses, tables: Mapping[str, bytes], options: EmbeddingOptions, rng: np.random.Generator) -> Partition:
    """Return the groups by the vectors of a pinned encoder; raises ValueError with the reason where there is none or a vector is missing."""
    encoder = options.encoder
    if encoder is None:
        raise ValueError(NO_ENCODER)
    directions = directions_of(encoder, tables, [benchmark.questions[place] for place in _in_id_order(benchmark)])
    label = f"text-embedding partition: encoder {encoder.name}, k-means {BASELINE}"
    digest = encoder.vectors.sha256
    summary = PartitionSummary(benchmark=benchmark.benchmark, source="embedding", label=label, vectors_sha256=digest)
    return _partition(benchmark, _sweep_directions(directions, options, rng), summary, options, rng)


def _sweep_directions(directions: NDArray[np.float64], options: EmbeddingOptions, rng: np.random.Generator) -> Grouped:
    from evalspec.statistics.kmeans import kmeans
    from evalspec.statistics.partitions import SweptGroupings
    from evalspec.statistics.silhouettes import cosine_silhouettes

    numbers = tuple(range(options.k[0], options.k[1] + 1))
    labels = tuple(kmeans(directions, number, starts=options.n_init, rng=rng).labels for number in numbers)

    def again(which: NDArray[np.intp], number: int, stream: np.random.Generator) -> NDArray[np.int64]:
        return kmeans(directions[which], number, starts=options.n_init, rng=stream).labels

    return Grouped(SweptGroupings(numbers, labels, cosine_silhouettes(directions, labels)), again)


def likeness_to_answers(benchmark: BenchmarkResponses, model: int, partition: Partition) -> Likeness:
    """Return how far groups made from answers agree with the chosen options and with right and wrong."""
    import numpy as np

    from evalspec.statistics.partitions import adjusted_rand

    choices, scores = benchmark.choices[model, :, 0], benchmark.settled()[model]
    chosen, scored = choices >= 0, ~np.isnan(scores)
    return Likeness(
        adjusted_rand(choices[chosen], partition.codes[chosen]) if chosen.any() else None,
        adjusted_rand(scores[scored], partition.codes[scored]) if scored.any() else None,
    )


def _in_id_order(benchmark: BenchmarkResponses) -> NDArray[np.intp]:
    import numpy as np

    if weighted(benchmark):
        raise ValueError(WEIGHTED)
    return np.argsort(np.array(benchmark.questions))


def _partition(
    benchmark: BenchmarkResponses, grouped: Grouped, summary: PartitionSummary, options: InducedOptions, rng: np.random.Generator
) -> Partition:
    import numpy as np

    swept, place = grouped.swept, np.empty(len(benchmark.questions), dtype=np.intp)
    place[_in_id_order(benchmark)] = np.arange(place.size)
    number, labels = swept.numbers[swept.best], swept.labels[swept.best]
    names = tuple(f"group {position + 1}" for position in range(number))
    near = [other for other in range(len(swept.numbers)) if 0 < abs(swept.numbers[other] - number) <= NEARBY]
    stability = _stability(grouped, options, rng)
    found = summary.model_copy(
        update={
            "k": number,
            "smallest": int(np.bincount(labels).min()),
            "labels_sha256": labels_digest(benchmark.questions, [names[code] for code in labels[place]]),
            "swept": tuple(_swept(swept, position) for position in range(len(swept.numbers))),
            "stability": stability,
            "flags": _flags(grouped, options, stability),
        }
    )
    return Partition(names, labels[place], found, summary.source == "predictive", tuple(swept.labels[other][place] for other in near))


def _swept(swept: SweptGroupings, position: int) -> SweptGroups:
    other = swept.others[position] if swept.others else None
    return SweptGroups(k=swept.numbers[position], silhouette=swept.silhouettes[position], other_silhouette=other)


def _stability(grouped: Grouped, options: InducedOptions, rng: np.random.Generator) -> Stability:
    import numpy as np

    from evalspec.statistics.partitions import adjusted_rand, agreement_of_halves
    from evalspec.statistics.spectral import qr_groups

    swept = grouped.swept
    number, labels = swept.numbers[swept.best], swept.labels[swept.best]
    everything = np.arange(labels.size)
    seeds = [adjusted_rand(grouped.again(everything, number, rng), labels) for _ in range(options.seeds)]
    halves = agreement_of_halves(labels, grouped.again, halves=HALVES, rng=rng)
    by_qr = None if grouped.coordinates is None else adjusted_rand(qr_groups(grouped.coordinates, number), labels)
    return Stability(
        seed_agreement=float(np.mean(seeds)),
        half_agreement=halves.mean,
        half_agreement_least=halves.least,
        halves=HALVES,
        qr_agreement=by_qr,
        k_by_other=swept.numbers[int(np.argmax(swept.others))] if swept.others else None,
    )


def _flags(grouped: Grouped, options: InducedOptions, stability: Stability) -> tuple[str, ...]:
    """Return why groups are doubtful: their number at the edge, hardly apart, other groups by other starts, parts that are not alike at all."""
    swept, flags = grouped.swept, []
    number = swept.numbers[swept.best]
    if min(number - options.k[0], options.k[1] - number) <= 1:
        flags.append("the number of groups is at the edge of those tried")
    if swept.silhouettes[swept.best] < LEAST_SILHOUETTE:
        flags.append("groups are hardly apart (the best silhouette is below 0.10)")
    if stability.seed_agreement < LEAST_SEED_AGREEMENT:
        flags.append("other random starts make other groups")
    if grouped.parts > 1:
        flags.append("some questions are not alike to others at all")
    return tuple(flags)
