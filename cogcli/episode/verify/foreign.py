"""What can be said of an episode whose log is another tool's: its manifest is compared with its files, and only the
shared format's fields are held to something.

1. Every file that the manifest names is there, with the size and the hash that it gives. What it does not name is told
   as a warning: other tools may keep more files. Without a manifest nothing vouches for any of them, which is said.
2. Files are plain files, also in folders. A link, a pipe, a file with a second name, a name that leads elsewhere: an
   error, and nothing is opened.
3. `state.json` has the fields of the shared format, is of the episode that the log names, and repeats the
   last evidence of the log.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from typing import Any, Final

from cogcli.core.files import FileRefused
from cogcli.core.jsonvalue import equal
from cogcli.core.strict_json import JsonRefused
from cogcli.episode.blobs import MAX_BLOB, parse
from cogcli.episode.findings import Finding
from cogcli.episode.folder import Folder
from cogcli.episode.layout import BLOBS, EVENTS, MANIFEST, STATE, is_blob_name
from cogcli.episode.log_reader import Lines, is_unchained, parse_line
from cogcli.episode.manifest import SCHEMA
from cogcli.episode.named_files import NamedFile, is_inside, manifest_files, unhashed_names, unlike
from cogcli.episode.vocabulary import OUTCOMES
from cogcli.events.envelope import Event

_LIMIT: Final = 1 << 28
_REQUIRED: Final = ("version", "state_schema_version", "episode", "goal", "plan", "outcomes")
_DEEPEST: Final = 16
_TOLD: Final = 5


def is_foreign(folder: Folder) -> bool:
    """Whether an episode is another tool's: its first line says so, or where that is unreadable its manifest.

    Raises FileRefused where there is no log.
    """
    try:
        first = parse_line(next((line for _, line in Lines(folder.chunks(EVENTS))), b""))
    except JsonRefused:
        pass
    else:
        return is_unchained(first)
    schema = _object(folder, MANIFEST).get("schema_version")
    return type(schema) is str and schema != SCHEMA


class ForeignFiles:
    """What is in the directory of another tool's episode: regular files by path, and what is wrong with the others."""

    def __init__(self, folder: Folder) -> None:
        self.files: dict[str, int] = {}
        """Size by name."""
        self.findings: list[Finding] = []
        self._refused: set[str] = set()
        self._look(folder, "", 1)

    def _look(self, folder: Folder, above: str, depth: int) -> None:
        for name, found in folder.entries().items():
            shown = f"{above}{name}"
            if not stat.S_ISDIR(found.st_mode):
                self._take(shown, found)
            elif depth == _DEEPEST:
                self._refuse("file.kind", shown, "its folders are nested too deeply")
            else:
                self._look_into(folder, name, shown, depth)

    def _look_into(self, folder: Folder, name: str, shown: str, depth: int) -> None:
        try:
            inner = folder.sub(name)
        except OSError as error:
            self._refuse("file.unreadable", shown, f"cannot be opened: {error.strerror}")
            return
        with inner:
            self._look(inner, f"{shown}/", depth + 1)

    def _take(self, name: str, found: Any) -> None:
        if not stat.S_ISREG(found.st_mode):
            kind = "a symbolic link" if stat.S_ISLNK(found.st_mode) else "no regular file"
            self._refuse("file.kind", name, f"is {kind}")
        elif found.st_nlink > 1:
            message = f"has {found.st_nlink} names: it can be changed under another one"
            self._refuse("file.hard-link", name, message)
        else:
            self.files[name] = found.st_size

    def _refuse(self, code: str, name: str, message: str) -> None:
        self._refused.add(name)
        self.findings.append(Finding(code, "error", name[:200], 0, message))

    def is_told(self, name: str) -> bool:
        """Whether there is a finding already that says why this name is no file, or that what it lies in is none."""
        return any(name == other or name.startswith(f"{other}/") for other in self._refused)

    def blobs(self) -> Iterator[str]:
        """The digests of the blobs there."""
        for name in self.files:
            folder, _, blob = name.rpartition("/")
            if folder == BLOBS and is_blob_name(blob):
                yield f"sha256:{blob}"


def foreign_findings(
    folder: Folder, inventory: ForeignFiles, episode_id: Any, evidence: Event | None
) -> Iterator[Finding]:
    """The manifest against the files, then the shared format's promises about `state.json`."""
    yield Finding("chain.unchained", "info", EVENTS, 1, "another tool's log: its lines are not chained")
    yield from _blobs(folder, inventory)
    if MANIFEST in inventory.files:
        yield from _manifest(folder, inventory, episode_id)
    else:
        message = "another tool's episode without a manifest: nothing vouches for its files"
        yield Finding("episode.unsealed", "info", MANIFEST, 0, message)
    if STATE in inventory.files:
        yield from _state(folder, inventory, episode_id, evidence)


