"""Can the questions of every source give the sample and the scoring that the study asks for?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evalspec.artifacts.questions import LETTERS, QuestionBank, QuestionSet
from evalspec.artifacts.samples import Sample, SampleChosen, SampleIds, SampleSimple, SampleStratified, size_of
from evalspec.artifacts.study import Benchmark
from evalspec.language.compile import CompiledStudy, located, refuse
from evalspec.language.faults import Fault, suggestion
from evalspec.language.gates import NONINFERIORITY
from evalspec.language.positions import Pointer
from evalspec.language.scalars import quoted

if TYPE_CHECKING:  # most studies plan no size, and validation starts fast
    from evalspec.artifacts.protocol import PlannedSize


def check_against_questions(compiled: CompiledStudy, bank: QuestionBank) -> None:
    """Check samples, strata, scoring and checks against the questions; raises StudyError with every fault, at its place in the study.

    A benchmark that the bank does not have, because its questions are not on this machine, is passed over.
    """
    faults: list[Fault] = []
    present = {entry.benchmark for entry in bank.sets}
    for index, benchmark in enumerate(compiled.study.benchmarks):
        if benchmark.id not in present:
            continue
        questions = bank.benchmark(benchmark.id)
        sized = benchmark.model_copy(update={"sample": compiled.sample(benchmark.id)})
        faults += _sample(sized, questions, ("benchmarks", index, "sample"), compiled.sizes.get(benchmark.id))
        faults += _groups(benchmark, questions, ("benchmarks", index, "groups"))
        faults += _target(sized, questions, ("benchmarks", index, "target"))
        faults += _scoring(benchmark, questions, ("benchmarks", index, "scoring"))
    faults += _looks(compiled, bank)
    faults += _subjects(compiled, bank)
    refuse(located(faults, compiled.source))


def _sample(benchmark: Benchmark, questions: QuestionSet, place: Pointer, planned: PlannedSize | None) -> Iterator[Fault]:
    sample, available = benchmark.sample, len(questions.questions)
    if isinstance(sample, SampleIds):
        yield from _named(benchmark, sample, questions, (*place, "ids"))
    if isinstance(sample, SampleSimple | SampleStratified) and size_of(sample) > available:
        why = f" to detect {planned.detect:g} by analysis {quoted(planned.analysis)}" if planned else ""
        message = f'the sample of benchmark "{benchmark.id}" asks for {size_of(sample):,} questions{why}, and the source has {available:,}'
        yield Fault((*place, "size"), message, "ask for less, or write sample: {method: all}")
    elif isinstance(sample, SampleStratified):
        yield from _strata(benchmark, sample, questions, place)
    elif isinstance(sample, SampleChosen) and sample.size > available:
        message = f'the sample of benchmark "{benchmark.id}" asks for {sample.size:,} questions, and the source has {available:,}'
        yield Fault((*place, "size"), message, "ask for less, or write sample: {method: all}")


def _named(benchmark: Benchmark, sample: SampleIds, questions: QuestionSet, place: Pointer) -> Iterator[Fault]:
    known = questions.by_id()
    for index, identifier in enumerate(sample.ids):
        if identifier not in known:
            message = f'benchmark "{benchmark.id}" has no question {quoted(identifier)}'
            yield Fault((*place, index), message, suggestion(identifier, known, what="its questions are"))


def _strata(benchmark: Benchmark, sample: SampleStratified, questions: QuestionSet, place: Pointer) -> Iterator[Fault]:
    without = _without_subject(questions)
    if without:
        message = f'the sample of benchmark "{benchmark.id}" is stratified by subject, and {_count(without)} no subject'
        yield Fault((*place, "by"), message, "give every question a subject, or draw a simple sample")
        return
    strata = questions.strata()
    certain, enough = _needed(sample, tuple(strata.values()))
    size = size_of(sample)
    if size < certain:
        message = f'a sample of {size:,} leaves some of the {len(strata)} subjects of benchmark "{benchmark.id}" without a question'
        other = "" if sample.allocation == "equal" or size < len(strata) else ", or write allocation: equal"
        yield Fault((*place, "size"), message, f"ask for at least {enough:,} questions{other}")


def _needed(sample: SampleStratified, strata: tuple[int, ...]) -> tuple[int, int]:
    """Return the sizes below which some stratum certainly stays empty, and from which on certainly none does.

    Proportional samples give seats by Webster's divisors: seat k of a stratum of N questions has the quotient N / (2k + 1), and the largest
    quotients win. The smallest stratum gets its first seat after all seats with a greater quotient; equal ones are drawn by lot.

    References: Balinski and Young (1982), Fair Representation.
    """
    if sample.allocation == "equal":
        return len(strata), len(strata)
    smallest = min(strata)
    greater = sum(-(-(count - smallest) // (2 * smallest)) for count in strata)
    greater_or_equal = sum((count - smallest) // (2 * smallest) + 1 for count in strata)
    return greater + strata.count(smallest), greater_or_equal


def _groups(benchmark: Benchmark, questions: QuestionSet, place: Pointer) -> Iterator[Fault]:
    roles = {"subject": benchmark.groups.subject, "cluster": benchmark.groups.cluster}
    for key, role in roles.items():
        labels = [getattr(question, key) for question in questions.questions]
        without, different = labels.count(None), set(labels) - {None}
        if role is not None and without:
            message = f'benchmark "{benchmark.id}" declares its {key}s as {role}, and {_count(without)} no {key}'
            yield Fault((*place, key), message, f"give every question a {key}, or delete the key")
        elif role == "clusters" and len(different) < 2:
            message = f'benchmark "{benchmark.id}" declares its {key}s as clusters, and all its questions are in one'
            yield Fault((*place, key), message, "nothing can be learnt from one cluster about others: delete the key")


def _target(benchmark: Benchmark, questions: QuestionSet, place: Pointer) -> Iterator[Fault]:
    sample, available = benchmark.sample, len(questions.questions)
    if benchmark.target == "this_pool" and isinstance(sample, SampleSimple | SampleStratified) and size_of(sample) == available:
        message = f'benchmark "{benchmark.id}" asks about this pool of {available:,} questions, and its sample takes them all'
        yield Fault(place, message, "then nothing is uncertain about the pool: delete the key, or draw fewer questions")


def _scoring(benchmark: Benchmark, questions: QuestionSet, place: Pointer) -> Iterator[Fault]:
    most = max((len(question.choices) for question in questions.questions), default=0)
    if benchmark.scoring.method == "letter" and most > len(LETTERS):
        message = f'a question of benchmark "{benchmark.id}" has {most} choices, and there are {len(LETTERS)} letters'
        yield Fault((*place, "method"), message, "write method: option")
    without = _without_subject(questions)
    if benchmark.scoring.prompt and "{subject}" in benchmark.scoring.prompt and without:
        message = f'the prompt of benchmark "{benchmark.id}" uses {{subject}}, and {_count(without)} no subject'
        yield Fault((*place, "prompt"), message, "give every question a subject, or leave {subject} out")


def _subjects(compiled: CompiledStudy, bank: QuestionBank) -> Iterator[Fault]:
    """Yield a fault for every check on a subject that its benchmark does not have."""
    thresholds = compiled.study.thresholds
    for index, check in enumerate(thresholds.checks if thresholds else ()):
        named = (check.benchmark,) if check.benchmark else compiled.study.analysis(check.analysis).benchmarks
        for questions in (entry for entry in bank.sets if entry.benchmark in named):
            strata = questions.strata()
            if check.subject is not None and check.subject not in strata:
                message = f'benchmark "{questions.benchmark}" has no subject {quoted(check.subject)}'
                hint = suggestion(check.subject, strata, what="its subjects are")
                yield Fault(("thresholds", "checks", index, "subject"), message, hint)


def _looks(compiled: CompiledStudy, bank: QuestionBank) -> Iterator[Fault]:
    """Yield a fault for every planned look whose sample has another number of questions than the plan: nothing is decided on it."""
    for index, request in enumerate(compiled.study.analyses):
        match request.options.get("looks") if request.kind == NONINFERIORITY else None:
            case {"at": list(at), "this": int(this)} if isinstance(planned := at[this - 1], int):
                place = ("analyses", index, "looks", "at", this - 1)
            case _:
                continue
        for questions in (entry for entry in bank.sets if entry.benchmark in request.benchmarks):
            asked = _asked(compiled.sample(questions.benchmark), questions)
            if asked != planned:
                message = f"look {this} of analysis {quoted(request.id)} is planned at {planned:,} questions"
                message += f', and the sample of benchmark "{questions.benchmark}" has {asked:,}'
                hint = f"write sample: {{method: simple, size: {planned}}}, or the number of the look that this is"
                yield Fault(place, message, hint)


def _asked(sample: Sample, questions: QuestionSet) -> int:
    if isinstance(sample, SampleIds):
        return len(sample.ids)
    if isinstance(sample, SampleChosen):
        return sample.size
    return size_of(sample) if isinstance(sample, SampleSimple | SampleStratified) else len(questions.questions)


def _without_subject(questions: QuestionSet) -> int:
    return sum(1 for question in questions.questions if question.subject is None)


def _count(number: int) -> str:
    return "one question has" if number == 1 else f"{number:,} questions have"
