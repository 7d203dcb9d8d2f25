"""Models behind a server over a real checkpoint, held against the same checkpoint scored here in float32."""

from __future__ import annotations

import json
import math
import shutil
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from evalspec.artifacts.journal import BatchRecord
from evalspec.artifacts.questions import Question
from evalspec.artifacts.responses import Reason
from evalspec.artifacts.served import Price, ServedModel, identity_of
from evalspec.artifacts.study import LetterScoring, OptionScoring, Scoring
from evalspec.errors import MissingLibrary, ScoringError
from evalspec.protocols import Progress, ignore_progress
from evalspec.scoring.access import Access, Patience
from evalspec.scoring.execute import Scored, ScoringTask, score

pytest.importorskip("torch")
pytest.importorskip("httpx2")

LETTERS = LetterScoring(method="letter")
OPTIONS = OptionScoring(method="option", normalise="per_byte")
CHAT = LetterScoring(method="letter", chat=True)
TEMPLATE = "{% for message in messages %}User: {{ message['content'] }}\n{% endfor %}Assistant:{{ '\n' }}"
PRICE = Price(input=1.0, output=2.0, per=1000, currency="EUR")
QUICK = Patience(at_once=4, tries=4, timeout=20.0, first_pause=0.01, longest_pause=0.02)


