from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from benchmarks.simulated_answers import distributions, letters, subjects_of
from evalspec.analyses.harmony import ANALYSIS, compute
from evalspec.analyses.harmony_induced import (
    CHOICES_DIFFER,
    CHOICES_ONLY,
    FOLLOWS,
    NO_DISTRIBUTIONS,
    NO_TEXTS,
    SOME_MISSING,
    AnswerDistributions,
    likeness_to_answers,
    predictive_partition,
    recorded_distributions,
    word_partition,
)
from evalspec.analyses.harmony_partitions import Partition
from evalspec.analyses.harmony_results import EmbeddingOptions, HarmonyOptions, HarmonyResult, PredictiveOptions
from evalspec.analyses.harmony_rows import Streams, harmony_row
from evalspec.analyses.harmony_vectors import Encoder, examine_vectors
from evalspec.artifacts.questions import Question, QuestionBank, QuestionSet
from evalspec.artifacts.responses import AnswerTokens, Responses
from evalspec.protocols import Background, Context
from evalspec.testing import check_analysis

from .tables import rendered, responses_of

QUESTIONS = 1000
DOMAINS = subjects_of(QUESTIONS)
FEW = PredictiveOptions(k=(2, 8), seeds=2)


def model(seed: int, *, signal: float, questions: int = QUESTIONS) -> tuple[np.ndarray, np.ndarray]:
    """Scores and answer distributions of a simulated model whose accuracy differs between subjects."""
    rng = np.random.default_rng(seed)
    accuracies = np.clip(0.7 + rng.uniform(0, 0.25) * rng.standard_normal(4), 0.05, 0.98)
    domains = subjects_of(questions)
    return (rng.random(questions) < accuracies[domains]).astype(float), distributions(questions, signal=signal, rng=rng)


def partition_of(tables: list[np.ndarray], scores: np.ndarray, options: PredictiveOptions = FEW, seed: int = 0) -> Partition:
    benchmark = responses_of(np.tile(scores, (len(tables), 1))).benchmarks[0]
    recorded = AnswerDistributions("answer_tokens", dict(enumerate(tables)))
    return predictive_partition(benchmark, recorded, list(recorded.tables), options, np.random.default_rng(seed))


def test_groups_by_answer_distributions_are_the_subjects_where_these_show_and_say_where_they_come_from() -> None:
    scores, table = model(1, signal=1.5)
    found = partition_of([table], scores)
    assert adjusted_rand_score(DOMAINS, found.codes) > 0.95
    assert (found.summary.k, found.summary.flags, found.from_answers) == (4, (), True)
    assert "tau = 1, clamp = 1e-06" in found.summary.label
    assert "chosen by evalspec" in found.summary.label
    assert found.summary.stability.seed_agreement == pytest.approx(1.0)
    assert found.summary.stability.half_agreement > 0.9
    assert found.summary.stability.k_by_other == 4


def test_groups_without_a_signal_are_flagged_and_the_result_is_inconclusive() -> None:
    scores, table = model(2, signal=0.0)
    found = partition_of([table], scores, PredictiveOptions(k=(2, 8), seeds=2))
    assert found.summary.flags
    benchmark = responses_of([scores]).benchmarks[0]
    row = harmony_row(benchmark, 0, found, HarmonyOptions(kind="harmony", partition="predictive"), Streams(np.random.default_rng(0), 1))
    assert set(found.summary.flags) <= set(row.flags)
    assert (row.p_value, row.homogeneity_p) == (None, None)
    assert "circular" in row.untested


def test_a_consensus_of_weak_signals_is_nearer_to_the_subjects_than_any_model_alone() -> None:
    models = [model(seed, signal=0.6) for seed in range(6)]
    alone = [adjusted_rand_score(DOMAINS, partition_of([table], scores).codes) for scores, table in models]
    together = partition_of([table for _, table in models], models[0][0])
    assert adjusted_rand_score(DOMAINS, together.codes) > max(alone)
    assert together.summary.models == tuple(f"m{index}" for index in range(6))


def test_the_deterministic_reading_of_eigenvectors_finds_the_same_groups() -> None:
    scores, table = model(1, signal=1.5)
    by_qr = partition_of([table], scores, PredictiveOptions(k=(2, 8), seeds=2, labels="cluster_qr"))
    assert adjusted_rand_score(partition_of([table], scores).codes, by_qr.codes) > 0.95


