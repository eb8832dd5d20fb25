"""The files that the shipped functions may read: those of `files.roots` (docs/reference/service.md#roots), and under a
project that is not trusted:

1. Files below its folder, after links are followed: a link is written by the project.
2. Not those below `.git`, `.hg`, `.svn` and `.cogcli`, in any spelling: they are the user's, such as history and
   episodes.
3. Files that the user typed as inputs of this run, and those below folders that the user typed, anywhere, unless a link
   of the project leads there. A named pipe or a device among them is refused as what it is.

In any project, trusted or not, a file that usually holds credentials is read only if the user typed its path
(docs/reference/service.md#credential-files).

The path is checked before anything is opened, so that a refusal gives away nothing about the file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import partial

from cogcli.base.credential_names import credential_error, credential_reason, has_repository_folder
from cogcli.base.errors import RejectedError, ServiceResolutionError
from cogcli.base.file_roots import Roots, is_below, is_within, outside_text
from cogcli.base.files import irregularity
from cogcli.base.host_access import HostAccess
from cogcli.base.jsonvalue import walk_values
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.terminal_text import visible

_SHOWN = 200
_LONGEST = 4096
"""The longest path of any system, in characters."""


def _assume_online() -> bool:
    return True


class UnreadablePath(ServiceResolutionError):
    """A file that may not be read because of its path."""


class ReadableFiles(NamedTuple):
    """The files that may be read. All paths have their links followed."""

    folder: str
    """The folder of a project that is not trusted; empty for any file."""
    named: frozenset[str] = frozenset()
    """Files outside that folder that the user typed."""
    roots: Roots = ()
    """The declared roots."""
    named_folders: tuple[str, ...] = ()
    """Folders outside that folder that the user typed, or that the command itself filled."""
    typed: frozenset[str] = frozenset()
    """Files of credentials that the user typed."""
    is_online: Callable[[], bool] = _assume_online
    """Whether the run may reach a network or a model; True by default."""

    def with_typed(self, inputs: object) -> ReadableFiles:
        """Return these files together with those that typed inputs name.

        A path must be a whole string of a value. Files without credentials count only if they are
        outside the project, because the others may be read anyway."""
        typed = frozenset(_typed_credentials(inputs, self.folder))
        if not self.folder:
            return self._replace(typed=self.typed | typed)
        paths = list(_typed_paths(inputs, self.folder))
        files = {path for path in paths if not os.path.isdir(path)}
        folders = dict.fromkeys(path for path in paths if os.path.isdir(path))
        return self._replace(
            named=self.named | files,
            named_folders=(*self.named_folders, *folders),
            typed=self.typed | typed,
        )

    def allow(self, access: HostAccess) -> HostAccess:
        """Return a copy of `access` that also permits these files."""
        return access._replace(roots=self.roots, typed=self.typed, is_online=self.is_online)

    def to_payload(self) -> list[object]:
        """Return the members as JSON, for a worker."""
        return [
            self.folder, sorted(self.named), self.roots, self.named_folders, sorted(self.typed), self.is_online()
        ]  # fmt: skip

    def checked_path(self, path: str) -> str:
        """Return the path with links followed.

        Raise UnreadablePath `service.untrusted` for a file that may not be read. Raise
        SafetyScopeError for a file of credentials in a run that may reach a network. Raise
        RejectedError for a file outside the roots, and for a typed path that is no regular file."""
        real = os.path.realpath(path) if path and "\0" not in path else ""
        if not is_within(real, self.roots):
            hint = "add its folder to `files.roots`, if it may be read"
            raise _bad_data_error(outside_text(path, "files.roots"), hint)
        if not self.folder:
            self.require_no_credentials(path, real)
            return real or path
        if is_below(real, self.folder):
            within = os.path.relpath(real, self.folder).split(os.sep)
            is_named, is_readable = False, not has_repository_folder(within)
        else:
            is_readable = is_named = self._is_named(real)
        if is_named and not os.path.isdir(real) and (fault := irregularity(path)):
            text = f"`{visible(path[:_SHOWN])}` {fault}"
            raise _bad_data_error(text, "save what it gives as a file")
        if is_readable:
            self.require_no_credentials(path, real)
            return real
        raise UnreadablePath(
            "service.untrusted",
            f"`{visible(path[:_SHOWN])}` is not read: the project is not trusted, so only files of its folder are,"
            " and those that you type as inputs",
            hint="trust the project, if you trust what it reads: cogcli config trust",
            left=False,
        )

    def require_no_credentials(self, path: str, real: str) -> None:
        """Raise SafetyScopeError for an untyped file of credentials in a run that may reach a
        network.

        In any other run the shipped function itself refuses the file."""
        reason = "" if real in self.typed else credential_reason(real)
        if reason and self.is_online():
            raise credential_error(path, reason)

    def _is_named(self, real: str) -> bool:
        return real in self.named or any(
            real == folder or is_below(real, folder) for folder in self.named_folders
        )


def _bad_data_error(text: str, hint: str) -> RejectedError:
    error = RejectedError("call.rejected", text, hint=hint, left=False)
    error.reason = "bad-data"
    return error


def reads_of(project: str) -> ReadableFiles:
    """Return the files that may be read in a project that is not trusted, before the user types
    any."""
    return ReadableFiles(os.path.realpath(project))


def confine(function: Callable[..., object], reads: ReadableFiles) -> Callable[[], None] | None:
    """Restrict a shipped function to these files; return a function that undoes it.

    None if the function reads no files. A module that reads files has the context variable
    `OPENED_AS`, which checks each path before it is opened."""
    module = sys.modules.get(function.__module__)
    variable = getattr(module, "OPENED_AS", None)
    return None if variable is None else partial(variable.reset, variable.set(reads.checked_path))


def _typed_paths(inputs: object, folder: str) -> Iterator[str]:
    """Yield the files and folders outside `folder` whose path is a string in the inputs, with links
    followed."""
    for value in possible_paths(inputs):
        real = os.path.realpath(value)
        is_outside = os.path.exists(value) and real != folder and not is_below(real, folder)
        if is_outside and not _follows_project_link(value, folder):
            yield real


def _typed_credentials(inputs: object, folder: str) -> Iterator[str]:
    """Yield the credential files whose paths are whole strings in a value, with links followed. The typed path itself
    must have the name of a credential file, because a link with another name may belong to the project.
    """
    for value in possible_paths(inputs):
        if len(value) <= _LONGEST and credential_reason(os.path.abspath(value)):
            if folder and _follows_project_link(value, folder):
                continue
            yield os.path.realpath(value)


def possible_paths(inputs: object) -> Iterator[str]:
    """Yield the strings in a value that can be paths."""
    for value in walk_values(inputs):
        if isinstance(value, str) and value and "\0" not in value:
            yield value


def _follows_project_link(path: str, folder: str) -> bool:
    """Return whether resolving a path follows a link below a folder."""
    drive, rest = os.path.splitdrive(os.path.join(os.getcwd(), path))
    real = drive + os.sep
    for part in rest.split(os.sep):
        step = os.path.join(real, part)
        if os.path.islink(step) and is_below(step, folder):
            return True
        real = os.path.realpath(step)
    return False