@pytest.fixture(scope="module")
def demo(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of the demonstration, with a chat template."""
    folder = Path(shutil.copytree(root / "specs" / "demo" / "checkpoints" / "demo-mid", tmp_path_factory.mktemp("models") / "demo"))
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return folder


@pytest.fixture(scope="module")
def triples(root: Path) -> tuple[Question, ...]:
    rows = [json.loads(line) for line in (root / "specs" / "demo" / "triples.jsonl").read_text().splitlines()[::4]]
    return tuple(Question(row["id"], row["question"], tuple(row["choices"]), "ABC".index(row["answer"]), row["subject"]) for row in rows)


Make = Callable[..., ScoringTask]


@pytest.fixture(scope="module")
def task_of(make: SimpleNamespace) -> Make:
    """A task of one benchmark for a checkpoint scored here (`here`), or at a server (`there`)."""

    def build(
        questions: Sequence[Question],
        scoring: Scoring,
        *,
        here: Path | None = None,
        there: Any = None,
        merge: bool = False,
        disclosure: str = "full",
        **access: Any,
    ) -> ScoringTask:
        identities: dict[str, Any] = {"m": make.identity(here)} if here else {}
        accesses = {}
        if there is not None:
            identities["m"] = identity_of(ServedModel(endpoint=there.endpoint, model="demo", merge_variants=merge))
            accesses["m"] = Access(there.endpoint, patience=access.pop("patience", QUICK), **access)
        benchmark = make.benchmark("b", questions, scoring).model_copy(update={"disclosure": disclosure})
        protocol = make.protocol(identities, [benchmark], precision="float32" if here else "as_shipped")
        return ScoringTask(protocol, {"b": tuple(questions)}, {"m": here} if here else {}, {}, accesses=accesses)

    return build


@pytest.fixture
def scored(make: SimpleNamespace, task_of: Make, tmp_path: Path) -> Callable[..., Scored]:
    """Score a task with a journal of its own, or with one that is named."""

    def run(*arguments: Any, journal: str = "journal", **named: Any) -> Scored:
        executor = make.executor() if "here" in named else make.no_executor()
        name = f"{journal}-{'here' if 'here' in named else 'there'}"
        return score(task_of(*arguments, **named), executor, make.journal(tmp_path / name), ignore_progress)

    return run


def logprobs(found: Scored) -> Any:
    (entry,) = found.responses.benchmarks
    assert entry.logprobs is not None
    return entry.logprobs[0]


def choices(found: Scored) -> list[int]:
    return [int(choice) for choice in found.responses.benchmarks[0].choices[0, :, 0]]


def batches(make: SimpleNamespace, task: ScoringTask, folder: Path) -> list[BatchRecord]:
    """Return the journal's records of the first round of questions."""
    (order,) = task.served_orders()
    (work,) = order.works
    record = make.journal(folder).read(order.key(work, work.questions).digest())
    return [batch for _, batch in sorted(record.batches.items())]


OFFERED: dict[str, dict[str, Any]] = {
    "as OpenAI": {},
    "five tokens at most": {"most_listed": 5},
    "lists one after the other": {"joined_lists": True},
    "by id": {"tokenize": True, "by_id": True},
    "exactly the letters": {"tokenize": True, "by_id": True, "exact": True},
    "the likeliest letter": {"tokenize": True, "by_id": True, "steered": True},
    "spread over the letters": {"tokenize": True, "by_id": True, "steered": True, "renormalises": True},
    "ids that are not used": {"tokenize": True},
    "no count of tokens": {"usage": False},
}


@pytest.mark.parametrize("offered", OFFERED)
def test_letters_have_the_numbers_that_the_same_weights_give_here(
    serving: ModuleType, demo: Path, triples: tuple[Question, ...], scored: Callable[..., Scored], offered: str
) -> None:
    here = scored(triples, LETTERS, here=demo)
    with serving.ModelServer(demo, serving.Offers(**OFFERED[offered])) as server:
        there = scored(triples, LETTERS, there=server)
    known = ~np.isnan(logprobs(there))
    assert known.any(axis=1).mean() > 0.9
    assert np.max(np.abs(logprobs(there) - logprobs(here))[known]) <= 1e-4
    assert choices(there) == choices(here)
    origin = there.responses.origins[0]
    assert (origin.route, origin.server.exact if origin.server else None) == ("server", offered == "exactly the letters")
    assert all("logprob_token_ids" in body for body in server.asked) == (offered == "exactly the letters")
    assert all("allowed_token_ids" in body for body in server.asked) == (offered == "the likeliest letter")


def test_texts_of_choices_have_the_numbers_that_the_same_weights_give_here(
    serving: ModuleType, root: Path, triples: tuple[Question, ...], scored: Callable[..., Scored]
) -> None:
    bos = root / "specs" / "demo" / "checkpoints" / "demo-bos"
    here = scored(triples, OPTIONS, here=bos)
    for echo_only in (True, False):
        with serving.ModelServer(bos, serving.Offers(echo_only=echo_only)) as server:
            there = scored(triples, OPTIONS, there=server, journal=f"echo-{echo_only}")
        assert np.max(np.abs(logprobs(there) - logprobs(here))) <= 1e-4
        assert choices(there) == choices(here)
        assert {body["max_tokens"] for body in server.asked} == {0 if echo_only else 1}


def test_a_chat_has_the_numbers_of_the_same_template_here(
    serving: ModuleType, demo: Path, triples: tuple[Question, ...], scored: Callable[..., Scored]
) -> None:
    here = scored(triples, CHAT, here=demo)
    with serving.ModelServer(demo, serving.Offers(completions=False, tokenize=True, by_id=True, exact=True)) as server:
        there = scored(triples, CHAT, there=server)
    assert np.max(np.abs(logprobs(there) - logprobs(here))) <= 1e-4
    assert choices(there) == choices(here)
    assert server.asked[0]["messages"][0]["role"] == "user"
    facts = there.responses.origins[0].server
    assert facts is not None
    assert (facts.chat, facts.compared) == (True, ("A",))


def test_a_letter_that_is_not_listed_is_bounded_and_never_nothing(
    serving: ModuleType, make: SimpleNamespace, llama: Path, scored: Callable[..., Scored], task_of: Make, tmp_path: Path
) -> None:
    questions = make.questions(80)
    here = scored(questions, LETTERS, here=llama)
    with serving.ModelServer(llama) as server:
        there = scored(questions, LETTERS, there=server)
        task = task_of(questions, LETTERS, there=server)
    entry = there.responses.benchmarks[0]
    censored = entry.reasons[0, :, 0] == Reason.CENSORED
    assert 0 < censored.sum() < len(questions)
    assert all(mine == choice for mine, choice, left_open in zip(choices(there), choices(here), censored, strict=True) if not left_open)
    some_unlisted = np.isnan(logprobs(there)).any(axis=1)
    assert np.isnan(logprobs(there)[some_unlisted]).all()
    decided_all_the_same = some_unlisted & ~censored
    assert decided_all_the_same.any()
    facts = there.responses.origins[0].server
    assert facts is not None
    assert facts.censored == some_unlisted.sum()
    for batch, row in zip(batches(make, task, tmp_path / "journal-there"), logprobs(here), strict=True):
        lowest = batch.lowest[0] if batch.lowest else batch.logprobs[0]
        for most, least, true in zip(batch.logprobs[0], lowest, row, strict=True):
            assert math.isfinite(most)
            assert most < 0
            assert true <= most + 1e-4
            assert least is None or least == pytest.approx(true, abs=1e-4)


def test_a_server_that_picks_the_likeliest_letter_leaves_no_choice_open(
    serving: ModuleType, make: SimpleNamespace, llama: Path, scored: Callable[..., Scored]
) -> None:
    questions = make.questions(40)
    here = scored(questions, LETTERS, here=llama)
    for exact in (False, True):
        with serving.ModelServer(llama, serving.Offers(tokenize=True, by_id=True, steered=True, exact=exact)) as server:
            there = scored(questions, LETTERS, there=server, journal=f"exact-{exact}")
        assert choices(there) == choices(here)
        assert not there.responses.benchmarks[0].missing_counts()["m"]
        assert np.isnan(logprobs(there)).any() == (not exact)


def test_variants_of_a_letter_are_added_only_where_the_study_says_so(
    serving: ModuleType, demo: Path, triples: tuple[Question, ...], scored: Callable[..., Scored]
) -> None:
    with serving.ModelServer(demo, serving.Offers(most_listed=20)) as server:
        plain, merged = scored(triples, LETTERS, there=server, journal="plain"), scored(triples, LETTERS, there=server, merge=True, journal="merged")
        model, tokenizer = server._loaded
        first = server._logprobs(
            server._encode(triples[0].stem + "\n" + "\n".join(f"{a}. {b}" for a, b in zip("ABC", triples[0].choices, strict=True)) + "\nAnswer:")
        )[-1]
    assert model
    both = [
        np.logaddexp(*(float(first[tokenizer(form, add_special_tokens=False)["input_ids"][0]]) for form in (f" {letter}", letter)))
        for letter in "ABC"
    ]
    listed = ~np.isnan(logprobs(merged)[0])
    assert np.allclose(logprobs(merged)[0][listed], np.array(both)[listed], atol=1e-4)
    assert [found.responses.origins[0].server.compared for found in (plain, merged)] == [(" A",), (" A", "A")]  # type: ignore[union-attr]


def test_an_interrupted_asking_goes_on_and_asks_no_question_twice(
    serving: ModuleType, demo: Path, triples: tuple[Question, ...], scored: Callable[..., Scored]
) -> None:
    with serving.ModelServer(demo) as server:
        whole = scored(triples, LETTERS, there=server, journal="whole")
        server.seen.clear()

        def break_down(_number: int, _path: str, body: dict[str, Any]) -> Any:
            done = len(server.asked)
            return serving.Answer(500) if done > 15 and "The answer is" not in json.dumps(body) else None

        server.behave = break_down
        with pytest.raises(
            ScoringError, match=r"on benchmark 'b', question '[a-z]+-\d+': the server 127.0.0.1:\d+ fails: it answers with HTTP 500, 4 times"
        ):
            scored(triples, LETTERS, there=server)
        server.behave = None
        answered = Counter(body["prompt"] for body in server.asked[:15])
        server.seen.clear()
        resumed = scored(triples, LETTERS, there=server)
        asked = Counter(body["prompt"] for body in server.asked)
        first_round = {prompt for prompt in asked if prompt not in answered}
        assert set(answered.values()) == {1}
        assert len(server.asked) == (len(triples) - len(answered)) + len(triples)  # the rest, and all again as a self-check of so few
        assert all(asked[prompt] == 2 for prompt in first_round)
        assert all(asked[prompt] == 1 for prompt in answered)
        server.seen.clear()
        again = scored(triples, LETTERS, there=server)
    assert server.seen == []
    assert np.array_equal(logprobs(resumed), logprobs(whole))
    assert resumed.responses.origins == again.responses.origins


def test_two_runs_at_once_ask_everything_once(
    serving: ModuleType, make: SimpleNamespace, demo: Path, triples: tuple[Question, ...], task_of: Make, tmp_path: Path
) -> None:
    told: list[Progress] = []
    found: list[Scored] = []
    with serving.ModelServer(demo, behave=lambda *_: None) as server:

        def run() -> None:
            found.append(score(task_of(triples, LETTERS, there=server), make.no_executor(), make.journal(tmp_path / "one"), told.append))

        threads = [threading.Thread(target=run) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(server.asked) == 2 * len(triples)
    assert len(found) == 2
    assert found[0].responses.origins == found[1].responses.origins
    assert "another run is asking this; waiting for its results" in {progress.warning for progress in told}


def test_no_more_than_allowed_is_spent_and_what_was_answered_is_kept(
    serving: ModuleType, make: SimpleNamespace, demo: Path, triples: tuple[Question, ...], task_of: Make, tmp_path: Path
) -> None:
    journal = make.journal(tmp_path / "journal")
    with serving.ModelServer(demo) as server:
        with pytest.raises(ScoringError, match=r"has cost about [\d.]+ of the 0.6 EUR that the study allows") as raised:
            score(task_of(triples, LETTERS, there=server, price=PRICE, max_cost=0.6), make.no_executor(), journal, ignore_progress)
        assert raised.value.diagnostics[0].hint == "what was answered is kept; raise max_cost, and the same command goes on from there"
        task = task_of(triples, LETTERS, there=server, price=PRICE, max_cost=60.0)
        kept = batches(make, task, tmp_path / "journal")
        spent = sum(batch.reply.cost(PRICE) for batch in kept if batch.reply)
        assert 0.3 < spent <= 0.6
        assert len(server.asked) == len(kept)
        whole = score(task, make.no_executor(), journal, ignore_progress)
        assert len(server.asked) == 2 * len(triples)
    (job,) = whole.jobs
    assert job.server is not None
    assert (job.server.requests, job.server.currency) == (2 * len(triples), "EUR")
    assert job.server.cost == pytest.approx(((job.server.input_tokens or 0) + 2 * (job.server.output_tokens or 0)) / 1000)


def test_a_request_that_was_never_answered_counts_as_charged(
    serving: ModuleType, demo: Path, triples: tuple[Question, ...], scored: Callable[..., Scored]
) -> None:
    def lose_some(number: int, _path: str, body: dict[str, Any]) -> Any:
        lost = "The answer is" not in json.dumps(body) and number % 5 == 0
        return serving.Answer(body=b"no json") if lost else None

    with serving.ModelServer(demo, behave=lose_some) as server:
        found = scored(triples, LETTERS, there=server, price=PRICE, max_cost=60.0, patience=replace(QUICK, at_once=1))
    use = found.jobs[0].server
    assert use is not None
    assert use.unanswered == use.tries - use.requests > 5
    assert (use.cost or 0) > ((use.input_tokens or 0) + 2 * (use.output_tokens or 0)) / 1000


def test_a_server_that_counts_wildly_is_refused_when_it_is_tried_out_where_a_price_is_stated(
    serving: ModuleType, demo: Path, triples: tuple[Question, ...], scored: Callable[..., Scored]
) -> None:
    with serving.ModelServer(demo, serving.Offers(times=100_000)) as server:
        for scoring in (LETTERS, OPTIONS, CHAT):
            with pytest.raises(ScoringError, match=r"tried out, it counts [\d,]+ tokens read and 1 written, where at most 81 and 1 were asked for"):
                scored(triples, scoring, there=server, price=PRICE)
        assert server.asked == []
        scored(triples[:2], LETTERS, there=server)


def test_the_first_reply_that_counts_wildly_ends_the_asking_and_is_kept_with_what_it_counts(
    serving: ModuleType, make: SimpleNamespace, demo: Path, triples: tuple[Question, ...], task_of: Make, tmp_path: Path
) -> None:
    offers, journal = serving.Offers(), make.journal(tmp_path / "journal")

    def grow_wild(_number: int, _path: str, body: dict[str, Any]) -> None:
        offers.times = 100_000 if len(server.asked) > 20 and "The answer is" not in json.dumps(body) else 1

    with serving.ModelServer(demo, offers, grow_wild) as server:
        task = task_of(triples, LETTERS, there=server, price=PRICE, max_cost=60.0)
        with pytest.raises(ScoringError, match=r"question '.*': the server .* fails: asked this question, it counts [\d,]+ tokens read") as raised:
            score(task, make.no_executor(), journal, ignore_progress)
        assert "delete the keys price and max_cost" in str(raised.value.diagnostics[0].hint)
        assert 20 < len(server.asked) <= 20 + QUICK.at_once, "nothing is sent after it"
        assert len(batches(make, task, tmp_path / "journal")) == len(server.asked)
        asked = len(server.asked)
        with pytest.raises(ScoringError, match=r"has cost about .* of the 60 EUR that the study allows"):
            score(task, make.no_executor(), journal, ignore_progress)
        assert len(server.asked) == asked


def test_a_server_that_counts_no_tokens_is_refused_where_a_price_is_stated(
    serving: ModuleType, demo: Path, triples: tuple[Question, ...], scored: Callable[..., Scored]
) -> None:
    with (
        serving.ModelServer(demo, serving.Offers(usage=False)) as server,
        pytest.raises(ScoringError, match="does not tell how many tokens it counts"),
    ):
        scored(triples, LETTERS, there=server, price=PRICE)
    assert server.asked == []


@pytest.mark.parametrize(
    "case",
    [
        (
            {"echo": False},
            OPTIONS,
            "asked for the probabilities of a given text, it answers with HTTP 400; it says: Setting echo",
            "compare letters instead",
        ),
        ({"logprobs": False}, OPTIONS, "tried out, it gives no log-probabilities", "compare letters instead"),
        ({"logprobs": False}, LETTERS, "tried out, it gives no log-probabilities", "`chat: true`"),
        ({"logprobs": False}, CHAT, "tried out, it gives no log-probabilities", "gives the log-probabilities of tokens"),
        ({"completions": False}, LETTERS, "asked for its likeliest tokens, it answers with HTTP 404", "`chat: true`"),
        ({"most_listed": 0}, LETTERS, "asked for its likeliest tokens, it answers with HTTP 400", "`chat: true`"),
        ({"key": "another"}, LETTERS, "it does not accept a request without a key", "EVALSPEC_API_KEY"),
    ],
)
def test_a_server_that_does_not_give_what_is_needed_is_refused_before_any_question_is_sent(
    serving: ModuleType, demo: Path, triples: tuple[Question, ...], scored: Callable[..., Scored], case: tuple[dict[str, Any], Scoring, str, str]
) -> None:
    offers, scoring, told, hint = case
    with serving.ModelServer(demo, serving.Offers(**offers)) as server, pytest.raises(ScoringError) as raised:
        scored(triples, scoring, there=server, key_variable="EVALSPEC_API_KEY")
    (fault,) = raised.value.diagnostics
    assert told in fault.message
    assert hint in (fault.hint or "")
    assert server.asked == []


def test_a_key_that_the_study_names_and_nobody_has_is_missed_before_anything_is_sent(
    serving: ModuleType, demo: Path, triples: tuple[Question, ...], scored: Callable[..., Scored]
) -> None:
    with serving.ModelServer(demo) as server, pytest.raises(ScoringError, match="there is no variable LAB_API_KEY"):
        scored(triples, LETTERS, there=server, key_variable="LAB_API_KEY", key_needed=True)
    assert server.seen == []


def test_without_the_client_the_extra_that_brings_it_is_named(
    serving: ModuleType, demo: Path, triples: tuple[Question, ...], scored: Callable[..., Scored], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name in {"evalspec.scoring.served", "evalspec.scoring.server"}]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with serving.ModelServer(demo) as server, pytest.raises(MissingLibrary, match="needs the library 'httpx2'") as raised:
        scored(triples, LETTERS, there=server)
    assert "'.[server]'" in (raised.value.diagnostics[0].hint or "")


@pytest.mark.parametrize("disclosure", ["full", "ids", "none"])
def test_what_a_server_says_of_a_question_is_repeated_only_where_the_question_is_disclosed(
    serving: ModuleType, demo: Path, triples: tuple[Question, ...], scored: Callable[..., Scored], disclosure: str
) -> None:
    def refuse(_number: int, _path: str, body: dict[str, Any]) -> Any:
        prompt = body["prompt"]
        return None if "The answer is" in prompt else serving.Answer(400, json.dumps({"error": {"message": f"I will not: {prompt}"}}).encode())

    with serving.ModelServer(demo, behave=refuse) as server, pytest.raises(ScoringError) as raised:
        scored(triples, LETTERS, there=server, disclosure=disclosure)
    assert ("I will not" in str(raised.value)) == (disclosure == "full")
    assert "fails: it answers with HTTP 400" in str(raised.value)


def test_a_reply_that_lacks_what_was_promised_stops_the_model_and_names_the_question(
    serving: ModuleType, demo: Path, triples: tuple[Question, ...], scored: Callable[..., Scored]
) -> None:
    empty = json.dumps({"choices": [{"logprobs": {"content": []}}], "usage": {"prompt_tokens": 1}}).encode()

    def forget(_number: int, _path: str, body: dict[str, Any]) -> Any:
        return None if "The answer is" in body["prompt"] else serving.Answer(body=empty)

    with (
        serving.ModelServer(demo, behave=forget) as server,
        pytest.raises(ScoringError, match=r"question '[a-z]+-\d+'.*asked this question, it generated nothing"),
    ):
        scored(triples, LETTERS, there=server)


def test_every_name_that_a_server_calls_itself_is_kept(
    serving: ModuleType, demo: Path, triples: tuple[Question, ...], scored: Callable[..., Scored]
) -> None:
    names = ("one-2026", "two-2026", "secret-kanarie-key")
    with serving.ModelServer(demo, serving.Offers(names=names, fingerprints=("fp_1", "fp_2"), key="kanarie-key")) as server:
        facts = scored(triples, LETTERS, there=server, key="kanarie-key").responses.origins[0].server
    assert facts is not None
    assert facts.reported == ("one-2026", "secret-***", "two-2026")
    assert facts.fingerprints == ("fp_1", "fp_2")
    assert facts.first <= facts.last
    assert server.most_at_once <= QUICK.at_once
