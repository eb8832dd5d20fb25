"""`validate --fix`: fixes of problems with exactly one possible fix, in the user's own files
(docs/reference/command-line.md#fixes)."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from difflib import unified_diff
from typing import Final

from cogcli.app.checks.registry_check import RegistryCheck, check_registry
from cogcli.app.registry import open_registry, writing_to
from cogcli.app.settings import Settings
from cogcli.app.settings.own_writes import keep_trust
from cogcli.base.files import UnreadableFile, read_regular, write_atomic
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import Problem, names_from_hint
from cogcli.protocols import PROTOCOLS
from cogcli.specs.fixes import FIXES, SpellingFix, repair, respell, respelling_of
from cogcli.specs.host_layout import KIND_OF_FILE
from cogcli.specs.layers import HOST_FOLDER
from cogcli.specs.registry import Registry

_KINDS: Final = {
    "skills": "skill", "capabilities": "capability", "bindings": "binding", "services": "service",
    "packs": "pack", "policies": "policy",
}  # fmt: skip


class FileFix(NamedTuple):
    """The fixed text of one file before writing, and the problems that it solves."""

    file: str
    path: str
    text: str
    fixed: int
    problems: frozenset[Problem]
    diff: str


def find_fixes(settings: Settings, checked: RegistryCheck) -> list[FileFix]:
    """Return the fixes of the project's own files. Shipped files are not fixed, nor are files that a link places
    outside the project.
    """
    if settings.project is None:
        return []
    texts = _read_fixable_files(settings, checked)
    respelt = _find_corrections(settings, checked, texts)
    found = []
    for file, text in texts.items():
        repaired = repair(
            respell(text, respelt[file]), _editable_kind(file, checked.files[file]), PROTOCOLS
        )
        answered = {(problem.code, problem.path) for problem in repaired.fixed}
        problems = {p for p in checked.problems if p.file == file and (p.code, p.path) in answered}
        problems |= {each.problem for each in respelt[file]}
        if repaired.text != text:
            found.append(_build_fix(settings, file, (text, repaired.text), frozenset(problems)))
    return found


def _read_fixable_files(settings: Settings, checked: RegistryCheck) -> dict[str, str]:
    """Return the text of each editable file with a problem that may have exactly one possible fix,
    by name."""
    answerable = (p.file for p in checked.problems if p.code in FIXES or names_from_hint(p.hint))
    texts = {}
    for file in dict.fromkeys(file for file in answerable if file not in checked.shipped):
        if (text := _read_editable(settings, file, checked)) is not None:
            texts[file] = text
    return texts


def _find_corrections(
    settings: Settings, checked: RegistryCheck, texts: Mapping[str, str]
) -> dict[str, list[SpellingFix]]:
    """Return the spelling corrections of references and ids that solve their problem, by file.

    Each correction is checked in a registry to which all of them are applied."""
    found = _find_misspellings(open_registry(settings), checked, texts)
    before = {(p.file, p.code, p.path) for p in checked.problems}
    while any(found.values()):
        contents = {
            _absolute_path(settings, file): respell(texts[file], found[file])
            for file in texts
            if found[file]
        }
        encoded = {path: text.encode() for path, text in contents.items()}
        after = check_registry(settings, list(encoded), contents=encoded).problems
        kept = {file: _select_effective(each, after, before) for file, each in found.items()}
        if kept == found:
            break
        found = kept
    return found


def _find_misspellings(
    registry: Registry, checked: RegistryCheck, texts: Mapping[str, str]
) -> dict[str, list[SpellingFix]]:
    """Return one correction for each misspelled place that has exactly one, by file."""
    found: dict[str, list[SpellingFix]] = {file: [] for file in texts}
    for problem in checked.problems:
        text = texts.get(problem.file)
        each = respelling_of(text, problem) if text is not None else None
        if each is None:
            continue
        if problem.code == "layout.id" and registry.paths("capability", each.wrong):
            continue  # the file may be in the wrong folder instead
        if all(each.start != other.start for other in found[problem.file]):
            found[problem.file].append(each)
    return found


def _is_solved(
    problem: Problem, remaining: Collection[tuple[str, str]], paths_with_errors: Collection[str]
) -> bool:
    """Return whether a problem has disappeared after its correction, and its path has no new error."""
    return (problem.code, problem.path) not in remaining and problem.path not in paths_with_errors


def _select_effective(
    respellings: list[SpellingFix],
    new_problems: Sequence[Problem],
    old_problems: Collection[tuple[str, str, str]],
) -> list[SpellingFix]:
    """Return the corrections of one file that solve their problem.

    If the file gets new errors away from the corrected places, the result is empty."""
    if not respellings:
        return []
    file = respellings[0].problem.file
    found = {(p.code, p.path): p for p in new_problems if p.file == file}
    new = [
        p
        for p in found.values()
        if p.severity == "E" and (file, p.code, p.path) not in old_problems
    ]
    wrong = {p.path for p in new}
    kept = [each for each in respellings if _is_solved(each.problem, found, wrong)]
    return [] if kept == respellings and _has_error_elsewhere(new, respellings) else kept


def _has_error_elsewhere(new: Sequence[Problem], respellings: Sequence[SpellingFix]) -> bool:
    """Return whether an error is away from the corrected places, or concerns the whole file."""
    beside = tuple(f"{each.problem.path.rpartition('/')[0]}/" for each in respellings)
    return any(p.code.startswith("yaml.") or not p.path.startswith(beside) for p in new)


def _absolute_path(settings: Settings, file: str) -> str:
    """Return the absolute path of a displayed file name."""
    return os.path.join(settings.base, file)


def _read_editable(settings: Settings, file: str, checked: RegistryCheck) -> str | None:
    """Return the text of a file that may be edited; None for any other file."""
    path, inside = (
        os.path.realpath(_absolute_path(settings, file)),
        os.path.realpath(settings.project or "") + os.sep,
    )
    if not _editable_kind(file, checked.files[file]) or not path.startswith(inside):
        return None
    try:
        return read_regular(path, limit=settings.ceilings.yaml_bytes).decode()
    except (UnreadableFile, UnicodeDecodeError):
        return None


def write_fixes(settings: Settings, fixes: Sequence[FileFix]) -> None:
    """Write each file as a whole. Raise UnusableEnvironment `env.disk`."""
    with keep_trust(settings) as written:
        for fix in fixes:
            data, mode = fix.text.encode(), os.stat(fix.path).st_mode & 0o777
            with writing_to(f"`{settings.display_path(fix.path)}`"):
                write_atomic(fix.path, data, mode=mode, bound=settings.project or "")
            written(fix.path, data)


def _editable_kind(file: str, kinds: str) -> str:
    """Return the kind of a file; empty for a file that is not editable, such as JSON."""
    folder, name = os.path.split(file)
    if os.path.basename(folder) == HOST_FOLDER:
        return KIND_OF_FILE.get(name, "") if name.endswith(".yaml") else ""
    return _KINDS.get(kinds, "")


def _build_fix(
    settings: Settings, file: str, texts: tuple[str, str], problems: frozenset[Problem]
) -> FileFix:
    """Return the fix of a file. `texts` are its text before and after the fix."""
    before, after = (text.splitlines() for text in texts)
    # Without context lines, since they may contain secrets.
    diff = "".join(
        f"{line}\n" for line in unified_diff(before, after, file, file, n=0, lineterm="")
    )
    return FileFix(
        file,
        os.path.realpath(_absolute_path(settings, file)),
        texts[1],
        len(problems),
        problems,
        diff,
    )
