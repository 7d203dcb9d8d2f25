"""What is said about the machine?  Command-line options over `evalspec.toml` over defaults; nothing of it is in the study."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PositiveInt, ValidationError

from evalspec.artifacts.protocol import BatchRule
from evalspec.devices import AUTO, read_devices
from evalspec.errors import Diagnostic, Location, StoreError, UsageError, in_file_order
from evalspec.places import SETTINGS_FILE, find_root

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

LARGEST_FILE = 2**20
LONGEST_SHOWN = 60
PATHS = ("cache", "hub_cache", "key")
PASSPHRASE_VARIABLE = "EVALSPEC_KEY_PASSPHRASE"  # noqa: S105 - the name of a variable, not a secret


@dataclass(frozen=True, slots=True)
class Settings:
    """Folders, key and budget of one run.

    `devices` are those that score, `auto` standing for all that there are; a worker on one of them may finish nothing for `worker_silence` seconds.
    `hub_cache` is where the hub's own tools keep what they fetched; `user_folder` is where what belongs to the user and to no study is kept, None
    for a user without a home folder; `trust_out` is where the public part of a throw-away key is written.
    Of servers, so many `server_requests` are under way at once, each tried `server_tries` times for `server_timeout` seconds, with `server_http`
    also without encryption; `environment` is where the keys for them are, which is why it is not printed.
    """

    cache: Path
    hub_cache: Path
    user_folder: Path | None = None
    key: Path | None = None
    passphrase: str | None = None
    trust_out: Path | None = None
    token_budget: int = BatchRule.model_fields["token_budget"].default
    devices: tuple[str, ...] = (AUTO,)
    threads: int | None = None
    executor: Literal["local", "ray"] = "local"
    ray_address: str | None = None
    worker_silence: float = 600.0
    server_requests: int = 8
    server_timeout: float = 120.0
    server_tries: int = 7
    server_http: bool = False
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    pdf: bool = True

    def updated(self, given: Mapping[str, object]) -> Settings:
        """Return these settings with what was given in their place; None counts as not given."""
        return replace(self, **{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type] # names are checked by argparse


WrittenPath = Annotated[str, Field(min_length=1, max_length=4096, pattern=r"^[^\x00]*$")]


def _named_devices(written: object) -> tuple[str, ...]:
    if not isinstance(written, str):
        raise ValueError('write the devices as one text, such as "cpu,cpu"')  # noqa: TRY004 - pydantic makes a fault of a ValueError alone
    return read_devices(written)


class _File(BaseModel):
    """The closed model of `evalspec.toml`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    cache: WrittenPath | None = None
    hub_cache: WrittenPath | None = None
    key: WrittenPath | None = None
    token_budget: PositiveInt | None = None
    devices: Annotated[tuple[str, ...], BeforeValidator(_named_devices)] | None = None
    threads: PositiveInt | None = None
    worker_silence: Annotated[float, Field(ge=1, le=604800)] | None = None
    server_requests: Annotated[int, Field(ge=1, le=256)] | None = None
    server_timeout: Annotated[float, Field(gt=0, le=3600)] | None = None
    server_tries: Annotated[int, Field(ge=1, le=100)] | None = None
    server_http: bool | None = None
    executor: Literal["local", "ray"] | None = None
    ray_address: str | None = None


def settings_for(study: Path, given: Mapping[str, object], environment: Mapping[str, str]) -> Settings:
    """Return what was given, over the nearest `evalspec.toml`, over what the environment says, for a study or the directory of its run.

    Raises UsageError with every fault of the file, StoreError where a file stands in the place of the cache folder.
    """
    home = Path(environment.get("HF_HOME") or os.path.expanduser("~/.cache/huggingface"))  # noqa: PTH111 - a user without a home folder has no cache
    defaults = Settings(
        cache=find_root(study if study.is_dir() else study.parent) / ".evalspec",
        hub_cache=Path(environment.get("HF_HUB_CACHE") or home / "hub"),
        user_folder=user_folder(environment),
        passphrase=environment.get(PASSPHRASE_VARIABLE),
        environment=environment,
    )
    chosen = read_settings(find_file(study), defaults).updated(given)
    if chosen.cache.exists() and not chosen.cache.is_dir():
        raise StoreError(f"the cache folder {chosen.cache} is a file", hint="name a folder with --cache")
    return chosen


def user_folder(environment: Mapping[str, str]) -> Path | None:
    """Return where this user's own files are kept, beside no study; None where there is no home folder (XDG Base Directory Specification)."""
    named = Path(environment.get("XDG_CONFIG_HOME", ""))
    try:
        return (named if named.is_absolute() else Path("~/.config").expanduser()) / "evalspec"
    except RuntimeError:
        return None


def find_file(study: Path) -> Path | None:
    """Return the nearest `evalspec.toml` in the study's folder or above it."""
    return next((folder / SETTINGS_FILE for folder in study.absolute().parents if (folder / SETTINGS_FILE).is_file()), None)


def read_settings(file: Path | None, defaults: Settings) -> Settings:
    """Return `defaults` with what the file says; paths in it resolve from its folder. Raises UsageError with every fault."""
    if file is None:
        return defaults
    import tomllib  # noqa: PLC0415 - most studies have no such file

    text = ""
    try:
        text = _text(file)
        content = _File.model_validate(tomllib.loads(text))
    except ValidationError as error:
        raise UsageError(in_file_order(_fault(file, text, entry) for entry in error.errors())) from error
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits, and thousands of brackets
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise UsageError(Diagnostic(f"the file is not valid TOML: {why}", location=_place(file, text, why))) from error
    given = {name: value for name, value in content.model_dump().items() if value is not None}
    paths = {name: file.parent / given[name] for name in PATHS if name in given}
    return replace(defaults, **{**given, **paths})


def _text(file: Path) -> str:
    with file.open("rb") as stream:
        content = stream.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise ValueError(f"it is larger than {LARGEST_FILE} bytes")
    return content.decode("utf-8")


def _place(file: Path, text: str, why: str) -> Location:
    """Return where tomllib says that a text stops being TOML: it knows a line and column, or the end."""
    named = re.search(r"\(at line (\d+), column (\d+)\)", why)
    if named:
        return Location(str(file), int(named[1]), int(named[2]))
    return Location(str(file), max(1, len(text.splitlines())) if "at end of document" in why else 1)


def _fault(file: Path, text: str, entry: ErrorDetails) -> Diagnostic:
    name = ".".join(str(part) for part in entry["loc"])
    written = (number for number, line in enumerate(text.splitlines(), 1) if re.match(rf"\s*[\"']?{re.escape(str(entry['loc'][0]))}\b", line))
    location = Location(str(file), next(written, 1))
    if entry["type"] == "extra_forbidden":
        close = get_close_matches(name, _File.model_fields, n=1)
        hint = f"did you mean {close[0]}?" if close else f"known keys are {', '.join(sorted(_File.model_fields))}"
        return Diagnostic(f"{name}: unknown key", hint, location)
    told, wanted = re.subn(r"^(?:Input|String) should ", "must ", entry["msg"].removeprefix("Value error, "))
    given = repr(entry["input"][:LONGEST_SHOWN]) if isinstance(entry["input"], str) else entry["input"]
    return Diagnostic(f"{name}: {told}, not {given}" if wanted else f"{name}: {told}", location=location)
