"""The references to large values since rules 2 (docs/reference/episode.md#blobs). Beyond the page:

1. Below the size of a disk page, 4 KiB, a file of its own would cost more than it saves.
2. Inner values are replaced first: a large text in an object leaves the object small, and a blob may hold references.
3. The whole value of a blob is never a reference.
4. A blob that one line names several times counts each time against the bound.
5. Steps pass large values on, so consecutive lines name the same blobs: a text and a part of a list are in memory
   once. Folds change no element of a list.
6. Under rules 3 a long list is cut into parts, from its beginning. Its own blob has the last part, and names the
   others. So a list that grows by a few elements has new blobs only for its end. The cuts depend on nothing but the
   elements: equal lists have equal blobs.
7. A writer remembers the last long lists. A list with the same elements has the same reference. One that begins with
   the elements of a known list, or whose JSON begins like that of one, keeps its parts. So a loop that hands on a
   growing list neither encodes nor cuts it anew for every event.
"""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, Final

import orjson

from cogcli.base.jsonvalue import LONG_LIST
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.refs import MISSING
from cogcli.base.strict_json import InvalidJson
from cogcli.declarations.value_types import Json
from cogcli.episode.blobs import (
    LIST_TYPE,
    MAX_BLOB,
    SPILL,
    Get,
    Put,
    is_list_reference,
    is_reference,
    may_refer,
    parse,
    reference_to,
)
from cogcli.episode.log_lines import LATEST

SMALL: Final = 4096
"""Bytes of JSON up to which a value of a step stays in place."""
_SHORT: Final = SMALL // 8
"""A text of fewer characters never has more bytes of JSON than `SMALL`."""
PART: Final = 16 * 1024
"""Bytes of the elements in a part of a list. A list of at most so many bytes is one blob."""
_LISTS_FROM: Final = 3
"""The first rules under which long lists are cut."""
IN_FULL: Final = 1024 * 1024
"""Bytes of JSON up to which an output is in full in `state.json`."""
_VALUES: Final = frozenset(
    ("inputs", "input", "output", "outputs", "value", "frame", "request", "reply", "read")
)
"""Keys of the inputs and outputs of runs and steps in an event."""
_KEPT_TEXTS: Final = 2
"""The number of texts in memory: an event of a step contains its input and its output."""
_KEPT_PARTS: Final = 1024
"""The parts of lists in memory: 16 MiB of JSON, as many as a writer remembers of one list. A list with more parts than
these is read from its blobs whenever an event names it."""
_KEPT_LISTS: Final = 4
_LONGEST_KEPT: Final = 16 * 1024 * 1024
"""Bytes of JSON of the longest list that is remembered."""
_DEEPEST: Final = 128
"""Levels of a value assembled from blobs: more than any writer may nest, fewer than the limit of recursion."""


class _CutParts(NamedTuple):
    """The whole parts that a list was cut into."""

    text: bytes = b""
    """The JSON of the list up to the end of these parts, without the comma that follows."""
    length: int = 0
    """The number of elements in them."""
    names: tuple[Json, ...] = ()
    """The references to them."""
    end: bytes = b""
    """The JSON after `text`: the first element of the next part, which did not fit into the last of these parts."""

    def extend(self, texts: list[bytes], names: list[Json], following: bytes) -> _CutParts:
        """Return these parts and further ones, given the JSON of their elements and of the element that follows."""
        added = b",".join(texts)
        text = b"%b,%b" % (self.text, added) if self.text else b"[" + added
        return _CutParts(text, self.length + len(texts), (*self.names, *names), following)

    def begin(self, text: bytes) -> bool:
        """Return whether the list with this JSON begins with these parts, and is cut at their end."""
        end = len(self.text) + 1 + len(self.end)
        return (
            text.startswith(self.text)
            and text.startswith(b",%b" % self.end, len(self.text))
            and text[end : end + 1] in (b",", b"]")
        )


_NO_PARTS: Final = _CutParts()


