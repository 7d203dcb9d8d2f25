"""How do values become HTML?  One Jinja environment: everything escaped, nothing undefined, every number with its source."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from pickle import UnpicklingError
from tempfile import NamedTemporaryFile
from types import CodeType

from jinja2 import BaseLoader, BytecodeCache, Environment, FileSystemLoader, StrictUndefined, Template, TemplateNotFound
from jinja2.bccache import Bucket
from markupsafe import Markup, escape

from evalspec.places import templates_folder
from evalspec.reporting.by_group import Beside
from evalspec.reporting.characters import finalize
from evalspec.reporting.documents import Documents, length_of, place_all, pointer_key
from evalspec.reporting.numbers import DEFAULT_DECIMALS, Style, decimals_from_interval, decimals_of, format_number
from evalspec.statistics.guarantees import guarantee

__all__ = ["CompiledTemplates", "asset", "make_environment", "section_template", "templates_folder"]


METRIC_WORDS = {
    "always_right": "share of questions right in every repeat",
    "worst_question": "lowest share of right repeats of any question",
    "detectable_difference": "smallest detectable difference",
    "size_harmony": "harmony from sizes alone",
    "worst_group": "accuracy of the worst group",
    "group_gap": "gap between the best and the worst group",
}
"""Names of metrics that do not explain themselves."""


def make_environment(documents: Documents, beside: Beside | None = None) -> Environment:
    """Return the environment for one report, whose templates print numbers with `number(address, style)` from `documents`.

    `beside` is what stands next to every accuracy.
    """
    environment = Environment(
        autoescape=True,  # always: select_autoescape() would leave `report.html.j2` unescaped
        undefined=StrictUndefined,
        loader=_TemplateLoader(),
        bytecode_cache=_compiled(),
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.do"],
        optimized=False,  # a template is rendered a few times: optimising it costs more than it saves
    )
    environment.globals["number"] = _number_printer(documents)
    environment.globals["length"] = _length_printer(documents)
    environment.globals["beside"] = beside or Beside({}, {})
    environment.globals["asset"] = asset
    environment.globals["decimals_of"] = decimals_of
    environment.filters["how_kept"] = guarantee
    environment.filters["key"] = pointer_key
    environment.filters["placed"] = place_all
    environment.filters["words"] = lambda name: str(name).replace("_", " ")
    environment.filters["metric"] = lambda name: METRIC_WORDS.get(name, str(name).replace("_", " "))
    return environment


def section_template(name: str) -> Template:
    """Return an analysis's template; raises jinja2.TemplateError when it is not there or does not compile."""
    return make_environment(Documents({})).get_template(name)


@lru_cache
def asset(name: str) -> Markup:
    """Return the text of a file of the templates folder as trusted markup."""
    return Markup((templates_folder() / name).read_text(encoding="utf-8"))  # noqa: S704 - our own file


class _TemplateLoader(BaseLoader):
    """Loads `folder/file.j2` from the templates folder and `package.module:file.j2` from beside that module."""

    def __init__(self) -> None:
        self._own = FileSystemLoader(templates_folder())

    def get_source(self, environment: Environment, template: str) -> tuple[str, str | None, Callable[[], bool] | None]:
        if ":" not in template:
            return self._own.get_source(environment, template)
        module_name, _, file_name = template.partition(":")
        if not module_name or "/" in file_name or "\\" in file_name or file_name.startswith("."):
            raise TemplateNotFound(template)
        try:
            module = importlib.import_module(module_name)
            parent = module.__spec__.parent if module.__spec__ else None
            source = files(parent or module_name).joinpath(file_name).read_text(encoding="utf-8")
        except (ImportError, OSError) as error:
            raise TemplateNotFound(template) from error
        return source, None, lambda: True


class CompiledTemplates(BytecodeCache):
    """What templates compile to, by name and digest of the source: code takes all that is of one report from its environment.

    It is kept for the process, and where Python keeps its own for the next one.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._codes: dict[tuple[str, str], CodeType] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        """Fill a bucket with what is kept; leave it empty where nothing fits."""
        bucket.code = self._codes.get((bucket.key, bucket.checksum))
        if bucket.code is None:
            with suppress(OSError, EOFError, UnpicklingError), self._file(bucket).open("rb") as stream:
                bucket.load_bytecode(stream)
            self._keep(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep what a bucket holds."""
        self._keep(bucket)
        if sys.dont_write_bytecode:
            return
        with suppress(OSError):
            self._folder.mkdir(exist_ok=True)
            with NamedTemporaryFile(dir=self._folder, delete=False) as stream:
                bucket.write_bytecode(stream)
            Path(stream.name).replace(self._file(bucket))

    def _keep(self, bucket: Bucket) -> None:
        if bucket.code is not None:
            self._codes[bucket.key, bucket.checksum] = bucket.code

    def _file(self, bucket: Bucket) -> Path:
        return self._folder / f"{bucket.key}.{sys.implementation.cache_tag}.j2c"


@cache
def _compiled() -> CompiledTemplates:
    return CompiledTemplates(Path(__file__).with_name("__pycache__"))


def _number_printer(documents: Documents) -> Callable[..., Markup]:
    def number(address: str, style: Style, *, decimals: int | None = None, limit: float | None = None) -> Markup:
        """Print the number at `address` in `style`, rounded as far as the interval beside it supports unless `decimals` says otherwise.

        A `limit` that it is held against is never printed alike when it differs.
        """
        place = documents.find(address)
        holder = place.holder if isinstance(place.holder, dict) else {}
        if place.value is None:
            return Markup('<span class="absent">{}</span>').format(holder.get("undefined") or "undefined")
        if isinstance(place.value, bool) or not isinstance(place.value, int | float):
            raise TypeError(f"{address!r} holds {type(place.value).__name__}, not a number")
        low, high = holder.get("low"), holder.get("high")
        if decimals is None:
            known = isinstance(low, int | float) and isinstance(high, int | float)
            decimals = decimals_from_interval(float(low), float(high)) if known else DEFAULT_DECIMALS  # type: ignore[arg-type]
        return _marked(place.at, place.value, format_number(place.value, style, decimals=decimals, limit=limit))

    return number


def _length_printer(documents: Documents) -> Callable[[str], Markup]:
    def length(address: str) -> Markup:
        """Print how many entries the array or object at `address` has."""
        try:
            count = length_of(documents.find(address).value)
        except TypeError as error:
            raise TypeError(f"{address!r} holds nothing that can be counted") from error
        return Markup('<data value="{}" data-count-of="{}">{}</data>').format(count, address, f"{count:,}")

    return length


def _marked(address: str, value: float, text: str) -> Markup:
    return Markup('<data value="{}" data-path="{}">{}</data>').format(json.dumps(value), escape(address), text)
