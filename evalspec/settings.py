"""What is said about the machine?  Command-line options over `evalspec.toml` over defaults; nothing of it is in the study."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, PositiveInt, ValidationError

from evalspec.artifacts.protocol import BatchRule
from evalspec.errors import Diagnostic, Location, UsageError

FILE_NAME = "evalspec.toml"
PASSPHRASE_VARIABLE = "EVALSPEC_KEY_PASSPHRASE"  # noqa: S105 - the name of a variable, not a secret


@dataclass(frozen=True, slots=True)
class Settings:
    """Folders, key and budget of one run.

    `hub_cache` is where the hub's own tools keep what they fetched; `trust_out` is where the public part of a throw-away key is written.
    """

    cache: Path
    hub_cache: Path
    key: Path | None = None
    passphrase: str | None = None
    trust_out: Path | None = None
    token_budget: int = BatchRule.model_fields["token_budget"].default
    threads: int | None = None
    pdf: bool = True

    def updated(self, given: Mapping[str, object]) -> Settings:
        """Return these settings with what was given in their place; None counts as not given."""
        return replace(self, **{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type] # names are checked by argparse


class _File(BaseModel):
    """The closed model of `evalspec.toml`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    cache: str | None = None
    hub_cache: str | None = None
    key: str | None = None
    token_budget: PositiveInt | None = None
    threads: PositiveInt | None = None


def find_file(study: Path) -> Path | None:
    """Return the nearest `evalspec.toml` in the study's folder or above it."""
    return next((folder / FILE_NAME for folder in study.absolute().parents if (folder / FILE_NAME).is_file()), None)


def read_settings(file: Path | None, defaults: Settings) -> Settings:
    """Return `defaults` with what the file says; paths in it resolve from its folder. Raises UsageError with every fault."""
    if file is None:
        return defaults
    try:
        content = _File.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(Diagnostic(f"the file is not valid TOML: {error}", location=Location(str(file), 1))) from error
    except ValidationError as error:
        raise UsageError(tuple(_fault(file, entry["loc"], entry["msg"]) for entry in error.errors())) from error
    given = {name: value for name, value in content.model_dump().items() if value is not None}
    paths = {name: file.parent / value for name, value in given.items() if isinstance(value, str)}
    return replace(defaults, **{**given, **paths})


def _fault(file: Path, place: tuple[int | str, ...], message: str) -> Diagnostic:
    name = ".".join(str(part) for part in place)
    known = ", ".join(sorted(_File.model_fields))
    return Diagnostic(f"{name}: {message}", hint=f"known keys are {known}", location=Location(str(file), 1))
