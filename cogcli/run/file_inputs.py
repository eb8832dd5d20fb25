"""Inputs of the type `file`: paths become pinned files when a run begins
(docs/reference/spec-files.md#file-inputs).

1. A path that a person typed leads anywhere that this person may read. Any other path, such as a default or a line of a
   batch, stays in the project, with links followed. A client of `serve mcp` names no file.
2. The paths are read here and nowhere else. What a step, a model or a reply gives is never a file of the run, whatever
   its form is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from cogcli.base.credential_names import has_repository_folder
from cogcli.base.errors import RuntimeErrorBase
from cogcli.base.file_roots import is_below
from cogcli.base.files import UnreadableFile
from cogcli.base.jsonvalue import preview
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.pinned_file import PinnedFile, pin_file, read_pinned_file
from cogcli.base.problems import Problem
from cogcli.base.terminal_text import visible
from cogcli.declarations.field_spec import Fields, FieldSpec
from cogcli.declarations.value_types import Json
from cogcli.run.input_origins import CLIENT, DEFAULT, TYPED

if TYPE_CHECKING:
    from cogcli.protocols.pythoncall.readable_files import ReadableFiles

_SHOWN: Final = 200
_UNREAD: Final = PinnedFile("", "", 0, "")


class FileScope(NamedTuple):
    """The folders that may contain the files of inputs. Paths are absolute, with links followed."""

    reads: ReadableFiles
    """The files that a run may read."""
    folders: tuple[str, ...] = ()
    """The folders for input files that no person typed. Relative paths start in the first."""


FindScope = Callable[[], FileScope]
"""Returns the scope of a request. Called only if it has an input of the type `file`."""


class PinnedInputs(NamedTuple):
    """Inputs whose files are pinned, without those that have a problem."""

    values: Json
    files: tuple[PinnedFile, ...]
    problems: dict[str, Problem]
    """By input the first problem of its files."""


class _FileFault(Exception):
    """A file that an input may not name: the problem's code, message and hint."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint


def is_file_field(field: FieldSpec) -> bool:
    """Return whether the values of a field are files, or lists of files."""
    items = field.items
    return field.type == "file" or (items is not None and items.type == "file")


def pin_inputs(
    fields: Fields,
    given: Json,
    origins: Mapping[str, str],
    find_scope: FindScope | None,
    earlier: Mapping[str, PinnedFile] = {},
) -> PinnedInputs:
    """Return inputs in which each path of a file is replaced by the pinned file. Defaults of files are applied.

    `earlier` are the files of an earlier run, by path: they may be given again as they were pinned.
    """
    values, problems = dict(given), dict[str, Problem]()
    files: list[PinnedFile] = []
    for name, field in fields.items():
        if not is_file_field(field):
            continue
        value, origin = given.get(name), origins.get(name, DEFAULT)
        if value is None:
            value, origin = field.default, DEFAULT
        if value is None:
            continue
        scope = find_scope() if find_scope is not None else None
        try:
            values[name] = _pin_value(value, _Pinning(name, origin, scope, earlier, files))
        except _FileFault as fault:
            values.pop(name, None)
            place = f"/inputs/{name}"
            problems[name] = Problem(fault.code, "E", "", 0, 0, place, str(fault), fault.hint)
    return PinnedInputs(values, tuple(dict.fromkeys(files)), problems)


class _Pinning(NamedTuple):
    """One input whose files are pinned."""

    name: str
    origin: str
    scope: FileScope | None
    earlier: Mapping[str, PinnedFile]
    files: list[PinnedFile]


def _pin_value(value: object, pinning: _Pinning) -> object:
    """Return a value with its files pinned; a value of another type unchanged. Raise _FileFault."""
    if isinstance(value, list):
        return [_pin_value(each, pinning) for each in value]
    found = read_pinned_file(value)
    if found is not None and pinning.earlier.get(found.path) == found:
        pinned = _pin_again(found, pinning)
    elif isinstance(value, str):
        pinned = _pin_path(value, pinning)
    else:
        text = f"input `{pinning.name}`: expected the path of a file, found {preview(value)}"
        raise _FileFault("input.type", text)
    pinning.files.append(pinned)
    return pinned.to_payload()


def _pin_path(path: str, pinning: _Pinning) -> PinnedFile:
    try:
        real = _resolve_links(path, pinning)
    except RuntimeErrorBase as refused:
        text = f"input `{pinning.name}`: {refused.message}"
        raise _FileFault("input.file", text, refused.hint) from refused
    return _pin_file(real, os.path.basename(path), path, pinning)


def _pin_again(found: PinnedFile, pinning: _Pinning) -> PinnedFile:
    """Return the file of an earlier run, which must be unchanged."""
    pinned = _pin_file(found.path, found.name, found.path, pinning)
    if pinned != found:
        text = f"input `{pinning.name}`: `{visible(found.path[:_SHOWN])}` has changed since the earlier run"
        hint = f"give it again, if it is meant: -p {pinning.name}=@PATH"
        raise _FileFault("input.file", text, hint)
    return pinned


def _pin_file(real: str, name: str, shown: str, pinning: _Pinning) -> PinnedFile:
    """Return the pinned file. `shown` is its path in messages. Raise _FileFault."""
    try:
        return pin_file(real, name)
    except UnreadableFile as refused:
        code = "input.size" if refused.reason == "too-large" else "input.file"
        text = f"input `{pinning.name}`: `{visible(shown[:_SHOWN])}` {refused.message}"
        raise _FileFault(code, text) from refused


def _resolve_links(path: str, pinning: _Pinning) -> str:
    """Return a path with links followed. Raise _FileFault, or the errors of `ReadableFiles.checked_path`."""
    scope, origin, name = pinning.scope, pinning.origin, pinning.name
    if origin == CLIENT:
        raise _FileFault("input.file", f"input `{name}`: a client names no file of this machine")
    if not path or "\0" in path:
        raise _FileFault("input.file", f"input `{name}`: no file has such a name")
    if scope is None:
        raise _FileFault("input.file", f"input `{name}`: nothing here may name a file")
    if origin == TYPED:
        return scope.reads.with_typed(path).checked_path(path)
    if scope.folders:
        own = os.path.join(scope.folders[0], path)
        real = scope.reads.checked_path(own)
        if any(_is_in(real, folder) for folder in scope.folders):
            return real
    text = f"input `{name}`: `{visible(path[:_SHOWN])}` is not a file of the project"
    raise _FileFault("input.file", text, f"type its path: -p {name}=@PATH")


def _is_in(real: str, folder: str) -> bool:
    if not is_below(real, folder):
        return False
    return not has_repository_folder(os.path.relpath(real, folder).split(os.sep))


def assume_files(fields: Fields, given: Json) -> Json:
    """Return inputs in which each path of a file is replaced by a file that is not read, to check their types."""
    values = dict(given)
    for name, field in fields.items():
        if name in given and is_file_field(field):
            values[name] = _placeholder_value(given[name])
    return values


def _placeholder_value(value: object) -> object:
    if isinstance(value, list):
        return [_placeholder_value(each) for each in value]
    return _UNREAD.to_payload() if isinstance(value, str) else value


def files_in_payload(payloads: object) -> Iterator[PinnedFile]:
    """Yield the pinned files that the first event of a run records."""
    for each in payloads if isinstance(payloads, list) else ():
        found = read_pinned_file(each)
        if found is not None:
            yield found
