from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from evalspec.artifacts.extraction import ANSWER_RULES, REFUSALS
from evalspec.artifacts.prompts import answers_with, prompt_template
from evalspec.language.compile import CompiledStudy, compile_study
from evalspec.pattern_check import groups_of, pattern_fault
from evalspec.protocols import Catalogue

STUDY = """apiVersion: evalspec/v1
title: Is the new checkpoint better?
seed: 7
models:
  - {{id: new, source: {{path: checkpoint}}}}
{benchmarks}
analyses:
  - {{id: accuracy, kind: intervals}}
"""
SHORT = "benchmarks:\n  - {{id: facts, source: {{file: questions.jsonl}}, scoring: {{method: sampled{more}}}}}"

Compile = Callable[..., CompiledStudy]


def test_what_is_not_written_is_filled_in_so_that_the_study_holds_every_rule(compiled: Compile) -> None:
    scoring = compiled(STUDY.format(benchmarks=SHORT.format(more=""))).study.benchmarks[0].scoring
    assert scoring.method == "sampled"
    assert (scoring.repeats, scoring.temperature, scoring.max_tokens, scoring.stop) == (1, 0.0, 256, ())
    assert (scoring.extract, scoring.refusals) == (ANSWER_RULES, REFUSALS)
    assert all(pattern_fault(rule.pattern) is None and groups_of(rule.pattern) <= 1 for rule in ANSWER_RULES)
    assert all(pattern_fault(pattern) is None for pattern in REFUSALS)


@pytest.mark.parametrize(
    ("rules", "form", "prompt"),
    [
        ("", "letter", "{question}\n{choices}\nAnswer:"),
        (", extract: [{pattern: '[A-D]'}]", "letter", "{question}\n{choices}\nAnswer:"),
        (", extract: [{pattern: '.+', reads: text}]", "option", "{question}\nAnswer:"),
    ],
)
def test_the_usual_prompt_shows_what_the_rules_look_for(compiled: Compile, rules: str, form: str, prompt: str) -> None:
    scoring = compiled(STUDY.format(benchmarks=SHORT.format(more=rules))).study.benchmarks[0].scoring
    assert (answers_with(scoring), prompt_template(scoring)) == (form, prompt)


def test_the_example_of_the_documentation_is_a_sound_study(compiled: Compile, root: Path) -> None:
    found = re.search(r"```yaml\n(.*?)```", (root / "docs" / "generated-answers.md").read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    scoring = compiled(STUDY.format(benchmarks=found[1])).study.benchmarks[0].scoring
    assert scoring.method == "sampled"
    assert (scoring.repeats, scoring.chat, len(scoring.extract)) == (8, True, 2)


def test_the_study_of_generated_answers_is_sound(catalogue: Catalogue, root: Path) -> None:
    assert compile_study(root / "specs" / "sampled.yaml", catalogue).study.benchmarks[0].scoring.method == "sampled"
