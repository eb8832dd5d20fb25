from __future__ import annotations

import pytest

from cogcli.run.prepare import check_frame, check_inputs
from cogcli.specs.fields import fields_from

FIELDS = fields_from(
    {
        "text": {"type": "string", "required": True},
        "style": {"type": "string", "default": "plain", "enum": ["plain", "legal"]},
        "items": {"type": "array", "items": {"type": "integer"}},
    }
)


def test_defaults_are_applied() -> None:
    assert check_inputs(FIELDS, {"text": "t"}) == ({"text": "t", "style": "plain"}, [])


def test_every_problem_is_told_together() -> None:
    _, problems = check_inputs(FIELDS, {"txt": 1, "style": "loud", "items": [1, "x"]})
    assert [(p.code, p.path) for p in problems] == [
        ("input.unknown", "/inputs/txt"),
        ("input.missing", "/inputs/text"),
        ("input.enum", "/inputs/style"),
        ("input.type", "/inputs/items/1"),
    ]
    assert "`text`" in problems[0].hint
    assert problems[3].message == 'input `items/1`: expected integer, found text "x"'


def test_unknown_input_without_a_near_name_tells_what_there_is() -> None:
    _, problems = check_inputs(FIELDS, {"text": "t", "zzz": 1})
    assert problems[0].hint == "this skill takes `text`, `style`, `items`"
    assert check_inputs({}, {"zzz": 1})[1][0].hint == "this skill takes no inputs"


def test_frame_has_the_six_fields_of_the_seed() -> None:
    frame = {
        "goal": "g",
        "context": {},
        "constraints": {"budget": 1},
        "success_criteria": {},
        "assumptions": ["a"],
        "priority": "high",
    }
    assert check_frame(frame) == (frame, [])


@pytest.mark.parametrize(
    ("frame", "path"),
    [
        ({"gaol": "x"}, "/frame/gaol"),
        ({"goal": 3}, "/frame/goal"),
        ({"assumptions": ["a", 1]}, "/frame/assumptions/1"),
        ({"constraints": []}, "/frame/constraints"),
    ],
)
def test_other_frames_are_refused(frame: dict[str, object], path: str) -> None:
    _, problems = check_frame(frame)
    assert [(p.code, p.path) for p in problems] == [("frame.field", path)]