def _blobs(folder: Folder, inventory: ForeignFiles) -> Iterator[Finding]:
    for digest in inventory.blobs():
        name = f"{BLOBS}/{digest.removeprefix('sha256:')}"
        if inventory.files[name] <= MAX_BLOB and unlike(folder, NamedFile(name, digest[7:], None)):
            yield _error("blob.altered", name, 0, "its content is not what its name says")


# -- the manifest ------------------------------------------------------------------------------------------------------


def _manifest(folder: Folder, inventory: ForeignFiles, episode_id: Any) -> Iterator[Finding]:
    try:
        manifest = parse(folder.read(MANIFEST, limit=_LIMIT))
    except (FileRefused, JsonRefused) as error:
        yield _error("manifest.syntax", MANIFEST, getattr(error, "line", 0) or 1, error.message)
        return
    if type(manifest) is not dict:
        yield _error("manifest.syntax", MANIFEST, 1, "is no object")
        return
    if manifest.get("schema_version") == SCHEMA:
        # Whoever takes the chain out of a log of ours gets no other tool's episode.
        yield _error("manifest.differs", MANIFEST, 1, "is one of ours, and the log has lost its chain")
    other = manifest.get("episode_id")
    if other is not None and other != episode_id:
        yield _error("episode.other", MANIFEST, 1, f"it is the manifest of {other!r:.80}")
    listed, problems = manifest_files(manifest)
    for problem in problems:
        yield _error("manifest.files", MANIFEST, 1, problem)
    yield from _compared(folder, inventory, listed)
    bare = [name for name in unhashed_names(listed) if name in inventory.files]
    if EVENTS not in listed:
        bare.insert(0, EVENTS)
    if bare:
        names = ", ".join(f"`{name:.60}`" for name in bare[:_TOLD])
        more = f" and {len(bare) - _TOLD} more" if len(bare) > _TOLD else ""
        message = f"gives no hash of {names}{more}: nothing vouches for what they hold"
        yield Finding("manifest.unhashed", "info", MANIFEST, 1, message)


def _compared(folder: Folder, inventory: ForeignFiles, listed: dict[str, NamedFile]) -> Iterator[Finding]:
    for name, file in sorted(listed.items()):
        if name not in inventory.files:
            if not inventory.is_told(name):
                yield _error("file.missing", name, 0, "the manifest names it")
            continue
        try:
            why = unlike(folder, file)
        except FileRefused as error:
            yield _error("file.unreadable", name, 0, error.message)
            continue
        if why:
            yield _error("file.altered", name, 0, why)
    for name in sorted(inventory.files.keys() - listed.keys() - {MANIFEST}):
        message = "the manifest does not name it: nothing vouches for it"
        yield Finding("file.extra", "warning", name[:200], 0, message)


# -- state.json --------------------------------------------------------------------------------------------------------


def _state(
    folder: Folder, inventory: ForeignFiles, episode_id: Any, evidence: Event | None
) -> Iterator[Finding]:
    try:
        state = parse(folder.read(STATE, limit=_LIMIT))
    except (FileRefused, JsonRefused) as error:
        yield _error("state.syntax", STATE, getattr(error, "line", 0) or 1, error.message)
        return
    if type(state) is not dict:
        yield _error("state.syntax", STATE, 1, "is no object")
        return
    missing = [key for key in _REQUIRED if key not in state]
    if missing:
        yield _error("state.fields", STATE, 1, f"lacks {', '.join(missing)}")
    episode = state.get("episode")
    other = episode.get("id") if type(episode) is dict else None
    if other is not None and other != episode_id:
        yield _error("episode.other", STATE, 1, f"it is the state of {other!r:.80}")
    yield from _outcome(state.get("outcomes"), evidence)
    links = state.get("links")
    for key, value in links.items() if type(links) is dict else ():
        if type(value) is not str or "/" in value or not is_inside(value):
            message = f"link `{key:.40}` is no file of the episode: {value!r:.80}"
            yield _error("link.unsafe", STATE, 1, message)
        elif value not in inventory.files and not inventory.is_told(value):
            yield Finding("file.missing", "warning", value[:200], 0, "state.json links to it")


def _outcome(outcomes: Any, evidence: Event | None) -> Iterator[Finding]:
    if type(outcomes) is not dict or outcomes.get("status") not in OUTCOMES:
        yield _error("state.fields", STATE, 1, "its outcome is none")
        return
    payload = evidence.payload if evidence and type(evidence.payload) is dict else {}
    told = payload.get("outcomes")
    if type(told) is dict and not equal(told, outcomes):
        message = "its outcomes are not those of the last run.state_projection"
        yield _error("state.evidence", STATE, 1, message)


def _object(folder: Folder, name: str) -> dict[str, Any]:
    try:
        value = parse(folder.read(name, limit=_LIMIT))
    except (FileRefused, JsonRefused):
        return {}
    return value if type(value) is dict else {}


def _error(code: str, name: str, line: int, message: str) -> Finding:
    return Finding(code, "error", name[:200], line, message)
