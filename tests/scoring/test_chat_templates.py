"""What a chat template that cannot be used comes to: an error that says so, in the plan and in the run alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from evalspec.artifacts.study import LetterScoring
from evalspec.artifacts.work import BenchmarkWork, work_of
from evalspec.errors import ScoringError
from evalspec.scoring import causal_lm
from evalspec.scoring.checkpoint import plan_tokens
from evalspec.scoring.tokens import encode_work

BROKEN = {
    "not closed": ("{% for message in messages %}{{ message.content }}", "cannot be used"),
    "not Jinja": ("{{ messages[0] }", "cannot be used"),
    "refuses": ("{{ raise_exception('only tools may speak') }}", "only tools may speak"),
    "reads what is not there": ("{{ messages[7]['content'] | upper }}", "cannot be used"),
    "divides by zero": ("{{ 1 // 0 }}{{ messages[0].content }}", "cannot be used"),
    "reaches for the interpreter": ("{{ messages.__class__.__mro__ }}", "cannot be used"),
    "leaves the question out": ("<bos>[user]\n[model]:", "does not hand on the user's message as it is"),
    "changes the question": ("{{ messages[0].content | upper }}", "does not hand on the user's message as it is"),
}


@pytest.fixture(scope="module")
def folder(make: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = make.checkpoint(tmp_path_factory.mktemp("chat") / "talker", bos=True)
    return made


def asked(make: SimpleNamespace) -> BenchmarkWork:
    questions = make.questions(1)
    return work_of(make.benchmark("b", questions, LetterScoring(method="letter", chat=True)), questions)


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_chat_template_is_an_error_that_names_the_model_and_what_to_do(make: SimpleNamespace, folder: Path, fault: str) -> None:
    template, told = BROKEN[fault]
    (folder / "chat_template.jinja").write_text(template)
    ways: tuple[Callable[[], object], ...] = (
        lambda: plan_tokens(folder, asked(make), model="m"),
        lambda: encode_work(asked(make), causal_lm.load(folder, model="m", precision="float32").vocabulary),
    )
    for way in ways:
        with pytest.raises(ScoringError, match=told) as raised:
            way()
        (diagnostic,) = raised.value.diagnostics
        assert diagnostic.message.startswith("the chat template of model 'm'")
        assert diagnostic.hint == "mend it (chat_template.jinja or tokenizer_config.json), or write `chat: false`"


def test_a_template_that_trims_the_message_is_in_order(make: SimpleNamespace, folder: Path) -> None:
    (folder / "chat_template.jinja").write_text(
        "{% for message in messages %}[{{ message.role }}] {{ message.content | trim }}\n{% endfor %}[model]:"
    )
    assert len(plan_tokens(folder, asked(make), model="m").questions) == 1
