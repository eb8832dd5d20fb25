"""The shape and the rules of packs (docs/reference/pack.md#keys)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from cogcli.base.jsonvalue import list_of, object_of
from cogcli.base.schema.patterns import refusal
from cogcli.declarations.pack_spec import Pack
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.shape import ListOf, RecordShape
from cogcli.specs.shape_of_spec import shape_of_spec
from cogcli.specs.skill_shape import check_steps

PACK: Final = shape_of_spec(Pack)


def _find_unique_lists(shape: RecordShape) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield lists whose entries have unique names, as (path of the list, key of the name)."""
    for name, key in shape.keys.items():
        if isinstance(key.shape, ListOf) and key.shape.unique:
            yield (name,), key.shape.unique
        elif isinstance(key.shape, RecordShape):
            for path, own in _find_unique_lists(key.shape):
                yield (name, *path), own


_NAMED: Final = tuple(_find_unique_lists(PACK))
_GUARDRAILS: Final = tuple(
    ("policy_layer", "guardrails", kind) for kind in ("must_refuse", "must_escalate")
)


def check_pack(raw: dict[str, Any], report: ProblemReport) -> None:
    """Report faults of a single pack that its shape cannot express: patterns without a time limit, guardrails without a
    pattern or phrase, repeated names, and the steps of templates."""
    for index, template in enumerate(_list_entries(raw, "decision_layer", "task_templates")):
        check_steps(template, report, "decision_layer", "task_templates", index)
    for path, pattern in _find_patterns(raw):
        if isinstance(pattern, str) and (why := refusal(pattern)):
            report.error("pack.pattern", path, f"pattern `{pattern}`: {why}")
    for kind in _GUARDRAILS:
        for index, guardrail in enumerate(_list_entries(raw, *kind)):
            if not guardrail.get("pattern") and not guardrail.get("phrases"):
                about = report.part(f"guardrail `{guardrail.get('id')}`", *kind, index)
                about.error(
                    "key.missing",
                    (),
                    "neither `pattern` nor `phrases`",
                    hint="no text would meet it",
                )
    for names, key in _NAMED:
        _check_names(_list_entries(raw, *names), key, report, names)


def _check_names(
    entries: list[dict[str, Any]], key: str, report: ProblemReport, path: tuple[str, ...]
) -> None:
    names = [entry.get(key) for entry in entries]
    for index, name in enumerate(names):
        if isinstance(name, str) and name in names[:index]:
            report.error(
                "pack.duplicate", (*path, index, key), f"`{name}` is given twice in `{path[-1]}`"
            )


def _find_patterns(raw: dict[str, Any]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield every pattern of a pack with its path."""
    for kind in _GUARDRAILS:
        for index, entry in enumerate(_list_entries(raw, *kind)):
            yield (*kind, index, "pattern"), entry.get("pattern")
    for index, intent in enumerate(_list_entries(raw, "decision_layer", "intents")):
        path = ("decision_layer", "intents", index)
        for number, pattern in enumerate(list_of(intent.get("patterns"))):
            yield (*path, "patterns", number), pattern
        for name, slot in object_of(intent.get("slots")).items():
            yield (*path, "slots", name, "pattern"), object_of(slot).get("pattern")


def _list_entries(raw: dict[str, Any], *path: str) -> list[dict[str, Any]]:
    """Return the entries of a list below unchecked sections. An entry that is not an object becomes an empty one."""
    for name in path[:-1]:
        raw = object_of(raw.get(name))
    return [object_of(entry) for entry in list_of(raw.get(path[-1]))]
