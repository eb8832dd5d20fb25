"""The shape and the rules of skills (docs/reference/skill.md#keys)."""

from __future__ import annotations

from typing import Any, Final

from cogcli.base.jsonvalue import list_of, object_of
from cogcli.base.refs import READABLE
from cogcli.declarations.skill_spec import Skill, Step, result_name
from cogcli.specs.common_rules import check_version
from cogcli.specs.credentials import find_in_skill
from cogcli.specs.field_shape import check_fields
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.shape_of_spec import shape_of_spec

STEP: Final = shape_of_spec(Step)
SKILL: Final = shape_of_spec(Skill)
_WRITTEN_OUT: Final = (
    "let the service hold it (auth_ref, a header with ${NAME}), or ask the caller for it"
)


def check_skill(raw: dict[str, Any], report: ProblemReport) -> None:
    """Report faults of a skill that its shape cannot express."""
    check_version(raw, report)
    for side in ("inputs", "outputs"):
        check_fields(raw.get(side), side, report)
    for path in find_in_skill(raw):
        message = f"`{'.'.join(map(str, path))}` holds a secret as written text"
        report.warn("secret.literal", path, message, hint=_WRITTEN_OUT)
    check_steps(raw, report)


def check_steps(raw: dict[str, Any], report: ProblemReport, *path: str | int) -> None:
    """Report the faults of the `steps` of a skill, or of the steps at a path of another file."""
    seen: dict[str, int] = {}
    for index, step in enumerate(list_of(raw.get("steps"))):
        if not isinstance(step, dict):
            continue
        id = step.get("id")
        place = (*path, "steps", index)
        part = report.part(f"step `{id}`" if isinstance(id, str) else f"step {index + 1}", *place)
        if isinstance(id, str) and (first := seen.setdefault(id, index)) != index:
            part.error(
                "step.duplicate", ("id",), f"this id is taken by the {_ordinal(first + 1)} step"
            )
        _check_step(step, part)


def _ordinal(number: int) -> str:
    ending = (
        "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    )
    return f"{number}{ending}"


def _check_step(step: dict[str, Any], report: ProblemReport) -> None:
    config = object_of(step.get("config"))
    for key in ("depends_on", "timeout_seconds"):
        if step.get(key) is not None and config.get(key) is not None:
            message = f"`{key}` given twice, in the step and in its config"
            report.error("step.alias", (key,), message, hint="keep one of them", key=True)
    for first, second in _CONFLICTS:
        if config.get(first) is not None and config.get(second) is not None:
            message = f"`{first}` and `{second}` exclude each other"
            hint = "make two steps of it"
            report.error("config.conflict", ("config", second), message, hint=hint, key=True)
    chooses = next((name for name in ("router", "scatter") if config.get(name) is not None), "")
    uses = step.get("uses")
    if uses is None and not chooses:
        report.error("key.missing", (), "key `uses` is missing")
    elif chooses and isinstance(uses, str) and uses not in ("_router", "_scatter"):
        message = f"`uses` is not called, {chooses} decides"
        report.warn("step.uses-unused", ("uses",), message, hint="remove it")
    _check_loop_names(object_of(config.get("foreach")), report)
    _check_scatter_names(list_of(object_of(config.get("scatter")).get("capabilities")), report)


_CONFLICTS: Final = (
    ("foreach", "while"),
    ("foreach", "scatter"),
    ("while", "scatter"),
    ("router", "scatter"),
)


def _check_loop_names(foreach: dict[str, Any], report: ProblemReport) -> None:
    names = {"as": foreach.get("as") or "item", "index_as": foreach.get("index_as")}
    for key, name in names.items():
        if name in READABLE:
            message = f"loop name `{name}` is a namespace"
            report.error("id.format", ("config", "foreach", key), message, hint="take another name")
    if names["as"] == names["index_as"]:
        message = f"`as` and `index_as` are both `{names['as']}`"
        report.error("config.conflict", ("config", "foreach", "index_as"), message)


def _check_scatter_names(entries: list[Any], report: ProblemReport) -> None:
    seen = set()
    for index, entry in enumerate(entries):
        name = entry.get("name") if isinstance(entry, dict) else entry
        if not isinstance(name, str):
            continue
        if isinstance(entry, str):
            name = result_name(entry)
        if name in seen:
            path, hint = (
                ("config", "scatter", "capabilities", index),
                "write {name: other, uses: id}",
            )
            report.error(
                "config.conflict", path, f"two scatter targets are named `{name}`", hint=hint
            )
        seen.add(name)
