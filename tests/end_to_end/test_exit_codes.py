from __future__ import annotations

import resource
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.end_to_end.conftest import Command, Run


@pytest.mark.parametrize(
    ("floor", "inconclusive", "expected"),
    [(0.5, "block", (0, "passed")), (0.99, "block", (1, "failed")), (0.9, "block", (4, "inconclusive")), (0.9, "warn", (0, "inconclusive"))],
)
def test_the_exit_code_of_run_is_the_verdict(
    tmp_path: Path, evalspec: Command, make: SimpleNamespace, floor: float, inconclusive: str, expected: tuple[int, str]
) -> None:
    make.recorded(tmp_path, floor=floor, inconclusive=inconclusive)
    spoken = evalspec("run", "study.yaml", "--no-pdf", cwd=tmp_path)
    assert spoken.code == expected[0]
    assert f"verdict: {expected[1]}" in spoken.out.splitlines()


def test_a_study_without_thresholds_gives_no_verdict_and_code_0(tmp_path: Path, evalspec: Command, make: SimpleNamespace) -> None:
    study = make.recorded(tmp_path)
    study.write_text(study.read_text().partition("thresholds:")[0])
    spoken = evalspec("run", "study.yaml", "--no-pdf", cwd=tmp_path)
    assert (spoken.code, "no thresholds" in spoken.out) == (0, True)


def test_a_wrong_study_is_2_and_leaves_nothing_behind(tmp_path: Path, evalspec: Command, make: SimpleNamespace) -> None:
    study = make.recorded(tmp_path)
    study.write_text(study.read_text().replace("models:", "modells:"))
    spoken = evalspec("run", "study.yaml", cwd=tmp_path)
    assert spoken.code == 2
    assert 'did you mean "models"?' in spoken.err
    assert not (tmp_path / "reports").exists()


@pytest.mark.parametrize("arguments", [("run",), ("frobnicate",), ("run", "study.yaml", "--token-budget", "0"), ("run", "study.yaml", "--tok", "9")])
def test_a_wrong_command_line_is_2(tmp_path: Path, evalspec: Command, make: SimpleNamespace, arguments: tuple[str, ...]) -> None:
    make.recorded(tmp_path)
    spoken = evalspec(*arguments, cwd=tmp_path)
    assert (spoken.code, "hint: see evalspec" in spoken.err) == (2, True)


def test_a_model_that_is_not_there_is_named_with_its_line(tmp_path: Path, evalspec: Command, make: SimpleNamespace) -> None:
    study = make.recorded(tmp_path)
    study.write_text(study.read_text().replace("responses: recorded.csv", "path: step-9", 1))
    spoken = evalspec("run", "study.yaml", cwd=tmp_path)
    assert (spoken.code, "step-9" in spoken.err, "study.yaml:5:" in spoken.err) == (2, True, True)


def test_a_folder_that_is_no_checkpoint_is_named_with_its_line(tmp_path: Path, evalspec: Command, make: SimpleNamespace) -> None:
    study = make.recorded(tmp_path)
    (tmp_path / "step-9").mkdir()
    study.write_text(study.read_text().replace("responses: recorded.csv", "path: step-9", 1))
    spoken = evalspec("plan", "study.yaml", cwd=tmp_path)
    assert (spoken.code, "study.yaml:5:" in spoken.err, "'step-9' has no config.json" in spoken.err) == (3, True, True)


def test_a_model_of_the_hub_that_is_not_in_its_cache_is_3(tmp_path: Path, evalspec: Command, make: SimpleNamespace) -> None:
    study = make.recorded(tmp_path)
    study.write_text(study.read_text().replace("responses: recorded.csv", f"hub: none/such, revision: {'a' * 40}", 1))
    spoken = evalspec("run", "study.yaml", cwd=tmp_path)
    assert (spoken.code, "hf download none/such" in spoken.err) == (3, True), spoken.err