def test_letters_are_never_a_partition_by_subject_however_firm_they_look() -> None:
    rng = np.random.default_rng(1)
    accuracies = np.array([0.9, 0.7, 0.6, 0.4])[DOMAINS]
    key = rng.integers(0, 4, QUESTIONS)
    right = rng.random(QUESTIONS) < accuracies
    chosen, logprobs = letters(right, key, rng)
    responses = responses_of([right], logprobs=logprobs[None], choices=chosen[None, :, None].astype(np.int16))
    result = compute(responses, HarmonyOptions(kind="harmony", partition="predictive", predictive=FEW), Context(rng=rng))
    row = result.rows[0]
    assert (row.undefined, row.value, result.partitions[0].undefined) == (CHOICES_ONLY, None, CHOICES_ONLY)
    assert row.follows_choice > 0.5
    assert "no result" in rendered(ANALYSIS, responses, {"kind": "harmony", "partition": "predictive", "predictive": {"k": [2, 8], "seeds": 2}})


@pytest.mark.parametrize("follows", ["choice", "correctness"])
def test_groups_that_follow_what_was_answered_are_refused(follows: str) -> None:
    scores, table = model(3, signal=1.5)
    found = partition_of([table], scores)
    alike = found.codes if follows == "choice" else np.zeros(QUESTIONS)
    right = (found.codes == 0).astype(float) if follows == "correctness" else scores
    benchmark = responses_of([right], choices=alike[None, :, None].astype(np.int16)).benchmarks[0]
    like = likeness_to_answers(benchmark, 0, found)
    assert like.circular
    assert (like.choice if follows == "choice" else like.correctness) > 0.3
    honest = likeness_to_answers(responses_of([scores]).benchmarks[0], 0, found)
    assert (honest.choice, honest.circular) == (None, False)
    assert FOLLOWS


def test_answers_that_cannot_be_compared_give_a_reason() -> None:
    scores = np.ones(50)
    with pytest.raises(ValueError, match=NO_DISTRIBUTIONS):
        recorded_distributions(responses_of([scores]).benchmarks[0], FEW)
    logprobs = np.log(np.full((1, 50, 4), 0.25))
    logprobs[0, :10, 3] = np.nan
    with pytest.raises(ValueError, match=CHOICES_DIFFER):
        recorded_distributions(responses_of([scores], logprobs=logprobs).benchmarks[0], FEW)


def test_recorded_tokens_make_the_same_groups_as_the_whole_distributions_and_say_what_they_leave_out() -> None:
    scores, table = model(1, signal=1.5)
    order = np.argsort(-table, axis=1)[:, :12]
    kept = np.take_along_axis(table, order, axis=1)
    tokens = AnswerTokens(np.stack([order, order]).astype(np.int32) * 97, np.stack([kept, kept]))
    responses = responses_of([scores, scores], distributions=tokens)
    asked = {"kind": "harmony", "partition": "predictive", "predictive": {"k": [2, 8], "seeds": 2, "tokens": 100}}
    result = compute(responses, HarmonyOptions.model_validate_json(json.dumps(asked)), Context(rng=np.random.default_rng(0)))
    (found,) = result.partitions
    assert (found.k, found.models, found.undefined) == (4, ("m0", "m1"), None)
    assert found.told_apart == pytest.approx(kept.sum(axis=1).mean())
    assert all(row.value is not None for row in result.rows)
    assert "stands in tokens that are told apart" in rendered(ANALYSIS, responses, asked)
    codes = predictive_partition(
        responses.benchmarks[0], recorded_distributions(responses.benchmarks[0], FEW), [0, 1], FEW, np.random.default_rng(0)
    ).codes
    assert adjusted_rand_score(DOMAINS, codes) > 0.9


