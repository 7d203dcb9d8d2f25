"""What do all JSON artifacts share?  Closed, frozen, strict models; one way to bytes; one digest."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

__all__ = [
    "FINGERPRINT_PATTERN",
    "AnalysisId",
    "Artifact",
    "BenchmarkId",
    "Digest",
    "Fingerprint",
    "FormatOne",
    "Identifier",
    "JsonValue",
    "ModelId",
    "Precision",
    "Proportion",
    "Text",
    "canonical_json",
    "sha256_hex",
]

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""SHA-256 in lower-case hexadecimal."""

Identifier = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
"""A short name that is safe in file names, tables and URLs."""


FINGERPRINT_PATTERN = r"^SHA256:[A-Za-z0-9+/]{43}=$"
Fingerprint = Annotated[str, Field(pattern=FINGERPRINT_PATTERN)]
"""Of a public key: `SHA256:` and the base64 of the SHA-256 of its SubjectPublicKeyInfo."""


def _whole(value: Any) -> Any:  # Any: whatever JSON held
    if type(value) is not int:  # in Python 1, 1.0 and True are equal, and a literal takes each for the other
        raise ValueError("the version of the format must be the whole number 1")
    return value


FormatOne = Annotated[Literal[1], BeforeValidator(_whole)]
"""The version of a file's format: the number 1, and nothing that Python takes for it."""

Precision = Literal["as_shipped", "float32", "bfloat16", "float16"]
"""In which numbers a model computes: those that its weights are stored in, or these."""

Text = Annotated[str, Field(min_length=1, max_length=4000)]
"""What an author says in words."""

Proportion = Annotated[float, Field(gt=0, lt=1)]
"""A share between nothing and all."""

ModelId = Annotated[Identifier, Field(json_schema_extra={"refers_to": "model"})]
"""The id of a model of the study; the language checks that it exists."""

BenchmarkId = Annotated[Identifier, Field(json_schema_extra={"refers_to": "benchmark"})]
"""The id of a benchmark of the study; the language checks that it exists."""

AnalysisId = Annotated[Identifier, Field(json_schema_extra={"refers_to": "analysis"})]
"""The id of an analysis of the study; the language checks that it exists."""


class Artifact(BaseModel):
    """A frozen, closed JSON value; numbers are finite, unknown keys are refused."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        validate_by_name=True,
        validate_by_alias=True,
        defer_build=True,  # most artifacts are imported by every verb and used by few
    )

    def to_json(self) -> bytes:
        """Return the one byte form: sorted keys, UTF-8, LF, two spaces, no NaN."""
        return canonical_json(self.model_dump(mode="json", by_alias=True))

    @classmethod
    def from_json(cls, content: bytes) -> Self:
        """Read the artifact back; raises `pydantic.ValidationError` when the bytes do not fit."""
        return cls.model_validate_json(content)

    def digest(self) -> str:
        """Return the SHA-256 of `to_json()`."""
        return sha256_hex(self.to_json())


def canonical_json(value: Any) -> bytes:  # Any: whatever json.dumps accepts
    """Return `value` as sorted, indented UTF-8 JSON that ends in a line feed; raises ValueError on NaN and infinity."""
    return (json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def sha256_hex(content: bytes) -> str:
    """Return the SHA-256 of `content` in lower-case hexadecimal."""
    return hashlib.sha256(content).hexdigest()
