"""Files of one command: all are written, or none.

1. Existing files are replaced only with `force`. No file outside the project is written, not even
   through a link.
2. All checks run over the written files; if these have a problem, they are removed again."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Final

from cogcli.app.checks.registry_check import check_registry
from cogcli.app.editor_schemas import FOLDER, WRITTEN, leads_out, write_schemas
from cogcli.app.registry import writing_to
from cogcli.app.schemas import schema_file
from cogcli.app.settings import Settings
from cogcli.app.settings.own_writes import keep_trust
from cogcli.base.errors import UnusableEnvironment, UsageError
from cogcli.base.files import UnreadableFile, read_regular, write_atomic
from cogcli.base.links import find_leaving_link
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import Problem
from cogcli.base.terminal_text import visible
from cogcli.base.yaml.writer import yaml_text
from cogcli.declarations.value_types import Json

SCHEMA_LINE: Final = "# yaml-language-server: $schema="
_LARGEST: Final = 64 * 1024 * 1024
_OF_SURROUNDINGS: Final = frozenset(
    ("env.missing", "env.extra", "secret.short", "service.untrusted")
)
"""Codes of problems that no file causes: the environment or the user can solve them."""

_OF_SERVICES: Final = "wire."


class NewFile(NamedTuple):
    """A file to write; its path is relative to the project.

    With `is_listed` the command lists it; an unlisted file is generated and replaces an existing one.
    With `is_spec` the spec checks apply.
    """

    path: str
    data: bytes
    is_listed: bool = True
    is_spec: bool = True


class NewSpecs(NamedTuple):
    """The result of a command: the listed files, notes about them, and commands to suggest.

    `bound` and `skipped` count operations, if all of a document were to be bound.
    """

    files: list[str]
    notes: list[str]
    next: list[str]
    bound: int = 0
    skipped: int = 0


class WrittenSpecs(NamedTuple):
    """The result of checking written specs. If there are `problems`, the files were removed again. `doubts` are
    warnings about a service that do not reject the specs.
    """

    problems: list[Problem]
    doubts: list[Problem]


def project_of(settings: Settings) -> str:
    """Return the project's directory. Raise UnusableEnvironment `project.none`."""
    if settings.project is None:
        raise UnusableEnvironment(
            "project.none",
            "there is no project here",
            expected="cogcli.toml, skills/ or capabilities/ in this directory or above it",
            hint="begin one, or start in one with -C DIR",
            next=("cogcli new project .",),
        )
    return settings.project


def schema_line(kind: str, path: str) -> str:
    """Return the comment by which an editor finds the schema of the spec file at a path of the
    project.
    """
    up = "../" * path.count("/")
    return f"{SCHEMA_LINE}{up}{FOLDER}/{kind}.schema.json\n"


def spec_file(kind: str, path: str, comment: str, value: Json) -> NewFile:
    """Return a spec file with the comment for editors and another comment above its keys."""
    return NewFile(path, f"{schema_line(kind, path)}{comment}{yaml_text(value)}".encode())


def schema_files(root: str) -> list[NewFile]:
    """Return the missing schema files that the comments for editors name.

    `write_schemas` updates them. Empty if a link leads them out of the project, because their owner
    keeps them elsewhere.
    """
    if leads_out(root):
        return []
    made = [
        NewFile(f"{FOLDER}/{name}.schema.json", schema_file(name), is_listed=False)
        for name in WRITTEN
    ]
    return [file for file in made if not os.path.lexists(os.path.join(root, file.path))]


def _split_doubts(problems_found: Iterable[Problem]) -> tuple[list[Problem], list[Problem]]:
    """Return the problems that prevent writing, and the doubts that are reported only."""
    problems: list[Problem] = []
    doubts: list[Problem] = []
    for problem in problems_found:
        (doubts if _is_doubt(problem) else problems).append(problem)
    return problems, doubts