def test_a_question_without_tokens_leaves_no_groups_and_a_model_without_any_is_named() -> None:
    tokens = np.arange(2 * 60 * 3).reshape(2, 60, 3).astype(np.int32)
    probabilities = np.full(tokens.shape, 0.3)
    tokens[1], probabilities[1] = -1, np.nan
    alone = responses_of([np.ones(60), np.ones(60)], distributions=AnswerTokens(tokens.copy(), probabilities.copy()))
    assert list(recorded_distributions(alone.benchmarks[0], FEW).tables) == [0]
    tokens[0, :5], probabilities[0, :5] = -1, np.nan
    gaps = responses_of([np.ones(60), np.ones(60)], distributions=AnswerTokens(tokens, probabilities))
    with pytest.raises(ValueError, match=SOME_MISSING):
        recorded_distributions(gaps.benchmarks[0], FEW)


def test_identical_distributions_make_no_groups() -> None:
    with pytest.raises(ValueError, match="distinct"):
        partition_of([np.full((200, 8), 0.125)], np.ones(200))


def test_models_may_have_a_partition_each() -> None:
    rng = np.random.default_rng(4)
    key = rng.integers(0, 4, 300)
    told = [letters(rng.random(300) < 0.7, key, rng) for _ in range(2)]
    responses = responses_of(
        [chosen == key for chosen, _ in told],
        logprobs=np.stack([logprobs for _, logprobs in told]),
        choices=np.stack([chosen for chosen, _ in told])[:, :, None].astype(np.int16),
    )
    options = {"kind": "harmony", "partition": "predictive", "predictive": {"k": [2, 8], "seeds": 2, "shared": "per_model"}}
    result = compute(responses, HarmonyOptions.model_validate_json(json.dumps(options)), Context(rng=rng))
    assert [found.models for found in result.partitions] == [("m0",), ("m1",)]
    assert rendered(ANALYSIS, responses, options).count("How firm the groups of b, m") == 2


WORDS = {
    "biology": ["cell", "membrane", "enzyme", "protein", "tissue", "organism", "gene", "mitosis", "nucleus", "chlorophyll"],
    "history": ["treaty", "empire", "revolution", "parliament", "monarch", "dynasty", "battle", "colony", "siege", "crusade"],
    "physics": ["force", "mass", "velocity", "momentum", "friction", "voltage", "magnet", "wavelength", "pendulum", "photon"],
    "trade": ["market", "price", "supply", "demand", "inflation", "tariff", "export", "currency", "deficit", "auction"],
    "music": ["chord", "rhythm", "melody", "tempo", "violin", "opera", "sonata", "harmony", "trumpet", "choir"],
}


def worded(count: int) -> QuestionSet:
    rng = np.random.default_rng(5)
    questions = []
    for index in range(count):
        subject = sorted(WORDS)[index % len(WORDS)]
        words = rng.choice(WORDS[subject], 7, replace=False)
        questions.append(Question(f"q{index}", f"{' '.join(words[:6])}?", (words[6], "none"), 0, subject))
    return QuestionSet("b", tuple(questions), "questions.jsonl", "0" * 64)


def embedded(responses: Responses, bank: QuestionBank | None) -> HarmonyResult:
    options = HarmonyOptions(kind="harmony", partition="embedding", embedding=EmbeddingOptions(k=(2, 9), seeds=2, dimensions=10))
    background = Background(read_questions=None if bank is None else lambda: bank)
    return compute(responses, options, Context(rng=np.random.default_rng(0), background=background))


def test_groups_by_words_are_the_subjects_that_use_them_and_are_named_by_them() -> None:
    asked = worded(300)
    subjects = [question.subject for question in asked.questions]
    right = np.array([{"music": 0.3}.get(str(subject), 0.9) for subject in subjects]) > np.random.default_rng(6).random(300)
    result = embedded(responses_of([right]), QuestionBank((asked,)))
    row, found = result.rows[0], result.partitions[0]
    assert (found.k, found.flags, found.stability.qr_agreement) == (5, (), None)
    worst = next(group for group in row.groups if group.group == row.worst)
    assert set(worst.group.split(": ")[1].split(", ")) <= set(WORDS["music"])
    assert row.homogeneity_p < 1e-6
    assert row.p_value is not None
    assert len(row.near_k) == 4


def test_texts_that_are_not_disclosed_make_no_groups() -> None:
    hidden = embedded(responses_of([np.ones(300)]), QuestionBank(()))
    assert hidden.rows[0].undefined == NO_TEXTS == embedded(responses_of([np.ones(300)]), None).rows[0].undefined


