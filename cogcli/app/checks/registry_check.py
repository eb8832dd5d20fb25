"""`validate`: all static checks of the registry, or of single files with the registry."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from cogcli.app.checks.packs import pack_problems
from cogcli.app.registry import Layers, open_registry, selection_options
from cogcli.app.settings import Settings
from cogcli.base.errors import CogcliError, UnusableEnvironment, UsageError
from cogcli.base.jsonvalue import paused_collection
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import Problem, sort_problems
from cogcli.specs.catalog import Catalog
from cogcli.specs.checks import check
from cogcli.specs.checks.replaced import is_made_unusable
from cogcli.specs.layers import BUILT_IN, builtin_root
from cogcli.specs.layout import CASES

KINDS: Final = ("skills", "capabilities", "bindings", "services")
UNTRUSTED: Final = "service.untrusted"
"""The code of a call that requires trust in its project."""
READINESS: Final = (UNTRUSTED, "env.extra", "env.missing")
"""The codes for missing parts of this machine that another one may have: trust, an extra, the value of a variable."""
_SPECS: Final = (*KINDS, "packs")
_FILES: Final = (*_SPECS, "cases")


class CheckRequirements(NamedTuple):
    """The conditions for a check to pass, in addition to specs without errors."""

    strict: bool = False
    """No warnings about the specs."""
    ready: bool = False
    """This machine has all that the specs need: no warnings of `READINESS`."""


class RegistryCheck(NamedTuple):
    """The result of a check: the problems, the number of specs, and the duration in seconds."""

    problems: list[Problem]
    counts: dict[str, int]
    seconds: float
    catalog: Catalog
    files: dict[str, str]
    """The kind of each checked file, by its displayed name. The user's own files come first."""
    shipped: frozenset[str]
    """The files that came with the program; empty in the repository of the program."""
    notes: tuple[Problem, ...] = ()
    """Problems that later layers cause in shipped files. The user does not have to fix them; they
    are not in `problems`."""

    @property
    def own_counts(self) -> dict[str, int]:
        """Return `counts` without the shipped files."""
        kinds = Counter(kind for file, kind in self.files.items() if file not in self.shipped)
        return {kind: kinds[kind] for kind in self.counts}

    @property
    def is_empty(self) -> bool:
        """Whether the check included no file of the user."""
        return self.shipped.issuperset(self.files)

    @property
    def unusable(self) -> int:
        """Return the number of shipped files that later layers make unusable."""
        return len({problem.file for problem in self.notes if is_made_unusable(problem)})

    @property
    def errors(self) -> int:
        """Return the number of problems that are errors in every command."""
        return sum(problem.severity == "E" for problem in self.problems)

    @property
    def warnings(self) -> int:
        """Return the number of warnings, and of problems that are errors only if a run needs the
        spec."""
        return len(self.problems) - self.errors

    def failing_problems(self, demands: CheckRequirements) -> list[Problem]:
        """Return the problems that fail the check, errors first.

        Warnings of shipped files never fail it, because the user cannot fix them."""
        errors = [problem for problem in self.problems if problem.severity == "E"]
        warnings = [
            problem
            for problem in self.problems
            if problem.severity != "E"
            and (demands.ready if problem.code in READINESS else demands.strict)
            and problem.file not in self.shipped
        ]
        return [*errors, *warnings]


def validate(
    settings: Settings, paths: Sequence[str] = (), *, contents: Mapping[str, bytes] | None = None
) -> RegistryCheck:
    """Check all specs of all layers, or only the specs at `paths`. `contents` replaces the content
    of files by path.

    Raise UnusableEnvironment `project.none`, or UsageError for a path that does not exist."""
    if not paths and settings.project is None and not settings.value("registry"):
        raise UnusableEnvironment(
            "project.none",
            "there is no project here",
            expected="cogcli.toml, skills/ or capabilities/ in this directory or above it",
            hint="name the files to check, or start in a project with -C DIR",
        )
    given = contents or {}
    for path in paths:
        if path not in given and not os.path.lexists(path):
            raise UsageError(
                "input.file", f"`{path}` does not exist", hint="name a spec file or a directory"
            )
    return check_registry(settings, paths, contents=given)


