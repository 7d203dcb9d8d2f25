from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from evalspec.artifacts.samples import Sample, SampleAll, SampleIds, SampleSimple, SampleStratified, SizeToDetect, size_of, sized

TARGET = SizeToDetect(detect=0.05, discordance=0.2)


def test_a_target_becomes_the_number_of_questions_that_it_needs_and_all_else_stays() -> None:
    sample = SampleStratified(method="stratified", by="subject", size=TARGET, allocation="equal")
    assert sized(sample, 622) == SampleStratified(method="stratified", by="subject", size=622, allocation="equal")


@pytest.mark.parametrize("sample", [SampleAll(), SampleIds(method="ids", ids=("q1",)), SampleSimple(method="simple", size=30)])
def test_a_sample_without_a_target_stays_as_it_is(sample: Sample) -> None:
    assert sized(sample, None) is sample


def test_a_target_without_its_number_is_never_taken_for_a_size() -> None:
    sample = SampleSimple(method="simple", size=TARGET)
    with pytest.raises(ValueError, match="needs its number of questions"):
        sized(sample, None)
    with pytest.raises(ValueError, match="needs its number of questions"):
        size_of(sample)
    assert size_of(sized(sample, 622)) == 622


def test_a_fault_of_a_size_is_told_against_the_kind_that_was_meant() -> None:
    with pytest.raises(ValidationError) as found:
        TypeAdapter(Sample).validate_python({"method": "simple", "size": {"detect": 2.0, "discordance": 0.2}})
    assert [error["loc"] for error in found.value.errors()] == [("simple", "size", "target", "detect")]
