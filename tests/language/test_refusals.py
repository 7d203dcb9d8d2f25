"""A check whose analysis computes nothing of questions that come about as declared can never be decided, and is refused before anything is scored."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from evalspec.errors import Diagnostic

STUDY = """apiVersion: evalspec/v1
title: t
seed: 1
models:
  - {{id: new, source: {{responses: t.csv}}}}
  - {{id: old, source: {{responses: t.csv}}}}
benchmarks:
  - id: plain
    source: {{file: q.jsonl}}
    scoring: {{method: letter}}
  - id: grouped
    source: {{file: q.jsonl}}
    groups: {groups}
    scoring: {{method: letter}}
analyses:
  - {{id: it, {analysis}}}
  - {{id: held, kind: intervals}}
thresholds:
  checks:
    - {{id: c, analysis: it, model: new, baseline: old, {check}}}
"""
E_VALUE = "kind: noninferiority, candidate: new, baseline: old, margin: 0.05, method: e_value"
POWER = "kind: power"
ABOVE, DETECTS = "metric: difference, above: -0.05", "metric: detectable_difference, at_most: 0.1"
CLUSTERS = ("{subject: clusters}", "{cluster: clusters}")


@pytest.mark.parametrize("groups", CLUSTERS)
@pytest.mark.parametrize(("analysis", "check"), [(E_VALUE, ABOVE), (POWER, DETECTS)])
def test_a_check_of_clusters_by_an_analysis_that_refuses_them_is_a_fault(
    analysis: str, check: str, groups: str, faults: Callable[[bytes], tuple[Diagnostic, ...]]
) -> None:
    found = [fault for fault in faults(STUDY.format(groups=groups, analysis=analysis, check=check).encode()) if "never be decided" in fault.message]
    (fault,) = found
    assert (fault.location and fault.location.line, 'analysis "it" computes nothing on benchmark "grouped"' in fault.message) == (20, True)
    assert "clusters" in fault.message


@pytest.mark.parametrize(
    ("groups", "analysis", "check"),
    [
        ("{subject: strata}", E_VALUE, ABOVE),
        (CLUSTERS[0], E_VALUE.replace("e_value", "exact"), ABOVE),
        (CLUSTERS[0], E_VALUE, f"benchmark: plain, {ABOVE}"),
        (CLUSTERS[0], f"{POWER}, benchmarks: [plain]", DETECTS),
        ("{subject: strata}", POWER, DETECTS),
    ],
)
def test_a_check_that_can_be_decided_is_none(groups: str, analysis: str, check: str, faults: Callable[[bytes], tuple[Diagnostic, ...]]) -> None:
    found = faults(STUDY.format(groups=groups, analysis=analysis, check=check).encode())
    assert not [fault for fault in found if "never be decided" in fault.message]
