"""Where does a printed number stand?  JSON artifacts by file name, read through JSON pointers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from evalspec.artifacts.base import JsonValue

__all__ = ["Documents", "Place", "Placed", "place_all", "pointer_key"]

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
    """A value inside a document, and the object or array that holds it."""

    value: JsonValue
    holder: JsonValue


@dataclass(frozen=True, slots=True)
class Documents:
    """The content of JSON artifacts by file name.

    An address is a JSON pointer (RFC 6901) into findings.json, or `FILE#POINTER` for another file.
    """

    contents: Mapping[str, JsonValue]

    def find(self, address: str) -> Place:
        """Return what stands at `address`; raises KeyError with the address when nothing does."""
        file, _, pointer = address.rpartition("#")
        value: JsonValue = self.contents.get(file or DEFAULT_FILE)
        holder: JsonValue = None
        for token in pointer.split("/")[1:]:
            holder, key = value, token.replace("~1", "/").replace("~0", "~")
            if isinstance(holder, dict) and key in holder:
                value = holder[key]
            elif isinstance(holder, list) and key.isdecimal() and int(key) < len(holder):
                value = holder[int(key)]
            else:
                raise KeyError(f"nothing stands at {address!r}")
        return Place(value, holder)


def pointer_key(key: str) -> str:
    """Return `key` as one token of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")
