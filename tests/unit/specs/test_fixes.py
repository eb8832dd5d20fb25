"""Problems with exactly one right answer: it is put in, and nothing else changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogcli.base.yaml.edit import UneditableYaml, rename_key
from cogcli.base.yaml.reader import parse
from cogcli.protocols import PROTOCOLS
from cogcli.specs.fixes import RepairedText, repair

SKILL = """\
# What this is
id: shop.report   # its place
version: "1.0.0"
name: Report
description: Reports.
inputs:

  text: {type: string, required: true}  # given
outputs: {text: {type: string}}
steps:
  - id: a
    uses: text.content.normalize
    input: {text: inputs.text}   # from here
    output: {text: outputs.text}
    config:
      depends_on: []
      retry:
        max_attempts: 3
"""


def fixed(text: str, kind: str = "skill") -> RepairedText:
    return repair(text, kind, PROTOCOLS)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('version: "1.0.0"', "version: 1.0.0.0"),  # text already: nothing to answer
        ("    uses: text", "    usses: text"),
        ("    input: {text", "    inputt: {text"),
        ("description: Reports.", "desciption: Reports."),
        ("{type: string, required", "{typ: string, required"),
        ("{type: string, required", "{type: strng, required"),
        ("{type: string, required", "{type: String, required"),
        ("required: true}", 'required: "true"}'),
        ("max_attempts: 3", 'max_attempts: "3"'),
        ("max_attempts: 3", "max_atempts: 3"),
        ("name: Report\n", "nmae: Report\n"),
    ],
)
def test_the_one_right_answer_is_put_in_and_nothing_else_changes(right: str, wrong: str) -> None:
    result = fixed(SKILL.replace(right, wrong))
    if "1.0.0.0" in wrong:
        assert result == (SKILL.replace(right, wrong), [])
        return
    assert result.text == SKILL
    assert len(result.fixed) == 1


@pytest.mark.parametrize(
    ("right", "wrong", "answer"),
    [
        ('version: "1.0.0"', "version: 1.0", 'version: "1.0"'),
        ('version: "1.0.0"', "version: 1.10  # soon", 'version: "1.10"  # soon'),
        ("name: Report", "name: 007.50", None),  # no number: text
        ("name: Report", "name: true", 'name: "true"'),
        ("depends_on: []", "depends_on: b", "depends_on: [b]"),
    ],
)
def test_values_are_written_as_the_type_that_is_expected(
    right: str, wrong: str, answer: str | None
) -> None:
    broken = SKILL.replace(right, wrong)
    result = fixed(broken)
    assert result.text == (broken if answer is None else SKILL.replace(right, answer))


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (
            "    input: {text: inputs.text}",
            "    input: {}\n    inputs: {text: inputs.text}",
        ),  # is there already
        ("name: Report", "author: Ann\nname: Report"),  # like nothing
        ("      retry:", "      rey: 1\n      retry:"),
        ("id: shop.report ", "id: 5 "),  # quoted it is still no id
        ("depends_on: []", "depends_on: a, b"),
        ("max_attempts: 3", 'max_attempts: "3000"'),  # the number is too large
        ("max_attempts: 3", "max_attempts: three"),
        (
            "uses: text.content.normalize",
            "uses: text.content.normalise",
        ),  # an id names something else
        ("steps:", "steps: ["),
    ],
)
def test_what_has_another_answer_or_none_stays(right: str, wrong: str) -> None:
    broken = SKILL.replace(right, wrong)
    assert broken != SKILL
    assert fixed(broken) == (broken, [])


def test_a_secret_is_never_rewritten() -> None:
    text = "id: shop\nkind: openapi\nbase_url: https://shop.example\nmetadata: {headers: {X-Api-Key: 12345}}\n"
    assert fixed(text, "service").text == text


def test_problems_below_a_renamed_key_are_found_and_answered() -> None:
    broken = SKILL.replace("retry:", "rety:").replace("max_attempts: 3", 'max_attempts: "3"')
    assert fixed(broken).text == SKILL
    broken = SKILL.replace("retry:", "rety:").replace("max_attempts: 3", "max_attempts: many")
    result = fixed(broken)
    assert result.text == SKILL.replace("max_attempts: 3", "max_attempts: many")
    assert len(result.fixed) == 1


def test_line_ends_stay() -> None:
    right = SKILL.replace("\n", "\r\n")
    assert fixed(right.replace("name:", "nmae:")).text == right


@given(
    st.text(alphabet="ab #:'\"{}[]-\n|é", max_size=30),
    st.sampled_from(("name", "a b", "on", "x: y")),
)
def test_a_renamed_key_is_renamed_or_refused(text: str, name: str) -> None:
    value = parse(text.encode(), file="").value
    for key in value or ():
        try:
            renamed = rename_key(text, (key,), name)
        except UneditableYaml:
            continue
        after = parse(renamed.encode(), file="").value
        assert after == {
            name if each == key else each: item for each, item in (value or {}).items()
        }
        assert len(renamed) - len(text) <= len(name) + 2