def test_an_out_directory_with_something_else_in_it_is_3_and_untouched(tmp_path: Path, evalspec: Command, make: SimpleNamespace) -> None:
    make.recorded(tmp_path)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("four years")
    spoken = evalspec("run", "study.yaml", "--out", "thesis", "--no-pdf", cwd=tmp_path)
    assert (spoken.code, "chapter.txt" in spoken.err) == (3, True)
    assert [(path.name, path.read_text()) for path in (tmp_path / "thesis").iterdir()] == [("chapter.txt", "four years")]
    assert not list(tmp_path.glob("*.trust.yaml"))


def test_a_full_disk_is_3_and_says_so(tmp_path: Path, make: SimpleNamespace) -> None:
    make.recorded(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "evalspec", "run", "study.yaml", "--no-pdf"],
        cwd=tmp_path,
        env=make.environment(),
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)),  # the kernel then refuses to write more
    )
    assert (done.returncode, "report.html cannot be written" in done.stderr, "hint: make room" in done.stderr) == (3, True, True)
    assert "Traceback" not in done.stderr


def test_verify_is_0_with_trust_and_4_without(recorded: Run, evalspec: Command) -> None:
    trusted = evalspec("verify", recorded.folder, "--trust", recorded.trust, cwd=recorded.workplace)
    unknown = evalspec("verify", recorded.folder, cwd=recorded.workplace)
    assert (trusted.code, unknown.code) == (0, 4)
    assert "(trusted)" in trusted.out
    assert "NOT TRUSTED" in unknown.out


def test_verify_trusts_a_fingerprint(recorded: Run, evalspec: Command) -> None:
    fingerprint = evalspec("verify", recorded.folder, "--json", cwd=recorded.workplace).content["signer"]["fingerprint"]
    assert evalspec("verify", recorded.folder, "--fingerprint", fingerprint, cwd=recorded.workplace).code == 0


def test_verify_trusts_on_first_use_and_then_only_that_key(
    recorded: Run, tmp_path: Path, evalspec: Command, make: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    first = evalspec("verify", recorded.folder, "--tofu", cwd=recorded.workplace)
    assert (first.code, "TRUSTED ON FIRST USE" in first.out) == (0, True)
    assert "FIRST USE" not in evalspec("verify", recorded.folder, "--tofu", cwd=recorded.workplace).out
    make.recorded(tmp_path / "other")
    evalspec("keygen", "--organisation", "Example Lab", "--out", "other.p12", "--no-passphrase", cwd=tmp_path)
    evalspec("run", "other/study.yaml", "--key", "other.p12", "--no-pdf", cwd=tmp_path)
    copied = evalspec("verify", "reports/study", "--tofu", cwd=tmp_path)
    assert (copied.code, "may only have copied the name" in copied.out) == (4, True)


def test_verify_is_1_for_altered_content(recorded: Run, tmp_path: Path, evalspec: Command) -> None:
    shutil.copytree(recorded.folder, tmp_path / "copy")
    (tmp_path / "copy" / "verdict.json").write_text("{}")
    spoken = evalspec("verify", "copy", "--trust", recorded.trust, cwd=tmp_path)
    assert (spoken.code, "ALTERED verdict.json" in spoken.out) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("verify", "nowhere"), "there is no folder nowhere"),
        (("verify", ".", "--fingerprint", "SHA256:x"), "is not a fingerprint"),
        (("verify", ".", "--tofu", "--fingerprint", "SHA256:x"), "not allowed with"),
    ],
)
def test_verify_is_2_for_a_wrong_command_line(tmp_path: Path, evalspec: Command, arguments: tuple[str, ...], says: str) -> None:
    spoken = evalspec(*arguments, cwd=tmp_path)
    assert (spoken.code, says in spoken.err) == (2, True)


def test_verify_is_3_where_the_trust_file_cannot_be_read(recorded: Run, evalspec: Command) -> None:
    spoken = evalspec("verify", recorded.folder, "--trust", "absent.yaml", cwd=recorded.workplace)
    assert (spoken.code, "absent.yaml cannot be read" in spoken.err) == (3, True)