class _KnownList(NamedTuple):
    """A long list that was cut, and its reference. Holding the elements keeps their identity."""

    items: list[Any]
    parts: _CutParts
    reference: orjson.Fragment
    version: object
    """The version of the secrets that its elements are known to be free of. None if that is not known."""

    def is_beginning_of(self, items: list[Any]) -> bool:
        """Return whether a list begins with the very elements of this one."""
        last = len(self.items) - 1
        if len(items) <= last or items[last] is not self.items[last]:
            return False  # another list mostly differs at this end, too
        return all(map(operator.is_, self.items, items))


class ValueShortener:
    """Replaces the large values of a log, or of a document that follows from it, by references to their blobs."""

    def __init__(self, put: Put, rules: int = LATEST) -> None:
        """`put` stores a JSON text and returns its digest. `rules` are those of the log, 2 or later."""
        self._put = put
        self._cuts_lists = rules >= _LISTS_FROM
        self._known: list[_KnownList] = []
        """The last long lists, the latest last (rule 7)."""
        self._version: object = None

    def leave_out_clean(self, payload: Json, version: object) -> Json:
        """Return the payload without the elements of long lists that have none of the secrets of this version.

        One element of each list is kept, because a list under the name of a secret is masked only if it is not empty.
        It returns the same object if there is nothing to leave out.
        """
        clean = [known for known in self._known if known.version is version]
        return self._drop_known_items(payload, clean) if clean else payload

    def _drop_known_items(self, value: Any, clean_lists: list[_KnownList]) -> Any:
        """Return a value without the items of known lists, except the last item of each list."""
        if type(value) is dict:
            rest = {
                key: self._drop_known_items(member, clean_lists) for key, member in value.items()
            }
            return value if all(map(operator.is_, rest.values(), value.values())) else rest
        if type(value) is not list:
            return value
        if len(value) >= LONG_LIST:
            found = next((known for known in clean_lists if known.is_beginning_of(value)), None)
            return value if found is None else value[len(found.items) - 1 :]
        left = [self._drop_known_items(item, clean_lists) for item in value]
        return value if all(map(operator.is_, left, value)) else left

    def recall(self, payload: Json, version: object = None) -> Json:
        """Return the payload with references in the places of known lists, and of lists that continue them.

        Lists that are cut from now on are known to be free of the secrets of this version.
        """
        self._version = version
        if not self._known:
            return payload
        return {key: self._recall_member(member, key in _VALUES) for key, member in payload.items()}

    def _recall_member(self, value: Any, is_value: bool) -> Any:
        """Return a member with the known references. Only lists of inputs and outputs are split."""
        if type(value) is dict:
            return {
                key: self._recall_member(member, is_value or key in _VALUES)
                for key, member in value.items()
            }
        if type(value) is not list:
            return value
        if is_value:
            # A list of lists is cut as a whole, so that equal values have equal blobs.
            return self._find_reference(value) if len(value) >= LONG_LIST else value
        return (
            [self._recall_member(item, False) for item in value]
            if len(value) < LONG_LIST
            else value
        )

    def _find_reference(self, items: list[Any]) -> object:
        """Return the reference of a list that begins with the elements of a known one, or the list itself."""
        beginnings = (known for known in self._known if known.is_beginning_of(items))
        known = max(beginnings, key=lambda known: len(known.items), default=None)
        if known is None:
            return items
        if len(known.items) == len(items):
            return known.reference
        return orjson.Fragment(orjson.dumps(self._refer_list(items, known.parts)))

    def shorten(self, payload: Json) -> Json:
        """Return the payload for the log."""
        return {key: self._shorten_member(key, value) for key, value in payload.items()}

    def refer(self, value: object, *, limit: int = SMALL) -> object:
        """Return the value for a document. If its JSON exceeds `limit` bytes, references replace its parts or the whole
        value.
        """
        text = orjson.dumps(value)
        if len(text) <= limit and not may_refer(text):
            return value
        short = value
        if type(value) is dict:
            short = {key: self.refer(member, limit=limit) for key, member in value.items()}
        elif type(value) is list:
            if self._cuts_lists and len(text) > max(limit, PART):
                return self._refer_list(value, self._find_parts(text))
            short = [self.refer(member, limit=limit) for member in value]
        if short is not value:
            text = orjson.dumps(short)
        if len(text) > limit or self._looks_referred(value):
            return reference_to(text, self._put)
        return short

    def show_in_full(self, value: object) -> object:
        """Return the value for readers: unchanged up to 1 MiB, above that with references."""
        return self.refer(value, limit=IN_FULL if len(orjson.dumps(value)) <= IN_FULL else SMALL)

    def _looks_referred(self, value: object) -> bool:
        """Return whether the data would be read as a reference."""
        return is_reference(value) or (self._cuts_lists and is_list_reference(value))

    def _refer_list(self, items: list[Any], known: _CutParts) -> Json:
        """Return the reference to a list in parts (rule 6). The list begins with the known parts."""
        rest = items[known.length :]
        texts = [orjson.dumps(item) for item in rest]
        sizes = [len(text) for text in texts]
        size = len(known.text) + sum(sizes)
        if max(sizes) > SMALL or any(map(may_refer, texts)):
            rest = [self.refer(item) for item in rest]
            sizes = [len(orjson.dumps(item)) for item in rest]
        *whole, last = _split_list(rest, sizes)
        if whole:
            added = len(rest) - len(last)
            names = [reference_to(orjson.dumps(part), self._put) for part in whole]
            known = known.extend(texts[:added], names, texts[added])
        reference = reference_to(
            orjson.dumps([*self._group_parts(list(known.names)), last]), self._put, LIST_TYPE
        )
        if size <= _LONGEST_KEPT:
            self._remember_list(items, known, reference)
        return reference

    def _group_parts(self, names: list[Json]) -> list[Json]:
        """Return the references for the parts of a list. If the parts are many, blobs that list their names are
        referenced instead.
        """
        while sum(sizes := [len(orjson.dumps(name)) for name in names]) > PART:
            groups = _split_list(names, sizes)
            names = [reference_to(orjson.dumps(group), self._put, LIST_TYPE) for group in groups]
        return names

    def _find_parts(self, text: bytes) -> _CutParts:
        """Return the most parts of a known list that a list with this JSON begins with."""
        fitting = (known.parts for known in self._known if known.parts.begin(text))
        return max(fitting, key=lambda parts: parts.length, default=_NO_PARTS)

    def _remember_list(self, items: list[Any], parts: _CutParts, reference: Json) -> None:
        """Remember the parts of a list, replacing those of the list that it continues."""
        text = orjson.Fragment(orjson.dumps(reference))
        others = [known for known in self._known if not parts.text.startswith(known.parts.text)]
        self._known = [
            *others[1 - _KEPT_LISTS :],
            _KnownList(items.copy(), parts, text, self._version),
        ]

    def _shorten_member(self, key: str, value: object) -> object:
        """Return a member of a payload, with its large values replaced by references to blobs at any depth."""
        if key in _VALUES:
            return self.refer(value)
        if type(value) is str and len(value) < _SHORT:
            return value
        text = orjson.dumps(value)
        if len(text) <= SMALL:
            return self.refer(value, limit=SPILL) if may_refer(text) else value
        short: object
        if type(value) is dict:
            short = {name: self._shorten_member(name, member) for name, member in value.items()}
        elif type(value) is list:
            has_small_items = max(map(len, map(orjson.dumps, value))) <= SMALL
            if has_small_items and not may_refer(text):
                return value if len(text) <= SPILL else reference_to(text, self._put)
            short = [self._shorten_member(key, member) for member in value]
        else:
            return self.refer(value, limit=SPILL)
        text = orjson.dumps(short)
        return short if len(text) <= SPILL else reference_to(text, self._put)


