"""What is a server asked, and under which address do its answers stand in the journal?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from evalspec.artifacts.base import Artifact, Digest, FormatOne
from evalspec.artifacts.protocol import Protocol
from evalspec.artifacts.questions import Question
from evalspec.artifacts.served import ServedIdentity
from evalspec.artifacts.work import AskedQuestion, BenchmarkWork, Order, Preambles, work_of


class ServedKey(Artifact):
    """Everything that decides what a server is asked; what it answers with is for the server to say. `digest()` is the job's id."""

    format: FormatOne = 1
    endpoint: str
    name: str
    merge_variants: bool
    method: Literal["letter", "option"]
    prompt: str
    preambles_sha256: Digest | None = None
    chat: bool = False
    asked: Literal["first", "again"]
    questions: tuple[Digest, ...]


class ServedOrder(Order):
    """An order for a model behind a server; each question is a batch of its own.

    `quoting` says that messages may repeat what the server says, which may repeat a question.
    """

    identity: ServedIdentity
    quoting: bool

    def key(self, work: BenchmarkWork, questions: tuple[AskedQuestion, ...], *, one_by_one: bool = False) -> ServedKey:
        """Return what is asked; its digest is the id of the job in the journal. Questions of the self-check are asked again.

        Raises ValueError for texts to generate, which studies do not ask of servers.
        """
        if work.scoring.method == "sampled":
            raise ValueError(f"benchmark '{work.benchmark}' has models write texts, which is not asked of servers")
        return ServedKey(
            endpoint=self.identity.endpoint,
            name=self.identity.model,
            merge_variants=self.identity.merge_variants,
            method=work.scoring.method,
            prompt=work.prompt,
            preambles_sha256=work.preambles_sha256,
            chat=work.scoring.chat,
            asked="again" if one_by_one else "first",
            questions=tuple(question.sha256 for question in questions),
        )


def served_orders_of(
    protocol: Protocol, questions: Mapping[str, Sequence[Question]], preambles: Mapping[str, Preambles] | None = None
) -> tuple[ServedOrder, ...]:
    """Return one order per model that a server answers for, in the protocol's order; arguments and errors as of `orders_of`."""
    served = [(model.id, model.identity) for model in protocol.models if isinstance(model.identity, ServedIdentity)]
    if not served:
        return ()
    before = preambles or {}
    works = tuple(work_of(benchmark, questions[benchmark.id], before.get(benchmark.id, {})) for benchmark in protocol.benchmarks)
    quoting = all(benchmark.disclosure == "full" for benchmark in protocol.benchmarks)
    return tuple(
        ServedOrder(model=model, identity=identity, batch_rule=protocol.batch_rule, works=works, quoting=quoting) for model, identity in served
    )
