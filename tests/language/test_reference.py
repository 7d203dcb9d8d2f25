from __future__ import annotations

import os
import re
from pathlib import Path

from evalspec.language.reference import reference
from evalspec.protocols import Catalogue


def test_the_language_reference_is_what_the_grammar_says(catalogue: Catalogue, root: Path) -> None:
    page = root / "docs" / "study-language.md"
    if os.environ.get("EVALSPEC_UPDATE_GOLDEN") == "1":
        page.write_text(reference(catalogue), encoding="utf-8")
    assert page.read_text(encoding="utf-8") == reference(catalogue)


def test_every_link_of_the_reference_leads_to_a_heading(catalogue: Catalogue) -> None:
    text = reference(catalogue)
    headings = {line[3:].lower().replace("`", "").replace(" ", "-") for line in text.splitlines() if line.startswith("## ")}
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= headings
