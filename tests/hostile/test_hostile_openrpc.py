"""JSON-RPC services that mean no good, through the installed command. Names follow the list of hostile cases."""

from __future__ import annotations

import json
from typing import Any

import pytest
from attack import attack, hold_all_episodes
from support.raw_server import serving
from support.remote_project import SECRET, hits, remote

pytestmark = pytest.mark.sampled(4)


def answered(project: Any, **members: Any) -> Any:
    """The end of a run whose service answers with these members."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, **members}).encode()
    with serving(lambda c: c.reply(body)) as server:
        command = remote(project, "openrpc", server.url, "ask", service="auth_ref: A_KEY\n")
        outcome = attack(project, *command, env={"A_KEY": SECRET})
    hold_all_episodes(project)
    assert SECRET.encode() not in outcome.out + outcome.err
    assert hits(project) == []
    return outcome


@pytest.mark.parametrize("id", ["1", 2, 1.0, True, None, [1], {"id": 1}])
def test_R01_a_foreign_id_is_no_answer(project: Any, id: Any) -> None:
    outcome = answered(project, id=id, result={"text": "x"})
    assert (outcome.code, outcome.error) == (1, "call.server-error")
    assert "its id is" in outcome.envelope["error"]["message"]


@pytest.mark.parametrize(
    "members",
    [{"result": 1, "error": {"code": 1, "message": "x"}}, {"result": 1, "error": None}, {}],
)
def test_R02_both_or_neither_of_result_and_error(project: Any, members: Any) -> None:
    assert answered(project, **members).error == "call.server-error"


def test_R04_error_data_has_a_cap_and_is_masked_before(project: Any) -> None:
    error = {
        "code": -32000,
        "message": f"no {SECRET}",
        "data": {"token": "t" * 40, "echo": [SECRET] * 100},
    }
    assert answered(project, error=error).error == "call.server-error"
    huge = {"code": -32000, "message": "no", "data": SECRET + "x" * 20_000_000}
    assert answered(project, error=huge).error == "response.size"
    assert (
        sum(file.stat().st_size for file in project.root.rglob("*") if file.is_file()) < 1_000_000
    )


@pytest.mark.parametrize("method", ["rpc.discover\nX", "rpc.discover", "a b", "a\x00", "m" * 129])
def test_R05_method_names_are_checked(project: Any, method: str) -> None:
    outcome = attack(project, *remote(project, "openrpc", "https://a.example", method))
    assert outcome.code == 3
    assert not project.episodes


@pytest.mark.parametrize(
    "error",
    [
        {"code": "-32000", "message": None},
        {"code": None},
        {"message": {}},
        [],
        "x",
        3,
        {"code": 10**300, "message": "x"},
    ],
)
def test_R06_errors_of_any_form_crash_nothing(project: Any, error: Any) -> None:
    assert answered(project, error=error).error in ("call.server-error", "response.not-json")
