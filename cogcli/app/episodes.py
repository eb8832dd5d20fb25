"""Reading episodes: finding one, its `state.json`, what `verify` finds, the rows of `ls`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cogcli.core.errors import CogcliError, EnvironmentRefusal, UsageError

if TYPE_CHECKING:
    from cogcli.app.settings import Settings
    from cogcli.episode.findings import Finding
    from cogcli.episode.listing.episode_row import EpisodeFilter, EpisodeRow
    from cogcli.episode.log_reader import Warn
    from cogcli.episode.named_files import FileStatus
    from cogcli.episode.store import Store
    from cogcli.events.envelope import Event
    from cogcli.report.lineage import Declared


def store_of(settings: Settings) -> Store:
    """The episodes of the runs directory."""
    from cogcli.episode.store import Store

    return Store(Path(settings.runs_dir))


def find(settings: Settings, name: str | None) -> Path:
    """The directory of an episode; without a name the newest. Raises UsageError, EnvironmentRefusal."""
    if name == "":
        raise UsageError("episode.unknown", "an empty word names no episode", hint="is a variable unset?")
    return store_of(settings).resolve("@last" if name is None else name)


def declared_specs(directory: Path | None, events: Iterable[Event]) -> Declared:
    """What the skill of an episode declares, as far as the episode keeps its specs."""
    from cogcli.core.strict_json import JsonRefused
    from cogcli.episode.blobs import BlobFolder
    from cogcli.episode.blobs import parse as strictly
    from cogcli.episode.refusals import open_episode
    from cogcli.report.lineage import NOTHING, declared_places

    started = next(iter(events), None)
    payload = started.payload if started and isinstance(started.payload, dict) else {}
    skill, pins = payload.get("skill"), payload.get("pins")
    if directory is None or not isinstance(skill, dict) or not isinstance(pins, dict):
        return NOTHING
    with open_episode(directory) as folder, closing(BlobFolder(folder)) as kept:
        data = kept.get(str(pins.get("specs_blob")))
    try:
        return declared_places(strictly(data) if data else None, str(skill.get("id")))
    except JsonRefused:
        return NOTHING


def status_of(directory: Path) -> str:
    """The status word of an episode: an outcome, `running` or `interrupted`."""
    from cogcli.episode.listing.episode_row import read_row

    return read_row(directory).status


class Document(NamedTuple):
    """The bytes of `state.json` (`stored`), or of the projection of the events."""

    data: bytes
    stored: bool


def read_stored_state(directory: Path) -> bytes | None:
    """The bytes of `state.json`; None where there is none. Raises EnvironmentRefusal."""
    from cogcli.core.files import FileRefused
    from cogcli.episode.folder import Folder
    from cogcli.episode.layout import STATE
    from cogcli.episode.refusals import open_episode, unreadable

    folder: Folder
    with open_episode(directory) as folder:
        try:
            return folder.read(STATE, limit=_STATE_LIMIT)
        except FileRefused as error:
            if error.reason == "missing":
                return None
            raise unreadable(directory, f"{STATE} {error.message}") from error


_STATE_LIMIT = 1 << 30


def project_state(directory: Path, warn: Warn | None = None) -> bytes:
    """The projection of the events of an episode, as the bytes of `state.json`."""
    from cogcli.core.gc_pause import paused_collection
    from cogcli.episode.log_reader import iterate_events
    from cogcli.episode.project import project_bytes

    with paused_collection():
        return project_bytes(iterate_events(directory, warn))


def is_foreign(directory: Path) -> bool:
    """Whether the log of an episode is another tool's; False where there is none."""
    from cogcli.core.files import FileRefused
    from cogcli.episode.refusals import open_episode
    from cogcli.episode.verify.foreign import is_foreign as tells_so

    with open_episode(directory) as folder:
        try:
            return tells_so(folder)
        except FileRefused:
            return False


def read_state(directory: Path, warn: Warn | None = None) -> Document:
    """`state.json`; without one, the projection of the events."""
    data = read_stored_state(directory)
    return Document(project_state(directory, warn), False) if data is None else Document(data, True)


def iterate_shown_events(directory: Path, warn: Warn | None = None) -> Iterator[Event]:
    """As `iterate_events`; without a log, the events that can be derived from `state.json`, with a warning."""
    from cogcli.episode.foreign_log import events_of_state
    from cogcli.episode.layout import EVENTS, STATE
    from cogcli.episode.log_reader import iterate_events
    from cogcli.episode.refusals import open_episode, unreadable

    with open_episode(directory) as folder:
        names = folder.entries().keys()
    if EVENTS in names or STATE not in names:
        yield from iterate_events(directory, warn)
        return
    if warn:
        warn(unreadable(directory, "does not exist: what is shown is what state.json tells", file=EVENTS))
    yield from events_of_state(parse_state(read_stored_state(directory) or b"", directory))


def parse_state(data: bytes, directory: Path) -> dict[str, Any]:
    """The object of `state.json`, parsed strictly. Raises EnvironmentRefusal `episode.unreadable`."""
    from cogcli.core.strict_json import JsonRefused
    from cogcli.episode.blobs import parse as strictly
    from cogcli.episode.refusals import unreadable

    try:
        value = strictly(data.rstrip(b"\n"))
    except JsonRefused as error:
        raise unreadable(directory, f"state.json: {error.message}") from error
    if not isinstance(value, dict):
        raise unreadable(directory, "state.json is no object")
    return value


