"""The shape and the rules of packs (docs/reference/pack.md#keys)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cogcli.base.jsonvalue import Json
from cogcli.base.problems import KeyPath
from cogcli.base.schema.patterns import refusal
from cogcli.declarations.pack_spec import Pack
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.shape import ListOf, RecordShape
from cogcli.specs.shape_of_spec import shape_of_spec
from cogcli.specs.skill_shape import check_steps
from cogcli.specs.unchecked import list_at, object_at, objects_at, text_at, value_at

PACK: Final = shape_of_spec(Pack)


def _find_unique_lists(shape: RecordShape) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the lists whose entries need unique names, as (path of the list, key of the name)."""
    for name, key in shape.keys.items():
        match key.shape:
            case ListOf(unique=own) if own:
                yield (name,), own
            case RecordShape():
                for path, own in _find_unique_lists(key.shape):
                    yield (name, *path), own


_NAMED: Final = tuple(_find_unique_lists(PACK))
_GUARDRAILS: Final = tuple(
    ("policy_layer", "guardrails", kind) for kind in ("must_refuse", "must_escalate")
)
_TEMPLATES: Final = ("decision_layer", "task_templates")
_TARGETS: Final = ("evaluation_layer", "targets")
_INTENTS: Final = ("decision_layer", "intents")


def _check_patterns(raw: Json, report: ProblemReport) -> None:
    """Report patterns that cannot be matched in linear time."""
    for path, pattern in _find_patterns(raw):
        if isinstance(pattern, str) and (why := refusal(pattern)):
            report.error("pack.pattern", path, f"pattern `{pattern}`: {why}")


def check_pack(raw: Json, report: ProblemReport) -> None:
    """Report faults of a single pack that its shape cannot express.

    These are patterns that cannot be matched in linear time, guardrails without a pattern or phrase, repeated names,
    and faults in the steps of templates.
    """
    for index, template in objects_at(raw, *_TEMPLATES):
        check_steps(template, report, *_TEMPLATES, index)
    _check_patterns(raw, report)
    for guardrails in _GUARDRAILS:
        for index, entry in enumerate(list_at(raw, *guardrails)):
            subject = f"guardrail `{value_at(entry, 'id')}`"
            _check_guardrail(entry, report.part(subject, *guardrails, index))
    for index, target in objects_at(raw, *_TARGETS):
        if value_at(target, "min") is None and value_at(target, "max") is None:
            report.error("key.missing", (*_TARGETS, index), "a target has neither `min` nor `max`")
    for place, key in _NAMED:
        names = [text_at(entry, key) for entry in list_at(raw, *place)]
        _check_names(names, key, report, place)


def _check_guardrail(entry: object, report: ProblemReport) -> None:
    if not value_at(entry, "pattern") and not value_at(entry, "phrases"):
        message, hint = "neither `pattern` nor `phrases`", "no text would meet it"
        report.error("key.missing", (), message, hint=hint)


def _check_names(
    names: list[str | None], key: str, report: ProblemReport, path: tuple[str, ...]
) -> None:
    for index, name in enumerate(names):
        if name is not None and name in names[:index]:
            message = f"`{name}` is given twice in `{path[-1]}`"
            report.error("pack.duplicate", (*path, index, key), message)


def _find_patterns(raw: Json) -> Iterator[tuple[KeyPath, object]]:
    """Yield (path, pattern) for every pattern of a pack."""
    for place in _GUARDRAILS:
        for index, entry in objects_at(raw, *place):
            yield (*place, index, "pattern"), value_at(entry, "pattern")
    for index, intent in objects_at(raw, *_INTENTS):
        path = (*_INTENTS, index)
        for number, pattern in enumerate(list_at(intent, "patterns")):
            yield (*path, "patterns", number), pattern
        for name, slot in object_at(intent, "slots").items():
            yield (*path, "slots", name, "pattern"), value_at(slot, "pattern")
