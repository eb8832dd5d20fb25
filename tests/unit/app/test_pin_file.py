"""Pins of packs in a configuration file: one line changes, and nothing else (docs/reference/pack.md#pins)."""

from __future__ import annotations

import tomllib

import pytest

from cogcli.app.settings.pin_file import InvalidPin, with_pin

FILE = """# ours
max_workers = 4  # two by two

[packs.pins]  # what runs here
support-desk = "4.0.0"  # since May
"billing.desk" = '1.0.0'

[packs.env.prod]
# nothing yet

[x-notes]
packs = "[packs.pins]"
"""


def _changed(text: str, *change: str | None) -> list[str]:
    """The lines that a change removes and adds."""
    environment, id, version = change
    before = text.splitlines()
    after = with_pin(text, environment or "", id or "", version).splitlines()
    gone = [f"-{line}" for line in before if line not in after]
    return gone + [f"+{line}" for line in after if line not in before]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            ("", "support-desk", "4.1.0"),
            ['-support-desk = "4.0.0"  # since May', '+support-desk = "4.1.0"  # since May'],
        ),
        (
            ("", "billing.desk", "1.1.0"),
            ["-\"billing.desk\" = '1.0.0'", '+"billing.desk" = "1.1.0"'],
        ),
        (("", "other", "2.0.0"), ['+other = "2.0.0"']),
        (("prod", "support-desk", "4.1.0"), ['+support-desk = "4.1.0"']),
        (("test", "support-desk", "4.1.0"), ["+[packs.env.test]", '+support-desk = "4.1.0"']),
        (("", "support-desk", None), ['-support-desk = "4.0.0"  # since May']),
        (("prod", "support-desk", None), []),
        (("", "support-desk", "4.0.0"), []),
    ],
)
def test_one_line_changes(change: tuple[str | None, ...], expected: list[str]) -> None:
    assert _changed(FILE, *change) == expected


@pytest.mark.parametrize(
    "text", ["", "# a comment without an end", "max_workers = 4\r\n", "\ufeffmax_workers = 4\n"]
)
def test_a_file_without_the_table_gets_one(text: str) -> None:
    after = with_pin(text, "", "desk", "1.0.0")
    assert after.startswith(text)
    assert tomllib.loads(after.removeprefix("\ufeff"))["packs"] == {"pins": {"desk": "1.0.0"}}
    if "\r" in text:
        assert after.count("\n") == after.count("\r\n")


@pytest.mark.parametrize(
    "text",
    [
        'packs = {pins = {desk = "1.0.0"}}\n',
        'packs.pins.desk = "1.0.0"\n',
        '[packs]\npins = {desk = "1.0.0"}\n',
        '[packs]\npins.desk = "1.0.0"\n',
        'x-text = """\n[packs.pins]\n"""\n[packs.pins]\ndesk = "1.0.0"\n',
    ],
)
def test_a_form_that_is_not_a_line_of_the_table_is_left_to_its_author(text: str) -> None:
    with pytest.raises(InvalidPin):
        with_pin(text, "", "desk", "1.1.0")
