"""The one place that applies JSON Schema (protocols.md 7): one answer, whichever engine is installed.

jsonschema-rs is taken where its wheel is, jsonschema else; `COGCLI_SCHEMA_ENGINE` forces one of them.
"""

from __future__ import annotations

import os
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import orjson

from cogcli.specs.contract_texts import text_of

if TYPE_CHECKING:
    from cogcli.specs.contract_engines import Judge

MAX_ERRORS: Final = 20
_ENOUGH: Final = 1000
"""Breaches looked at before the first are told in order."""
PYTHON: Final = "jsonschema"
RUST: Final = "jsonschema-rs"
_VARIABLE: Final = "COGCLI_SCHEMA_ENGINE"
UNUSABLE: Final = "the schema itself cannot be applied"


def errors(schema: Any, value: Any) -> list[tuple[str, str]]:
    """Where and how a value breaks a schema, as (slash path, message); at most 20, empty if it fits.

    A schema that is none, or whose references lead outside or in circles, is broken by every value.
    """
    return _told(_judge(orjson.dumps(schema), engine()), value)


def invalid(schema: Any) -> list[tuple[list[str | int], str]]:
    """Where and how a schema is itself no JSON Schema of 2020-12; at most 20, empty if it is one."""
    found = _meta_judge(engine())(schema)
    told = {(tuple(b.place), text_of(b, _at(schema, b.place))) for b in islice(found, _ENOUGH)}
    return [(list(place), text) for place, text in sorted(told, key=_order)[:MAX_ERRORS]]


def engine() -> str:
    """The engine in use: `jsonschema-rs` or `jsonschema`.

    Raises EnvironmentRefusal `config.key` where `COGCLI_SCHEMA_ENGINE` names another, or one that is not installed.
    """
    return _engine(os.environ.get(_VARIABLE, ""))


def require_engine() -> None:
    """Judge `COGCLI_SCHEMA_ENGINE` before it is needed in the middle of something. Raises EnvironmentRefusal."""
    if os.environ.get(_VARIABLE):
        engine()


@lru_cache(maxsize=4)
def _engine(forced: str) -> str:
    if forced == PYTHON:
        return PYTHON
    if forced in ("", RUST) and _has_rust():
        return RUST
    if not forced:
        return PYTHON
    from cogcli.core.errors import EnvironmentRefusal

    found = "which is not installed" if forced == RUST else f"expected {PYTHON} or {RUST}"
    hint = "pip install 'cogcli[fast]'" if forced == RUST else "unset it"
    raise EnvironmentRefusal("config.key", f"COGCLI_SCHEMA_ENGINE is `{forced[:40]}`, {found}", hint=hint)


def _has_rust() -> bool:
    """Whether the wheel is there in the version whose interface is known."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("jsonschema-rs").startswith("0.60.")
    except PackageNotFoundError:
        return False


@lru_cache(maxsize=512)
def _judge(schema: bytes, engine: str) -> tuple[Judge, dict[str, str]] | None:
    """What applies a schema, and the texts of its patterns; None if it cannot be applied."""
    from cogcli.specs.contract_engines import Unusable, python_judge, rust_judge
    from cogcli.specs.contract_prepared import prepared

    ready = prepared(orjson.loads(schema))
    if ready is None:
        return None
    try:
        if engine == RUST and ready.rust is not None:
            return rust_judge(ready.rust), ready.written
        return python_judge(ready.python), ready.written
    except Unusable:
        return None


@lru_cache(maxsize=2)
def _meta_judge(engine: str) -> Judge:
    from cogcli.specs.contract_engines import meta_python_judge, meta_rust_judge

    return meta_rust_judge() if engine == RUST else meta_python_judge()


def _told(judge: tuple[Judge, dict[str, str]] | None, value: Any) -> list[tuple[str, str]]:
    if judge is None:
        return [("", UNUSABLE)]
    find, written = judge
    told = set()
    for breach in islice(find(value), _ENOUGH):
        if breach.keyword == "pattern":
            breach = breach._replace(limit=written.get(breach.limit, breach.limit))
        told.add((breach.place, text_of(breach, _at(value, breach.place))))
    found = sorted(told, key=_order)[:MAX_ERRORS]
    return [("/".join(map(str, place)), text) for place, text in found]


def _order(told: tuple[tuple[str | int, ...], str]) -> Any:
    """By place, list items by number; then by text."""
    place, text = told
    return [(isinstance(part, str), part) for part in place], text


def _at(value: Any, place: tuple[str | int, ...]) -> Any:
    for part in place:
        value = value[part]
    return value