def test_texts_without_shared_words_make_no_groups() -> None:
    questions = tuple(Question(f"q{index}", f"word{index}", (f"a{index}", f"b{index}"), 0) for index in range(40))
    benchmark = responses_of([np.ones(40)]).benchmarks[0]
    with pytest.raises(ValueError, match="too few"):
        word_partition(benchmark, QuestionSet("b", questions, "x", "0" * 64), EmbeddingOptions(), np.random.default_rng(1))


def encoded(content: str, responses: Responses) -> HarmonyResult:
    sha256 = hashlib.sha256(content.encode()).hexdigest()
    encoder = {"name": "tiny-encoder 1.0", "vectors": {"path": "vectors.csv", "sha256": sha256}}
    asked = {"kind": "harmony", "partition": "embedding", "embedding": {"k": [2, 6], "seeds": 2, "encoder": encoder}}
    options = HarmonyOptions.model_validate_json(json.dumps(asked))
    return compute(responses, options, Context(rng=np.random.default_rng(0), tables={sha256: content.encode()}))


def vectors_csv(count: int) -> str:
    draws = np.random.default_rng(8)
    centres = 5.0 * draws.standard_normal((4, 8))
    rows = [",".join([f"q{index}", *(f"{number:.4f}" for number in centres[index % 4] + draws.standard_normal(8))]) for index in range(count)]
    return "\n".join([",".join(["question_id", *(f"d{place}" for place in range(8))]), *rows]) + "\n"


def test_vectors_of_a_pinned_encoder_make_groups_and_are_named_in_the_report() -> None:
    responses = responses_of([np.tile([1.0, 1.0, 1.0, 0.0], 50)])
    found = encoded(vectors_csv(200), responses).partitions[0]
    assert (found.k, found.label.split(",")[0]) == (4, "text-embedding partition: encoder tiny-encoder 1.0")
    assert found.vectors_sha256 == hashlib.sha256(vectors_csv(200).encode()).hexdigest()
    assert not any("Deerwester" in work for work in ANALYSIS.sources_used(encoded(vectors_csv(200), responses)))


def test_a_question_without_a_vector_leaves_no_groups_and_faults_of_the_table_have_their_lines() -> None:
    gone = encoded(vectors_csv(199), responses_of([np.ones(200)]))
    assert gone.rows[0].undefined == "1 of 200 questions have no vector in the table of encoder tiny-encoder 1.0"
    content = b"question_id,d0,d1\nq0,1,x\nq1,1,2\nq1,3,4\n"
    encoder = Encoder.model_validate_json(json.dumps({"name": "e", "vectors": {"path": "v.csv", "sha256": "0" * 64}}))
    told = [(fault.location.line, fault.message) for fault in examine_vectors(encoder, {"0" * 64: content})]
    assert told == [(2, "1 of 2 cells of the vector hold no finite number"), (4, "the question has a vector already")]
    assert [fault.message for fault in examine_vectors(encoder, {"0" * 64: b"question_id,d0\nq0,1\n"})] == [
        "the table needs question ids and at least 2 columns of numbers"
    ]


def test_a_weighted_sample_has_no_induced_groups() -> None:
    weights = np.tile([0.5, 1.5], 150)
    result = embedded(responses_of([np.ones(300)], weights=weights), QuestionBank((worded(300),)))
    assert "weighted sample" in result.rows[0].undefined


def test_the_order_of_questions_moves_no_group() -> None:
    rng = np.random.default_rng(7)
    key = rng.integers(0, 4, 300)
    chosen, logprobs = letters(rng.random(300) < 0.7, key, rng)
    responses = responses_of([chosen == key], logprobs=logprobs[None], choices=chosen[None, :, None].astype(np.int16))
    check_analysis(ANALYSIS, {"kind": "harmony", "partition": "predictive", "predictive": {"k": [2, 8], "seeds": 2}}, responses)
    order = rng.permutation(300)
    asked = worded(300)
    turned = responses_of([np.ones(300)], questions=tuple(f"q{index}" for index in order))
    first, second = embedded(responses_of([np.ones(300)]), QuestionBank((asked,))), embedded(turned, QuestionBank((asked,)))
    assert first.partitions == second.partitions