def _split_list(items: list[Any], sizes: list[int]) -> Iterator[list[Any]]:
    """Yield the parts of a list whose elements have these sizes. Each part has as many elements as fit into `PART`, and
    at least one.
    """
    ends = list(accumulate(sizes))
    begin = size = 0
    while begin < len(items):
        end = max(bisect_right(ends, size + PART, begin), begin + 1)
        yield items[begin:end]
        begin, size = end, ends[end - 1]


class BlobReader:
    """Assembles the values of one log or document from its blobs (rules 4 and 5)."""

    def __init__(self, get: Get) -> None:
        self.get = get
        self._left = 0
        """Bytes that the line or document may still name."""
        self._joins_lists = False
        self._names_blobs = False
        """Whether the blob that was read last may name others."""
        self._texts: dict[str, str] = {}
        """The last large texts by digest, the latest last."""
        self._parts: dict[tuple[str, int], list[Any]] = {}
        """The last parts of lists by digest and size, the latest last. A reference with another size is wrong."""

    def expand_payload(self, payload: Json, rules: int = LATEST) -> Json:
        """Return the payload of a log that follows `rules` with its blobs loaded. A reference is kept if its blob is
        missing, altered or beyond the bound.
        """
        self._left, self._joins_lists = MAX_BLOB, rules >= _LISTS_FROM
        return {key: self._resolve_value(member, 0) for key, member in payload.items()}

    def expand_document(self, value: object) -> Any:
        """Return a value of a document with its blobs in place, as far as they exist."""
        self._left, self._joins_lists = MAX_BLOB, True
        return self._resolve_value(value, 0)

    def _resolve_value(self, value: object, depth: int) -> object:
        if type(value) is dict and "$blob" in value:
            if is_reference(value):
                return self._resolve_blob(value, depth)
            if self._joins_lists and is_list_reference(value):
                return self._resolve_list(value, depth)
        return self._resolve_members(value, depth)

    def _resolve_list(self, reference: Json, depth: int) -> object:
        """Return the list of a reference; the reference itself if any part is missing."""
        names = self._load_blob(reference)
        joined: list[Any] = []
        if type(names) is not list or depth > _DEEPEST:
            return reference
        for name in names:
            part = self._read_part(name, depth + 1)
            if part is None:
                return reference
            joined += part
        return joined

    def _read_part(self, name: object, depth: int) -> list[Any] | None:
        """Return the elements of one part of a list; None if its blob is missing or is not a list."""
        known = self._find_part(name)
        if known is not None:
            return known if self._left >= 0 else None
        if is_reference(name):
            return self._part_in_blob(name, depth)
        found = name
        if is_list_reference(name):
            found = self._resolve_list(name, depth)
        elif may_refer(orjson.dumps(name)):
            found = self._resolve_members(name, depth)
        return found if type(found) is list else None

    def _find_part(self, name: object) -> list[Any] | None:
        """Return a part from the cache, and count its bytes; None if the cache does not have it."""
        if not is_reference(name):
            return None
        digest, size = name["$blob"], name["bytes"]
        known = self._parts.pop((digest, size), None)
        if known is not None:
            self._left -= size
            self._parts[digest, size] = known
        return known

    def _part_in_blob(self, name: Json, depth: int) -> list[Any] | None:
        before = self._left
        found = self._resolve_blob(name, depth)
        if type(found) is not list:
            return None
        if before - self._left == name["bytes"]:  # the part names no blob itself
            self._parts[name["$blob"], name["bytes"]] = found
            if len(self._parts) > _KEPT_PARTS:
                del self._parts[next(iter(self._parts))]
        return found

    def _resolve_members(self, value: object, depth: int) -> object:
        if depth > _DEEPEST:
            return value
        if type(value) is dict:
            return {key: self._resolve_value(member, depth + 1) for key, member in value.items()}
        if type(value) is list:
            return [self._resolve_value(member, depth + 1) for member in value]
        return value

    def _resolve_blob(self, reference: Json, depth: int) -> object:
        held = self._load_blob(reference)
        if held is MISSING:
            return reference
        if type(held) is str:
            return self._share_text(reference["$blob"], held)
        return self._resolve_members(held, depth) if self._names_blobs else held

    def _load_blob(self, reference: Json) -> Any:
        """Return the JSON value in a blob; MISSING if it is missing, altered or beyond the bound."""
        self._left -= reference["bytes"]
        beyond = self._left < 0 or reference["bytes"] < 0
        # The empty digest counts as a missing blob.
        data = self.get("" if beyond else reference["$blob"])
        if data is None or len(data) != reference["bytes"]:
            return MISSING
        self._names_blobs = may_refer(data)
        try:
            return parse(data)
        except InvalidJson:
            return MISSING

    def _share_text(self, digest: str, text: str) -> str:
        """Return the object that an earlier line has for an equal string, or this string."""
        known = self._texts.pop(digest, text)
        self._texts[digest] = known
        if len(self._texts) > _KEPT_TEXTS:
            del self._texts[next(iter(self._texts))]
        return known
