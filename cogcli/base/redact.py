"""Masking secrets before anything is written (docs/reference/episode.md#redaction).

1. A known secret value is masked everywhere, in keys too, plain or encoded
   (`base/secret_search.py`), and so are its parts that look random (`base/secret_parts.py`). Values
   shorter than 8 characters are not masked: they would match plain words.
2. A member whose key names a secret is masked whole, unless it is null, a boolean or empty. Keys
   are judged by their words: `api_key`, `apiKey` and `X-Api-Key` are secret; `monkey`,
   `tokens_used` and `token_count` are not.
3. The `value` of an object is masked if the last part of its `target`, `key` or `name` names a
   secret.
4. A string that is itself JSON, whole or truncated, is masked by the keys inside it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from cogcli.base.jsonvalue import Json
from cogcli.base.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from cogcli.base.secret_search import SecretSearch

MASK: Final = "[masked]"
MIN_LENGTH: Final = 8

_WORDS = lazy_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SECRET_WORDS: Final = frozenset(
    """
    password passwords passwd passphrase passphrases pwd secret secrets token credential credentials
    authorization cookie cookies jwt otp apikey apikeys apitoken accesskey accesstoken authtoken
    refreshtoken privatekey secretkey clientsecret sessiontoken
    """.split()
)
_KEYED: Final = "api private access secret signing encryption master ssh session auth".split()
_SECRET_PAIRS: Final = frozenset(
    [(first, last) for first in _KEYED
     for last in ("key", "keys")]
    + [(first, "tokens") for first in ["api", "access", "refresh", "auth", "bearer", "session"]]
    + [("pass", "word"), ("pass", "phrase"), ("auth", "header"), ("connection", "string")]
)  # fmt: skip
_ABOUT: Final = frozenset(
    """
    count counts used usage limit limits budget max min total length size type types kind name names id ids
    index policy policies expires expiry expiration ttl required hint format estimate rate cost price
    remaining left per issuer url uri endpoint scope scopes algorithm alg status state strategy enabled
    present
    """.split()
)
"""Words that, after a secret word, make the key describe the secret instead of holding it."""
_COUNTING: Final = frozenset(
    "max min num n per avg mean total eos bos pad unk stop special".split()
)
"""Words that, before `token`, make it a unit of text."""
_PLAIN, _NAMED, _HOLDS, _VALUE = 1, 2, 3, 4
"""Verdicts on a key: ordinary, names a secret, contains a known value, or is `value` itself."""
_NAMING: Final = ("target", "key", "name")
_CACHED_KEYS: Final = 10_000
_CACHED_LENGTH: Final = 80
_MIN_NUMBER: Final = 10 ** (MIN_LENGTH - 1)
_OPENING: Final = frozenset("{[")
_KEYLESS: Final = frozenset((int, float, bool, type(None)))
"""The types of values in which no key is."""
_INNER_KEY = lazy_pattern(r'"([^"\\]{1,64})"\s*:\s*')
_INNER_VALUE = lazy_pattern(r'"(?:[^"\\]|\\.)*+"?|[\[{].*|[^,}\]]*', re.DOTALL)


class Redactor:
    """Masks secret values. Any thread may add values during a run."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._values: frozenset[str] = frozenset()
        self.version: object = self._values
        """An object that is replaced when a secret value is added."""
        self._built: tuple[frozenset[str], SecretSearch] | None = None
        """The search for values, and for which: it is built when a text is first searched."""
        self._plain: set[str] = set()
        """Keys whose verdict is `_PLAIN`, in a set of their own: an object is compared with them in one operation."""
        self._others: dict[str, int] = {}
        self._clean: set[str] = set()
        """Short texts without a secret: ids, words and times come again with each event."""
        self.add(*secrets)

    def add(self, *secrets: str) -> None:
        """Add secret values. Values that are too short to differ from plain words are skipped."""
        stripped = {secret.strip() for secret in secrets}
        values = self._values | {value for value in stripped if len(value) >= MIN_LENGTH}
        if values == self._values:
            return
        self.version = self._values = values
        self._plain, self._others, self._clean = set(), {}, set()

    @property
    def _current_search(self) -> SecretSearch:
        # Values and search are replaced together, because `add` may run concurrently.
        values, built = self._values, self._built
        if built is None or built[0] is not values:
            from cogcli.base.secret_search import search_for

            built = self._built = (values, search_for(values))
        return built[1]

    def mask(self, value: Any) -> Any:
        """Return `value` without secrets, by value and by key name; the same object if it has none."""
        return self._mask_value(value, True)

    def is_clean(self, values: Iterable[Any], names: Iterable[str] = ()) -> bool:
        """Return whether `mask` would leave each of these values and names unchanged. A name is never JSON."""
        if not self._values:
            return not self._has_secret_key(values)
        return not (self._needs_mask(values, True) or self._needs_mask(names, True))

    def mask_known(self, value: Any) -> Any:
        """Return `value` without the known secret values; the same object if it has none."""
        return value if not self._values else self._mask_value(value, False)

    def mask_text(self, text: str) -> str:
        """Return a string without the known secret values."""
        return text if not self._values else self._current_search.mask(text)

    def _mask_value(self, value: Any, named: bool) -> Any:
        if not self._needs_mask((value,), named):
            return value
        rebuilt = self._rebuild_masked(value, named=named)
        return value if rebuilt == value else rebuilt

    def _needs_mask(self, values: Iterable[Any], named: bool) -> bool:
        """Return whether any of these values must be masked. `named`: secret key names are recognized.

        This is the hot path: it builds nothing, and it skips plain keys and clean strings without a
        call.
        """
        if not self._values:
            return named and self._has_secret_key(values)
        clean = self._clean
        for value in values:
            kind = type(value)
            if kind is str:
                if len(value) < MIN_LENGTH or value in clean:
                    continue
                if self._text_needs_mask(value, named):
                    return True
            elif kind is dict:
                if not value.keys() <= self._plain and self._key_needs_mask(value, named):
                    return True
                if self._needs_mask(value.values(), named):
                    return True
            elif kind is list or kind is tuple:
                if value and self._needs_mask(value, named):
                    return True
            elif kind is int and self._is_secret_number(value):
                return True
        return False

    def _has_secret_key(self, values: Iterable[Any]) -> bool:
        """Return whether a key in any of these values, or in a string of JSON, marks a member as secret."""
        for value in values:
            kind = type(value)
            if kind is str:
                if value and value[0] in _OPENING and self._text_needs_mask(value, True):
                    return True
            elif kind is dict:
                if not self._plain.issuperset(value) and self._key_needs_mask(value, True):
                    return True
                members = value.values()
                if not _KEYLESS.issuperset(map(type, members)) and self._has_secret_key(members):
                    return True
            elif (kind is list or kind is tuple) and value and self._has_secret_key(value):
                return True
        return False

    def _is_secret_number(self, value: int) -> bool:
        if value < _MIN_NUMBER:
            return False
        numbers = self._current_search.numbers
        return bool(numbers) and str(value) in numbers

    def _key_needs_mask(self, value: Json, named: bool) -> bool:
        """Return whether a key must be masked, or marks its member as secret."""
        for key, item in value.items():
            verdict = self._key_verdict(key)
            if verdict == _HOLDS or (
                named and verdict != _PLAIN and _is_secret_member(verdict, value, item)
            ):
                return True
        return False

    def _text_needs_mask(self, text: str, named: bool) -> bool:
        """Return whether a string must be masked. Short clean strings are cached."""
        clean = self._clean  # read before the search, because `add` replaces it after the search
        if self._values and self._current_search.is_in(text):
            return True
        if text[0] in "{[":
            return named and any(
                self._key_verdict(key) == _NAMED for key in _INNER_KEY.findall(text)
            )
        if len(text) <= _CACHED_LENGTH:
            if len(clean) >= _CACHED_KEYS:
                clean.clear()
            clean.add(text)
        return False

    def _key_verdict(self, key: str) -> int:
        """Return the cached verdict on a key. Caches are read before the search, because `add` replaces them after the
        search. So results of the old search are dropped with them.
        """
        plain, others = self._plain, self._others
        if key in plain:
            return _PLAIN
        if key in others:
            return others[key]
        if self._values and self._current_search.is_in(key):
            verdict = _HOLDS
        else:
            verdict = _NAMED if names_secret(key) else _VALUE if key == "value" else _PLAIN
        if len(plain) + len(others) >= _CACHED_KEYS:
            plain.clear()
            others.clear()
        if verdict == _PLAIN:
            plain.add(key)
        else:
            others[key] = verdict
        return verdict

    def _rebuild_masked(self, value: Any, *, named: bool) -> Any:
        """Return a copy of the value with its secrets masked."""
        kind = type(value)
        if kind is str:
            text = self.mask_text(value)
            return _mask_inside_json(text) if named and text[:1] in ("{", "[") else text
        if kind is dict:
            return self._rebuild_object(value, named=named)
        if kind is list or kind is tuple:
            return [self._rebuild_masked(item, named=named) for item in value]
        if kind is int and self._values and self._is_secret_number(value):
            return MASK
        return value

    def _rebuild_object(self, value: Json, *, named: bool) -> Json:
        result: Json = {}
        for key, item in value.items():
            is_secret = named and _is_secret_member(self._key_verdict(key), value, item)
            result[self.mask_text(key)] = (
                MASK if is_secret else self._rebuild_masked(item, named=named)
            )
        return result


