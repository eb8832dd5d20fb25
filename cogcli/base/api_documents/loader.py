"""Reads API documents: the files that `spec_ref` names (docs/reference/service.md#documents).

1. A document is a regular file inside the layer of its service, JSON or YAML, at most
64 MiB, and is read strictly, but for numbers: an integer beyond 2^53 is the nearest float.

2. Each `$ref` resolves inside the document, or in files next to it. Nothing is ever fetched.

3. A process reads a file again only after the file has changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, Protocol, TypeVar

from cogcli.base.api_documents.references import (
    MAX_BYTES,
    check_references,
    find_document_files,
    merge_files,
)
from cogcli.base.canonical import digest
from cogcli.base.files import UnreadableFile, read_regular
from cogcli.base.json_pointer import (
    DocumentFault,
)
from cogcli.base.jsonvalue import Json, kind_of, paused_collection
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import did_you_mean
from cogcli.base.strict_json import InvalidJson, loads
from cogcli.base.yaml import reader
from cogcli.base.yaml.limits import DOCUMENT
from cogcli.base.yaml.pointer_position import find_pointer

MAX_DEPTH: Final = 100
MAX_NODES: Final = 5_000_000


class DescribedService(Protocol):
    """The parts of a service that determine its document."""

    @property
    def settings(self) -> Json: ...
    @property
    def root(self) -> str: ...
    @property
    def file(self) -> str: ...


def with_position(fault: DocumentFault, path: str) -> DocumentFault:
    """Return a copy of the fault with the path of its document, and with line and column.

    The position is where its pointer leads, or else its nearest existing ancestor.
    """
    place = (fault.line, fault.column)
    if fault.pointer is not None and not fault.line:
        with suppress(UnreadableFile, UnicodeDecodeError):
            text = read_regular(path, limit=MAX_BYTES).decode()
            place = find_pointer(text.removeprefix("\ufeff"), fault.pointer)
    return DocumentFault(
        fault.code, fault.message, fault.hint, place=place, file=fault.file or path
    )


_FileState = tuple[str, int, int, int]
"""A path with its inode, size and change time."""


class Identity(NamedTuple):
    """The state of a document: path, inode, size and change time, for it and for the files that it references below
    `root`.
    """

    path: str
    root: str
    device: int
    inode: int
    size: int
    changed: int
    others: tuple[_FileState, ...] = ()


def identity_of(service: DescribedService) -> Identity | None:
    """Return the current identity of a service's document; None without `spec_ref`.

    Raise DocumentFault `wire.document` for a file that is missing, not regular, or outside its
    layer.
    """
    filename = _document_name(service)
    if filename is None:
        return None
    path = _find_document(service, filename)
    try:
        found = os.stat(path)
    except OSError as error:
        text = f"document {filename} cannot be read: {error.strerror}"
        raise DocumentFault("wire.document", text) from error
    root = os.path.realpath(service.root)
    own = Identity(path, root, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
    return own._replace(others=tuple(map(_state_of, _other_files(own))))


def _state_of(path: str) -> _FileState:
    """Return the state of a file; zeros if it is missing."""
    try:
        found = os.stat(path)
    except OSError:
        return path, 0, 0, 0
    return path, found.st_ino, found.st_size, found.st_mtime_ns


@lru_cache(maxsize=32)
def _other_files(identity: Identity) -> list[str]:
    """Return the files that a document refers to."""
    return find_document_files(identity.path, identity.root)


def _document_name(service: DescribedService) -> str | None:
    name: str | None = service.settings.get("spec_ref")
    return name


def _find_document(service: DescribedService, filename: str) -> str:
    """Return the path of a document: next to the service's file, else below the root of its layer.

    No link may lead out of that root.
    """
    root = os.path.realpath(service.root)
    paths = _candidate_paths(service, filename, root)
    for path in paths:
        if _is_inside(path, root) and os.path.exists(path):
            return path
    outside = [path for path in paths if not _is_inside(path, root)]
    if len(outside) == len(paths) or any(map(os.path.exists, outside)):
        hint = "copy it into the project, and name it relative to the service file"
        raise DocumentFault(
            "wire.document", f"document {filename} is outside the layer of the service", hint
        )
    hint = _similar_names_hint(filename, {os.path.dirname(path) for path in paths})
    hint = (
        hint or "name a file relative to the service file, or to the directory that holds services/"
    )
    raise DocumentFault("wire.document", f"document {filename} does not exist", hint)


def _candidate_paths(service: DescribedService, filename: str, root: str) -> list[str]:
    beside = os.path.realpath(os.path.dirname(service.file)) if service.file else root
    folders = [folder for folder in (beside, root) if _is_inside(folder, root)]
    return [os.path.realpath(os.path.join(folder, filename)) for folder in folders]


def document_digest(service: DescribedService) -> str | None:
    """Return the digest of the bytes of a service's document; None if it has no readable one."""
    try:
        identity = identity_of(service)
        return None if identity is None else _file_digest(identity)
    except DocumentFault:
        return None


