from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalspec.artifacts.sources import RecordedResponses
from evalspec.artifacts.study import Study
from evalspec.errors import Diagnostic, Location, StudyError
from evalspec.language.compile import CompiledStudy, compile_study
from evalspec.language.source import read_source
from evalspec.protocols import Catalogue

Compile = Callable[..., CompiledStudy]
Faults = Callable[..., tuple[Diagnostic, ...]]
Changed = Callable[..., str]


def test_a_sound_study_compiles_with_its_defaults_filled_in(compiled: Compile, sound: str) -> None:
    study = compiled(sound).study
    assert [model.id for model in study.models] == ["new", "old"]
    assert isinstance(study.model("old").source, RecordedResponses)
    assert study.benchmark("facts").missing == "wrong"
    assert study.analysis("accuracy").benchmarks == ("facts", "riddles")
    assert study.analysis("accuracy").options == {"kind": "intervals", "method": "clopper_pearson", "level": 0.95, "average": "micro"}
    assert study.analysis("pairs").benchmarks == ("facts",)
    assert study.analysis("pairs").planned


@pytest.mark.parametrize(
    ("changes", "method"),
    [
        ((), "clopper_pearson"),
        ((("kind: intervals", "kind: intervals, method: wilson"),), "wilson"),
        ((("kind: intervals", "kind: intervals, method: jeffreys"),), "jeffreys"),
        ((("bound: low", "bound: value"),), "wilson"),
        ((("analysis: accuracy, metric: accuracy, model: new, bound: low", "analysis: other, metric: accuracy, model: new"),), "wilson"),
    ],
)
def test_where_a_bound_decides_an_interval_left_open_is_the_exact_one(
    compiled: Compile, changed: Changed, changes: tuple[tuple[str, str], ...], method: str
) -> None:
    other = ("  - {id: pairs,", "  - {id: other, kind: intervals, level: 0.9}\n  - {id: pairs,")
    assert compiled(changed(other, *changes)).study.analysis("accuracy").options["method"] == method


@pytest.mark.parametrize(
    ("option", "check", "method"),
    [
        ("", "above: -0.02", "exact"),
        (", method: score", "above: -0.02", "score"),
        (", method: e_value", "above: -0.02", "e_value"),
        ("", "above: -0.02, bound: value", "score"),
    ],
)
def test_where_a_margin_decides_a_test_left_open_is_the_exact_one(compiled: Compile, changed: Changed, option: str, check: str, method: str) -> None:
    analysis = f"  - {{id: no-loss, kind: noninferiority, candidate: new, baseline: old, margin: 0.02{option}}}\n  - {{id: pairs,"
    release = f"  checks:\n    - {{id: release, analysis: no-loss, metric: difference, model: new, baseline: old, {check}}}\n"
    study = compiled(changed(("  - {id: pairs,", analysis), ("  checks:\n", release))).study
    assert study.analysis("no-loss").options["method"] == method


@pytest.mark.parametrize(
    ("analysis", "check", "method"),
    [
        ("kind: mcnemar, family: all_pairs", "metric: difference, model: new, baseline: old, above: 0", "exact"),
        ("kind: mcnemar, family: all_pairs, method: score", "metric: difference, model: new, baseline: old, above: 0", "score"),
        ("kind: mcnemar, family: all_pairs", "metric: difference, model: new, baseline: old, above: 0, bound: value", "score"),
        ("kind: tiers", "metric: rank, model: new, at_most: 1", "exact"),
        ("kind: tiers, method: max_t", "metric: rank, model: new, at_most: 1", "max_t"),
    ],
)
def test_where_a_difference_or_a_rank_decides_a_method_left_open_is_the_exact_one(
    compiled: Compile, changed: Changed, analysis: str, check: str, method: str
) -> None:
    more = f"  - {{id: more, {analysis}}}\n  - {{id: pairs,"
    release = f"  checks:\n    - {{id: release, analysis: more, {check}}}\n"
    study = compiled(changed(("  - {id: pairs,", more), ("  checks:\n", release))).study
    assert study.analysis("more").options["method"] == method


def test_an_exploratory_analysis_is_not_planned(compiled: Compile, changed: Changed) -> None:
    study = compiled(changed(("kind: intervals", "kind: intervals, exploratory: true"))).study
    assert not study.analysis("accuracy").planned
    assert "exploratory" not in study.analysis("accuracy").options


def test_a_way_of_comparing_that_is_not_made_for_so_many_models_is_refused_where_it_is_written(faults: Faults, changed: Changed) -> None:
    def study(models: int) -> str:
        more = "".join(f"  - id: m{place}\n    source: {{responses: results.csv}}\n" for place in range(models - 2))
        return changed(("benchmarks:\n", f"{more}benchmarks:\n"), ("kind: intervals", "kind: tiers, method: max_t")).split("thresholds:")[0]

    assert faults(study(100)) == ()
    (fault,) = faults(study(101))
    assert fault.message == 'analysis "accuracy" takes method: max_t for up to 100 models, and the study has 101'
    assert fault.location is not None
    assert study(101).splitlines()[fault.location.line - 1][fault.location.column - 1 :].startswith("max_t")


def test_a_compiled_study_dumps_and_parses_back_to_one_digest(compiled: Compile, sound: str) -> None:
    study = compiled(sound).study
    assert Study.from_json(study.to_json()).digest() == study.digest()


