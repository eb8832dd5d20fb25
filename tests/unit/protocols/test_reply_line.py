from __future__ import annotations

from typing import Any

import pytest

from cogcli.protocols.live.response import reply_line
from cogcli.protocols.secrets import Secrets


def line(body: Any, **record: Any) -> str:
    secrets = Secrets({"KEY": "sesame-open"}, lambda _: None)
    secrets.resolve("KEY")
    return reply_line({"reply": {"media_type": "", "body": body}, **record}, secrets)


@pytest.mark.parametrize(
    ("body", "record", "said"),
    [
        ({"a": ["x"]}, {"status_code": 200, "response_bytes": 1022}, 'HTTP 200, 1,022 bytes  {"a":["x"]}'),
        ("<h1>\n  hello", {"status_code": 400, "response_bytes": 12}, "HTTP 400, 12 bytes  <h1> hello"),
        (None, {"status_code": 204, "response_bytes": 0}, "HTTP 204, 0 bytes"),
        ({"text": "x"}, {}, '{"text":"x"}'),
        ("say \x1b[31m sesame-open", {}, "say \\x1b[31m [masked]"),
        ({"password": "other"}, {}, '{"password":"[masked]"}'),
    ],
)  # fmt: skip
def test_status_size_and_beginning_are_one_line_without_secrets(
    body: Any, record: Any, said: str
) -> None:
    assert line(body, **record) == said


def test_a_long_reply_is_cut_and_a_huge_one_not_shown() -> None:
    assert line("y" * 200) == "y" * 119 + "…"
    assert line("y" * 100_000, status_code=200, response_bytes=100_000) == "HTTP 200, 100,000 bytes"


def test_where_nothing_was_answered_there_is_no_line() -> None:
    secrets = Secrets({}, lambda _: None)
    assert reply_line(None, secrets) == ""
    assert reply_line({"url": "http://a"}, secrets) == ""
