"""The check of another tool's episode: its manifest against its files, and the fields of the shared format.

1. Every file that the manifest names exists, with the size and the hash in the manifest. Any other file is a warning,
   since other tools may keep more files. Without a manifest nothing vouches for any file, which is information.
2. Files are plain files, also in folders. A link, a pipe, a file with a second name or a name that leads elsewhere is
   an error, and is not opened.
3. `state.json` has the fields of the shared format, is of the episode that the log names, and repeats the
   last evidence of the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from cogcli.base.files import UnreadableFile
from cogcli.base.jsonvalue import NOTHING, equal
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.strict_json import InvalidJson
from cogcli.declarations.envelope import Event
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.episode.blobs import MAX_BLOB
from cogcli.episode.document_bytes import read_document, read_object
from cogcli.episode.folder import Folder
from cogcli.episode.layout import (
    BLOBS,
    EVENTS,
    MANIFEST,
    OUTCOMES,
    STATE,
    Finding,
    describe_content,
    error_finding,
    kind_of,
)
from cogcli.episode.log_lines import first_line, is_unchained, parse_line
from cogcli.episode.manifest import (
    SCHEMA,
    NamedFile,
    StoredManifest,
    describe_change,
    is_inside,
    manifest_files,
)
from cogcli.episode.verify.files import ForeignFiles

_REQUIRED: Final = ("version", "state_schema_version", "episode", "goal", "plan", "outcomes")
_NAMED: Final = 5


def is_foreign(folder: Folder) -> bool:
    """Return whether another tool wrote an episode, by its first line, or by its manifest if that line is unreadable.
    Raise UnreadableFile without a log.
    """
    with suppress(InvalidJson):
        return is_unchained(parse_line(first_line(folder)))
    schema = read_record(StoredManifest, read_object(folder, MANIFEST)).schema_version
    return schema is not None and schema != SCHEMA


def foreign_findings(
    folder: Folder, inventory: ForeignFiles, episode_id: object, evidence: Event | None
) -> Iterator[Finding]:
    """Yield the findings about the manifest and its files, then about `state.json`."""
    yield Finding(
        "chain.unchained", "info", EVENTS, 1, "another tool's log: its lines are not chained"
    )
    for digest in inventory.blobs():
        name = f"{BLOBS}/{digest[7:]}"
        if inventory.files[name] <= MAX_BLOB and describe_change(
            folder, NamedFile(name, digest[7:], None)
        ):
            yield error_finding("blob.altered", name, 0, "its content is not what its name says")
    if MANIFEST in inventory.files:
        yield from _check_manifest(folder, inventory, episode_id)
    else:
        message = "another tool's episode without a manifest: nothing vouches for its files"
        yield Finding("episode.unsealed", "info", MANIFEST, 0, message)
    if STATE in inventory.files:
        yield from _check_state(folder, inventory, episode_id, evidence)


class _ReadDocument(NamedTuple):
    """The object of a document. It is empty if the document is not an object, as `fault` reports."""

    value: Json
    fault: Finding | None = None


def _read_document(folder: Folder, name: str) -> _ReadDocument:
    code = f"{kind_of(name)}.syntax"
    try:
        value = read_document(folder, name)
    except (UnreadableFile, InvalidJson) as error:
        line = getattr(error, "line", 0) or 1
        return _ReadDocument({}, error_finding(code, name, line, error.message))
    if type(value) is not dict:
        return _ReadDocument({}, error_finding(code, name, 1, "is not an object"))
    return _ReadDocument(value)


# -- the manifest ------------------------------------------------------------------------------------------------------


def _check_manifest(
    folder: Folder, inventory: ForeignFiles, episode_id: object
) -> Iterator[Finding]:
    manifest, fault = _read_document(folder, MANIFEST)
    if fault is not None:
        yield fault
        return
    stored = read_record(StoredManifest, manifest)
    if stored.schema_version == SCHEMA:
        # A log of ours without its chain does not become another tool's episode.
        yield error_finding(
            "manifest.differs", MANIFEST, 1, "is one of ours, and the log has lost its chain"
        )
    other = stored.episode_id
    if other is not None and other != episode_id:
        yield error_finding("episode.other", MANIFEST, 1, f"it is the manifest of {other!r:.80}")
    listed, problems = manifest_files(manifest)
    for problem in problems:
        yield error_finding("manifest.files", MANIFEST, 1, problem)
    yield from _compare_files(folder, inventory, listed)
    yield from _check_missing_hashes(inventory, listed)


def _check_missing_hashes(
    inventory: ForeignFiles, listed: dict[str, NamedFile]
) -> Iterator[Finding]:
    """Yield a finding for each file whose hash the manifest lacks."""
    bare = [name for name, file in listed.items() if not file.sha256 and name in inventory.files]
    if EVENTS not in listed:
        bare.insert(0, EVENTS)
    if bare:
        names = ", ".join(f"`{name:.60}`" for name in bare[:_NAMED])
        more = f" and {len(bare) - _NAMED} more" if len(bare) > _NAMED else ""
        message = f"gives no hash of {names}{more}: nothing vouches for what they hold"
        yield Finding("manifest.unhashed", "info", MANIFEST, 1, message)


def _compare_files(
    folder: Folder, inventory: ForeignFiles, listed: dict[str, NamedFile]
) -> Iterator[Finding]:
    for name, file in sorted(listed.items()):
        if name not in inventory.files:
            if not inventory.is_refused(name):
                yield error_finding("file.missing", name, 0, "the manifest names it")
            continue
        try:
            why = describe_change(folder, file)
        except UnreadableFile as error:
            yield error_finding("file.unreadable", name, 0, error.message)
            continue
        if why:
            expected = describe_content(file.sha256, file.size)
            found = describe_content("", inventory.files[name])
            yield error_finding("file.altered", name, 0, why, expected=expected, found=found)
    for name in sorted(inventory.files.keys() - listed.keys() - {MANIFEST}):
        message = "the manifest does not name it: nothing vouches for it"
        yield Finding("file.extra", "warning", name[:200], 0, message)


# -- state.json --------------------------------------------------------------------------------------------------------


class _ForeignEpisode(Record):
    """The id of a state's episode, unchecked."""

    id: object = None