@settings(deadline=None, max_examples=25)
@given(st.randoms(use_true_random=False))
def test_the_order_of_keys_moves_nothing_but_the_digest_of_the_file(compiled: Compile, sound: str, shuffle: random.Random) -> None:
    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            names = list(value)
            shuffle.shuffle(names)
            return {name: shuffled(value[name]) for name in names}
        return [shuffled(inner) for inner in value] if isinstance(value, list) else value

    study = compiled(sound).study
    again = compiled(json.dumps(shuffled(read_source(sound.encode(), "study.yaml").content))).study
    assert again.model_copy(update={"source_sha256": study.source_sha256}).digest() == study.digest()


def test_places_are_those_of_the_text(compiled: Compile, sound: str) -> None:
    study = compiled(sound)
    assert study.place(("models", 1, "source", "responses")) == Location("study.yaml", 8, 25)
    assert study.place(("benchmarks", 0, "disclosure")) == study.place(("benchmarks", 0))
    assert study.text == sound.encode()


def test_an_unknown_version_hides_all_else(faults: Faults, changed: Changed) -> None:
    (fault,) = faults(changed(("evalspec/v1", "evalspec/v9"), ("seed: 7", "sede: x")))
    assert "evalspec/v1" in str(fault.hint)


def test_a_fault_of_a_model_does_not_spread_to_those_who_name_it(faults: Faults, changed: Changed) -> None:
    (fault,) = faults(changed(("{path: checkpoint}", "{path: 12}")))
    assert "source.path" in fault.message


def test_a_check_without_an_analysis_is_not_that_of_an_analysis_without_an_id(faults: Faults, changed: Changed) -> None:
    found = faults(changed(("id: accuracy, ", ""), ("analysis: accuracy, ", "")))
    assert [fault.message for fault in found] == ['analysis 1 has no "id"', 'check "floor" has no "analysis"']


@pytest.mark.parametrize("text", ["*a", "!!str x", "no"])
def test_a_study_that_is_refused_as_a_whole_has_one_fault(text: str, faults: Faults) -> None:
    assert len(faults(text)) == 1


def test_at_most_a_hundred_faults_are_listed(faults: Faults) -> None:
    found = faults("\n".join(["apiVersion: evalspec/v1", *(f"k{number}: no" for number in range(300))]))
    assert len(found) == 101
    assert found[-1].message.startswith("and ")


def test_a_missing_study_file_names_one_like_it(tmp_path: Path, catalogue: Catalogue) -> None:
    (tmp_path / "study.yaml").write_text("")
    with pytest.raises(StudyError, match="no study file") as caught:
        compile_study(tmp_path / "sutdy.yaml", catalogue)
    assert caught.value.diagnostics[0].hint == 'did you mean "study.yaml"?'


def test_a_link_that_leads_nowhere_is_not_offered_as_the_study_that_was_meant(tmp_path: Path, catalogue: Catalogue) -> None:
    (tmp_path / "study.yaml").symlink_to(tmp_path / "gone.yaml")
    with pytest.raises(StudyError) as caught:
        compile_study(tmp_path / "study.yaml", catalogue)
    fault = caught.value.diagnostics[0]
    assert fault.message.endswith('study.yaml" is a link that leads nowhere')
    assert fault.hint == "mend the link, or name the study itself"


def test_a_folder_is_no_study_file(tmp_path: Path, catalogue: Catalogue) -> None:
    with pytest.raises(StudyError, match="is a folder"):
        compile_study(tmp_path, catalogue)


@pytest.mark.parametrize("name", ["a\0b.yaml", "x" * 300 + ".yaml"])
def test_a_name_that_no_file_can_have_is_an_error_of_the_study(name: str, tmp_path: Path, catalogue: Catalogue) -> None:
    with pytest.raises(StudyError, match="cannot be read"):
        compile_study(tmp_path / name, catalogue)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_a_study_with_anything_in_any_place_raises_nothing_but_study_errors(faults: Faults, sound: str, data: st.DataObject) -> None:
    content: Any = read_source(sound.encode(), "study.yaml").content
    junk = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "kind", "path", "method", "x"]), inner, max_size=3),
        max_leaves=6,
    )
    place = content
    for _ in range(data.draw(st.integers(0, 4))):
        inner = [value for value in (place.values() if isinstance(place, dict) else place) if isinstance(value, dict | list) and value]
        place = data.draw(st.sampled_from(inner)) if inner else place
    steps = list(place) if isinstance(place, dict) else list(range(len(place)))
    place[data.draw(st.sampled_from(steps))] = data.draw(junk)
    faults(json.dumps(content))


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_a_study_with_a_piece_cut_out_raises_nothing_but_study_errors(faults: Faults, sound: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(sound)))
    faults(sound[:start] + data.draw(st.sampled_from(["", ":", "- ", "\n", "{", '"', " "])) + sound[start + data.draw(st.integers(0, 30)) :])


def test_a_study_of_two_hundred_lines_compiles_in_a_tenth_of_a_second(compiled: Compile, sound: str) -> None:
    models = "".join(f"  - id: m{number}\n    source:\n      path: checkpoint\n    family: Small\n    licence: Apache-2.0\n" for number in range(36))
    text = sound.replace("models:\n", f"models:\n{models}")
    assert len(text.splitlines()) >= 200
    compiled(sound)
    spent = min(_seconds(lambda: compiled(text)) for _ in range(5))
    assert spent < 0.1


def _seconds(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin
