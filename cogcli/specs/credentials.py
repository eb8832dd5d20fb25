"""Finds and masks credentials that are written in specs.

1. A member whose key names a secret (`base/redact.py`) holds a credential if its value is a literal: a number, or a
   text that is not a reference, template or placeholder. Null, booleans, empty values, and words such as `on` and
   `none` are not credentials.
2. In services and bindings a credential is an error, since every call sends it. In a skill it is a warning, and the
   value is masked in the episode's copy of the skill and in the log.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any, Final

from cogcli.base.jsonvalue import Json, kind_of, only_texts
from cogcli.base.lazy_pattern import lazy_pattern
from cogcli.base.problems import KeyPath
from cogcli.base.redact import MASK, names_secret
from cogcli.base.refs import parse, parse_loop
from cogcli.specs.unchecked import members_of, object_at, objects_at, text_at, value_at

_SWITCHES: Final = frozenset(("true", "false", "yes", "no", "on", "off", "none", "null", "0", "1"))
_PLACES: Final = frozenset(
    ("file", "files", "path", "paths", "dir", "directory", "folder", "store")
)
# Each of these takes linear time in any text: a repetition consumes each character once.
_LAST_WORD: Final = lazy_pattern(r"(?<![A-Za-z])[A-Za-z]+$")
# Patterns are compiled at first use: a run with cached specs imports this module and needs none of them.
_ARGUMENT: Final = r"(?s:(?:^|[\s\"'])-{0,2}([A-Za-z][A-Za-z0-9_-]*)(?:=|:\s*)(\S.*))"
_KEYS: Final = ("key", "sig", "signature")
"""Names of credentials in queries only."""
_QUERY: Final = r"[?&]([^?=&#]+)=([^&#]+)"
_USER: Final = r"(?i:(?<![a-z0-9+.-])[a-z0-9+.-]+://[^/?#\s:]*:[^/?#\s@]*@)"
_SCHEME: Final = r"(?i:\s*(?:Bearer|Basic)\s+(?!\$)\S{8,}\s*)"
_SCHEME_WITHIN: Final = r"(?i:\b(?:Bearer|Basic)\s+(?!\$)\S{8,})"
_BETWEEN_WORDS: Final = r"[\s\"',;=]+"
_LONG_WORD: Final = r"(?<![{\w])[A-Za-z0-9+/._~-]{20,}"
"""A word like a token: long, and not within `${NAME}`."""

IsLiteral = Callable[[str], bool]
"""Returns whether a text is a literal, not a reference."""


def is_written_out(value: object, literal: IsLiteral) -> bool:
    """Return whether the value under a secret's key is a literal secret, not a reference to one."""
    if isinstance(value, str):
        return value.strip().lower() not in (*_SWITCHES, "") and value != MASK and literal(value)
    return kind_of(value) == "number"


def has_no_placeholder(text: str) -> bool:
    """Return whether a header or environment value contains no `${NAME}`."""
    return "${" not in text


def header_holds_credential(name: str, value: str) -> bool:
    """Return whether a header's value contains a credential. A credential is recognized by the header's name, after a
    scheme such as `Bearer`, or next to a variable.
    """
    alone = has_no_placeholder(value)
    if names_secret(name):
        return is_written_out(value, has_no_placeholder) or (not alone and _holds_token(value))
    return alone and bool(re.fullmatch(_SCHEME, value))


def _holds_token(text: str) -> bool:
    """Return whether a string contains a long word with digits, like a token."""
    found = ((piece, re.search(_LONG_WORD, piece)) for piece in re.split(_BETWEEN_WORDS, text))
    return any(word and re.search("[0-9]", piece[word.start() :]) for piece, word in found)


def find_written_out(
    value: object, literal: IsLiteral, path: KeyPath = (), *, has_secret_key: bool = False
) -> Iterator[KeyPath]:
    """Yield the paths of the credentials in a value. `has_secret_key` is whether the value's own key is the name of a
    secret.
    """
    if has_secret_key and is_written_out(value, literal):
        yield path
    for key, item in members_of(value):
        test = _TESTS_OF_KEYS.get(key, literal)
        secret = has_secret_key or (isinstance(key, str) and names_secret(key))
        yield from find_written_out(item, test, (*path, key), has_secret_key=secret)


def _is_any_text(text: str) -> bool:
    return True


_TESTS_OF_KEYS: Final[dict[str, IsLiteral]] = {
    "$literal": _is_any_text,
    "$text": has_no_placeholder,
}
"""The literal test for values under these keys of a step's input."""


def keeps_secret(name: str) -> bool:
    """Return whether an environment variable with this name contains a secret itself, not the path of a file with
    one.
    """
    last = _LAST_WORD.search(name)
    return names_secret(name) and not (last and last[0].lower() in _PLACES)


def find_in_arguments(arguments: Sequence[object]) -> Iterator[int]:
    """Yield the indices of arguments that contain a credential: `--api-key=x`, `x` after `--token`, `X-Api-Key: x`."""
    before = ""
    for index, argument in enumerate(arguments):
        text = text_at(argument) or ""
        if _assigns_credential(text) or _is_value_of_flag(text, before):
            yield index
        before = text


def _assigns_credential(text: str) -> bool:
    named = re.search(_ARGUMENT, text)
    return named is not None and keeps_secret(named[1])


def _is_value_of_flag(text: str, flag: str) -> bool:
    """Return whether a string is the credential for the preceding argument `flag`, like `x` after `--token`."""
    if text.startswith("-") or not flag.startswith("-") or "=" in flag:
        return False
    return keeps_secret(flag) and is_written_out(text, _is_any_text)


def text_holds_credential(text: str) -> bool:
    """Return whether a text looks like a credential, independent of its key.

    It may be a scheme with a value, an address with a password, `--api-key=x`, or `X-Api-Key: x`.
    """
    words = re.search(_SCHEME_WITHIN, text) or re.search(_USER, text)
    return bool(words) or any(True for _ in find_in_arguments([text, *text.split()]))


def holds_credential(value: object, *, has_secret_key: bool) -> bool:
    """Return whether a list or an object contains a credential where a string is expected. `has_secret_key` is whether
    its key is the name of a secret.
    """
    if any(
        True for _ in find_written_out(value, has_no_placeholder, has_secret_key=has_secret_key)
    ):
        return True
    if isinstance(value, str):
        return has_no_placeholder(value) and bool(re.search(_SCHEME_WITHIN, value))
    return any(
        holds_credential(item, has_secret_key=has_secret_key) for _, item in members_of(value)
    )


def address_holds_credential(url: str) -> bool:
    """Return whether a URL or the path of an operation contains a credential."""
    if re.match(_USER, url):
        return True
    for name, value in re.findall(_QUERY, url):
        last = _LAST_WORD.search(name)
        named = names_secret(name) or (last and last[0].lower() in _KEYS)
        if named and not value.startswith("{"):
            return True
    return False


# -- skills and capabilities -------------------------------------------------------------------------------------------


def _step_literal_test(step: object) -> IsLiteral:
    """Return the function that recognizes literals among the values of a step."""
    foreach = object_at(step, "config", "foreach")
    names = (value_at(foreach, "as") or "item", value_at(foreach, "index_as")) if foreach else ()
    loops = frozenset(only_texts(names))
    return lambda text: parse(text) is None and parse_loop(text, loops) is None


_OF_A_FIELD: Final = ("default", "example", "examples", "enum", "const")


def find_in_fields(fields: Json, path: KeyPath) -> Iterator[KeyPath]:
    """Yield the paths of credentials in the defaults and examples of declared fields."""
    for name, field in fields.items():
        secret = names_secret(name)
        for key in _OF_A_FIELD:
            value = value_at(field, key)
            yield from find_written_out(
                value, _is_any_text, (*path, name, key), has_secret_key=secret
            )


_VALUES_OF_A_STEP: Final = (
    ("input",),
    ("config", "otherwise"),
    ("config", "foreach", "items"),
)


def find_in_skill(raw: Json) -> Iterator[KeyPath]:
    """Yield the paths of credentials in the mapping of a skill. The mapping need not be valid."""
    yield from find_in_fields(object_at(raw, "inputs"), ("inputs",))
    for index, step in objects_at(raw, "steps"):
        literal = _step_literal_test(step)
        for place in _VALUES_OF_A_STEP:
            value = value_at(step, *place)
            yield from find_written_out(value, literal, ("steps", index, *place))


def find_in_capability(raw: Json) -> Iterator[KeyPath]:
    """Yield the paths of credentials in the mapping of a capability."""
    for key in ("inputs", "outputs"):
        yield from find_in_fields(object_at(raw, key), (key,))


def mask_places(raw: Json, places: Iterator[KeyPath]) -> Json:
    """Return a copy of a spec with the values at these paths masked. Without paths, return the same object."""
    for path in places:
        raw = _mask_at(raw, path)
    return raw


def _mask_at(value: Any, path: KeyPath) -> Any:
    if not path:
        return MASK
    changed = copy(value)
    changed[path[0]] = _mask_at(value[path[0]], path[1:])
    return changed
