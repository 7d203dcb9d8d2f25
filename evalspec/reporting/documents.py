"""Where does a printed number stand?  JSON artifacts by file name, read through JSON pointers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from evalspec.artifacts.base import JsonValue
from evalspec.artifacts.columns import Table, is_table, row_count, row_of

__all__ = ["Documents", "Place", "Placed", "length_of", "place_all", "pointer_key"]

ItemT = TypeVar("ItemT")

DEFAULT_FILE = "findings.json"


@dataclass(frozen=True, slots=True)
class Placed(Generic[ItemT]):
    """A part of a document and the address at which it stands."""

    item: ItemT
    at: str


def place_all(items: Iterable[ItemT], at: str) -> tuple[Placed[ItemT], ...]:
    """Return every entry of an array with its own address; `at` is the array's."""
    return tuple(Placed(item, f"{at}/{index}") for index, item in enumerate(items))


@dataclass(frozen=True, slots=True)
class Place:
    """A value inside a document, the object or array that holds it, and where it really stands: columns are addressed as if they were rows."""

    value: JsonValue
    holder: JsonValue
    at: str


@dataclass(frozen=True, slots=True)
class Documents:
    """The content of JSON artifacts by file name.

    An address is a JSON pointer (RFC 6901) into findings.json, or `FILE#POINTER` for another file. A table of columns is read as the array of its
    rows: `/estimates/3/value` stands for `/estimates/columns/value/3`, or for `/estimates/shared/value`.
    """

    contents: Mapping[str, JsonValue]

    def find(self, address: str) -> Place:
        """Return what stands at `address`; raises KeyError with the address when nothing does."""
        file, _, pointer = address.rpartition("#")
        value: JsonValue = self.contents.get(file or DEFAULT_FILE)
        holder: JsonValue = None
        tokens, real = pointer.split("/")[1:], [file + "#" if file else ""]
        try:
            while tokens:
                holder, token = value, tokens.pop(0)
                if is_table(holder) and token.isdecimal() and tokens:
                    real += _in_table(holder, token, tokens[0])
                    holder, token = row_of(holder, int(token)), tokens.pop(0)
                else:
                    real.append(token)
                value = _step(holder, _key(token))
        except (KeyError, IndexError) as error:
            raise KeyError(f"nothing stands at {address!r}") from error
        return Place(value, holder, "/".join(real))


def length_of(value: JsonValue) -> int:
    """Return how many entries an array, an object or a table has; raises TypeError for anything else."""
    if is_table(value):
        return row_count(value)
    if not isinstance(value, list | dict):
        raise TypeError(f"{type(value).__name__} has no length")
    return len(value)


def _step(holder: JsonValue, key: str) -> JsonValue:
    if isinstance(holder, dict):
        return holder[key]
    if isinstance(holder, list) and key.isdecimal():
        return holder[int(key)]
    raise KeyError(key)


def _in_table(table: Table, row: str, field: str) -> tuple[str, ...]:
    """Return where a field of a row stands, seen from the table."""
    return ("columns", field, row) if _key(field) in table["columns"] else ("shared", field)


def _key(token: str) -> str:
    return token.replace("~1", "/").replace("~0", "~")


def pointer_key(key: str) -> str:
    """Return `key` as one token of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")
