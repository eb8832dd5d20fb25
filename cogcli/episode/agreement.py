"""Whether the files of an episode agree with each other (docs/reference/episode.md#agreement).

A screen checks this before it shows a status: it hashes and compares bytes, and derives nothing from the log. `verify`
derives every document again and finds more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Final

from cogcli.base.canonical import digest
from cogcli.base.files import UnreadableFile
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.strict_json import InvalidJson
from cogcli.declarations.checksum import has_valid_checksum
from cogcli.declarations.envelope import Event
from cogcli.declarations.events import StateProjected
from cogcli.declarations.reading import read_record
from cogcli.episode.blobs import parse
from cogcli.episode.checkpoint import TrustedEvents, compare, places_of, read_trusted_checkpoints
from cogcli.episode.folder import Folder
from cogcli.episode.layout import BLOBS, EVENTS, FILES, LEARN, MANIFEST, STATE, SUMMARY
from cogcli.episode.log_lines import Lines, first_link, is_torn, is_unchained, parse_line
from cogcli.episode.log_reader import event_of
from cogcli.episode.manifest import (
    NamedFile,
    StoredManifest,
    describe_change,
    manifest_files,
    measure,
)

UNSEALED: Final = f"{MANIFEST} does not exist: the run ended, and the episode is not sealed"
"""The fault of an episode whose process was killed while it sealed it, or whose manifest was removed."""
LONGEST_OPEN: Final = 16 * 1024 * 1024
"""The bytes of an unfinished run's log up to which a list checks it. A longer one is checked when its episode is
displayed.
"""
_DOCUMENT: Final = 64 * 1024 * 1024
_PREV: Final = b'"prev":"'
_LINK: Final = len("sha256:") + 64
_ENDS: Final = b'"phase":"terminate"'
_ESCAPE: Final = b"\\u"
"""In a line that has it, letters of the id of its run may be spelled by their numbers."""
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
    """The hash of the chain at each requested place."""
    ends: tuple[bytes, ...] = ()
    """Lines that end a run, among them those that end the root run."""
    projections: tuple[bytes, ...] = ()
    """The last two lines that are the evidence of a `state.json`, the latest first."""
    fault: str = ""
    """The reason why a line cannot be an original line; empty if all lines can."""


class Agreement(NamedTuple):
    """The result of a comparison. `fault` names the first file that disagrees, with the reason. Empty if all
    files agree.
    """

    fault: str
    log: LogScan


def check_agreement(folder: Folder, owner: bytes | None, *, thorough: bool) -> Agreement:
    """Compare the files of an episode. If `thorough`, include blobs, and the long log of an unfinished run.

    Raise UnreadableFile if the log cannot be read.
    """
    sealed = folder.holds(MANIFEST)
    if not (sealed or thorough) and folder.size(EVENTS) > LONGEST_OPEN:
        return Agreement("", LogScan())
    records = read_trusted_checkpoints(folder, owner)
    log = scan_log(folder, places_of(records), sealed=sealed)
    fault = _sealed_fault(folder, log, thorough=thorough) if sealed else _open_fault(folder, log)
    vouched = compare(records, log.episode_id, log.heads)
    return Agreement(fault or _vouched_fault(folder, vouched, sealed=sealed), log)


def _vouched_fault(folder: Folder, vouched: TrustedEvents, *, sealed: bool) -> str:
    """Describe how an episode differs from its user's checkpoints. Empty if it does not."""
    if vouched.differs:
        return f"{EVENTS} was cut or altered: {vouched.differs}"
    if not sealed or not vouched.manifest:
        return ""
    is_same = vouched.manifest == digest(_read_file(folder, MANIFEST))
    return "" if is_same else f"{MANIFEST} is not the one that your key vouches for"


def scan_log(folder: Folder, places: Collection[int] = (), *, sealed: bool = True) -> LogScan:
    """Read a log once. Raise UnreadableFile."""
    scan = _Scan()
    for number, line in Lines(scan.chunks(folder)):
        scan.take(number, line)
        if number in places:
            scan.heads[number] = scan.head
    return scan.result(sealed=sealed)


