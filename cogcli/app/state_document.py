"""The documents of an episode: `state.json`, which is the projection of its events, and the
declarations of its specs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from cogcli.base.files import UnreadableFile
from cogcli.base.jsonpath import look_up
from cogcli.base.jsonvalue import paused_collection
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.output_diff import SAME_TYPES, differences
from cogcli.base.strict_json import InvalidJson
from cogcli.declarations.envelope import Event
from cogcli.declarations.reading import read_record
from cogcli.declarations.run_start import RecordedStart
from cogcli.declarations.value_types import Json
from cogcli.episode.blobs import BlobFolder, parse
from cogcli.episode.large_values import BlobReader
from cogcli.episode.layout import EVENTS, MANIFEST, STATE, is_renamed
from cogcli.episode.log_reader import Warn, iterate_events
from cogcli.episode.refusals import open_episode, renamed_folder_error, unreadable
from cogcli.specs.unchecked import value_at

if TYPE_CHECKING:
    from cogcli.episode.action_log import DocumentText
    from cogcli.episode.manifest import FileStatus
    from cogcli.report.lineage import DeclaredPlaces

_STATE_LIMIT: Final = 1 << 30


def read_stored_state(directory: Path) -> bytes | None:
    """Return the bytes of `state.json`; None if it does not exist. Raise UnusableEnvironment."""
    with open_episode(directory) as folder:
        try:
            return folder.read(STATE, limit=_STATE_LIMIT)
        except UnreadableFile as error:
            if error.reason == "missing":
                return None
            raise unreadable(directory, f"{STATE} {error.message}") from error


def has_file(directory: Path, name: str) -> bool:
    """Return whether an episode has a file with this name. Raise UnusableEnvironment."""
    with open_episode(directory) as folder:
        return folder.holds(name)


def project_state(directory: Path, warn: Warn | None = None) -> DocumentText:
    """Return the projection of the events of an episode, as the text of `state.json`."""
    with paused_collection():
        text: DocumentText = _import_projection().project_text(iterate_events(directory, warn))
        return text


def state_size(directory: Path) -> int:
    """Return the number of bytes of `state.json`; 0 if it does not exist. Raise UnusableEnvironment."""
    with open_episode(directory) as folder:
        return folder.size(STATE) if folder.holds(STATE) else 0


def stored_chunks(directory: Path) -> Iterator[bytes]:
    """Yield the bytes of `state.json`. Raise UnusableEnvironment."""
    with open_episode(directory) as folder:
        try:
            yield from folder.chunks(STATE)
        except UnreadableFile as error:
            raise unreadable(directory, f"{STATE} {error.message}") from error


class StoredState(NamedTuple):
    """The text of the `state.json` of an episode, read when it is needed."""

    directory: Path

    @property
    def size(self) -> int:
        """The number of bytes."""
        return state_size(self.directory)

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes, in order. Raise UnusableEnvironment."""
        return stored_chunks(self.directory)

    def to_bytes(self) -> bytes:
        """Return all bytes. Raise UnusableEnvironment."""
        return read_stored_state(self.directory) or b""


def count_snapshot_events(directory: Path, snapshot: bytes) -> int:
    """Return the number of events in `state.json`, if it is the last recorded snapshot of an
    unsealed run; otherwise 0."""
    if has_file(directory, MANIFEST):
        return 0
    event_count, data = _import_projection().snapshot_bytes(iterate_events(directory))
    return event_count if snapshot == data else 0


def _import_projection() -> ModuleType:
    """Return the module of the projection, which is imported only when it is used."""
    from cogcli.episode import projection as project

    return project


def is_foreign(directory: Path) -> bool:
    """Return whether another tool wrote the log of an episode; False without a log."""
    from cogcli.episode.verify.foreign import is_foreign as tells_so

    with open_episode(directory) as folder:
        try:
            return tells_so(folder)
        except UnreadableFile:
            return False


def iterate_shown_events(directory: Path, warn: Warn | None = None) -> Iterator[Event]:
    """Yield the events of the log. Without a log, warn, and yield the events that `state.json` implies."""
    from cogcli.episode.foreign_log import events_of_state

    with open_episode(directory) as folder:
        names = folder.entries().keys()
    if EVENTS in names or STATE not in names:
        yield from iterate_events(directory, warn)
        return
    if warn:
        warn(
            unreadable(
                directory, "does not exist: what is shown is what state.json tells", file=EVENTS
            )
        )
    yield from events_of_state(parse_state(read_stored_state(directory) or b"", directory))


def parse_state(data: bytes, directory: Path) -> Json:
    """Parse `state.json` strictly and return the object. Raise UnusableEnvironment
    `episode.unreadable`."""
    try:
        value = parse(data.rstrip(b"\n"))
    except InvalidJson as error:
        raise unreadable(directory, f"state.json: {error.message}") from error
    if not isinstance(value, dict):
        raise unreadable(directory, "state.json is not an object")
    return value


def expand_references(document: Json, directory: Path) -> Json:
    """Return the document with blob references replaced by the values. A reference to a missing
    blob is unchanged."""
    with open_episode(directory) as folder, closing(BlobFolder(folder)) as kept:
        whole: Json = BlobReader(kept.get).expand_document(document)
    return whole


def find_value(document: Json, segments: list[str], directory: Path) -> Any:
    """Return the value at a path of a document, with references to blobs followed. Blobs that the
    path does not lead to are not read. Raise PathNotFound."""
    with open_episode(directory) as folder, closing(BlobFolder(folder)) as kept:
        reader = BlobReader(kept.get)

        def follow(value: object) -> Any:
            return (
                reader.expand_document(value) if type(value) is dict and "$blob" in value else value
            )

        return reader.expand_document(look_up(document, segments, follow))


def warn_of_renamed_folder(document: Json, directory: Path, warn: Warn) -> None:
    """Pass a warning to `warn` if the name of the folder is not the episode id in the document."""
    id = value_at(document, "episode", "id")
    if is_renamed(directory.name, id):
        warn(renamed_folder_error(directory, str(id)))


def first_difference(a: object, b: object) -> str | None:
    """Return the dotted path of the first difference, `.` for the whole document; None if both are
    equal.

    Values of different types always differ."""
    found = differences(a, b, SAME_TYPES)
    return (found[0].path or ".") if found else None


def read_declared_places(directory: Path | None, events: Iterable[Event]) -> DeclaredPlaces:
    """Return the places that the pinned skill of an episode declares. Empty if its specs are not
    stored.
    """
    from cogcli.report.lineage import NOTHING, declared_places

    started = next(iter(events), None)
    start = read_record(RecordedStart, started.payload if started else None)
    if directory is None or not start.skill.id or not start.pins.specs_blob:
        return NOTHING
    with open_episode(directory) as folder, closing(BlobFolder(folder)) as kept:
        data = kept.get(start.pins.specs_blob)
    try:
        return declared_places(parse(data) if data else None, start.skill.id)
    except InvalidJson:
        return NOTHING


def file_marks(directory: Path) -> list[FileStatus]:
    """Return the status of each file of an episode. Raise UnusableEnvironment
    `episode.unreadable`."""
    from cogcli.episode.manifest import file_statuses

    with open_episode(directory) as folder:
        return list(file_statuses(folder))
