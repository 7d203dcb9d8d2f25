"""Generated answers from work orders to responses: kept once, read again, never kept where they are secret."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from evalspec.artifacts.extraction import ExtractionRule
from evalspec.artifacts.journal import BatchRecord, Generated
from evalspec.artifacts.responses import Reason, Responses
from evalspec.artifacts.study import SampledScoring
from evalspec.artifacts.work import CHECKED_TEXTS, jobs_of
from evalspec.errors import ScoringError
from evalspec.protocols import Progress, ignore_progress
from evalspec.scoring.execute import ScoringTask, score
from evalspec.scoring.generated import compare_texts, read_all, without_texts
from evalspec.scoring.journal import FileJournal
from evalspec.tables.disclosure import withheld
from evalspec.tables.responses import responses_from_parquet, responses_to_parquet

pytest.importorskip("torch")
pytest.importorskip("transformers")

QUESTIONS = 24
ANY_LETTER = ExtractionRule(pattern="[A-Da-d]", normalise=("case",))


def scoring_of(**changed: Any) -> SampledScoring:
    options = {"repeats": 2, "temperature": 1.5, "max_tokens": 6, "extract": (ANY_LETTER,), "refusals": ("[q-z]",)}
    return SampledScoring(method="sampled", **{**options, **changed})


def task_of(make: SimpleNamespace, folder: Path, scoring: SampledScoring, *, disclosure: str = "full", missing: str = "wrong") -> ScoringTask:
    questions = make.questions(QUESTIONS)
    benchmark = make.benchmark("b", questions, scoring, missing=missing).model_copy(update={"disclosure": disclosure})
    return ScoringTask(make.protocol({"m": make.identity(folder)}, [benchmark]), {"b": questions}, {"m": folder}, {})


@pytest.fixture(scope="module")
def scored(make: SimpleNamespace, llama: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Responses, FileJournal]:
    journal = make.journal(tmp_path_factory.mktemp("scored"))
    return score(task_of(make, llama, scoring_of()), make.executor(), journal, ignore_progress).responses, journal


def test_choices_reasons_and_scores_are_those_of_the_texts(make: SimpleNamespace, scored: tuple[Responses, FileJournal]) -> None:
    entry = scored[0].benchmark("b")
    assert entry.texts is not None
    assert entry.texts.shape == entry.scores.shape == (1, QUESTIONS, 2)
    assert {Reason(int(reason)) for reason in entry.reasons.ravel()} == {Reason.NONE, Reason.REFUSED, Reason.UNPARSEABLE}
    for index, question in enumerate(make.questions(QUESTIONS)):
        for repeat in range(2):
            text, choice = entry.texts[0, index, repeat], entry.choices[0, index, repeat]
            letters = [letter for letter in text.upper() if letter in "ABCD"]
            assert choice == ("ABCD".index(letters[0]) if letters else -1)
            refused = any("q" <= letter <= "z" for letter in text)
            assert entry.reasons[0, index, repeat] == (Reason.NONE if letters else Reason.REFUSED if refused else Reason.UNPARSEABLE)
            score_of = entry.scores[0, index, repeat]
            assert np.isnan(score_of) if choice < 0 else score_of == (choice == question.answer)
    assert entry.missing_counts()["m"].keys() == {"refused", "unparseable"}


def test_the_origin_tells_how_texts_ended_and_what_changed_alone(scored: tuple[Responses, FileJournal]) -> None:
    entry, origin = scored[0].benchmark("b"), scored[0].origin("m", "b")
    facts = origin.generated
    assert facts is not None
    assert (facts.texts, facts.refused, facts.unparseable) == (2 * QUESTIONS, *entry.missing_counts()["m"].values())
    assert facts.at_end + facts.at_stop + facts.at_limit == facts.texts
    assert facts.at_limit
    assert facts.texts <= facts.tokens <= 6 * facts.texts
    assert facts.ends == (2,)
    assert facts.check is not None
    assert facts.check.texts == CHECKED_TEXTS
    assert facts.check.rewritten is not None
    assert facts.check.flips <= facts.check.rewritten
    assert origin.self_check is None


def test_nothing_is_generated_twice(make: SimpleNamespace, llama: Path, scored: tuple[Responses, FileJournal]) -> None:
    told: list[Progress] = []
    again = score(task_of(make, llama, scoring_of()), make.no_executor(), scored[1], told.append).responses
    assert responses_to_parquet(again) == responses_to_parquet(scored[0])
    assert (told[0].done, told[0].total) == (2 * QUESTIONS + CHECKED_TEXTS,) * 2


def test_other_rules_to_read_answers_need_no_generation(make: SimpleNamespace, llama: Path, scored: tuple[Responses, FileJournal]) -> None:
    other = scoring_of(extract=(ExtractionRule(pattern="[a-d]", take="last"),), refusals=())
    again = score(task_of(make, llama, other), make.no_executor(), scored[1], ignore_progress).responses.benchmark("b")
    np.testing.assert_array_equal(again.texts, scored[0].benchmark("b").texts)
    assert not np.array_equal(again.choices, scored[0].benchmark("b").choices)


def test_further_repeats_change_no_earlier_one(make: SimpleNamespace, llama: Path, scored: tuple[Responses, FileJournal]) -> None:
    two, three = (jobs_of(task_of(make, llama, scoring_of(repeats=count)).orders()) for count in (2, 3))
    assert [job.id for job in three[:2]] == [job.id for job in two]
    more = score(task_of(make, llama, scoring_of(repeats=3)), make.executor(), scored[1], ignore_progress).responses.benchmark("b")
    assert more.texts is not None
    np.testing.assert_array_equal(more.texts[:, :, :2], scored[0].benchmark("b").texts)


def test_a_killed_run_goes_on_to_the_same_bytes(make: SimpleNamespace, llama: Path, scored: tuple[Responses, FileJournal], tmp_path: Path) -> None:
    journal = make.journal(tmp_path)
    for path in sorted(scored[1].folder.glob("*.jsonl")):
        whole = path.read_bytes()
        lines = whole.splitlines(keepends=True)
        (tmp_path / path.name).write_bytes(b"".join(lines[:2]) + lines[2][:40] if len(lines) > 2 else whole[:-30])
    resumed = score(task_of(make, llama, scoring_of()), make.executor(), journal, ignore_progress).responses
    assert responses_to_parquet(resumed) == responses_to_parquet(scored[0])


@pytest.mark.parametrize("change", [{"temperature": 1.4}, {"max_tokens": 7}, {"stop": ("x",)}])
def test_whatever_can_change_a_text_makes_another_job(make: SimpleNamespace, llama: Path, change: dict[str, Any]) -> None:
    jobs = [{job.id for job in jobs_of(task_of(make, llama, one).orders())} for one in (scoring_of(), scoring_of(**change))]
    assert not jobs[0] & jobs[1]


def test_of_secret_questions_no_text_is_in_the_journal_and_the_same_is_read(
    make: SimpleNamespace, llama: Path, scored: tuple[Responses, FileJournal], tmp_path: Path
) -> None:
    journal = make.journal(tmp_path)
    task = task_of(make, llama, scoring_of(), disclosure="none")
    hidden = score(task, make.executor(), journal, ignore_progress).responses
    entry, shown = hidden.benchmark("b"), scored[0].benchmark("b")
    assert entry.texts is None
    np.testing.assert_array_equal(entry.choices, shown.choices)
    np.testing.assert_array_equal(entry.reasons, shown.reasons)
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert shown.texts is not None
    long = [text for text in shown.texts.ravel() if len(text) > 8]
    assert long
    assert b'"text":null' in kept
    assert not any(text.encode("unicode_escape") in kept or text.encode() in kept for text in long)
    assert hidden.origins[0].generated is not None
    assert hidden.origins[0].generated.check is not None
    assert hidden.origins[0].generated.check.rewritten is None
    assert withheld(hidden, task.protocol).benchmark("b").choices.max() == -1


@pytest.mark.parametrize("disclosure", ["ids", "none"])
def test_texts_are_published_only_where_everything_is_disclosed(
    make: SimpleNamespace, llama: Path, scored: tuple[Responses, FileJournal], disclosure: str
) -> None:
    assert withheld(scored[0], task_of(make, llama, scoring_of(), disclosure=disclosure).protocol).benchmark("b").texts is None


def test_texts_come_back_from_the_table_as_they_were(scored: tuple[Responses, FileJournal]) -> None:
    content = responses_to_parquet(scored[0])
    read = responses_from_parquet(content)
    np.testing.assert_array_equal(read.benchmark("b").texts, scored[0].benchmark("b").texts)
    assert read.origins == scored[0].origins
    assert responses_to_parquet(read) == content


def test_answers_that_are_missing_stop_a_study_that_allows_none(make: SimpleNamespace, llama: Path, scored: tuple[Responses, FileJournal]) -> None:
    with pytest.raises(ScoringError, match=r"missing answers on benchmark 'b' \(\d+ refused, \d+ unparseable\)"):
        score(task_of(make, llama, scoring_of(), missing="error"), make.no_executor(), scored[1], ignore_progress)


def test_what_was_read_before_a_text_was_dropped_is_what_is_read_after() -> None:
    from evalspec.artifacts.work import AskedQuestion

    written = [Generated(text=text, ended="limit", tokens=3) for text in ("b", "zz", "-")]
    asked = [AskedQuestion(name="q", sha256="0" * 64, prompt="?", answers=("x", "y", "z"))] * 3
    dropped = without_texts(written, asked, scoring_of())
    assert all(one.text is None for one in dropped)
    for before, after in zip(
        (read_all(written, asked, scoring_of()).choices, read_all(written, asked, scoring_of()).reasons),
        (read_all(dropped, asked, scoring_of()).choices, read_all(dropped, asked, scoring_of()).reasons),
        strict=True,
    ):
        np.testing.assert_array_equal(before, after)
    other = [*written[:2], Generated(text="c", ended="end", tokens=1)]
    assert compare_texts(written, other, ([1, -1, -1], [1, -1, 2])).model_dump() == {"texts": 3, "flips": 1, "rewritten": 1}


def test_a_record_has_log_probabilities_or_generated_answers_as_its_questions_ask(scored: tuple[Responses, FileJournal]) -> None:
    (job, *_) = sorted(path.stem for path in scored[1].folder.glob("*.jsonl"))
    record = scored[1].read(job)
    assert record.fits([0] * record.answered)
    assert not record.fits([4] * record.answered)
    assert all(isinstance(batch, BatchRecord) and len(batch.generated) == len(batch.questions) for batch in record.batches.values())
