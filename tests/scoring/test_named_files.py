"""Whatever else lies in a model's folder has no say: a library is shown the files that the protocol names, and no other."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from evalspec.artifacts.protocol import FileDigest
from evalspec.artifacts.sources import LocalCheckpoint
from evalspec.artifacts.study import LetterScoring, OptionScoring
from evalspec.artifacts.work import Assignment, WorkerEvent, WorkOrder, work_of
from evalspec.errors import ScoringError
from evalspec.planning.checkpoints import find_checkpoint, identify
from evalspec.protocols import ignore_progress
from evalspec.scoring.checkpoint import named_alone, plan_tokens, verify_files
from evalspec.scoring.execute import ScoringTask, score
from evalspec.scoring.model_run import ModelRun, Place
from evalspec.scoring.preparation import Checkpoints, VerifiedFiles

pytest.importorskip("torch")
pytest.importorskip("transformers")

CHAT = OptionScoring(method="option", chat=True)
TEMPLATE = "{{ messages[0].content }}"


def task_of(make: SimpleNamespace, folder: Path, scoring: LetterScoring | OptionScoring) -> ScoringTask:
    questions = make.questions(8)
    found = find_checkpoint(LocalCheckpoint(path=folder.name), folder=folder.parent, root=folder.parent, hub_cache=folder)
    protocol = make.protocol({"m": identify(found)}, [make.benchmark("b", questions, scoring)])
    return ScoringTask(protocol, {"b": questions}, {"m": folder}, {})


def put_template(folder: Path) -> None:
    (folder / "additional_chat_templates").mkdir()
    (folder / "additional_chat_templates" / "default.jinja").write_text("other " + TEMPLATE, encoding="utf-8")


def put_special_tokens(folder: Path) -> None:
    (folder / "added_tokens.json").write_text('{"red": 399}', encoding="utf-8")
    (folder / "special_tokens_map.json").write_text('{"additional_special_tokens": ["red"]}', encoding="utf-8")


@pytest.mark.parametrize("put", [put_template, put_special_tokens])
def test_files_that_come_into_the_folder_after_planning_have_no_say(make: SimpleNamespace, tmp_path: Path, put: Callable[[Path], None]) -> None:
    folder = make.checkpoint(tmp_path / "m")
    settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "chat_template": TEMPLATE}), encoding="utf-8")
    task = task_of(make, folder, CHAT)
    before = score(task, make.executor(), make.journal(tmp_path / "before"), ignore_progress).responses.benchmark("b")
    put(folder)
    after = score(task, make.executor(), make.journal(tmp_path / "after"), ignore_progress).responses.benchmark("b")
    np.testing.assert_array_equal(after.logprobs, before.logprobs)


class _Sly(Checkpoints):
    """Checkpoints whose weights are written again as soon as they have been verified."""

    def verify(self, order: WorkOrder) -> VerifiedFiles:
        verified, weights = super().verify(order), Path(order.folder) / "model.safetensors"
        weights.write_bytes(weights.read_bytes())
        return verified


def test_weights_that_change_between_their_verification_and_their_loading_are_named_and_not_used(make: SimpleNamespace, tmp_path: Path) -> None:
    (order,) = task_of(make, make.checkpoint(tmp_path / "m"), LetterScoring(method="letter")).orders()
    journal, assignment = make.journal(tmp_path / "journal"), Assignment(order=order)
    events: list[WorkerEvent] = []
    with pytest.raises(ScoringError, match=r"'m': model\.safetensors was changed or replaced after its digest was compared"):
        ModelRun(order, Place("cpu", 1), _Sly(), events.append).score(assignment, journal)
    assert [event.kind for event in events] == ["loading"]
    assert journal.read(assignment.key().digest()).sessions == ()


def test_weights_that_change_while_they_are_used_are_named_and_no_further_batch_is_kept(make: SimpleNamespace, tmp_path: Path) -> None:
    task = task_of(make, make.checkpoint(tmp_path / "m", dtype="float32"), LetterScoring(method="letter"))
    (order,), weights = task.orders(), tmp_path / "m" / "model.safetensors"
    journal, assignment = make.journal(tmp_path / "journal"), Assignment(order=order, one_by_one=True)

    def overwrite(event: WorkerEvent) -> None:
        if event.kind == "batch":
            with weights.open("r+b") as file:  # in place, as the loaded model may see it
                file.seek(weights.stat().st_size // 2)
                file.write(bytes(100))

    with pytest.raises(ScoringError, match=r"'m': model\.safetensors was changed or replaced"):
        ModelRun(order, Place("cpu", 1), Checkpoints(), overwrite).score(assignment, journal)
    assert set(journal.read(assignment.key().digest()).batches) == {0}


def test_a_template_that_the_protocol_does_not_name_is_none(make: SimpleNamespace, tmp_path: Path) -> None:
    folder = make.checkpoint(tmp_path / "m")
    put_template(folder)
    task = task_of(make, folder, CHAT)
    with pytest.raises(ScoringError, match="asks for the chat template of model 'm', which has none"):
        score(task, make.executor(), make.journal(tmp_path / "journal"), ignore_progress)
    (order,) = task.orders()
    with named_alone(order.checkpoint, order.identity) as place, pytest.raises(ScoringError, match="which has none"):
        plan_tokens(place, order.works[0], model="m")


def test_the_folder_that_is_shown_has_the_name_and_the_named_files_of_the_true_one(make: SimpleNamespace, tmp_path: Path) -> None:
    folder = make.checkpoint(tmp_path / "m")
    identity = make.identity(folder)
    (folder / "adapter_config.json").write_text("{}", encoding="utf-8")
    with named_alone(folder, identity) as place:
        assert (place.name, sorted(path.name for path in place.iterdir())) == ("m", [file.name for file in identity.files])
        verify_files(place, identity)
        questions = make.questions(4)
        work = work_of(make.benchmark("b", questions, LetterScoring(method="letter")), questions)
        assert plan_tokens(place, work, model="m") == plan_tokens(folder, work, model="m")
    assert not place.exists()


@pytest.mark.parametrize("name", ["../stolen", "/etc/hostname", "sub/file", "..", ""])
def test_a_protocol_of_others_that_names_files_elsewhere_is_refused(make: SimpleNamespace, tmp_path: Path, name: str) -> None:
    folder = make.checkpoint(tmp_path / "m")
    identity = make.identity(folder)
    strange = FileDigest(name=name, sha256="0" * 64, size=0)
    with pytest.raises(ScoringError, match="is no name of a file"), named_alone(folder, identity.model_copy(update={"files": (strange,)})):
        pass
