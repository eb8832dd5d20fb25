"""Whether all that fits one schema fits another: proved, disproved by an example, or not known
(docs/reference/spec-files.md#schemas).

1. YES is a proof. NO comes with a value that was tried: it fits the narrow schema and breaks the wide one.
2. Without jsonschema-rs only what is plain is told: equal schemas, bare types, finite choices, disjoint types.
3. A pattern that is not applied, a schema that cannot be, whatever a library does not survive, and whatever would
   take it long: UNKNOWN.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain, islice
from typing import Any, Final, Literal, NamedTuple

import orjson

from cogcli.schema.candidates import MAX_NODES, candidates, types_of
from cogcli.schema.combinations import parts_in, ways_in
from cogcli.schema.engine_choice import RUST, engine
from cogcli.schema.normalizer import Prepared, normalize
from cogcli.schema.validator import errors, fits

_MAX_BYTES: Final = 64 * 1024
"""Schemas beyond this are not reasoned about."""
_MAX_PARTS: Final = 400
_MAX_WAYS: Final = 64
_MAX_WORK: Final = 5_000_000


class Cover(NamedTuple):
    """A verdict; of `no` with a value that fits the narrow schema and not the wide one."""

    verdict: Literal["yes", "no", "unknown"]
    example: Any = None


YES: Final = Cover("yes")
UNKNOWN: Final = Cover("unknown")


def covers(wide: Any, narrow: Any) -> Cover:
    """Whether a schema takes every value that another gives."""
    ready = _ready(wide, narrow)
    if ready is None:
        return UNKNOWN
    plain = _plainly(ready[0].python, ready[1].python, wide, narrow)
    if plain is not None:
        return plain
    if types_of(wide).isdisjoint(types_of(narrow)):
        return _disproved(wide, narrow)
    if engine() != RUST:
        return UNKNOWN
    if _is_small(ready) and _proved(ready[0].rust, ready[1].rust):
        return YES
    return _disproved(wide, narrow)


def disjoint(wide: Any, narrow: Any) -> bool:
    """Whether it is proved that no value fits both."""
    ready = _ready(wide, narrow)
    if ready is None:
        return False
    choices = _choices(narrow)
    if choices is not None and len(choices) * (_at_once(wide) + _at_once(narrow)) <= _MAX_WORK:
        return not any(fits(narrow, value) and fits(wide, value) for value in choices)
    if types_of(wide).isdisjoint(types_of(narrow)):
        return True
    if engine() != RUST or not _is_small(ready):
        return False
    return _nothing_in_common(ready[0].rust, ready[1].rust)


def _ready(wide: Any, narrow: Any) -> tuple[Prepared, Prepared] | None:
    """Both schemas made ready, None where they cannot be reasoned about."""
    if max(len(orjson.dumps(wide)), len(orjson.dumps(narrow))) > _MAX_BYTES:
        return None
    one, other = _prepared(orjson.dumps(wide)), _prepared(orjson.dumps(narrow))
    if one is None or other is None or one.dropped or other.dropped:
        return None
    # What no value fits by being no schema is no proof of anything.
    return None if _unusable(wide) or _unusable(narrow) else (one, other)


def _is_small(ready: tuple[Prepared, Prepared]) -> bool:
    """Whether a proof about both takes no longer than a moment: it multiplies out what is combined."""
    return all(parts_in(each.rust) <= _MAX_PARTS and ways_in(each.rust) <= _MAX_WAYS for each in ready)


def _unusable(schema: Any) -> bool:
    from cogcli.schema.validator import UNUSABLE

    return ("", UNUSABLE) in errors(schema, None)


def _plainly(one: Any, other: Any, wide: Any, narrow: Any) -> Cover | None:
    """What is told without a proof; `one` and `other` are the schemas less what asserts nothing."""
    if one is True or one == {} or orjson.dumps(one) == orjson.dumps(other):
        return YES
    choices = _choices(narrow)
    if choices is not None and len(choices) * (_at_once(wide) + _at_once(narrow)) > _MAX_WORK:
        return UNKNOWN
    if choices is not None:
        broken = [value for value in choices if fits(narrow, value) and not fits(wide, value)]
        return Cover("no", broken[0]) if broken else YES
    return YES if one.keys() <= {"type"} and types_of(narrow) <= types_of(wide) else None


def _choices(schema: Any) -> list[Any] | None:
    """The values of a finite schema."""
    if isinstance(schema, dict) and "const" in schema:
        return [schema["const"]]
    return schema["enum"] if isinstance(schema, dict) and isinstance(schema.get("enum"), list) else None


def _disproved(wide: Any, narrow: Any) -> Cover:
    # At the bounds of the wide schema the examples say most.
    most = max(10, _MAX_WORK // (MAX_NODES * (_at_once(wide) + _at_once(narrow))))
    for value in islice(chain(candidates(wide), candidates(narrow)), most):
        if fits(narrow, value) and not fits(wide, value):
            return Cover("no", value)
    return UNKNOWN


def _at_once(schema: Any) -> int:
    ready = _prepared(orjson.dumps(schema))
    return ready.at_once if ready is not None else 1


@lru_cache(maxsize=64)
def _prepared(schema: bytes) -> Prepared | None:
    return normalize(orjson.loads(schema))


def _proved(wide: Any, narrow: Any) -> bool:
    import jsonschema_rs

    try:
        return _canonical(wide).covers(_canonical(narrow)) is jsonschema_rs.canonical.Containment.YES
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # a panic of the library is no Exception
        return False


def _nothing_in_common(wide: Any, narrow: Any) -> bool:
    import jsonschema_rs

    try:
        common = _canonical(wide).intersect(_canonical(narrow))
        return common.kind is jsonschema_rs.canonical.CanonicalKind.FALSE
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:
        return False


def _canonical(schema: Any) -> Any:
    import jsonschema_rs

    from cogcli.schema.engines import rust_options

    return jsonschema_rs.canonicalize(schema, **rust_options())