class _ForeignOutcome(Record):
    """The status of a state's outcomes, if it is a text."""

    status: str = ""


class _ForeignState(Record):
    """The members of another tool's state, or of its evidence in the log, that are compared."""

    episode: _ForeignEpisode
    outcomes: Json | None = None
    links: Json = NOTHING


def _check_state(
    folder: Folder, inventory: ForeignFiles, episode_id: object, evidence: Event | None
) -> Iterator[Finding]:
    state, fault = _read_document(folder, STATE)
    if fault is not None:
        yield fault
        return
    missing = [key for key in _REQUIRED if key not in state]
    if missing:
        yield error_finding("state.fields", STATE, 1, f"lacks {', '.join(missing)}")
    named = read_record(_ForeignState, state)
    other = named.episode.id
    if other is not None and other != episode_id:
        yield error_finding("episode.other", STATE, 1, f"it is the state of {other!r:.80}")
    yield from _check_outcome(named.outcomes, evidence)
    yield from _check_links(named.links, inventory)


def _check_links(links: Json, inventory: ForeignFiles) -> Iterator[Finding]:
    """Yield findings for links that leave the episode, or whose target does not exist."""
    for key, value in links.items():
        if type(value) is not str or "/" in value or not is_inside(value):
            message = f"link `{key:.40}` is not a file of the episode: {value!r:.80}"
            yield error_finding("link.unsafe", STATE, 1, message)
        elif value not in inventory.files and not inventory.is_refused(value):
            yield Finding("file.missing", "warning", value[:200], 0, "state.json links to it")


def _check_outcome(outcomes: Json | None, evidence: Event | None) -> Iterator[Finding]:
    if outcomes is None or read_record(_ForeignOutcome, outcomes).status not in OUTCOMES:
        yield error_finding("state.fields", STATE, 1, "its outcome is none")
        return
    recorded = read_record(_ForeignState, evidence.payload if evidence else None).outcomes
    if recorded is not None and not equal(recorded, outcomes):
        message = "its outcomes are not those of the last run.state_projection"
        yield error_finding("state.evidence", STATE, 1, message)
