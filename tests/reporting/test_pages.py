"""A page that was edited by hand is told from the one that its files compose to, by the places at which it differs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from evalspec.reporting.documents import Documents
from evalspec.reporting.dossier import Dossier, documents_of
from evalspec.reporting.pages import number_faults, shown_numbers, text_faults

FIRST = re.compile(r'<data value="([^"]*)" data-path="([^"]*)">([^<]*)</data>')


@pytest.fixture(scope="module")
def files(dossier: Dossier) -> Documents:
    """The files as JSON readers see them."""
    return Documents(json.loads(json.dumps(documents_of(dossier).contents)))


def swapped(html: str, change: Callable[[re.Match[str]], str], *, skip: int = 40) -> tuple[str, str]:
    """Change one number of the page; returns the page and the path of the number."""
    found = list(FIRST.finditer(html))[skip]
    return html[: found.start()] + change(found) + html[found.end() :], found[2]


def test_every_number_of_a_composed_page_is_the_one_at_its_place(html: str, files: Documents) -> None:
    shown = shown_numbers(html)
    assert len(shown) > 300
    assert any(number.counted for number in shown)
    assert list(number_faults(shown, files)) == []
    assert list(text_faults(html, html)) == []


def test_a_changed_value_is_named_with_both_values(html: str, files: Documents) -> None:
    page, path = swapped(html, lambda found: f'<data value="0.99" data-path="{found[2]}">99.0 %</data>')
    (fault,) = number_faults(shown_numbers(page), files)
    assert (fault.place, fault.shown, fault.stands) == (path, "0.99", json.dumps(files.find(path).value))
    assert str(fault) == f"differs at report.html, {path}: the page has 0.99, the files have {fault.stands}"


@pytest.mark.parametrize("written", ["", "0.9900", "1e400", "true", "nine", '{"a": 1}'])
def test_a_value_that_is_written_otherwise_is_no_number_of_the_files(html: str, files: Documents, written: str) -> None:
    page, _ = swapped(html, lambda found: f"<data value='{written}' data-path=\"{found[2]}\">x</data>")
    assert len(list(number_faults(shown_numbers(page), files))) == 1


@pytest.mark.parametrize("path", ["", "/findings/99/estimates", "nowhere.json#/a", "/findings", "findings.json#", "verdict.json#/overall"])
def test_a_number_that_names_no_number_is_found(html: str, files: Documents, path: str) -> None:
    page, _ = swapped(html, lambda found: f'<data value="{found[1]}" data-path="{path}">{found[3]}</data>')
    assert len(list(number_faults(shown_numbers(page), files))) == 1


def test_a_wrong_count_is_found(html: str, files: Documents) -> None:
    page = re.sub(r'<data value="\d+" data-count-of="([^"]*)">\d+</data>', r'<data value="7" data-count-of="\1">7</data>', html, count=1)
    (fault,) = number_faults(shown_numbers(page), files)
    assert (fault.place.endswith(", counted"), fault.shown) == (True, "7")


def test_words_beside_a_value_that_it_does_not_format_to_are_found(html: str, files: Documents) -> None:
    page, path = swapped(html, lambda found: f'<data value="{found[1]}" data-path="{found[2]}">99.9 %</data>')
    assert list(number_faults(shown_numbers(page), files)) == []
    (fault,) = text_faults(page, html)
    assert (fault.place, "'99.9 %'" in fault.shown) == (path, True)


def test_a_number_that_was_given_another_source_is_found(html: str, files: Documents) -> None:
    other = next(number for number in shown_numbers(html) if number.path.endswith("/high/0"))
    page, path = swapped(html, lambda _: f'<data value="{other.value}" data-path="{other.path}">{other.text}</data>')
    assert list(number_faults(shown_numbers(page), files)) == []
    (fault,) = text_faults(page, html)
    assert f"names {other.path} and not {path}" in fault.place


@pytest.mark.parametrize(
    "hide",
    [
        lambda found: f"<!-- {found[0]} -->",
        lambda found: found[0].replace("<data ", '<data hidden="" '),
        lambda found: found[0].replace("</data>", "<b>0</b></data>"),
        lambda found: found[0] + found[0],
        lambda _: "",
        lambda found: found[3],
    ],
)
def test_a_number_that_was_hidden_repeated_or_wrapped_is_found(html: str, hide: Callable[[re.Match[str]], str]) -> None:
    page, _ = swapped(html, hide)
    assert list(text_faults(page, html)) != []


def test_a_changed_sentence_is_shown_with_what_it_was(html: str) -> None:
    page = html.replace("Signed does not mean true", "Signed means true")
    (fault,) = text_faults(page, html)
    assert fault.place.startswith("line ")
    assert ("Signed means true" in fault.shown, "Signed does not mean true" in fault.stands) == (True, True)


def test_added_and_removed_lines_are_found(html: str) -> None:
    lines = html.split("\n")
    for page in ("\n".join([*lines[:500], "<p>All is well.</p>", *lines[500:]]), "\n".join(lines[:500] + lines[501:]), html + "\n", html[:-1]):
        assert len(list(text_faults(page, html))) == 1


def test_rounding_of_coordinates_is_no_difference_and_a_moved_point_is(html: str) -> None:
    place = re.search(r'<circle cx="(\d+)(?:\.\d)?"', html)
    assert place
    for step, differs in ((0.1, False), (3, True)):
        moved = f'<circle cx="{float(place[0].split(chr(34))[1]) + step:.1f}"'
        assert (list(text_faults(html[: place.start()] + moved + html[place.end() :], html)) != []) == differs


def test_words_in_a_drawing_are_compared_to_the_letter(html: str) -> None:
    label = re.search(r"<svg.*?>(\d+ ?%)</text>", html, re.DOTALL)
    assert label
    page = html[: label.start(1)] + "99 %" + html[label.end(1) :]
    assert list(text_faults(page, html)) != []