def find_write_problems(
    settings: Settings, files: Sequence[NewFile], *, force: bool
) -> WrittenSpecs:
    """Write the files into the project of `settings`, and return their problems.

    Raise UsageError `output.exists` or UnusableEnvironment `env.disk`.
    """
    root = project_of(settings)
    specs = (file.path for file in files if file.is_spec and file.path.endswith(".yaml"))
    paths = [os.path.join(root, path) for path in specs]
    with suppress(_Rollback), written_files(settings, root, files, force=force):
        found = check_registry(settings, paths).problems if paths else []
        problems, doubts = _split_doubts(p for p in found if _is_problem_of_files(p, settings))
        if problems:
            raise _Rollback
        write_schemas(settings)
    return WrittenSpecs(problems, doubts)


def refused_problem(problem: Problem) -> UsageError:
    """Return the error for a problem that prevented writing. It quotes no file, because none was
    kept.
    """
    return UsageError(
        "usage.value", f"nothing was written: {problem.message} ({problem.code})", hint=problem.hint
    )


def _is_problem_of_files(problem: Problem, settings: Settings) -> bool:
    untrusted = problem.code == "safety.scope" and not settings.trust
    return not (problem.code in _OF_SURROUNDINGS or untrusted)


def _is_doubt(problem: Problem) -> bool:
    """Return whether a problem is a warning about a service: the document allows more than is expected."""
    return problem.severity == "W" and problem.code.startswith(_OF_SERVICES)


class _Rollback(Exception):
    """The exception that makes `written_files` remove the files."""


@contextmanager
def written_files(
    settings: Settings, root: str, files: Sequence[NewFile], *, force: bool
) -> Iterator[None]:
    """Write the files below `root`. An exception within the block restores the previous content.

    Raise UsageError `output.exists` or UnusableEnvironment `env.disk`.
    """
    require_free(settings, root, files, force=force)
    with keep_trust(settings) as written, ExitStack() as undo:
        for file in files:
            path = os.path.join(root, file.path)
            with writing_to(f"`{settings.display_path(path)}`"):
                settings.require_inside(path)
                _make_folders(os.path.dirname(path), undo)
                undo.callback(_restore_content, path, _read_or_none(path), settings.bound)
                write_atomic(path, file.data, mode=0o644, bound=settings.bound)
        yield
        undo.pop_all()
        for file in files:
            written(os.path.join(root, file.path), file.data)


def require_free(settings: Settings, root: str, files: Sequence[NewFile], *, force: bool) -> None:
    """Raise UsageError `output.exists` for a file that would be replaced, or that a link leads
    elsewhere.
    """
    for file in files:
        path = os.path.join(root, file.path)
        shown = visible(settings.display_path(path))
        settings.require_inside(path)
        if find_leaving_link(os.path.dirname(path), root):
            raise UsageError(
                "usage.value", f"`{shown}`: a link leads out of the project", hint="remove the link"
            )
        if os.path.isdir(path):
            raise UsageError("output.exists", f"`{shown}` is a directory", hint="remove it")
        if file.is_listed and not force and os.path.lexists(path):
            hint = "give another name, or --force to replace what is there"
            raise UsageError("output.exists", f"`{shown}` exists", hint=hint)


def _read_or_none(path: str) -> bytes | None:
    try:
        return read_regular(path, limit=_LARGEST)
    except UnreadableFile as refused:
        if refused.reason == "missing":
            return None
        raise OSError(0, refused.message) from refused


def _make_folders(folder: str, undo: ExitStack) -> None:
    """Make a directory and its parents, and register the removal of the new ones in `undo`."""
    if not os.path.isdir(folder):
        _make_folders(os.path.dirname(folder), undo)
        os.mkdir(folder)
        undo.callback(_remove_folder, folder)


def _remove_folder(folder: str) -> None:
    with suppress(OSError):  # another program may have written into it
        os.rmdir(folder)


def _restore_content(path: str, data: bytes | None, bound: str) -> None:
    with suppress(OSError):
        if data is None:
            os.unlink(path)
        else:
            write_atomic(path, data, mode=0o644, bound=bound)
