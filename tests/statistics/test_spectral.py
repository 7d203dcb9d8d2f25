"""The peers are scipy and scikit-learn, the truth is simulated subjects."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import rel_entr
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import adjusted_rand_score, silhouette_score

from benchmarks.simulated_answers import distributions, subjects_of
from evalspec.statistics import answer_similarity as module
from evalspec.statistics.answer_similarity import answer_similarity, require_distinct
from evalspec.statistics.answer_tokens import most_probable
from evalspec.statistics.eigenvectors import leading_eigenvectors
from evalspec.statistics.harmony import harmony
from evalspec.statistics.kmeans import in_order, kmeans
from evalspec.statistics.partitions import SweptGroupings, adjusted_rand, agreement_of_halves
from evalspec.statistics.silhouettes import cosine_silhouettes, divergence_silhouettes, mean_silhouette, similarity_silhouettes
from evalspec.statistics.spectral import qr_groups, spectral_coordinates, spectral_groups
from evalspec.statistics.word_vectors import word_vectors

KS = range(2, 21)


def divergences(table: np.ndarray) -> np.ndarray:
    """The symmetric divergence of all pairs, one row after the other."""
    clamped = np.maximum(table, 1e-6)
    clamped /= clamped.sum(axis=1, keepdims=True)
    return np.stack([rel_entr(row, clamped).sum(axis=1) + rel_entr(clamped, row).sum(axis=1) for row in clamped])


def table_of(questions: int, *, signal: float = 1.5, seed: int = 0) -> np.ndarray:
    return distributions(questions, signal=signal, rng=np.random.default_rng(seed))


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def test_one_product_gives_the_similarities_of_all_pairs_whether_they_are_kept_or_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(300)
    expected = np.exp(-0.5 * divergences(table))
    block = np.random.default_rng(2).standard_normal((300, 5)).astype(np.float32)
    kept = answer_similarity([table])
    monkeypatch.setattr(module, "MOST_KEPT", 0)
    monkeypatch.setattr(module, "TILE", 64)
    made = answer_similarity([table])
    assert (kept.kept is None, made.kept is None) == (False, True)
    for similarity in (kept, made):
        assert np.abs(similarity.times(block) - expected @ block).max() < 1e-4  # single precision, sums of 300 terms
        assert np.abs(similarity.columns(np.array([3, 70])) - expected[:, [3, 70]]).max() < 2e-6
    part = made.among(np.array([1, 5, 200]))
    assert np.abs(part.columns(np.arange(3)) - expected[np.ix_([1, 5, 200], [1, 5, 200])]).max() < 2e-6


def test_several_models_are_averaged_in_their_divergence() -> None:
    first, second = table_of(80), table_of(80, seed=5)
    expected = np.exp(-0.25 * (divergences(first) + divergences(second)))
    assert np.abs(answer_similarity([first, second]).columns(np.arange(80)) - expected).max() < 2e-6


def test_saturated_distributions_keep_their_divergences() -> None:
    table = np.eye(4)[np.arange(40) % 4]
    expected = np.exp(-0.05 * divergences(table))
    assert np.abs(answer_similarity([table], tau=0.1).columns(np.arange(40)) - expected).max() < 1e-5


@pytest.mark.parametrize("table", [[[0.5, -0.5]], [[0.0, 0.0]], [[1.0]], [0.5, 0.5]])
def test_what_is_no_distribution_is_refused(table: list[object]) -> None:
    with pytest.raises(ValueError, match=r"probabilities|distributions"):
        answer_similarity([table])


def test_too_few_distinct_distributions_are_refused() -> None:
    require_distinct([table_of(100)], at_least=40)
    with pytest.raises(ValueError, match="distinct"):
        require_distinct([np.tile(table_of(10), (10, 1))], at_least=40)
    with pytest.raises(ValueError, match="share one"):
        require_distinct([np.concatenate([table_of(40), np.tile(table_of(1), (60, 1))])], at_least=40)


def test_the_most_probable_tokens_are_told_apart_and_all_others_counted_as_one() -> None:
    draws = np.random.default_rng(12)
    whole = draws.dirichlet(np.full(50, 0.2), size=80)
    tokens = np.argsort(-whole, axis=1)[:, :20]
    recorded = np.take_along_axis(whole, tokens, axis=1)
    found = most_probable(tokens, recorded, most=10)
    seen = np.zeros((80, 50))
    np.put_along_axis(seen, tokens, recorded, axis=1)
    apart = np.sort(np.argsort(-seen.sum(axis=0))[:10])
    assert found.probabilities[:, :10] == pytest.approx(seen[:, apart])
    assert found.probabilities.sum(axis=1) == pytest.approx(np.ones(80))
    assert found.told_apart == pytest.approx(seen[:, apart].sum(axis=1).mean())
    everything = most_probable(tokens, recorded, most=999).probabilities
    merged, full = (answer_similarity([table]).columns(np.arange(80)) for table in (found.probabilities, everything))
    assert np.all(merged >= full - 1e-4)  # merging can only make distributions more alike; the clamp moves a little
    with pytest.raises(ValueError, match="needs a token"):
        most_probable([[1], [-1]], [[0.5], [np.nan]], most=3)


def test_leading_eigenvectors_are_those_of_a_dense_solver() -> None:
    root = np.random.default_rng(3).standard_normal((200, 60)) * np.geomspace(1, 0.05, 60)
    matrix = (root @ root.T / 200).astype(np.float32)
    values = np.linalg.eigvalsh(matrix.astype(float))[::-1][:8]
    found = leading_eigenvectors(lambda block: matrix @ block, np.random.default_rng(4).standard_normal((200, 12)), wanted=8, tolerance=1e-5, most=30)
    assert found.values[:8] == pytest.approx(values, rel=1e-5)
    assert found.residuals[:8].max() < 1e-4
    assert np.abs(found.vectors.T @ found.vectors - np.eye(12)).max() < 1e-8


def test_spectral_groups_are_scikit_learns_for_the_number_that_the_silhouette_chooses() -> None:
    for seed, signal in ((0, 1.5), (1, 3.0), (2, 1.0)):
        table = table_of(400, signal=signal, seed=seed)
        affinity = np.exp(-0.5 * divergences(table))
        np.fill_diagonal(affinity, 1.0)
        similarity = answer_similarity([table])
        ours = spectral_groups(spectral_coordinates(similarity, count=8, rng=rng()), range(2, 9), starts=10, rng=rng())
        peers = [SpectralClustering(k, affinity="precomputed", n_init=10, random_state=0).fit_predict(affinity) for k in range(2, 9)]
        scores = [silhouette_score(1.0 - affinity, labels, metric="precomputed") for labels in peers]
        found = similarity_silhouettes(similarity, ours)
        best = int(np.argmax(found))
        assert best == int(np.argmax(scores))
        assert adjusted_rand_score(peers[best], ours[best]) >= 0.99
        assert found[best] == pytest.approx(scores[best], abs=1e-4)
        accuracies = np.random.default_rng(seed).random(400)
        values = [harmony(np.bincount(groups, accuracies) / np.bincount(groups), np.bincount(groups)) for groups in (peers[best], ours[best])]
        assert values[0] == pytest.approx(values[1], abs=0.005)


@pytest.mark.slow
def test_harmony_over_estimated_groups_tracks_the_truth_over_36_models_where_answers_carry_the_subject() -> None:
    questions, domains, pairs, numbers = 1000, subjects_of(1000), [], []
    for seed in range(36):
        draws = np.random.default_rng(seed)
        accuracies = np.clip(0.7 + draws.uniform(0, 0.25) * draws.standard_normal(4), 0.05, 0.98)
        scores = (draws.random(questions) < accuracies[domains]).astype(float)
        similarity = answer_similarity([distributions(questions, signal=1.5, rng=draws)])
        labels = spectral_groups(spectral_coordinates(similarity, count=20, rng=draws), KS, starts=10, rng=draws)
        chosen = SweptGroupings(tuple(KS), labels, similarity_silhouettes(similarity, labels))
        numbers.append(chosen.numbers[chosen.best])
        groups = (chosen.labels[chosen.best], domains)
        pairs.append([harmony(np.bincount(codes, scores) / np.bincount(codes), np.bincount(codes)) for codes in groups])
    assert numbers.count(4) >= 34  # two subjects can show alike by chance
    estimated, true = np.array(pairs).T
    assert np.corrcoef(estimated, true)[0, 1] >= 0.98
    assert np.abs(estimated - true).mean() <= 0.02
    assert true.max() - true.min() > 0.5


def test_a_reading_without_chance_finds_the_same_groups() -> None:
    coordinates = spectral_coordinates(answer_similarity([table_of(500)]), count=8, rng=rng())
    assert adjusted_rand_score(qr_groups(coordinates, 4), spectral_groups(coordinates, [4], starts=10, rng=rng())[0]) > 0.97


def test_parts_that_are_not_alike_at_all_are_counted() -> None:
    table = np.full((90, 3), 1e-9)
    table[np.arange(90), np.arange(90) % 3] = 1.0
    coordinates = spectral_coordinates(answer_similarity([table], tau=20.0), count=5, rng=rng())
    assert coordinates.parts == 3
    assert spectral_coordinates(answer_similarity([table_of(90)]), count=5, rng=rng()).parts == 1


def test_a_question_that_is_like_no_other_is_refused() -> None:
    table = np.full((60, 4), 1e-9)
    table[np.arange(60), np.append(np.arange(59) % 3, 3)] = 1.0
    with pytest.raises(ValueError, match="no other"):
        spectral_coordinates(answer_similarity([table], tau=50.0), count=5, rng=rng())


def test_k_means_reaches_what_scikit_learn_reaches() -> None:
    draws = np.random.default_rng(6)
    points = np.concatenate([draws.standard_normal((150, 6)) + 4.0 * draws.standard_normal(6) for _ in range(5)])
    peer = KMeans(5, n_init=10, random_state=0).fit(points)
    ours = kmeans(points, 5, starts=10, rng=rng())
    assert adjusted_rand_score(peer.labels_, ours.labels) == pytest.approx(1.0)
    assert ours.inertia == pytest.approx(peer.inertia_, rel=1e-5)
    shapeless = draws.standard_normal((3000, 6))
    assert kmeans(shapeless, 12, starts=10, rng=rng()).inertia < 1.01 * KMeans(12, n_init=10, random_state=0).fit(shapeless).inertia_


def test_k_means_never_leaves_a_group_empty_while_there_are_points_to_tell_apart() -> None:
    points = np.repeat(np.arange(5.0), [100, 1, 1, 1, 1])[:, None]
    assert len(set(kmeans(points, 5, starts=3, rng=rng()).labels.tolist())) == 5
    with pytest.raises(ValueError, match="at least 6"):
        kmeans(points[:5], 6, starts=1, rng=rng())


def test_groups_are_numbered_by_first_appearance() -> None:
    assert in_order(np.array([7, 2, 7, 5])).tolist() == [0, 1, 0, 2]


def test_silhouettes_are_scikit_learns() -> None:
    table = table_of(200)
    labels = subjects_of(200)
    distances = divergences(table)
    np.fill_diagonal(distances, 0.0)
    similarity = answer_similarity([table])
    assert divergence_silhouettes(similarity, [labels])[0] == pytest.approx(silhouette_score(distances, labels, metric="precomputed"), abs=1e-5)
    dissimilar = 1.0 - np.exp(-0.5 * distances)
    assert similarity_silhouettes(similarity, [labels])[0] == pytest.approx(silhouette_score(dissimilar, labels, metric="precomputed"), abs=1e-5)
    directions = np.random.default_rng(8).standard_normal((200, 7))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    assert cosine_silhouettes(directions, [labels])[0] == pytest.approx(silhouette_score(directions, labels, metric="cosine"))


def test_a_group_of_one_question_adds_nothing_to_the_silhouette() -> None:
    points = np.array([0.0, 0.1, 5.0])
    distances = np.abs(np.subtract.outer(points, points))
    labels = np.array([0, 0, 1])
    assert mean_silhouette(distances @ np.eye(2)[labels], labels) == pytest.approx(silhouette_score(distances, labels, metric="precomputed"))
    with pytest.raises(ValueError, match="at least 2 groups"):
        mean_silhouette(distances.sum(axis=1, keepdims=True), np.zeros(3, dtype=int))


def test_agreement_is_the_adjusted_rand_index() -> None:
    draws = np.random.default_rng(9)
    for _ in range(10):
        first, second = draws.integers(0, 4, 60), draws.integers(0, 3, 60)
        assert adjusted_rand(first, second) == pytest.approx(adjusted_rand_score(first, second))
    assert adjusted_rand(["x"] * 5, ["y"] * 5) == adjusted_rand(range(5), range(5)) == 1.0
    with pytest.raises(ValueError, match="same questions"):
        adjusted_rand([1], [1, 2])


def test_halves_agree_where_groups_are_firm_and_not_where_they_are_noise() -> None:
    def again(points: np.ndarray, groups: int) -> float:
        labels = kmeans(points, groups, starts=10, rng=rng()).labels
        return agreement_of_halves(
            labels, lambda chosen, number, draws: kmeans(points[chosen], number, starts=10, rng=draws).labels, halves=5, rng=rng()
        ).mean

    draws = np.random.default_rng(10)
    firm = np.concatenate([draws.standard_normal((100, 3)) + 9.0 * place for place in range(3)])
    assert again(firm, 3) == pytest.approx(1.0)
    assert again(draws.standard_normal((300, 3)), 6) < 0.8


def test_words_are_weighted_as_scikit_learn_weights_them() -> None:
    subjects = ("cell membrane enzyme", "treaty empire siege", "force mass photon", "market price tariff", "chord tempo opera", "river delta glacier")
    draws = np.random.default_rng(11)
    texts = [" ".join(draws.choice(subjects[index % 6].split(), 4)) + f" the{index}" for index in range(60)]
    found = word_vectors(texts, dimensions=6, rng=rng())
    peer = TfidfVectorizer(min_df=2, max_df=0.2, sublinear_tf=True)
    weights = peer.fit_transform(texts)
    assert list(found.words) == sorted(peer.vocabulary_)
    assert np.abs(found.weights.toarray() - weights.toarray()).max() < 1e-9
    left, singular, _ = np.linalg.svd(weights.toarray())
    placed = left[:, :6] * singular[:6]
    directions = placed / np.linalg.norm(placed, axis=1, keepdims=True)
    # Vectors are fixed up to rotations, cosines are not.
    assert np.abs(found.directions @ found.directions.T - directions @ directions.T).max() < 0.02
    labels = kmeans(found.directions, 6, starts=10, rng=rng()).labels
    assert adjusted_rand_score(labels, np.arange(60) % 6) == pytest.approx(1.0)
    told = found.telling_words(labels, count=3)
    assert set(told[labels[0]]) == {"cell", "membrane", "enzyme"}


def test_a_text_without_a_known_word_has_no_direction() -> None:
    texts = ["cell membrane", "cell enzyme", "treaty empire", "treaty siege", "membrane enzyme", "empire siege", "unheard of"]
    found = word_vectors(texts, dimensions=2, rng=rng())
    assert np.linalg.norm(found.directions, axis=1)[-1] == 0.0
    with pytest.raises(ValueError, match="too few"):
        word_vectors(["one thing", "another matter"], dimensions=2, rng=rng())
