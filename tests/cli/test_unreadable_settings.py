"""What of a configuration file cannot be read is one kind of problem, told with its line."""

from __future__ import annotations

from typing import Any

import pytest

from cogcli.app.settings.config import ConfigFile

UNREADABLE = (
    b"9" * 6000, b"0x" + b"f" * 6000, b"1e99999", b"inf", b"2021-02-30", b"true", b"'\xff'", b"'a\0b'",
    b'["a\\u0000b"]', b'"\\ud800"', b"1\rfoo", b"1 1", b"'open", b"2\nmax_workers = 2", b"",
)  # fmt: skip
RUN = ("run", "text.language", "-p", "text=x", "--json")


@pytest.mark.parametrize("key", ["max_workers", "registry", "x-own"])
@pytest.mark.parametrize("value", UNREADABLE, ids=lambda value: ascii(value[:20]))
def test_each_unreadable_value_is_told_with_its_line(project: Any, key: str, value: bytes) -> None:
    path = project.write("cogcli.toml", b"# here\n\n" + key.encode() + b" = " + value + b"\n")
    file = ConfigFile(str(path), "cogcli.toml", project=True)
    if key == "x-own" and not file.problems:
        return  # an extension may hold whatever TOML lets through
    (problem, *_) = file.problems
    assert (problem.code, problem.exit_code, problem.file) == ("config.key", 3, "cogcli.toml")
    assert problem.line in (3, 4), problem


def test_where_bytes_stand_is_told_behind_a_byte_order_mark_too(project: Any) -> None:
    project.write("cogcli.toml", b"\xef\xbb\xbf# here\nx-y = '\xff'\n")
    error = project.run(*RUN).assert_exit(3).json["error"]
    assert (error["code"], error["line"]) == ("config.key", 2)
    assert "byte 0xFF" in error["message"]


def test_a_registry_that_is_none_is_told_with_the_line_that_names_it(project: Any) -> None:
    project.write("cogcli.toml", '# here\nregistry = ["absent"]\n')
    error = project.run(*RUN).assert_exit(2).json["error"]
    assert (error["code"], error["file"], error["line"]) == ("registry.missing", "cogcli.toml", 2)
    project.write("cogcli.toml", "")
    assert "file" not in project.run(*RUN, "--registry", "absent").assert_exit(2).json["error"]
