from __future__ import annotations

import json
import re
import shutil
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from evalspec.language.source import read_source

if TYPE_CHECKING:
    from tests.end_to_end.conftest import Command, Run


def test_a_first_study_validates_plans_and_runs_to_a_verified_report(tmp_path: Path, evalspec: Command) -> None:
    written = evalspec("init", "first", cwd=tmp_path)
    assert written.code == 0
    assert evalspec("validate", "first/study.yaml", cwd=tmp_path).out == "first/study.yaml: valid (2 models, 1 benchmark, 2 analyses, 1 check)\n"
    assert "nothing to score" in evalspec("plan", "first/study.yaml", cwd=tmp_path).out
    ran = evalspec("run", "first/study.yaml", "--no-pdf", cwd=tmp_path)
    assert (ran.code, "0/0" in ran.err) == (0, False)
    trust = "reports/study.trust.yaml"
    assert f"evalspec verify reports/study --trust {trust}" in ran.out
    assert evalspec("verify", "reports/study", "--trust", trust, "--recompute", cwd=tmp_path).code == 0


def test_init_writes_a_study_of_checkpoints_and_overwrites_nothing(workplace: Path, tmp_path: Path, evalspec: Command) -> None:
    (tmp_path / "evalspec.toml").write_text("")
    shutil.copytree(workplace / "checkpoints", tmp_path / "models")
    assert evalspec("init", "mine", "--model", "models/tiny-a", "--model", "models/tiny-b", cwd=tmp_path).code == 0
    assert evalspec("validate", "mine/study.yaml", cwd=tmp_path).code == 0
    text = (tmp_path / "mine" / "study.yaml").read_text()
    assert "tiny-a" in text
    again = evalspec("init", "mine", cwd=tmp_path)
    assert (again.code, "nothing was written" in again.err) == (2, True)
    assert (tmp_path / "mine" / "study.yaml").read_text() == text


def test_init_in_the_place_of_a_file_is_an_error_not_a_traceback(tmp_path: Path, evalspec: Command) -> None:
    (tmp_path / "taken").write_text("")
    assert evalspec("init", "taken", cwd=tmp_path).code == 2


def test_init_refuses_checkpoints_that_its_study_could_not_read_and_writes_nothing(workplace: Path, tmp_path: Path, evalspec: Command) -> None:
    refused = evalspec("init", "mine", "--model", "absent", "--model", workplace / "checkpoints" / "tiny-a", cwd=tmp_path)
    assert (refused.code, "there is no folder absent" in refused.err, "lies outside" in refused.err) == (2, True, True)
    assert list(tmp_path.iterdir()) == []


def test_the_plan_says_how_many_answers_the_progress_of_the_run_counts(scored: Run, evalspec: Command) -> None:
    planned = evalspec("plan", "study.yaml", "--cache", "whole", cwd=scored.workplace).out
    counted = re.search(r"100%  ([0-9,]+)/\1 answers", scored.spoken.err)
    assert counted
    assert f"as a self-check: {counted[1]} in all" in planned


def test_every_verb_speaks_json(recorded: Run, tmp_path: Path, evalspec: Command) -> None:
    commands = {
        "init": ("init", tmp_path / "new"),
        "validate": ("validate", "study.yaml"),
        "plan": ("plan", "study.yaml"),
        "run": ("run", "study.yaml", "--no-pdf", "--out", tmp_path / "out", "--throwaway-key"),
        "report": ("report", tmp_path / "out", "--no-pdf", "--throwaway-key"),
        "verify": ("verify", recorded.folder, "--recompute"),
        "keygen": ("keygen", "--organisation", "X", "--out", tmp_path / "k.p12", "--no-passphrase"),
        "schema": ("schema",),
        "doctor": ("doctor",),
    }
    keys = {name: set(evalspec(*arguments, "--json", cwd=recorded.workplace).content) for name, arguments in commands.items()}
    assert keys["validate"] >= {"valid", "models", "benchmarks", "analyses", "checks", "study_sha256"}
    assert keys["plan"] == {"protocol_sha256", "protocol", "schedule", "warnings"}
    assert keys["run"] == keys["report"] == {"verdict", "checks", "folder", "trust", "plan"}
    assert keys["verify"] >= {"outcome", "trusted", "signer", "problems", "recomputation", "page", "exit_code"}
    assert keys["keygen"] == {"key", "fingerprint", "trust"}
    assert keys["doctor"] == {"complete", "examined"}
    assert keys["init"] == {"written"}
    assert "properties" in keys["schema"]


@pytest.mark.parametrize(
    ("arguments", "error", "code"),
    [
        (("run", "absent.yaml"), "StudyError", 2),
        (("verify", "absent"), "UsageError", 2),
        (("report", "."), "UsageError", 2),
        (("init", "file/new"), "StoreError", 3),
        (("verify", "--frobnicate"), "UsageError", 2),
        (("frobnicate",), "UsageError", 2),
        (("keygen", "--organisation", "", "--out", "k.p12", "--no-passphrase"), "UsageError", 2),
    ],
)
def test_errors_are_json_too(tmp_path: Path, evalspec: Command, arguments: tuple[str, ...], error: str, code: int) -> None:
    (tmp_path / "file").write_text("")
    spoken = evalspec(*arguments, "--json", cwd=tmp_path)
    assert (spoken.content["error"], spoken.content["exit_code"], spoken.code) == (error, code, code)
    assert spoken.content["diagnostics"][0]["message"]


def test_a_fault_of_a_study_has_its_place_in_json(tmp_path: Path, evalspec: Command, make: SimpleNamespace) -> None:
    study = make.recorded(tmp_path)
    study.write_text(study.read_text().replace("model: good", "model: god"))
    fault = evalspec("validate", "study.yaml", "--json", cwd=tmp_path).content["diagnostics"][0]
    assert (fault["file"], fault["line"], "good" in fault["hint"]) == ("study.yaml", 14, True)


