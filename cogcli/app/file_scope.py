"""The files that a run may read, and where the files of its inputs may lie, by settings and trust."""

from __future__ import annotations

import os
from functools import partial

from cogcli.app.settings import Settings
from cogcli.base.file_roots import roots_of
from cogcli.protocols.pythoncall.readable_files import ReadableFiles, reads_of
from cogcli.run.file_inputs import FileScope
from cogcli.run.given_inputs import RequestedRun


def find_reads(settings: Settings) -> ReadableFiles:
    """Return the files that shipped functions may read. Raise UnusableEnvironment `config.key`."""
    reads = ReadableFiles("")
    if settings.project is not None and not settings.trust:
        # In a project that is not trusted, shipped functions may read only these files.
        reads = reads_of(settings.project)
    roots = settings.file_roots("files.roots")
    return reads._replace(roots=roots_of(roots)) if roots else reads


def find_file_scope(settings: Settings) -> FileScope:
    """Return the folders of files that inputs may name. Raise UnusableEnvironment `config.key`."""
    folders = () if settings.project is None else (os.path.realpath(settings.project),)
    return FileScope(find_reads(settings), folders)


def with_file_scope(settings: Settings, requested: RequestedRun) -> RequestedRun:
    """Return a run whose inputs may name files."""
    request = requested.request._replace(find_files=partial(find_file_scope, settings))
    return requested._replace(request=request)