@lru_cache(maxsize=32)
def _file_digest(identity: Identity) -> str | None:
    """Return the digest of a file's bytes; None if it cannot be read."""
    try:
        data = read_regular(identity.path, limit=MAX_BYTES)
        return digest(data + b"".join(map(_bytes_of, _other_files(identity._replace(others=())))))
    except UnreadableFile:
        return None


def _bytes_of(path: str) -> bytes:
    try:
        return read_regular(path, limit=MAX_BYTES)
    except UnreadableFile:
        return b""


def document_bytes(identity: Identity) -> bytes:
    """Return the bytes of a document and of the files that it references. Raise UnreadableFile."""
    data = read_regular(identity.path, limit=MAX_BYTES)
    return data + b"".join(map(_bytes_of, (path for path, *_ in identity.others)))


def place_of(service: DescribedService) -> str | None:
    """Return the path of a service's document; if the file is missing, the path to write it to.

    The write path is in an existing folder, else next to the service's file. The result is None
    without `spec_ref`. Raise DocumentFault `wire.document` for a name that leads out of the layer.
    """
    filename = _document_name(service)
    if filename is None:
        return None
    try:
        return _find_document(service, filename)
    except DocumentFault:
        root = os.path.realpath(service.root)
        paths = [
            path for path in _candidate_paths(service, filename, root) if _is_inside(path, root)
        ]
        if not paths or any(map(os.path.lexists, paths)):
            raise
        return next((path for path in paths if os.path.isdir(os.path.dirname(path))), paths[0])


def _similar_names_hint(filename: str, folders: Iterable[str]) -> str:
    """Return a hint that lists documents in these folders whose names resemble the missing one.

    Endings are ignored.
    """
    stems: dict[str, str] = {}
    for folder in folders:
        with suppress(OSError):
            names = (
                name for name in os.listdir(folder) if name.endswith((".json", ".yaml", ".yml"))
            )
            stems.update((name.rpartition(".")[0], name) for name in sorted(names))
    near = did_you_mean(os.path.basename(filename).rpartition(".")[0], stems)
    shown = " or ".join(
        f"`{os.path.join(os.path.dirname(filename), stems[stem])}`" for stem in near
    )
    return f"did you mean {shown}?" if near else ""


