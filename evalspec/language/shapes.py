"""What may stand at a place of a study?  A walk along the grammar's types, beside the values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, Discriminator, Tag
from pydantic.fields import FieldInfo

from evalspec.artifacts.base import JsonValue
from evalspec.language.positions import Pointer


@dataclass(frozen=True, slots=True)
class Shape:
    """The type at a place; `tag` is pydantic's name for the chosen variant, `key` the key that chooses it, where there are variants."""

    type: Any  # Any: a type expression
    refers_to: str | None = None
    tag: str | None = None
    variants: tuple[str, ...] = ()
    key: str | None = None

    @property
    def model(self) -> type[BaseModel] | None:
        """The model of the mapping that stands here, if one does."""
        return self.type if isinstance(self.type, type) and issubclass(self.type, BaseModel) else None

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that the mapping may have, as authors write them."""
        return tuple(_fields(self.model)) if self.model else ()

    @property
    def required(self) -> tuple[str, ...]:
        """The keys that the mapping must have."""
        return tuple(key for key, field in _fields(self.model).items() if field.is_required()) if self.model else ()

    def child(self, step: str | int, value: JsonValue) -> Shape | None:
        """Return the shape one step further down, where `value` stands; None where the grammar has nothing."""
        if self.model:
            field = _fields(self.model).get(str(step))
            return _of_field(field, value) if field else None
        arguments = get_args(self.type)
        if get_origin(self.type) in (tuple, list) and isinstance(step, int):
            repeated = len(arguments) == 1 or arguments[-1] is Ellipsis
            return shape_of(arguments[0 if repeated else step], value) if repeated or step < len(arguments) else None
        if get_origin(self.type) is dict:
            return shape_of(arguments[1], value)
        return None


def shape_of(annotation: Any, value: JsonValue) -> Shape:  # Any: a type expression
    """Return what `annotation` asks for, with the variant chosen that fits `value`."""
    return _resolve(annotation, value, [])


def shape_at(root: type[BaseModel], pointer: Pointer, content: JsonValue) -> Shape | None:
    """Return the shape at a place; None where the grammar has nothing."""
    shape: Shape | None = shape_of(root, content)
    for step in pointer:
        content = _step(content, step)
        shape = shape.child(step, content) if shape else None
    return shape


def pointer_of(root: type[BaseModel], loc: Sequence[str | int], content: JsonValue) -> Pointer:
    """Return the place that a pydantic `loc` means: the same without the names of variants."""
    pointer: list[str | int] = []
    shape: Shape | None = shape_of(root, content)
    steps = iter(loc)
    for step in steps:
        wanted: str | int | None = step
        if shape and shape.tag is not None and step == shape.tag:
            wanted = next(steps, None)
        if wanted is None:
            break
        pointer.append(wanted)
        content = _step(content, wanted)
        shape = shape.child(wanted, content) if shape else None
        if shape is None:
            break
    return tuple(pointer)


def places_of(root: type[BaseModel], content: JsonValue, wanted: type[BaseModel]) -> Iterator[tuple[Pointer, JsonValue]]:
    """Yield every value at whose place the grammar has a mapping of this kind."""
    for pointer, shape, value in _walk(shape_of(root, content), (), content):
        if shape.model is not None and issubclass(shape.model, wanted):
            yield pointer, value


def references(root: type[BaseModel], content: JsonValue) -> Iterator[tuple[Pointer, str, str]]:
    """Yield every value that refers to a model, benchmark or analysis: its place, to what it refers, and the id."""
    for pointer, shape, value in _walk(shape_of(root, content), (), content):
        if shape.refers_to and isinstance(value, str):
            yield pointer, shape.refers_to, value


def _walk(shape: Shape, pointer: Pointer, value: JsonValue) -> Iterator[tuple[Pointer, Shape, JsonValue]]:
    """Yield every value with its place and what the grammar asks for there."""
    yield pointer, shape, value
    items: Iterator[tuple[str | int, JsonValue]] = iter(())
    if isinstance(value, dict):
        items = iter(value.items())
    elif isinstance(value, list):
        items = iter(enumerate(value))
    for step, inner in items:
        child = shape.child(step, inner)
        if child:
            yield from _walk(child, (*pointer, step), inner)


def _step(content: JsonValue, step: str | int) -> JsonValue:
    if isinstance(content, dict) and isinstance(step, str):
        return content.get(step)
    if isinstance(content, list) and isinstance(step, int) and step < len(content):
        return content[step]
    return None


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _of_field(field: FieldInfo, value: JsonValue) -> Shape:
    metadata = [*field.metadata, field]
    if field.discriminator:
        metadata.append(field.discriminator if isinstance(field.discriminator, Discriminator) else Discriminator(field.discriminator))
    return _resolve(field.annotation, value, metadata)


def _resolve(annotation: Any, value: JsonValue, metadata: list[Any]) -> Shape:
    """Unwrap Annotated and Optional, and choose among the variants of a union."""
    refers_to = None
    for entry in metadata:
        if isinstance(entry, FieldInfo) and isinstance(entry.json_schema_extra, dict):
            refers_to = entry.json_schema_extra.get("refers_to", refers_to)
    reference = refers_to if isinstance(refers_to, str) else None
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        found = _resolve(inner, value, [*metadata, *more, *_discriminators(more)])
        return found if found.refers_to or not reference else Shape(found.type, reference)
    if get_origin(annotation) in (Union, UnionType):
        members = [member for member in get_args(annotation) if member is not NoneType]
        if len(members) == 1:
            return _resolve(members[0], value, metadata)
        return _choose(members, value, metadata)
    return Shape(annotation, reference)


def _discriminators(metadata: list[Any]) -> list[Discriminator]:
    named = [entry.discriminator for entry in metadata if isinstance(entry, FieldInfo) and entry.discriminator]
    return [entry if isinstance(entry, Discriminator) else Discriminator(entry) for entry in named]


def _choose(members: list[Any], value: JsonValue, metadata: list[Any]) -> Shape:
    """Return the variant whose tag fits the value; a shape without keys where none does."""
    discriminator = next((entry for entry in metadata if isinstance(entry, Discriminator)), None)
    if discriminator is None:
        models = [member for member in members if isinstance(member, type) and issubclass(member, BaseModel)]
        return Shape(models[0] if models and isinstance(value, dict) else object)
    key = discriminator.discriminator if isinstance(discriminator.discriminator, str) else None
    tagged = {tag: member for member in members for tag in _tags(member, key)}
    tag: object = value.get(key) if key and isinstance(value, dict) else None
    if callable(discriminator.discriminator):
        tag = discriminator.discriminator(value)
    chosen = tagged.get(tag) if isinstance(tag, str) else None
    if chosen is None:
        return Shape(object, variants=tuple(tagged), key=key)
    found = shape_of(chosen, value)
    return Shape(found.type, found.refers_to, str(tag), tuple(tagged), key)


def _tags(member: Any, key: str | None) -> tuple[str, ...]:
    """Return the names under which a member of a union is chosen."""
    named = tuple(entry.tag for entry in get_args(member)[1:] if isinstance(entry, Tag)) if get_origin(member) is Annotated else ()
    if named or key is None:
        return named
    model = shape_of(member, None).model
    annotation = model.model_fields[key].annotation if model else None
    return tuple(str(value) for value in get_args(annotation)) if get_origin(annotation) is Literal else ()
