"""`doctor`: checks of machine, project and registry, each with commands that fix a failure."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from functools import partial
from typing import Final

from cogcli import __version__
from cogcli.app.checks.doctor_services import CODES, DoctorCheck, check_services, place_of
from cogcli.app.checks.registry_check import RegistryCheck, check_registry
from cogcli.app.editor_schemas import FOLDER, WRITTEN, catalog_ids, leads_out, stale_schemas
from cogcli.app.needs import (
    REPLACED,
    RequirementSearch,
    count_first_needs,
    describe_counts,
    find_needs,
)
from cogcli.app.registry import open_registry, selection_options
from cogcli.app.settings import Settings
from cogcli.app.settings.owner_key import key_path, read_key
from cogcli.app.settings.runs_dir import shared_warning
from cogcli.app.settings.trust import WORDS, layers_of
from cogcli.app.settings.trust_needs import find_service_files
from cogcli.app.wings import DOCTOR_CHECKS
from cogcli.base.errors import UnusableEnvironment
from cogcli.base.extras import EXTRAS, install_line, missing_module
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import Problem
from cogcli.base.schema.engine_choice import RUST, engine
from cogcli.base.wall.confined_call import NO_WALL_HINT, wall_state
from cogcli.base.yaml.parsers import has_c_parser
from cogcli.report.humanize import count_of, size
from cogcli.specs.catalog import Catalog
from cogcli.specs.checks.replaced import WITHOUT_SHIPPED
from cogcli.specs.host_layout import KIND_OF_FILE, SERVICES_FILE
from cogcli.specs.layers import HOST_FOLDER, bounded_layers, builtin_root
from cogcli.specs.shipped_fit import explain_shipped_misfit

_SHOWN: Final = 5
"""The most problems of a kind that are shown; `validate` lists all."""


class DoctorReport(NamedTuple):
    """The result of `doctor`. `head` describes program and machine, and `summary` counts the usable
    skills and capabilities."""

    head: str
    checks: list[DoctorCheck]
    summary: str


def diagnose(settings: Settings, *, net: bool = False) -> DoctorReport:
    """Run all checks. Nothing is changed or started. Servers are contacted only with `net`."""
    checks = [*_check_machine(), *_check_project(settings)]
    summary = ""
    if not settings.problems:
        found = check_registry(settings)
        checks += [
            *(_check_editor_schemas(settings.project, found) if settings.project else ()),
            *(check for checks_of in DOCTOR_CHECKS for check in checks_of(settings, net=net)),
            *_check_registry(found),
            *check_services(settings, found, net=net),
        ]
        needs = find_needs(open_registry(settings), found.catalog, selection_options(settings))
        checks += _report_unusable_shipped_specs(settings, found, needs)
        skills = [needs.skill(id) for id in found.catalog.skills]
        bound = sum(not needs.capability(id) for id in found.catalog.capabilities)
        lacking = describe_counts(count_first_needs(skills))
        summary = f"{skills.count(())} of {found.counts['skills']} skills can run"
        summary += f" (the others need {lacking}), " if lacking else ", "
        summary += f"{bound} of {found.counts['capabilities']} capabilities can be called."
    parts = [
        f"cogcli {__version__}",
        f"Python {platform.python_version()}",
        f"{platform.system()} {platform.machine()}",
        f"project {settings.project}" if settings.project else "no project",
    ]
    return DoctorReport(" · ".join(parts), checks, summary)


def _check_machine() -> Iterator[DoctorCheck]:
    """Check the YAML parser, the schema engine, the isolation and the extras of this
    installation."""
    check = partial(DoctorCheck, "machine")
    if has_c_parser():
        yield check("yaml", "ok", "C parser")
    else:
        fix = "pip install ruamel.yaml.clib"
        yield check("yaml", "warning", "no C parser, specs are read ten times slower", fix=fix)
    try:
        found = engine()
    except UnusableEnvironment as refusal:
        yield check("schemas", "error", str(refusal), fix=refusal.hint)
    else:
        if found == RUST:
            yield check("schemas", "ok", found)
        else:
            message = f"{found}: a pattern that cannot be shown to take linear time is refused"
            yield check(
                "schemas", "warning", message, fix="pip install 'jsonschema-rs>=0.60,<0.61'"
            )
    yield _check_wall()
    missing = list(filter(missing_module, EXTRAS))
    if missing:
        fix = install_line(*missing)
        yield check("extras", "skipped", f"not installed: {', '.join(missing)}", fix=fix)
    else:
        yield check("extras", "ok", ", ".join(EXTRAS))


def _check_wall() -> DoctorCheck:
    """Check which isolation confines parsers of untrusted data, and untrusted code
    (docs/reference/service.md#isolation)."""
    check = partial(DoctorCheck, "machine", "wall")
    wall, missing = wall_state()
    if wall is None:
        details = (
            f"missing: {missing}",
            "parsers of foreign bytes keep their limits of memory, time and output only",
            "code.snippet.execute and services with isolation: sandbox cannot be used",
            f"help: {NO_WALL_HINT}",
        )
        return check("warning", "no wall is in force", details)
    return check("ok", f"{wall.text}{f'; without {wall.absent}' if wall.absent else ''}")


def _check_project(settings: Settings) -> Iterator[DoctorCheck]:
    """Check settings, runs directory and episodes key, and in a project also git and trust."""
    for problem in settings.problems:
        yield DoctorCheck(
            "project", "settings", "error", problem.message, (place_of(problem),), problem.hint
        )
    if not settings.problems:
        present = [file.shown for file in settings.files if os.path.exists(file.path)]
        yield DoctorCheck("project", "settings", "ok", ", ".join(present) or "defaults")
    yield _check_runs_dir(settings)
    yield _check_episodes_key(settings)
    if settings.project:
        yield from _check_git(settings, settings.project)
        yield from _check_trust(settings, settings.project)


def _check_runs_dir(settings: Settings) -> DoctorCheck:
    """Check whether the runs directory exists or can be created, and who may write to it."""
    check = partial(DoctorCheck, "project", "runs directory")
    path = settings.runs_dir
    name = settings.display_path(path)
    nearest = path
    while not os.path.lexists(nearest) and os.path.dirname(nearest) != nearest:
        nearest = os.path.dirname(nearest)
    if not os.path.isdir(nearest):
        message = f"{name}: {settings.display_path(nearest)} is not a directory"
        return check("error", message, fix="choose another with --runs-dir")
    if not os.access(nearest, os.W_OK | os.X_OK):
        return check("error", f"{name}, not writable", fix=f"chmod u+wx {nearest}")
    if (warning := shared_warning(settings)) is not None:
        return check("warning", warning.message, fix=warning.hint)
    count, total = _measure_episodes(path)
    what = f"{count_of(count, 'episode')}, {size(total)}" if count else "no episodes yet"
    return check("ok", f"{name}, writable, {what}")


def _check_episodes_key(settings: Settings) -> DoctorCheck:
    """Check the key that marks episodes as the user's own
    (docs/reference/episode.md#checkpoint)."""
    check = partial(DoctorCheck, "project", "episodes key")
    found = read_key(settings.environ)
    if found.key:
        return check("ok", key_path(settings.environ))
    if found.missing:
        return check("ok", "none yet: the first run makes it")
    details = (
        "episodes of earlier runs are not known as your own, and what new runs record counts for nothing",
    )
    return check("warning", found.problem, details, found.cure)


def _measure_episodes(path: str) -> tuple[int, int]:
    """Return the number of episodes, and their size in bytes."""
    count = total = 0
    try:
        entries = [entry for entry in os.scandir(path) if entry.name.startswith("ep_")]
        folders = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return 0, 0
    for folder in folders:
        count += 1
        try:
            total += sum(
                entry.stat(follow_symlinks=False).st_size for entry in os.scandir(folder.path)
            )
        except OSError:
            continue
    return count, total


def _check_git(settings: Settings, project: str) -> Iterator[DoctorCheck]:
    if not os.path.exists(os.path.join(project, ".git")):
        return
    try:
        path = settings.require_inside(os.path.join(project, ".gitignore"))
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = {line.strip().strip("/") for line in file}
    except OSError:
        lines = set()
    if ".cogcli" in lines:
        yield DoctorCheck("project", "git", "ok", ".cogcli/ is ignored")
    else:
        message = ".cogcli/ is not in .gitignore"
        yield DoctorCheck("project", "git", "warning", message, fix="cogcli doctor --fix")


def _check_editor_schemas(project: str, check: RegistryCheck) -> Iterator[DoctorCheck]:
    """Check whether existing editor schemas contain the current ids of the registry."""
    if os.path.isdir(os.path.join(project, FOLDER)) and not leads_out(project):
        stale = stale_schemas(project, catalog_ids(check.catalog))
        name, fix = "schemas for editors", "cogcli doctor --fix"
        if stale:
            message = f"{FOLDER}: {len(stale)} of {len(WRITTEN)} do not match the present registry"
            yield DoctorCheck("project", name, "warning", message, fix=fix)
        else:
            yield DoctorCheck("project", name, "ok", FOLDER)


def _check_trust(settings: Settings, project: str) -> Iterator[DoctorCheck]:
    layers = bounded_layers(layers_of(project, settings.project_file), settings.bound)
    trust, count = settings.trust, len(find_service_files(layers))
    if os.path.realpath(builtin_root()) == os.path.realpath(project):
        return
    if not count and trust.state == "untrusted":
        return
    if trust:
        files = f", {count_of(trust.count, 'file')}" if trust.state == "accepted" else ""
        message = f"trusted {WORDS[trust.state]}{files}"
        yield DoctorCheck("project", "trust", "ok", message)
    else:
        why = f"{trust.distrust}: " if trust.distrust else ""
        message = f"{why}{count_of(count, 'service file')} not trusted: no code is started"
        yield DoctorCheck("project", "trust", "warning", message, fix="cogcli config trust")


def _check_registry(found: RegistryCheck) -> Iterator[DoctorCheck]:
    for kind, count in [*found.counts.items(), ("policies", 0)]:
        own = [p for p in found.problems if _problem_kind(p) == kind and p.code not in CODES]
        if own or count or kind != "policies":
            yield _check_kind(kind, count, own)


def _check_kind(kind: str, count: int, problems: list[Problem]) -> DoctorCheck:
    """Return the check of the specs of one kind, given their number and their problems."""
    errors = [problem for problem in problems if problem.severity == "E"]
    if errors:
        summary = f"{count_of(len(errors), 'error')} in {count}"
        return DoctorCheck("registry", kind, "error", summary, *_summarize_problems(errors))
    if problems:
        summary = f"{count}, {count_of(len(problems), 'warning')}"
        return DoctorCheck("registry", kind, "warning", summary, *_summarize_problems(problems))
    return DoctorCheck("registry", kind, "ok", str(count))


def _describe_unusable_skills(check: RegistryCheck, needs: RequirementSearch) -> Iterator[str]:
    """Yield a line for each shipped skill that cannot run because a later layer replaces a required spec."""
    for id, skill in sorted(check.catalog.skills.items()):
        if skill.file in check.shipped:
            lacks = next((need for need in needs.skill(id) if need.kind == REPLACED), None)
            if lacks is not None:
                yield f"skill {id}: {lacks.text} ({lacks.cure.partition(chr(10))[0]})"


def _describe_unusable_bindings(catalog: Catalog) -> Iterator[str]:
    """Yield a line for each shipped binding that does not match its capability or service because a
    later layer replaces one of them."""
    for id, binding in sorted(catalog.bindings.items()):
        if fault := explain_shipped_misfit(catalog, binding):
            yield f"binding {id}: {fault}"


def _report_unusable_shipped_specs(
    settings: Settings, found: RegistryCheck, needs: RequirementSearch
) -> Iterator[DoctorCheck]:
    """Report, as a note without a fix, the shipped specs that later layers make unusable."""
    check = partial(DoctorCheck, "registry", "shipped")
    left_in, origin = settings.with_origin("builtin")
    if not left_in:
        yield check("ok", f"left out: builtin in {origin}")
        return
    lines = [*_describe_unusable_skills(found, needs), *_describe_unusable_bindings(found.catalog)]
    left_out = sum(problem.code in ("request.input", "response.field") for problem in found.notes)
    parts = (
        [f"{count_of(len(lines), 'skill or binding', 'skills and bindings')} cannot be used"]
        if lines
        else []
    )
    parts += [f"{count_of(left_out, 'surplus field')} of bindings left out"] if left_out else []
    if parts:
        more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
        message = f"with the specs that replace it here: {', '.join(parts)}"
        yield check("skipped", message, (*lines[:_SHOWN], *more, f"help: {WITHOUT_SHIPPED}"))


def _problem_kind(problem: Problem) -> str:
    """Return the kind of specs that a problem is listed under."""
    if problem.code == "wire.document":
        return "services"
    parts = problem.file.replace("\\", "/").split("/")
    if parts[-2:-1] == [HOST_FOLDER] and parts[-1] in KIND_OF_FILE:
        return "services" if parts[-1] == SERVICES_FILE else "bindings"
    kinds = ("policies", "bindings", "services", "capabilities")
    return next((kind for kind in kinds if kind in parts), "skills")


def _summarize_problems(problems: list[Problem]) -> tuple[tuple[str, ...], str]:
    """Return lines that describe the first problems, and the command that lists all of them.

    The command is empty if the lines describe every problem."""
    lines: list[str] = []
    for problem in problems[:_SHOWN]:
        hints = problem.hint.split("\n") if problem.hint else []
        lines += [problem.message, place_of(problem), *(f"help: {hint}" for hint in hints)]
    if len(problems) <= _SHOWN:
        return tuple(lines), ""
    return (*lines, f"and {len(problems) - _SHOWN} more"), "cogcli validate"
