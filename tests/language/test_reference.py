from __future__ import annotations

import json
import os
import re
from pathlib import Path

from evalspec.language.grammar import build_grammar
from evalspec.language.reference import reference
from evalspec.protocols import Catalogue


def test_the_language_reference_is_what_the_grammar_says(catalogue: Catalogue, root: Path) -> None:
    page = root / "docs" / "study-language.md"
    if os.environ.get("EVALSPEC_UPDATE_GOLDEN") == "1":
        page.write_text(reference(catalogue), encoding="utf-8")
    assert page.read_text(encoding="utf-8") == reference(catalogue)


def test_the_schema_beside_the_example_studies_is_what_the_tool_prints_without_plug_ins(catalogue: Catalogue, root: Path) -> None:
    file = root / "specs" / "evalspec.schema.json"
    printed = json.dumps(build_grammar(catalogue).schema(), indent=2, ensure_ascii=False) + "\n"
    if os.environ.get("EVALSPEC_UPDATE_GOLDEN") == "1":
        file.write_text(printed, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == printed


def test_every_link_of_the_reference_leads_to_a_heading(catalogue: Catalogue) -> None:
    text = reference(catalogue)
    headings = {line[3:].lower().replace("`", "").replace(" ", "-") for line in text.splitlines() if line.startswith("## ")}
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= headings
