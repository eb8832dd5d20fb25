"""The entries of a host's file: one that cannot be used has its reason, and hides no other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cogcli.base.errors import UnusableEnvironment
from cogcli.gateway.host_file import read_host_file


def read(folder: Path, content: bytes) -> Any:
    """The servers of a file with this content."""
    file = folder / ".mcp.json"
    file.write_bytes(content)
    return read_host_file(str(file), shown=".mcp.json", is_trusted=True)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ([1], "it is not an object"),
        (None, "it is not an object"),
        ({}, "it needs either `command` or `url`"),
        ({"command": 5}, "its `command` is not text"),
        ({"command": "x", "url": "http://a"}, "it needs either `command` or `url`"),
        ({"command": "x", "args": "y"}, "its `args` is not a list"),
        ({"command": "x", "args": [1]}, "its `args` are not all text"),
        ({"command": "x", "env": ["A=b"]}, "its `env` is not an object"),
        ({"command": "x", "env": {"A": 1}}, "`A` is not text"),
        ({"command": "x", "cwd": 5}, "its `cwd` is not text"),
        ({"command": "x", "type": ["stdio"]}, "its `type` is not text"),
        ({"url": "http://a", "headers": []}, "its `headers` is not an object"),
        ({"url": "http://a", "type": "sse"}, "its type `sse` is not spoken: use `http`"),
        ({"url": "ftp://a"}, "its `url` is not http or https"),
        ({"url": "http://["}, "its `url` has no valid host and port"),
        ({"url": "http://a:99999/x"}, "its `url` has no valid host and port"),
        ({"url": "http://a:b/x"}, "its `url` has no valid host and port"),
        ({"url": "http:///x"}, "its `url` has no valid host and port"),
        ({"url": ""}, "its `url` has no valid host and port"),
    ],
)
def test_an_entry_that_cannot_be_used_has_its_reason(
    tmp_path: Path, entry: Any, reason: str
) -> None:
    good = {"command": "x", "args": None, "env": None, "cwd": None, "url": None}
    content = json.dumps({"mcpServers": {"bad": entry, "good": good}}).encode()
    bad, other = read(tmp_path, content)
    assert (bad.service, bad.fault) == (None, reason)
    assert other.service.settings["command"] == "x"


@pytest.mark.parametrize(
    ("content", "place"), [(b"", ".mcp.json: the text is empty"), (b"{\n[", ".mcp.json:2: ")]
)
def test_a_file_that_cannot_be_read_is_named_with_its_line(
    tmp_path: Path, content: bytes, place: str
) -> None:
    with pytest.raises(UnusableEnvironment) as refused:
        read(tmp_path, content)
    assert refused.value.message.startswith(place)
