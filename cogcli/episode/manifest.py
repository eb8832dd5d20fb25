"""`manifest.json`: the files of a finished episode (docs/reference/episode.md#shared-format).

A manifest of ours seals the episode. Rules for the manifest of any tool:

1. `files[]` holds `{name, sha256, size_bytes, kind}`. A hash is hex in either case, plain or after `sha256:`. Hash and
   size are optional; if present, they must match. An entry for the manifest itself is ignored, since no file can hold
   its own hash.
2. A name is a plain relative path. A name that leads out of the episode is a problem; its file is never opened.
3. A different size is found without reading the file.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from hashlib import sha256
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from cogcli.base.canonical import digest
from cogcli.base.errors import CogcliError
from cogcli.base.files import UnreadableFile
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.strict_json import InvalidJson
from cogcli.declarations.envelope import from_json
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.episode.blobs import parse
from cogcli.episode.folder import TEMPORARY, Folder
from cogcli.episode.layout import (
    BALLAST,
    BLOBS,
    CHECKPOINT,
    EVENTS,
    LEARN,
    MANIFEST,
    SUMMARY,
    WAYPOINT,
    kind_of,
)
from cogcli.episode.log_lines import Lines, first_line, first_link, parse_line
from cogcli.episode.refusals import open_episode

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA: Final = "manifest/1"
_HASH: Final = r"(?ai:(?:sha256:)?([0-9a-f]{64}))"  # compiled with the first file that is named: no run needs it
_UNPRINTABLE: Final = r"[\x00-\x1f\x7f\\]"
_LONGEST: Final = 1024
_LIMIT: Final = 64 * 1024 * 1024
_SHOWN: Final = (EVENTS, LEARN, SUMMARY, MANIFEST)


def build_manifest(
    *,
    episode_id: str,
    created_at: str,
    files: list[Json],
    chain: Json,
    pins: Json,
    unsigned: Sequence[Sequence[int]] = (),
) -> Json:
    """Return the manifest of an episode. `created_at` is the last event's timestamp; `unsigned` are the ranges of
    events without the vouching of the signature.
    """
    return {
        "schema_version": SCHEMA,
        "episode_id": episode_id,
        "created_at": created_at,
        "files": files,
        "chain": chain,
        "pins": pins,
        **({"unsigned": [list(each) for each in unsigned]} if unsigned else {}),
        "signature": None,
    }


class StoredManifest(Record):
    """The members of the manifest of any tool. Those of type `object` are unchecked."""

    schema_version: str | None = None
    episode_id: object = None
    files: object = None
    chain: object = None
    unsigned: object = []
    signature: object = None


def unsigned_ranges(manifest: Json) -> list[list[int]] | None:
    """Return the `unsigned` ranges of events of a manifest, or None if the member is malformed."""
    ranges = read_record(StoredManifest, manifest).unsigned
    if type(ranges) is not list:
        return None
    sound = all(
        type(each) is list and len(each) == 2 and all(type(end) is int for end in each)
        for each in ranges
    )
    return ranges if sound else None


def with_signature(expected: Json, manifest: Json) -> Json:
    """Return a derived manifest with the members that only its signer knows, as the stored manifest has them."""
    unsigned = unsigned_ranges(manifest)
    derived = {name: value for name, value in expected.items() if name != "signature"}
    if unsigned:
        derived["unsigned"] = unsigned
    return {**derived, "signature": manifest["signature"]}


def entry(name: str, digest: str, size: int) -> Json:
    """Return the manifest entry of one file. `digest` is plain hex, as `sha256sum` prints it."""
    return {"name": name, "sha256": digest, "size_bytes": size, "kind": kind_of(name)}


def list_files(folder: Folder) -> list[Json]:
    """Return the manifest entries of all files except the manifest, by name. Raise UnreadableFile."""
    entries = [
        entry(name, *measure(folder, name)) for name in _regular_files(folder) if name != MANIFEST
    ]
    try:
        kept = folder.sub(BLOBS)
    except FileNotFoundError:
        return entries
    except OSError as error:
        # A manifest without the unreadable blobs would seal an episode that never verifies.
        why = f"cannot be read: {error.strerror}"
        raise UnreadableFile(folder.place_of(BLOBS), "unreadable", why) from error
    with kept:
        entries += [entry(f"{BLOBS}/{name}", *measure(kept, name)) for name in _regular_files(kept)]
    return sorted(entries, key=itemgetter("name"))


def _regular_files(folder: Folder) -> list[str]:
    return [
        name
        for name, found in folder.entries().items()
        if stat.S_ISREG(found.st_mode)
        and not name.startswith(TEMPORARY)
        and name not in (BALLAST, CHECKPOINT, WAYPOINT)
    ]


def measure(folder: Folder, name: str) -> tuple[str, int]:
    """Return hash and size of a file. Raise UnreadableFile."""
    content, size = sha256(), 0
    for chunk in folder.chunks(name):
        content.update(chunk)
        size += len(chunk)
    return content.hexdigest(), size


def read_chain(folder: Folder, episode_id: str) -> Json:
    """Return the number of lines in the log, and the hash of the last. Raise UnreadableFile."""
    count, last = 0, None
    for count, last in Lines(folder.chunks(EVENTS)):  # noqa: B007
        pass
    return {"events": count, "head": first_link(episode_id) if last is None else digest(last)}


# -- the files that a manifest of any tool names ----------------------------------------------------------------------


class NamedFile(NamedTuple):
    """One file in a manifest: its hash in plain hex or empty, and its size in bytes or None."""

    name: str
    sha256: str
    size: int | None


class NamedEpisode(Record):
    """The member of a manifest or an event that contains the id of its episode."""

    episode_id: str | None = None


class _ListedFile(Record):
    """An entry of the list. Hash and size are unchecked."""

    name: str | None = None
    sha256: object = None
    size_bytes: object = None


class NamedFiles(NamedTuple):
    """The files that a manifest names, by name, and the problems of its list."""

    files: dict[str, NamedFile]
    problems: list[str]


def manifest_files(manifest: object) -> NamedFiles:
    """Read the list of files of a manifest."""
    listed = read_record(StoredManifest, manifest).files
    if type(listed) is not list:
        return NamedFiles({}, ["lists no files"])
    files: dict[str, NamedFile] = {}
    problems = []
    for item in listed:
        file = _named_file(item)
        if isinstance(file, str):
            problems.append(file)
        elif file.name in files:
            problems.append(f"lists `{file.name:.80}` twice")
        elif file.name != MANIFEST:
            files[file.name] = file
    return NamedFiles(files, problems)


def _named_file(item: object) -> NamedFile | str:
    """Return a file of the list, or its problem."""
    entry = read_record(_ListedFile, item)
    name, text, size = entry.name, entry.sha256, entry.size_bytes
    if name is None:
        return "lists something that is not a file of an episode"
    if not is_inside(name):
        return f"names {name!r:.80}, which is not a file of the episode"
    match = re.fullmatch(_HASH, text) if type(text) is str else None
    if text is not None and match is None:
        return f"`{name:.80}` has sha256 {text!r:.80}, which is none"
    if size is not None and (type(size) is not int or size < 0):
        return f"`{name:.80}` has size_bytes {size!r:.40}, which is none"
    return NamedFile(name, match[1].lower() if match else "", size)


def is_inside(name: str) -> bool:
    """Return whether a name is a plain relative path, so that it cannot leave the directory."""
    return (
        len(name) <= _LONGEST
        and not re.search(_UNPRINTABLE, name)
        and all(part not in ("", ".", "..") for part in name.split("/"))
    )


def describe_change(folder: Folder, file: NamedFile) -> str:
    """Describe how a file differs from its entry in the manifest. Empty if it does not. Raise UnreadableFile.

    `file.name` must be inside the episode (`is_inside`). No link in its path is followed.
    """
    *above, name = file.name.split("/")
    with ExitStack() as opened:
        for part in above:
            try:
                folder = opened.enter_context(folder.sub(part))
            except FileNotFoundError as error:
                raise UnreadableFile(folder.place_of(part), "missing", "does not exist") from error
            except OSError as error:
                why = f"cannot be opened: {error.strerror}"
                raise UnreadableFile(folder.place_of(part), "unreadable", why) from error
        if file.size is not None and (size := folder.size(name)) != file.size:
            return f"has {size:,} bytes, the manifest says {file.size:,}"
        if file.sha256 and (found := measure(folder, name)[0]) != file.sha256:
            return f"is not the file that the manifest names: its sha256 is {found}"
    return ""


def read_seal(directory: Path) -> tuple[str, str] | None:
    """Return the id of a sealed episode and the hash of its manifest, or None without a readable manifest."""
    try:
        with open_episode(directory) as folder:
            data = folder.read(MANIFEST, limit=1 << 30)
        episode_id = read_record(NamedEpisode, parse(data)).episode_id
    except (CogcliError, UnreadableFile, InvalidJson):
        return None
    return None if episode_id is None else (episode_id, sha256(data).hexdigest())


# -- status ------------------------------------------------------------------------------------------------------------


class FileStatus(NamedTuple):
    """One file: its number of lines (0 for documents), and whether it matches the manifest."""

    name: str
    lines: int
    good: bool


def file_statuses(folder: Folder) -> Iterator[FileStatus]:
    """Yield the statuses of log, learn, summary and manifest, if they exist or should, and of other files that
    differ from the manifest.

    A file that no manifest names is ignored; `verify` checks more.
    """
    listed = _named_by_manifest(folder)
    for name in _SHOWN:
        good = name != MANIFEST or not listed.problems
        file = listed.files.get(name) or NamedFile(name, "", None)
        try:
            yield FileStatus(
                name, _count_lines(folder, name), good and not describe_change(folder, file)
            )
        except UnreadableFile as error:
            if error.reason != "missing" or name in listed.files:
                yield FileStatus(name, 0, False)
    for name, file in listed.files.items():
        if name not in _SHOWN and _differs_from_entry(folder, file):
            yield FileStatus(name, 0, False)


def _count_lines(folder: Folder, name: str) -> int:
    """Return the number of lines of a file, 0 for a document. Raise UnreadableFile if it does not exist."""
    folder.size(name)
    chunks = folder.chunks(name) if name.endswith(".jsonl") else ()
    return sum(chunk.count(b"\n") for chunk in chunks)


def _differs_from_entry(folder: Folder, file: NamedFile) -> bool:
    """Return whether a file differs from its entry in the manifest, or cannot be read."""
    try:
        return bool(describe_change(folder, file))
    except UnreadableFile:
        return True


def _named_by_manifest(folder: Folder) -> NamedFiles:
    """Return the files that the manifest names, or none without a manifest."""
    try:
        manifest: object = parse(folder.read(MANIFEST, limit=_LIMIT))
    except UnreadableFile:
        return NamedFiles({}, [])
    except InvalidJson as error:
        return NamedFiles({}, [error.message])
    listed = manifest_files(manifest)
    named, own = read_record(StoredManifest, manifest).episode_id, None
    with suppress(UnreadableFile, InvalidJson):  # an unreadable log names no episode
        own = from_json(parse_line(first_line(folder))).episode_id or None
    if None not in (named, own) and named != own:
        listed.problems.append("is the manifest of another episode")
    return listed
