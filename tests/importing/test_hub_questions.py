"""A data set of the hub is read from the local cache, in the layout that the hub's own tools write, and never from the network."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evalspec.artifacts.questions import QuestionSet
from evalspec.artifacts.sources import HubQuestions
from evalspec.artifacts.study import Benchmark, LetterScoring
from evalspec.errors import InputError
from evalspec.importing.questions import read_questions

REVISION = "c30699e8356da336a370243923dbaf21066bb9fe"


def cache_split(cache: Path, file: str, stems: list[str]) -> None:
    """Put a file into the cache as the hub does: a blob, and a relative link to it in the snapshot."""
    repository = cache / "datasets--cais--mmlu"
    blob = repository / "blobs" / file.replace("/", "-")
    blob.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"question": stem, "subject": "sums", "choices": ["1", "2", "3", "4"], "answer": 1} for stem in stems]
    pq.write_table(pa.Table.from_pylist(rows), blob)
    link = repository / "snapshots" / REVISION / file
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(Path(*[".."] * (2 + file.count("/")), "blobs", blob.name))


def read(cache: Path, *, config: str | None = "all", split: str = "test") -> QuestionSet:
    source = HubQuestions(hub="cais/mmlu", revision=REVISION, split=split, config=config)
    benchmark = Benchmark(id="mmlu", source=source, scoring=LetterScoring(method="letter"))
    return read_questions(benchmark, folder=cache, root=cache / "study", hub_cache=cache)


@pytest.mark.parametrize(
    ("file", "config"),
    [
        ("all/test-00000-of-00001.parquet", "all"),
        ("all/test/0000.parquet", "all"),
        ("data/test-00000-of-00001.parquet", None),
        ("data/test-00000-of-00001.parquet", "default"),
        ("test.parquet", None),
    ],
)
def test_a_split_is_found_in_the_common_layouts(tmp_path: Path, file: str, config: str | None) -> None:
    cache_split(tmp_path, file, ["1 + 1?"])
    cache_split(tmp_path, file.replace("test", "validation"), ["not this"])
    question_set = read(tmp_path, config=config)
    assert [(question.stem, question.answer) for question in question_set.questions] == [("1 + 1?", 1)]
    assert question_set.source.startswith(f"cais/mmlu@{REVISION}")


def test_a_split_in_several_files_is_read_in_their_order(tmp_path: Path) -> None:
    cache_split(tmp_path, "all/test-00001-of-00002.parquet", ["third"])
    cache_split(tmp_path, "all/test-00000-of-00002.parquet", ["first", "second"])
    assert [question.stem for question in read(tmp_path).questions] == ["first", "second", "third"]


def test_a_data_set_that_is_not_cached_is_refused_with_the_command_that_fetches_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"hf download cais/mmlu --repo-type dataset --revision {REVISION}"):
        read(tmp_path)


def test_a_split_that_is_not_cached_is_refused_with_what_is(tmp_path: Path) -> None:
    cache_split(tmp_path, "all/test-00000-of-00001.parquet", ["1 + 1?"])
    with pytest.raises(InputError, match=r"in the cache are all/test-00000-of-00001\.parquet"):
        read(tmp_path, split="train")


def test_a_link_that_leaves_the_repository_of_the_cache_is_refused(tmp_path: Path) -> None:
    cache_split(tmp_path, "all/test-00000-of-00001.parquet", ["1 + 1?"])
    link = tmp_path / "datasets--cais--mmlu" / "snapshots" / REVISION / "all" / "test-00000-of-00001.parquet"
    outside = tmp_path / "outside.parquet"
    outside.write_bytes(link.read_bytes())
    link.unlink()
    link.symlink_to(outside)
    with pytest.raises(InputError, match="leads out of the hub cache"):
        read(tmp_path)
