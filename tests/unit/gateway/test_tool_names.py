"""Names of upstream tools: unique, stable, short, and in the characters that hosts accept."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from cogcli.gateway.tool_names import LONGEST, capability_ids, client_name
from cogcli.specs.id_grammar import CAPABILITY_ID

PAIRS = st.tuples(st.text(min_size=1, max_size=70), st.text(min_size=1, max_size=70))
SEPARATORS = st.text(alphabet="a_-", min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("server", "tool", "name"),
    [
        ("files", "read", "files__read"),
        ("files", "read__all", "files__read__all"),
        ("a" * 30, "b" * 28, f"{'a' * 30}__{'b' * 28}"),
    ],
)
def test_a_plain_name_is_server_and_tool(server: str, tool: str, name: str) -> None:
    assert client_name(server, tool) == name


@pytest.mark.parametrize(
    ("server", "tool"),
    [
        ("a__b", "c"),
        ("a_", "b"),
        ("files", "read file"),
        ("files", "lösche"),
        ("a" * 30, "b" * 29),
        ("x", "\ud800"),
    ],
)
def test_any_other_name_ends_with_a_digest(server: str, tool: str) -> None:
    name = client_name(server, tool)
    assert re.fullmatch(r"[A-Za-z0-9_-]+-[0-9a-f]{8}", name)
    assert len(name) <= LONGEST
    assert name == client_name(server, tool)


@examples(200)
@given(st.tuples(SEPARATORS, SEPARATORS), st.tuples(SEPARATORS, SEPARATORS))
def test_two_pairs_never_share_a_name(first: tuple[str, str], second: tuple[str, str]) -> None:
    assert (client_name(*first) == client_name(*second)) == (first == second)


@examples(200)
@given(PAIRS)
def test_every_name_is_one_that_hosts_accept(pair: tuple[str, str]) -> None:
    assert re.fullmatch(rf"[A-Za-z0-9_-]{{1,{LONGEST}}}", client_name(*pair))
    (id,) = capability_ids(pair[0], [pair[1]]).values()
    assert CAPABILITY_ID.fullmatch(id)


def test_tools_that_differ_in_case_alone_share_no_capability() -> None:
    ids = capability_ids("files", ["readFile", "read_file", "list", "list"])
    assert ids["list"] == "mcp.files.list"
    assert len(set(ids.values())) == len(ids) == 3
    assert all(re.search(r"-[0-9a-f]{8}$", ids[name]) for name in ("readFile", "read_file"))


def test_servers_that_differ_in_case_alone_share_no_capability() -> None:
    found = [capability_ids(server, ["x"])["x"] for server in ("files", "Files", "FILES", "f iles")]
    assert len(set(found)) == 4