def expand_references(document: dict[str, Any], directory: Path) -> dict[str, Any]:
    """The document with the value of each blob reference in its place; a reference without its blob stays."""
    from cogcli.episode.blobs import BlobFolder
    from cogcli.episode.large_values import value_at
    from cogcli.episode.refusals import open_episode

    with open_episode(directory) as folder, closing(BlobFolder(folder)) as kept:
        whole: dict[str, Any] = value_at(document, kept.get)
    return whole


def warn_of_renamed_folder(document: dict[str, Any], directory: Path, warn: Warn) -> None:
    """Warn if the name of the folder is the id of another episode than its document."""
    from cogcli.episode.layout import is_renamed
    from cogcli.episode.refusals import renamed_folder_error

    episode = document.get("episode")
    id = episode.get("id") if isinstance(episode, dict) else None
    if is_renamed(directory.name, id):
        warn(renamed_folder_error(directory, str(id)))


def first_difference(left: Any, right: Any, place: str = "") -> str | None:
    """The path of the first place where two documents differ, None if they are equal."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in [*left, *(key for key in right if key not in left)]:
            inner = f"{place}.{key}" if place else key
            if key not in left or key not in right:
                return inner
            if found := first_difference(left[key], right[key], inner):
                return found
        return None
    if isinstance(left, list) and isinstance(right, list):
        for number, (a, b) in enumerate(zip(left, right, strict=False)):
            if found := first_difference(a, b, f"{place}.{number}"):
                return found
        return f"{place}.{min(len(left), len(right))}" if len(left) != len(right) else None
    return None if type(left) is type(right) and left == right else place or "."


class VerifiedEpisode(NamedTuple):
    """The findings of `verify`, the level that they prove, and that level in words."""

    findings: list[Finding]
    level: str
    proves: str


def verify_episode(directory: Path, *, key: str | None = None, head: str | None = None) -> VerifiedEpisode:
    """Verify an episode; with `key`, its signature, with `head`, the hash of its last event.

    Raises EnvironmentRefusal where there is no log to open.
    """
    from cogcli.core.gc_pause import paused_collection
    from cogcli.episode.verify.authenticity import LEVELS, Trusted, level_of
    from cogcli.episode.verify.check import verify

    with paused_collection():
        findings = verify(directory, Trusted(key, head))
    level = level_of(findings)
    return VerifiedEpisode(findings, level, LEVELS[level])


class Seal(NamedTuple):
    """The id of a sealed episode, and the hash of its manifest."""

    episode_id: str
    sha256: str


def seal_of(directory: Path) -> Seal | None:
    """The seal of an episode; None without a readable manifest."""
    from hashlib import sha256

    from cogcli.core.files import FileRefused
    from cogcli.core.strict_json import JsonRefused
    from cogcli.episode.blobs import parse as strictly
    from cogcli.episode.layout import MANIFEST
    from cogcli.episode.refusals import open_episode

    try:
        with open_episode(directory) as folder:
            data = folder.read(MANIFEST, limit=_STATE_LIMIT)
        manifest = strictly(data)
    except (CogcliError, FileRefused, JsonRefused):
        return None
    episode_id = manifest.get("episode_id") if isinstance(manifest, dict) else None
    return Seal(episode_id, sha256(data).hexdigest()) if isinstance(episode_id, str) else None


OUTCOMES = ("ok", "error", "vetoed", "aborted", "partial", "pending", "running", "interrupted")


def list_episodes(settings: Settings, wanted: EpisodeFilter, limit: int | None) -> list[EpisodeRow]:
    """The episodes that fit, newest first, at most `limit`."""
    from itertools import islice

    return list(islice(store_of(settings).episode_rows(wanted), limit))


def error_of_unstarted(row: EpisodeRow) -> EnvironmentRefusal | None:
    """The error of an episode whose run was stopped before its first event; None for any other."""
    from cogcli.episode.layout import EVENTS
    from cogcli.episode.refusals import nothing_began_error, open_episode
    from cogcli.episode.removal import is_being_made

    try:
        with open_episode(row.directory) as folder:
            # A log is locked as soon as it is made; the moment before that has nothing that tells.
            return nothing_began_error(folder) if folder.holds(EVENTS) or not is_being_made(row) else None
    except EnvironmentRefusal:
        return None


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def parse_age(settings: Settings, flag: str, age: str | None) -> str | None:
    """The timestamp of this age before now; None without an age. Raises UsageError that names the flag."""
    if age is None:
        return None
    from cogcli.core.system import rfc3339
    from cogcli.report.humanize import seconds_of

    number, unit = age[:-1], age[-1:]
    if not number.isascii() or not number.isdigit() or unit not in _UNITS or len(number) > 6:
        raise UsageError(
            "usage.value", f"`{flag}`: found `{age[:40]}`", expected="an age like 30d, 12h or 45m"
        )
    now = settings.clock.now()
    second = int(seconds_of(now) or 0.0) - int(number) * _UNITS[unit]
    return rfc3339(max(0, second), int(now[20:26]))


def row_of(row: EpisodeRow, shown: Callable[[str], str]) -> dict[str, Any]:
    """The object of an episode in `ls --json`."""
    return {
        "episode_id": row.id,
        "status": row.status,
        "skill": row.skill,
        "started_at": row.started_at,
        "duration_ms": row.duration_ms,
        "trace_id": row.trace_id,
        "run_id": row.run_id,
        "tags": row.tags,
        "sealed": row.sealed,
        "task": row.task,
        "dir": shown(str(row.directory)),
    }


def file_marks(directory: Path) -> list[FileStatus]:
    """The marks of the files of an episode beside `state.json`. Raises EnvironmentRefusal `episode.unreadable`."""
    from cogcli.episode.named_files import file_statuses
    from cogcli.episode.refusals import open_episode

    with open_episode(directory) as folder:
        return list(file_statuses(folder))