def _is_secret_member(verdict: int, container: Json, value: object) -> bool:
    """Return whether a member is secret by its key, or by the name that the enclosing object declares."""
    if value is None or type(value) is bool or value in (MASK, "", [], {}):
        return False
    if verdict != _VALUE:
        return verdict == _NAMED
    names = [container[key] for key in _NAMING if key in container]
    return any(type(name) is str and names_secret(name.rpartition(".")[2]) for name in names)


BY_NAME: Final = Redactor()
"""Masks values whose keys denote a secret. It contains no secret values, and none may be added."""


def _mask_inside_json(text: str) -> str:
    """Return JSON text with the values of secret keys masked.

    If a secret value is an object or a list, the rest of the text is masked.
    """
    parts, done = [], 0
    for match in _INNER_KEY.finditer(text):
        if match.start() < done or not names_secret(match[1]):
            continue
        value = _INNER_VALUE.match(text, match.end())
        if value and value[0].strip() not in ("null", "true", "false", f'"{MASK}"', ""):
            parts += [text[done : match.end()], f'"{MASK}"']
            done = value.end()
    return "".join(parts) + text[done:]


@lru_cache(maxsize=10_000)
def names_secret(key: str) -> bool:
    """Return whether the words of a key indicate that its value is secret."""
    words = [word.lower() for word in _WORDS.findall(key)]
    for n, word in enumerate(words):
        pair = tuple(words[n - 1 : n + 1]) if n else ()
        if word not in _SECRET_WORDS and pair not in _SECRET_PAIRS:
            continue
        counted = word == "token" and n > 0 and words[n - 1] in _COUNTING
        if not counted and not _ABOUT.intersection(words[n + 1 :]):
            return True
    return False