def _is_inside(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def read_document(path: str, root: str) -> Json:
    """Return the mapping in a document, merged with the files below `root` that it references, after checking each
    `$ref`. Raise DocumentFault `wire.document`.
    """
    name = os.path.basename(path)
    try:
        data = read_regular(path, limit=MAX_BYTES)
    except UnreadableFile as refused:
        raise DocumentFault("wire.document", f"document {name} {refused.message}") from refused
    return parse_files(data, path, root)[0]


def parse_files(data: bytes, path: str, root: str) -> tuple[Json, list[str]]:
    """Return the mapping in the bytes of a document, merged with the files below `root` that it references, and their
    paths. Raise DocumentFault `wire.document`.
    """
    others = find_document_files(path, root)
    states = tuple(map(_state_of, others))
    return _parse_files(data, os.path.realpath(path), os.path.realpath(root), states)


@lru_cache(maxsize=1)
def _parse_files(
    data: bytes, path: str, root: str, others: tuple[_FileState, ...]
) -> tuple[Json, list[str]]:
    """Return the document in `data`. The last one is kept: a command that binds an operation also
    checks the binding.
    """
    with paused_collection():
        value = _parse_file(data, os.path.basename(path))
        files = merge_files(value, path, root, _parse_file, {file for file, *_ in others})
        check_references(value)
    return value, files


def parse_document(data: bytes, name: str) -> Json:
    """Return the mapping in the bytes of a document after checking each `$ref`.

    The ending of `name` selects JSON or YAML. Raise DocumentFault `wire.document`."""
    value = _parse_file(data, name)
    check_references(value)
    return value


def _parse_file(data: bytes, name: str) -> Json:
    """Return the mapping in the bytes of one file. Raise DocumentFault `wire.document`."""
    is_yaml = name.endswith((".yaml", ".yml"))
    is_json = name.endswith(".json") or (not is_yaml and data.lstrip()[:1] == b"{")
    value = _parse_json(data, name) if is_json else _parse_yaml(data, name)
    if not isinstance(value, dict):
        text = f"document {name}: found {kind_of(value)}, expected a mapping"
        raise DocumentFault("wire.document", text)
    return value


def _parse_json(data: bytes, name: str) -> object:
    try:
        return loads(
            data,
            max_bytes=MAX_BYTES,
            max_depth=MAX_DEPTH,
            max_nodes=MAX_NODES,
            wide_integers=True,
        )
    except InvalidJson as refused:
        text, place = f"document {name}: {refused.message}", (refused.line, refused.column)
        raise DocumentFault("wire.document", text, refused.hint, place=place) from refused


def _parse_yaml(data: bytes, name: str) -> Json:
    parsed = reader.parse(data, file=name, limits=DOCUMENT)
    if parsed.value is None:
        first = parsed.problems[0]
        text, place = f"document {name}: {first.message}", (first.line, first.column)
        raise DocumentFault("wire.document", text, first.hint, place=place)
    return parsed.value


class CachedDocument(NamedTuple):
    """A document that was read, and converted by its parser. It has a fault if either failed."""

    value: Any = None
    fault: DocumentFault | None = None

    def require(self) -> Any:
        """Return the document. Raise a copy of its fault, because an exception keeps the traceback of its raise."""
        if self.fault is not None:
            raise with_position(self.fault, self.fault.file)
        return self.value


@lru_cache(maxsize=32)
def load(identity: Identity) -> CachedDocument:
    """Return the document in a file.

    The result is cached: a process reads each state of a file once.
    """
    try:
        return CachedDocument(read_document(identity.path, identity.root))
    except DocumentFault as fault:
        return CachedDocument(fault=with_position(fault, identity.path))


_D = TypeVar("_D")


def load_described(service: DescribedService, parse: Callable[[Json], _D]) -> _D | None:
    """Return the document of a service, converted by `parse`; None without `spec_ref`. Raise
    DocumentFault `wire.document`."""
    identity = identity_of(service)
    if identity is None:
        return None
    found: _D = _parse_cached(identity, parse).require()
    return found


@lru_cache(maxsize=32)
def _parse_cached(identity: Identity, parse: Callable[[Json], Any]) -> CachedDocument:
    """Return the parsed document, cached per file state and parser."""
    read = load(identity)
    if read.fault is not None:
        return read
    try:
        return CachedDocument(parse(read.value))
    except DocumentFault as fault:
        return CachedDocument(fault=with_position(fault, identity.path))
