"""Which files beside the study does an analysis read?  Each is named by its path and by its digest, so that it is this one and no other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import BaseModel, Field

from evalspec.artifacts.base import Artifact, Digest


class OutsideTable(Artifact):
    """A table that an analysis reads beside the responses: a CSV file at a path seen from the study's folder, and the SHA-256 that it must have."""

    path: Annotated[str, Field(min_length=1, max_length=1000)]
    sha256: Digest


def tables_in(options: object) -> Iterator[OutsideTable]:
    """Yield every outside table that the options of an analysis name, wherever it stands in them."""
    if isinstance(options, OutsideTable):
        yield options
    elif isinstance(options, BaseModel):
        for name in type(options).model_fields:
            yield from tables_in(getattr(options, name))
    elif isinstance(options, tuple | list):
        for entry in options:
            yield from tables_in(entry)
    elif isinstance(options, Mapping):
        for entry in options.values():
            yield from tables_in(entry)