class _Scan:
    """A log scan in progress."""

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
        self._root = b""
        self._ends: list[bytes] = []
        """Lines that may end the root run. A long run has many nested runs, whose ends are not kept."""
        self._projections: list[bytes] = []
        self.head = ""
        self.heads: dict[int, str] = {}

    def chunks(self, folder: Folder) -> Iterator[bytes]:
        """Yield the bytes of the log, and hash and count them."""
        for chunk in folder.chunks(EVENTS):
            self._content.update(chunk)
            self._size += len(chunk)
            yield chunk

    def take(self, number: int, line: bytes) -> None:
        """Compare one line with the line before it."""
        if number == 1:
            self._start_run(line)
        if not self._foreign and not self._fault:
            self._compare_line(number, line)
        self.head = digest(line)
        self._events, self._last = number, line
        if _ENDS in line and (self._root in line or _ESCAPE in line):
            self._ends.append(line)
        if _PROJECTION in line:
            self._projections = [line, *self._projections[:1]]

    def _compare_line(self, number: int, line: bytes) -> None:
        at = line.rfind(_PREV) + len(_PREV)
        if line[at : at + _LINK] != self.head.encode():
            altered = f"this line or line {number - 1}" if number > 1 else "this line"
            self._fault = f"{EVENTS}:{number}: {altered} was altered"
        elif self._summed and not self._unsound and not has_valid_checksum(line):
            self._unsound = number

    def _start_run(self, line: bytes) -> None:
        self._first = line
        with suppress(InvalidJson):
            value = parse_line(line)
            self._foreign, self._summed = is_unchained(value), "sum" in value
            event = event_of(value)
            self._episode_id = event.episode_id
            run = event.run_id or ""
            self._root = run.encode() if run.isascii() and run.replace("_", "").isalnum() else b""
        self.head = first_link(self._episode_id)
        self.heads[0] = self.head

    def result(self, *, sealed: bool) -> LogScan:
        """Return the scan of the whole log."""
        # An interrupted write may leave a last line that is not an event. An unfinished log loses nothing by it.
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
        manifest = parse(folder.read(MANIFEST, limit=_DOCUMENT))
    except UnreadableFile as error:
        return f"{MANIFEST} {error.message}"
    except InvalidJson as error:
        return f"{MANIFEST} is not JSON: {error.message}"
    listed = manifest_files(manifest)
    if listed.problems:
        return f"{MANIFEST} {listed.problems[0]}"
    stored = read_record(StoredManifest, manifest)
    if not log.foreign and log.episode_id and stored.episode_id != log.episode_id:
        return f"{MANIFEST} is that of another episode"
    fault = _listed_fault(folder, listed.files, log, thorough=thorough)
    if fault or log.foreign:
        return fault
    present = set(folder.names()).intersection(FILES)
    if unnamed := sorted(present - listed.files.keys() - {MANIFEST}):
        return f"{unnamed[0]} is not named by the manifest"
    if stored.chain != {"events": log.events, "head": log.head}:
        return f"{MANIFEST} names another log: {EVENTS} has {log.events} events and ends with {log.head}"
    return log.fault


def _listed_fault(
    folder: Folder, listed: Mapping[str, NamedFile], log: LogScan, *, thorough: bool
) -> str:
    """Describe the first file that differs from its entry in the manifest. Empty if none differs."""
    for file in listed.values():
        if not _is_compared(file.name, log, thorough=thorough):
            continue
        why = _log_fault(file, log) if file.name == EVENTS else _describe_change(folder, file)
        if why:
            return f"{file.name:.120} {why}"
    return ""


def _is_compared(name: str, log: LogScan, *, thorough: bool) -> bool:
    """Return whether a file is hashed. For a list, neither blobs nor other files of another tool are read."""
    if thorough:
        return True
    return name in FILES if log.foreign else not name.startswith(f"{BLOBS}/")


def _log_fault(file: NamedFile, log: LogScan) -> str:
    if file.size is not None and file.size != log.size:
        return f"has {log.size:,} bytes, the manifest says {file.size:,}"
    if file.sha256 and file.sha256 != log.sha256:
        return "is not the file that the manifest names"
    return ""


def _describe_change(folder: Folder, file: NamedFile) -> str:
    try:
        return describe_change(folder, file)
    except UnreadableFile as error:
        return error.message


# -- an unfinished episode ---------------------------------------------------------------------------------------------


def _open_fault(folder: Folder, log: LogScan) -> str:
    """Return the fault of an episode without a manifest. A live run may change its files during the comparison."""
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
    """Return the fault of `state.json`, unless one of the last two events records its hash. Older logs lack the
    hash.
    """
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
    """Return the hash of `state.json` in an evidence line; empty if the line has none."""
    with suppress(InvalidJson):
        state = read_record(StateProjected, event_of(parse_line(line)).payload).state
        return f"sha256:{state.sha256}" if state and state.sha256 else ""
    return ""


def _has_bytes(folder: Folder, name: str) -> bool:
    return folder.holds(name) and folder.size(name) > 0


def find_end(log: LogScan) -> Event | None:
    """Return the event that ends the root run, or None if the run has not ended."""
    try:
        root = event_of(parse_line(log.first)).run_id
    except InvalidJson:
        return None
    for line in log.ends:
        with suppress(InvalidJson):
            event = event_of(parse_line(line))
            if event.phase == "terminate" and event.run_id == root:
                return event
    return None


def _read_file(folder: Folder, name: str) -> bytes:
    try:
        return folder.read(name, limit=_DOCUMENT)
    except UnreadableFile:
        return b""
