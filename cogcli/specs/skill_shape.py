"""The shape and the rules of skills (docs/reference/skill.md#keys)."""

from __future__ import annotations

from typing import Final

from cogcli.base.jsonvalue import Json
from cogcli.base.refs import READABLE
from cogcli.declarations.skill_spec import Skill, Step, result_name
from cogcli.specs.common_rules import check_version
from cogcli.specs.credentials import find_in_skill
from cogcli.specs.field_shape import check_fields
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.shape_of_spec import shape_of_spec
from cogcli.specs.unchecked import list_at, object_at, objects_at, text_at, value_at

STEP: Final = shape_of_spec(Step)
SKILL: Final = shape_of_spec(Skill)
_WRITTEN_OUT: Final = (
    "let the service hold it (auth_ref, a header with ${NAME}), or ask the caller for it"
)


def check_skill(raw: Json, report: ProblemReport) -> None:
    """Report faults of a skill that its shape cannot express."""
    check_version(raw, report)
    for side in ("inputs", "outputs"):
        check_fields(object_at(raw, side), side, report)
    for path in find_in_skill(raw):
        message = f"`{'.'.join(map(str, path))}` holds a secret as written text"
        report.warn("secret.literal", path, message, hint=_WRITTEN_OUT)
    check_steps(raw, report)


def check_steps(raw: Json, report: ProblemReport, *path: str | int) -> None:
    """Report the faults of a skill's `steps`, or of the steps at a path of another kind of file."""
    seen: dict[str, int] = {}
    for index, step in objects_at(raw, "steps"):
        id = text_at(step, "id")
        subject = f"step {index + 1}" if id is None else f"step `{id}`"
        part = report.part(subject, *path, "steps", index)
        if id is not None and (first := seen.setdefault(id, index)) != index:
            message = f"this id is taken by the {_format_ordinal(first + 1)} step"
            part.error("step.duplicate", ("id",), message)
        _check_step(step, part)


def _format_ordinal(number: int) -> str:
    ending = (
        "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    )
    return f"{number}{ending}"


def _check_step(step: Json, report: ProblemReport) -> None:
    config = object_at(step, "config")
    given = {key for key, value in config.items() if value is not None}
    for key in ("depends_on", "timeout_seconds"):
        if key in given and value_at(step, key) is not None:
            message = f"`{key}` given twice, in the step and in its config"
            report.error("step.alias", (key,), message, hint="keep one of them", key=True)
    for first, second in _CONFLICTS:
        if {first, second} <= given:
            message = f"`{first}` and `{second}` exclude each other"
            hint = "make two steps of it"
            report.error("config.conflict", ("config", second), message, hint=hint, key=True)
    _check_uses(step, given, report)
    _check_loop_names(object_at(config, "foreach"), report)
    _check_scatter_names(list_at(config, "scatter", "capabilities"), report)


def _check_uses(step: Json, config_keys: set[str], report: ProblemReport) -> None:
    """Report a step without a target, and a target that is never called."""
    chooses = next((name for name in ("router", "scatter") if name in config_keys), "")
    if not chooses:
        if value_at(step, "uses") is None:
            report.error("key.missing", (), "key `uses` is missing")
    elif text_at(step, "uses") not in (None, "_router", "_scatter"):
        message = f"`uses` is not called, {chooses} decides"
        report.warn("step.uses-unused", ("uses",), message, hint="remove it")


_CONFLICTS: Final = (
    ("foreach", "while"),
    ("foreach", "scatter"),
    ("while", "scatter"),
    ("router", "scatter"),
)


def _check_loop_names(foreach: Json, report: ProblemReport) -> None:
    names = {"as": value_at(foreach, "as") or "item", "index_as": value_at(foreach, "index_as")}
    for key, name in names.items():
        if name in READABLE:
            message = f"loop name `{name}` is a namespace"
            report.error("id.format", ("config", "foreach", key), message, hint="take another name")
    if names["as"] == names["index_as"]:
        message = f"`as` and `index_as` are both `{names['as']}`"
        report.error("config.conflict", ("config", "foreach", "index_as"), message)


def _check_scatter_names(entries: list[object], report: ProblemReport) -> None:
    seen = set()
    for index, entry in enumerate(entries):
        name = result_name(entry) if isinstance(entry, str) else text_at(entry, "name")
        if name is not None and name in seen:
            path = ("config", "scatter", "capabilities", index)
            message, hint = (
                f"two scatter targets are named `{name}`",
                "write {name: other, uses: id}",
            )
            report.error("config.conflict", path, message, hint=hint)
        seen.add(name)
