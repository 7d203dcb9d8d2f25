"""Which outside tables do the analyses of a study read, and what is wrong with them?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from evalspec.artifacts.base import canonical_json
from evalspec.artifacts.outside import OutsideTable, tables_in
from evalspec.artifacts.study import AnalysisRequest
from evalspec.errors import Diagnostic
from evalspec.protocols import Catalogue


def named_tables(requests: Sequence[AnalysisRequest], catalogue: Catalogue) -> tuple[OutsideTable, ...]:
    """Return every table that the options of these analyses name, each digest once."""
    found = {}
    for request in requests:
        options = catalogue[request.kind].options.model_validate_json(canonical_json(request.options))
        found.update({table.sha256: table for table in tables_in(options)})
    return tuple(found.values())


def examine_tables(requests: Sequence[AnalysisRequest], catalogue: Catalogue, tables: Mapping[str, bytes]) -> Iterator[Diagnostic]:
    """Yield every fault that the analyses find in their tables, given the tables' bytes by digest."""
    for request in requests:
        analysis = catalogue[request.kind]
        if analysis.examine is not None:
            yield from analysis.examine(analysis.options.model_validate_json(canonical_json(request.options)), tables)
