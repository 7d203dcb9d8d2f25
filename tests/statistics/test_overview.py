"""docs/statistics.md lists every public function of evalspec/statistics; `make golden` writes it anew, to be reviewed as a diff."""

from __future__ import annotations

import ast
import os
import re
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "evalspec"
PAGE = PACKAGE.parent / "docs" / "statistics.md"
PLUMBING = {"__init__", "arguments", "binomials", "groups", "p_values", "quadrature"}
"""Modules that hold no statistic: argument checks, and pieces of formulas."""

INTRODUCTION = """# What statistics are there, and what do they rest on?

Every function of `evalspec/statistics/`, by the question that its module answers, with its source. All are tested against peers or published
values. **A study offers few of them**, on purpose: with many methods to choose from, a result can be had by choosing. The last column says what a
study reaches: the analyses and stages that call the function themselves; "inside" marks what other statistics are built from; "function only"
marks what is there to compare with published figures or for work in Python, and which no study can select. Which interval or test an analysis
takes, and when, stands on the page of that analysis, such as [intervals](intervals.md) and [mcnemar](mcnemar.md).

Conventions. Scores and differences are proportions, differences are first minus second. Undefined is refused with a reason or `None`, never 0.
Whatever draws takes a NumPy `Generator`. This page is made from the docstrings, which say more; `make golden` writes it anew.
"""


def functions(tree: ast.Module) -> list[ast.FunctionDef]:
    return [node for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]


def docstring(node: ast.Module | ast.FunctionDef) -> str:
    text = ast.get_docstring(node)
    assert text, f"{getattr(node, 'name', 'a module')} has no docstring"
    return text


def section(text: str, title: str) -> str:
    """Return the text under a heading of a docstring, as one line."""
    found = re.search(rf"^{title}\n-+\n(.*?)(?=\n\n\w[^\n]*\n-+\n|\Z)", text, re.DOTALL | re.MULTILINE)
    return " ".join(found.group(1).split()) if found else ""


def users() -> dict[tuple[str, str], set[str]]:
    """Return, by module and function of statistics, which modules of the package import it; "inside" stands for other statistics."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        part = path.relative_to(PACKAGE).with_suffix("").parts
        if "fonts" in part:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("evalspec.statistics."):
                module = (node.module or "").rpartition(".")[2]
                for name in node.names:
                    found[module, name.name].add("inside" if part[0] == "statistics" else part[-1] if part[0] == "analyses" else part[0])
    return found


def page() -> str:
    used = users()
    lines = [INTRODUCTION]
    for path in sorted((PACKAGE / "statistics").glob("*.py")):
        if path.stem in PLUMBING:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        question, _, rest = docstring(tree).partition("\n\n")
        lines += [f"## {' '.join(question.split())}", ""]
        lines += [f"`evalspec/statistics/{path.name}`" + (f": {' '.join(rest.split())}" if rest else ""), ""]
        lines += ["| function | gives | source | reached by |", "|---|---|---|---|"]
        for node in functions(tree):
            text = docstring(node)
            by = used[path.stem, node.name] or {"inside" if calls_itself(tree, node.name) else "function only"}
            named = sorted(by - {"inside"}) or sorted(by)
            cells = (f"`{node.name}`", " ".join(text.partition("\n\n")[0].split()), section(text, "References"), ", ".join(named))
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines.append("")
    return "\n".join(lines)


def calls_itself(tree: ast.Module, name: str) -> bool:
    """Whether another function of the same module uses this one."""
    return any(
        isinstance(inner, ast.Name) and inner.id == name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name != name
        for inner in ast.walk(node)
    )


def test_the_page_of_statistics_is_fresh() -> None:
    expected = page()
    if os.environ.get("EVALSPEC_UPDATE_GOLDEN") == "1":
        PAGE.write_text(expected, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == expected, "run `make golden` and review the difference"