def check_registry(
    settings: Settings,
    paths: Sequence[str] = (),
    *,
    contents: Mapping[str, bytes] | None = None,
    kind: str = "",
) -> RegistryCheck:
    """Check specs like `validate`, but do not require a project.

    `kind` has the same meaning as in `Registry.files`."""
    clock = settings.clock
    begun = clock.monotonic()
    registry = open_registry(settings)
    with paused_collection():
        catalog = (
            registry.files(list(paths), contents=contents, kind=kind)
            if paths
            else registry.everything()
        )
        found = check(catalog, options=selection_options(settings))
        if catalog.packs:
            found = sort_problems([*found, *pack_problems(catalog)])
    files = _kind_by_file(catalog, found)
    # A file that the caller names is checked in any folder.
    shipped: frozenset[str] = frozenset() if paths else _find_shipped_files(settings, files)
    found, notes = _split_notes(found, shipped)
    found.sort(key=lambda problem: problem.file in shipped)
    files = dict(sorted(files.items(), key=lambda item: item[0] in shipped))
    kinds = Counter(files.values())
    counts = {kind: kinds[kind] for kind in _FILES if kind in KINDS or kinds[kind]}
    seconds = clock.monotonic() - begun
    return RegistryCheck(found, counts, seconds, catalog, files, shipped, notes)


def _split_notes(
    problems: Sequence[Problem], shipped_files: Collection[str]
) -> tuple[list[Problem], tuple[Problem, ...]]:
    """Return the problems that count, and as notes the problems of shipped files that a later layer causes."""
    notes = tuple(p for p in problems if p.file in shipped_files and _is_caused_by_later_layer(p))
    of_later_layers = set(notes)
    return [problem for problem in problems if problem not in of_later_layers], notes


def _is_caused_by_later_layer(problem: Problem) -> bool:
    """Return whether a later layer causes this problem of a shipped file by replacing a spec."""
    return problem.severity == "W" or is_made_unusable(problem)


def _find_shipped_files(settings: Settings, files: Iterable[str]) -> frozenset[str]:
    """Return the shipped files; none in the repository of the program."""
    if _is_program_repository(settings):
        return frozenset()
    layers = Layers(settings)
    return frozenset(file for file in files if layers.of(file) == BUILT_IN)


def _is_program_repository(settings: Settings) -> bool:
    """Return whether the project is the repository that contains the shipped files."""
    if not settings.project:
        return False
    return os.path.realpath(settings.project) == os.path.realpath(builtin_root())


def _kind_by_file(catalog: Catalog, problems: Sequence[Problem]) -> dict[str, str]:
    """Return the kind of each checked file, by name, including files with errors. Files that are not specs but have
    problems are last, with the kind `others`.
    """
    files: dict[str, str] = {}
    for kind in _SPECS:
        files.update(dict.fromkeys(sorted(_files_of_kind(catalog, kind)), kind))
    files.update(dict.fromkeys(sorted(set(catalog.defaults.files.values())), "policies"))
    for file in sorted(catalog.only or ()):
        if os.path.basename(os.path.dirname(file)) == CASES:
            files.setdefault(file, "cases")
    for problem in problems:
        files.setdefault(problem.file, "others")
    if catalog.only is None:
        return files
    shown = {*catalog.only, *(problem.file for problem in problems)}
    return {file: kind for file, kind in files.items() if file in shown}


def _files_of_kind(catalog: Catalog, kind: str) -> set[str]:
    """Return the files of all specs of a kind, including files with errors."""
    singular = "capability" if kind == "capabilities" else kind[:-1]
    broken = {file for name, file in catalog.broken.items() if name.startswith(f"{singular}:")}
    return broken | {spec.file for spec in getattr(catalog, kind).values()}


def problem_from_error(error: CogcliError) -> Problem:
    """Convert an error of the configuration to a Problem."""
    return Problem(
        error.code, "E", error.file, error.line, error.column, "", error.message, error.hint
    )