def test_the_schema_accepts_the_studies_that_come_with_the_project(root: Path, tmp_path: Path, evalspec: Command) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="the package jsonschema is not installed")
    schema = json.loads(evalspec("schema", cwd=tmp_path).out)
    studies = sorted((root / "specs").glob("*.yaml"))
    assert len(studies) >= 3
    for study in studies:
        jsonschema.validate(read_source(study.read_bytes(), study.name).content, schema)


def test_doctor_finds_the_key_and_says_when_others_can_read_it(recorded: Run, tmp_path: Path, evalspec: Command) -> None:
    (tmp_path / "evalspec.toml").write_text('key = "key.p12"\n')
    absent = evalspec("doctor", cwd=tmp_path)
    assert "evalspec keygen --organisation NAME --out" in absent.out
    (tmp_path / "key.p12").write_bytes(recorded.key.read_bytes())
    (tmp_path / "key.p12").chmod(0o644)
    assert "chmod 600" in evalspec("doctor", cwd=tmp_path).out
    (tmp_path / "key.p12").chmod(0o600)
    assert "ok      signing key" in evalspec("doctor", cwd=tmp_path).out


def test_a_key_is_private_protected_by_a_passphrase_and_never_overwritten(
    tmp_path: Path, evalspec: Command, make: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALSPEC_KEY_PASSPHRASE", "correct horse")
    made = evalspec("keygen", "--organisation", "Example Lab", "--out", "k.p12", "--trust", "team.yaml", cwd=tmp_path)
    content = (tmp_path / "k.p12").read_bytes()
    assert (made.code, stat.S_IMODE((tmp_path / "k.p12").stat().st_mode)) == (0, 0o600)
    assert "fingerprint: SHA256:" in made.out
    again = evalspec("keygen", "--organisation", "Example Lab", "--out", "k.p12", cwd=tmp_path)
    assert (again.code, "never overwritten" in again.err, (tmp_path / "k.p12").read_bytes() == content) == (2, True, True)

    make.recorded(tmp_path)
    assert evalspec("run", "study.yaml", "--key", "k.p12", "--no-pdf", cwd=tmp_path).code == 0
    assert evalspec("verify", "reports/study", "--trust", "team.yaml", cwd=tmp_path).code == 0
    monkeypatch.setenv("EVALSPEC_KEY_PASSPHRASE", "wrong horse")
    wrong = evalspec("run", "study.yaml", "--key", "k.p12", "--no-pdf", cwd=tmp_path)
    assert (wrong.code, "wrong passphrase" in wrong.err, "EVALSPEC_KEY_PASSPHRASE" in wrong.err) == (3, True, True)


def test_a_key_without_any_passphrase_must_be_asked_for(tmp_path: Path, evalspec: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVALSPEC_KEY_PASSPHRASE", raising=False)
    refused = evalspec("keygen", "--organisation", "X", "--out", "k.p12", cwd=tmp_path)
    assert (refused.code, "--no-passphrase" in refused.err, (tmp_path / "k.p12").exists()) == (2, True, False)


def test_a_throw_away_key_does_not_replace_a_trust_file_of_the_reader(recorded: Run, tmp_path: Path, evalspec: Command) -> None:
    mine = tmp_path / "team.yaml"
    mine.write_bytes(recorded.trust.read_bytes())
    spoken = evalspec("run", "study.yaml", "--out", tmp_path / "out", "--trust-out", mine, "--no-pdf", cwd=recorded.workplace)
    assert (spoken.code, "does not replace it" in spoken.err) == (2, True)
    assert mine.read_bytes() == recorded.trust.read_bytes()


def test_a_run_that_fails_leaves_the_trust_file_of_the_report_before_it(tmp_path: Path, evalspec: Command, make: SimpleNamespace) -> None:
    study = make.recorded(tmp_path)
    assert evalspec("run", "study.yaml", "--no-pdf", cwd=tmp_path).code == 0
    study.write_text("apiVersion: [")
    assert evalspec("run", "study.yaml", "--no-pdf", cwd=tmp_path).code == 2
    assert evalspec("verify", "reports/study", "--trust", "reports/study.trust.yaml", cwd=tmp_path).code == 0


def test_verifying_imports_no_torch_no_renderer_and_no_plotting(recorded: Run, tmp_path: Path, process: Command) -> None:
    spoken = process("verify", recorded.folder, "--trust", recorded.trust, cwd=tmp_path, env={"PYTHONPROFILEIMPORTTIME": "1"})
    imported = {line.rpartition("|")[2].strip() for line in spoken.err.splitlines()}
    assert spoken.code == 0
    assert "evalspec.signing.verify" in imported
    heavy = ("torch", "transformers", "weasyprint", "matplotlib", "scipy", "pandas", "jinja2")
    assert [name for name in imported if name.partition(".")[0] in heavy] == []


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_there_is_completion(tmp_path: Path, evalspec: Command, shell: str) -> None:
    assert "recompute" in evalspec("--print-completion", shell, cwd=tmp_path).out


@pytest.mark.parametrize("verb", ["init", "validate", "plan", "run", "report", "verify", "keygen", "schema", "doctor"])
def test_the_help_of_a_verb_has_an_example(tmp_path: Path, evalspec: Command, verb: str) -> None:
    spoken = evalspec(verb, "--help", cwd=tmp_path)
    assert (spoken.code, f"evalspec {verb}" in spoken.out.partition("--help")[2], "pip install evalspec" in spoken.out) == (0, True, False)
