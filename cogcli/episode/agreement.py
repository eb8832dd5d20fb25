"""Whether the files of an episode agree with each other (docs/reference/episode.md#agreement).

This is what a screen checks before it shows a status: bytes are hashed and compared, nothing is derived from the log.
`verify` derives every document again and finds more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final, NamedTuple

from cogcli.base.canonical import digest
from cogcli.base.files import FileRefused
from cogcli.base.jsonvalue import object_of
from cogcli.base.strict_json import JsonRefused
from cogcli.declarations.checksum import holds
from cogcli.episode.blobs import parse
from cogcli.episode.checkpoint import compare, known_records, places_of
from cogcli.episode.folder import Folder
from cogcli.episode.layout import BLOBS, EVENTS, FILES, LEARN, MANIFEST, STATE, SUMMARY
from cogcli.episode.log_lines import Lines, first_link, is_torn, is_unchained, parse_line
from cogcli.episode.manifest import NamedFile, manifest_files, measure, unlike

UNSEALED: Final = f"{MANIFEST} does not exist: the run ended, and the episode is not sealed"
"""The fault of an episode whose process was killed while it sealed it, or whose manifest was removed."""
LONGEST_OPEN: Final = 16 * 1024 * 1024
"""Bytes of the log of an unfinished run that a list reads. A longer one is checked when it is shown alone."""
_DOCUMENT: Final = 64 * 1024 * 1024
_PREV: Final = b'"prev":"'
_LINK: Final = len("sha256:") + 64
_ENDS: Final = b'"phase":"terminate"'
_PROJECTION: Final = b'"event_type":"run.state_projection"'


class LogScan(NamedTuple):
    """One pass over the bytes of a log."""

    episode_id: str = ""
    """Empty for a log without a readable first line."""
    first: bytes = b""
    foreign: bool = False
    events: int = 0
    head: str = ""
    sha256: str = ""
    size: int = 0
    heads: Mapping[int, str] = {}
    """The hash of the chain at the places that were asked for."""
    ends: tuple[bytes, ...] = ()
    """The lines that end a run, the root's or a nested one's."""
    projections: tuple[bytes, ...] = ()
    """The last two lines that are the evidence of a `state.json`, the latest first."""
    fault: str = ""
    """Why a line cannot be what was written; empty without such a line."""


class Agreement(NamedTuple):
    """What a comparison gave. `fault` names the first file that disagrees, and how; empty if all agree."""

    fault: str
    log: LogScan


def check_agreement(folder: Folder, owner: bytes | None, *, thorough: bool) -> Agreement:
    """Compare the files of an episode. `thorough`: blobs too, and a long log of an unfinished run.

    Raises FileRefused if the log cannot be read.
    """
    sealed = folder.holds(MANIFEST)
    if not (sealed or thorough) and folder.size(EVENTS) > LONGEST_OPEN:
        return Agreement("", LogScan())
    records = known_records(folder, owner)
    log = scan_log(folder, places_of(records), sealed=sealed)
    fault = _sealed_fault(folder, log, thorough=thorough) if sealed else _open_fault(folder, log)
    vouched = compare(records, log.episode_id, log.heads)
    if not fault and vouched.differs:
        fault = f"{EVENTS} was cut or altered: {vouched.differs}"
    if (
        not fault
        and sealed
        and vouched.manifest
        and vouched.manifest != digest(_read(folder, MANIFEST))
    ):
        fault = f"{MANIFEST} is not the one that your key vouches for"
    return Agreement(fault, log)


def scan_log(folder: Folder, places: Collection[int] = (), *, sealed: bool = True) -> LogScan:
    """Read a log once. Raises FileRefused."""
    scan = _Scan()
    for number, line in Lines(scan.chunks(folder)):
        scan.take(number, line)
        if number in places:
            scan.heads[number] = scan.head
    return scan.result(sealed=sealed)


class _Scan:
    """A scan in progress."""

    def __init__(self) -> None:
        self._content = sha256()
        self._size = 0
        self._events = 0
        self._episode_id = ""
        self._first = self._last = b""
        self._foreign = self._summed = False
        self._unsound = 0
        """The number of the first line that does not fit its checksum."""
        self._fault = ""
        self._ends: list[bytes] = []
        self._projections: list[bytes] = []
        self.head = ""
        self.heads: dict[int, str] = {}

    def chunks(self, folder: Folder) -> Iterator[bytes]:
        """The bytes of the log, hashed and counted as they are read."""
        for chunk in folder.chunks(EVENTS):
            self._content.update(chunk)
            self._size += len(chunk)
            yield chunk

    def take(self, number: int, line: bytes) -> None:
        """Compare one line with the line before it."""
        if number == 1:
            self._begin(line)
        if not self._foreign and not self._fault:
            at = line.rfind(_PREV) + len(_PREV)
            if line[at : at + _LINK] != self.head.encode():
                before = f"this line or line {number - 1}" if number > 1 else "this line"
                self._fault = f"{EVENTS}:{number}: {before} was altered"
            elif self._summed and not self._unsound and not holds(line):
                self._unsound = number
        self.head = digest(line)
        self._events, self._last = number, line
        if _ENDS in line:
            self._ends.append(line)
        if _PROJECTION in line:
            self._projections = [line, *self._projections[:1]]

    def _begin(self, line: bytes) -> None:
        self._first = line
        with suppress(JsonRefused):
            value = parse_line(line)
            self._foreign, self._summed = is_unchained(value), "sum" in value
            self._episode_id = value["episode_id"] if type(value.get("episode_id")) is str else ""
        self.head = first_link(self._episode_id)
        self.heads[0] = self.head

    def result(self, *, sealed: bool) -> LogScan:
        """The scan of the whole log."""
        # A write that was cut short may leave a last line that is not an event. An unfinished log lost nothing by it.
        torn = not sealed and self._unsound == self._events and is_torn(self._last)
        if self._unsound and not self._fault and not torn:
            self._fault = f"{EVENTS}:{self._unsound}: this line was altered"
        return LogScan(
            self._episode_id, self._first, self._foreign, self._events, self.head, self._content.hexdigest(),
            self._size, self.heads, tuple(self._ends), tuple(self._projections), self._fault,
        )  # fmt: skip


# -- a sealed episode --------------------------------------------------------------------------------------------------


def _sealed_fault(folder: Folder, log: LogScan, *, thorough: bool) -> str:
    try:
        manifest = object_of(parse(folder.read(MANIFEST, limit=_DOCUMENT)))
    except FileRefused as error:
        return f"{MANIFEST} {error.message}"
    except JsonRefused as error:
        return f"{MANIFEST} is not JSON: {error.message}"
    listed = manifest_files(manifest)
    if listed.problems:
        return f"{MANIFEST} {listed.problems[0]}"
    named = manifest.get("episode_id")
    if not log.foreign and log.episode_id and named != log.episode_id:
        return f"{MANIFEST} is that of another episode"
    for file in listed.files.values():
        if not _is_compared(file.name, log, thorough=thorough):
            continue
        why = _unlike_log(file, log) if file.name == EVENTS else _unlike(folder, file)
        if why:
            return f"{file.name:.120} {why}"
    if log.foreign:
        return ""
    for name in sorted(set(folder.names()).intersection(FILES) - listed.files.keys() - {MANIFEST}):
        return f"{name} is not named by the manifest"
    if manifest.get("chain") != {"events": log.events, "head": log.head}:
        return f"{MANIFEST} names another log: {EVENTS} has {log.events} events and ends with {log.head}"
    return log.fault


def _is_compared(name: str, log: LogScan, *, thorough: bool) -> bool:
    """Whether a file is hashed. A list does not read blobs, nor what else another tool keeps in its episodes."""
    if thorough:
        return True
    return name in FILES if log.foreign else not name.startswith(f"{BLOBS}/")


def _unlike_log(file: NamedFile, log: LogScan) -> str:
    if file.size is not None and file.size != log.size:
        return f"has {log.size:,} bytes, the manifest says {file.size:,}"
    if file.sha256 and file.sha256 != log.sha256:
        return "is not the file that the manifest names"
    return ""


def _unlike(folder: Folder, file: NamedFile) -> str:
    try:
        return unlike(folder, file)
    except FileRefused as error:
        return error.message


# -- an unfinished one -------------------------------------------------------------------------------------------------


def _open_fault(folder: Folder, log: LogScan) -> str:
    """What is wrong with an episode without a manifest. A run that is alive changes its files while they are read."""
    if log.foreign or not log.first:
        return ""
    if log.fault:
        return log.fault
    fault = ""
    if find_end(log) is not None:
        fault = UNSEALED
    elif folder.holds(SUMMARY):
        fault = f"{SUMMARY} exists, and the run has not ended"
    elif _has_bytes(folder, LEARN):
        fault = f"{LEARN} is not empty, and the run has not ended"
    elif folder.holds(STATE):
        fault = _state_fault(folder, log)
    return "" if fault and folder.is_locked(EVENTS) else fault


def _state_fault(folder: Folder, log: LogScan) -> str:
    """Whether `state.json` is that of one of the last two events that announce it. Older logs do not hold its hash."""
    if not log.projections:
        return f"{STATE} exists, and no event of the log announces it"
    hashes = [_recorded_state(line) for line in log.projections]
    if not all(hashes):
        return ""
    found = measure(folder, STATE)[0]
    return (
        "" if f"sha256:{found}" in hashes else f"{STATE} is not the document that the log announces"
    )


def _recorded_state(line: bytes) -> str:
    """The hash of `state.json` that its evidence holds; empty without one."""
    with suppress(JsonRefused):
        found = object_of(object_of(parse_line(line).get("payload")).get("state")).get("sha256")
        return f"sha256:{found}" if type(found) is str else ""
    return ""


def _has_bytes(folder: Folder, name: str) -> bool:
    return folder.holds(name) and folder.size(name) > 0


def find_end(log: LogScan) -> dict[str, Any] | None:
    """The line that ends the root run, as an object; None if the run has not ended."""
    try:
        root = parse_line(log.first).get("run_id")
    except JsonRefused:
        return None
    for line in log.ends:
        with suppress(JsonRefused):
            value = parse_line(line)
            if value.get("phase") == "terminate" and value.get("run_id") == root:
                return value
    return None


def _read(folder: Folder, name: str) -> bytes:
    try:
        return folder.read(name, limit=_DOCUMENT)
    except FileRefused:
        return b""
