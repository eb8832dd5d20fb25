"""Tools called over stdio: what goes out, what comes back, and how failures are told
(docs/reference/protocols.md#failures, docs/reference/protocols.md#mcp)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.mcp_calls import Caller, is_alive, pids, service
from support.waiting import wait_until

from cogcli.base.calls import Cancellation, Member, chain_from_payload
from cogcli.base.errors import RuntimeErrorBase
from cogcli.declarations.service_spec import Service, ServiceMetadata
from cogcli.protocols.live.runner import start_seconds

pytestmark = [pytest.mark.slow, pytest.mark.sampled(4)]

TOOLS = service()


@pytest.fixture(scope="module")
def call() -> Iterator[Caller]:
    """One invoker, and so one server, for all tests that leave it whole."""
    caller = Caller()
    yield caller
    caller.invoker.close(5)


@pytest.fixture
def own() -> Iterator[Caller]:
    """An invoker for one test."""
    caller = Caller()
    yield caller
    caller.invoker.close(5)


# -- bodies -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "mode", "body"),
    [
        ("structured", "json", {"said": "hello", "n": 1}),
        ("object_text", "json", {"said": "hello"}),
        ("echo", "json", {"text": "hello", "content": [{"type": "text", "text": "hello"}]}),
        ("echo", "text", {"text": "hello"}),
        ("structured", "text", {"text": "ignored"}),
        ("blocks", "text", {"text": "one\ntwo"}),
        (
            "structured",
            "raw",
            {
                "structured": {"said": "hello", "n": 1},
                "text": "ignored",
                "content": [{"type": "text", "text": "ignored"}],
            },
        ),
    ],
)
def test_a_body_follows_from_the_response_mode(
    call: Caller, tool: str, mode: str, body: Any
) -> None:
    assert call(tool, service=TOOLS, response_mode=mode).body == body


def test_a_link_is_data_and_stays_as_it_came(call: Caller) -> None:
    content = call("blocks", service=TOOLS).body["content"]
    assert content[1] == {"type": "resource_link", "name": "x", "uri": "http://127.0.0.1:9/never"}


def test_a_result_of_links_alone_has_no_text(own: Caller) -> None:
    tools = service("--named=links")
    link = {"type": "resource_link", "name": "x", "uri": "http://127.0.0.1:9/never"}
    assert own("links", service=tools).body == {"content": [link]}
    error = own.refused("links", service=tools, response_mode="text")
    assert (error.code, error.left) == ("response.missing", True)
    assert error.message.endswith("the result has no text; its blocks are resource_link")


def test_no_task_is_started_and_one_that_was_is_no_result(tmp_path: Path, own: Caller) -> None:
    ledger = tmp_path / "ledger"
    tools = service("--named=task,later", "--as-task=later", f"--ledger={ledger}")
    error = own.refused("later", service=tools)
    assert (error.code, error.left) == ("call.rejected", False)
    assert "tool `later` runs only as a task" in error.message
    assert not ledger.exists() or "call" not in ledger.read_text()
    error = own.refused("task", service=tools)
    assert (error.code, error.left) == ("call.server-error", True)


def test_usage_is_taken_from_meta_and_only_whole_counts_of_it(call: Caller) -> None:
    assert call("usage", service=TOOLS).meta.usage == {"input_tokens": 7, "output_tokens": 2}


def test_the_record_tells_what_went_over_the_wire(call: Caller) -> None:
    record = call("structured", service=TOOLS).meta.to_payload()
    assert record["method"] == "tools/call"
    assert record["request"]["body"] == {"name": "structured", "arguments": {"text": "hello"}}
    assert record["reply"]["body"]["structuredContent"] == {"said": "hello", "n": 1}
    assert record["request_bytes"] > 100
    assert record["response_bytes"] > 50
    assert record["duration_ms"] >= 0
    assert "notices" not in record


def test_an_idempotency_key_goes_with_calls_that_have_effects_only(call: Caller) -> None:
    metas = {
        effect: call("echo_meta", service=TOOLS, effect=effect).body["meta"]
        for effect in ("none", "unknown", "idempotent", "effect")
    }
    keys = {effect: meta.get("cogcli/idempotency-key") for effect, meta in metas.items()}
    assert keys == {"none": None, "unknown": None, "idempotent": "key-1", "effect": "key-1"}
    assert all(
        meta["traceparent"].startswith("00-0af7651916cd43dd8448eb211c80319c-")
        for meta in metas.values()
    )


# -- one session ------------------------------------------------------------------------------------------------------


def test_calls_share_one_server_and_run_in_parallel(tmp_path: Path, own: Caller) -> None:
    file = tmp_path / "pids"
    tools = service(f"--pid={file}")
    own("echo", service=tools)
    answers: list[Any] = []

    def meet() -> None:
        answers.append(own("meets", service=tools).body["text"])

    threads = [threading.Thread(target=meet) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == ["met"] * 4
    assert len(pids(file)) == 1


def test_a_broken_connection_is_opened_once_more_and_not_again(tmp_path: Path, own: Caller) -> None:
    file = tmp_path / "pids"
    tools = service(f"--pid={file}")
    first = own.refused("dies", service=tools)
    assert (first.code, first.left, first.message) == (
        "call.transport",
        True,
        "the server ended with exit status 3: last words",
    )
    assert first.record
    assert first.record["stderr"] == "last words\n"
    assert own("echo", service=tools).body["text"] == "hello"
    own.refused("dies", service=tools)
    last = own.refused("echo", service=tools)
    assert (last.code, last.left) == ("call.transport", False)
    assert "is not opened again" in last.message
    assert len(pids(file)) == 2


def test_a_call_that_hangs_ends_at_its_deadline_and_the_server_is_told(
    tmp_path: Path, own: Caller
) -> None:
    ledger = tmp_path / "ledger"
    tools = service(f"--ledger={ledger}")
    own("echo", service=tools)
    error = own.refused("hangs", service=tools, seconds=0.5)
    assert (error.code, error.left) == ("call.timeout", True)
    wait_until(lambda: "notifications/cancelled" in ledger.read_text())
    assert own("echo", service=tools).body["text"] == "hello"


def test_a_call_that_nobody_waits_for_is_cancelled(tmp_path: Path, own: Caller) -> None:
    ledger = tmp_path / "ledger"
    tools = service(f"--ledger={ledger}")
    own("echo", service=tools)
    cancel = Cancellation()

    def give_up() -> None:
        wait_until(lambda: "call hangs" in ledger.read_text())
        cancel.set()

    thread = threading.Thread(target=give_up)
    thread.start()
    error = own.refused("hangs", service=tools, cancel=cancel)
    thread.join()
    assert (error.code, error.left) == ("call.timeout", True)
    wait_until(lambda: "notifications/cancelled" in ledger.read_text())


# -- failures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rpc", "code"),
    [
        (-32602, "call.rejected"),
        (-32601, "call.rejected"),
        (-32603, "call.server-error"),
        (-32050, "call.server-error"),
        (-32001, "call.timeout"),
        (7, "call.rejected"),
    ],
)
def test_an_rpc_error_is_told_by_its_code(call: Caller, rpc: int, code: str) -> None:
    error = call.refused("code", {"text": str(rpc)}, service=TOOLS)
    assert (error.code, error.left) == (code, True)
    assert f"so it is (code {rpc})" in error.message
    assert error.record
    assert error.record["method"] == "tools/call"


def test_a_tool_that_fails_is_a_rejection_with_its_words(call: Caller) -> None:
    error = call.refused("fails", service=TOOLS)
    assert (error.code, error.message, error.left) == (
        "call.rejected",
        "the tool failed: no: hello",
        True,
    )
    assert error.record
    assert error.record["reply"]["body"]["isError"] is True  # type: ignore[index]


def test_an_unknown_tool_is_refused_before_anything_leaves(call: Caller) -> None:
    error = call.refused("nothing", service=TOOLS)
    assert (error.code, error.left) == ("call.rejected", False)
    assert "has no tool `nothing`" in error.message


def test_arguments_are_checked_before_anything_leaves(tmp_path: Path, own: Caller) -> None:
    ledger = tmp_path / "ledger"
    tools = service(f"--ledger={ledger}")
    error = own.refused("echo", {"text": 5}, service=tools)
    assert (error.code, error.left) == ("request.value", False)
    assert "`text`" in error.message
    assert "call" not in ledger.read_text()


@pytest.mark.parametrize("tool", ["wrong_types", "no_object"])
def test_a_malformed_reply_is_a_server_fault(call: Caller, tool: str) -> None:
    error = call.refused(tool, service=TOOLS)
    assert (error.code, error.left) == ("call.server-error", True)


@pytest.mark.parametrize("tool", ["not_a_number", "twice_a_key", "deep"])
def test_a_reply_that_is_no_strict_json_fails_its_call_only(call: Caller, tool: str) -> None:
    error = call.refused(tool, service=TOOLS)
    assert (error.code, error.left) == ("response.not-json", True)
    assert call("echo", service=TOOLS).body["text"] == "hello"


def test_noise_is_counted_in_the_record_of_the_call(call: Caller) -> None:
    answer = call("noisy", service=TOOLS)
    assert answer.body["text"] == "fine"
    assert answer.meta.notices == ["6 lines on stdout were no messages"]
    assert call("echo", service=TOOLS).meta.notices is None


def test_a_reply_that_breaks_its_own_schema_is_a_server_fault(call: Caller) -> None:
    error = call.refused("breaks_promise", service=TOOLS)
    assert error.code == "call.server-error"
    assert "output schema" in error.message


@pytest.mark.parametrize("which", ["takes", "gives"])
@pytest.mark.parametrize(
    ("pattern", "engine", "is_run"),
    [
        ("^(a|a)*$", "", True),
        ("^((a+)+)+$", "", True),
        ("^(a|a)*$", "jsonschema", False),
        ("^a*a*a*a*b$", "jsonschema", False),
        ("^(?=a)a+$", "", False),
        (r"^(a)\1$", "", False),
        ("^((a{1000}){1000}){1000}$", "", False),
    ],
)
def test_a_pattern_of_a_server_that_is_not_locked_is_applied_or_its_tool_is_not_called(
    own: Caller,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    which: str,
    pattern: str,
    engine: str,
    is_run: bool,
) -> None:
    monkeypatch.setenv("COGCLI_SCHEMA_ENGINE", engine)
    schema: dict[str, Any] = {"anyOf": [{"type": "string", "pattern": pattern}, {"const": 7}]}
    if which == "gives":
        schema = {"type": "object", "properties": {"said": schema}}
    server = service(f"--{which}={json.dumps(schema)}", f"--ledger={tmp_path / 'ledger'}")
    error = own.refused("structured", {"text": "a" * 60 + "!"}, service=server)
    if is_run:
        assert error.code == ("request.value" if which == "takes" else "call.server-error")
        return
    assert (error.code, error.left) == ("call.rejected", False)
    assert pattern[:20] in error.message
    assert "cannot be run" in error.message
    assert error.hint
    assert own("echo", service=server).body["text"] == "hello"


@pytest.mark.parametrize("which", ["takes", "gives"])
def test_a_schema_of_a_server_that_cannot_be_applied_is_told_with_the_call(
    own: Caller, which: str
) -> None:
    schema = (
        {"type": "object", "$ref": "https://a.example/x"}
        if which == "gives"
        else {"$ref": "#/nowhere"}
    )
    server = service(f"--{which}={json.dumps(schema)}")
    notices = own("structured", service=server).meta.notices
    what = "input" if which == "takes" else "output"
    assert notices == [
        f"the {what} schema of tool `structured` cannot be applied: nothing was checked by it"
    ]


def test_sizes_are_capped_both_ways(call: Caller) -> None:
    error = call.refused("echo", {"text": "x" * 200}, service=TOOLS, max_request_bytes=100)
    assert (error.code, error.left) == ("request.size", False)
    error = call.refused("echo", {"text": "x" * 200}, service=TOOLS, max_response_bytes=100)
    assert (error.code, error.left) == ("response.size", True)
    error = call.refused("echo", {"text": "x" * 9_000_000}, service=TOOLS)
    assert (error.code, error.left) == ("request.size", False)


# -- starting and ending ----------------------------------------------------------------------------------------------


def test_a_program_that_is_not_there_is_told_by_name(own: Caller) -> None:
    error = own.refused("echo", service=service(command="no-such-program"))
    assert (error.code, error.left) == ("call.transport", False)
    assert "`no-such-program`" in error.message


def test_a_server_that_ends_while_starting_gives_its_reason(own: Caller) -> None:
    error = own.refused("echo", service=service("--dead"))
    assert (error.code, error.left) == ("call.transport", False)
    assert error.message == "the server ended with exit status 1: cannot find my model file"


KILLED = """
import sys
from support.mcp_calls import Caller, service
caller, tools = Caller(), service(f"--pid={sys.argv[1]}", *sys.argv[2:])
print("started", flush=True)
caller("breeds", service=tools)
print("ready", flush=True)
caller("hangs", service=tools)
"""


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def nobody_left(found: list[int]) -> None:
    """Wait until all of these are gone; end them whatever happens."""
    try:
        wait_until(lambda: not any(map(is_alive, found)))
    finally:
        for pid in filter(is_alive, found):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="guards need Linux")
def test_nothing_of_a_server_outlives_us_however_we_end(tmp_path: Path) -> None:
    """The server, its child, one in its own session, and a daemon that lost its parent; none of them ends gently."""
    file = tmp_path / "pids"
    tests = Path(__file__).resolve().parents[2]
    started = [sys.executable, "-c", KILLED, str(file), "--deaf"]
    with subprocess.Popen(
        started, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(tests)}
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"started\n"
        assert process.stdout.readline() == b"ready\n"
        family = pids(file)
        guards = [parent_of(family[0]), parent_of(parent_of(family[0]))]
        process.kill()
    assert len(family) == 4
    nobody_left([*family, *guards])


@pytest.mark.skipif(sys.platform != "linux", reason="guards need Linux")
@pytest.mark.parametrize("killed", ["outer", "inner"])
def test_nothing_of_a_server_outlives_its_guard(tmp_path: Path, own: Caller, killed: str) -> None:
    file = tmp_path / "pids"
    tools = service(f"--pid={file}")
    own("breeds", service=tools)
    family = pids(file)
    inner = parent_of(family[0])
    outer = parent_of(inner)
    assert parent_of(outer) == os.getpid()
    os.kill(outer if killed == "outer" else inner, signal.SIGKILL)
    nobody_left([*family, inner, outer])


@pytest.mark.sampled(8)
@pytest.mark.skipif(sys.platform != "linux", reason="guards need Linux")
def test_a_server_that_is_killed_while_it_starts_leaves_nothing(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    tests = Path(__file__).resolve().parents[2]
    started = [sys.executable, "-c", KILLED, str(file), "--silent"]
    with subprocess.Popen(
        started, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(tests)}
    ) as process:
        wait_until(lambda: pids(file) != [])
        process.kill()
    nobody_left(pids(file))


def test_how_a_server_ended_is_told_whoever_it_left_behind(tmp_path: Path, own: Caller) -> None:
    """Guards stay with what is left, yet the end of the program itself is known."""
    file = tmp_path / "pids"
    tools = service(f"--pid={file}")
    own("breeds", service=tools)
    error = own.refused("dies", service=tools)
    assert error.message == "the server ended with exit status 3: last words"
    own.invoker.close(5)
    nobody_left(pids(file))


def test_a_silent_server_costs_the_deadline_and_is_killed(tmp_path: Path, own: Caller) -> None:
    file = tmp_path / "pids"
    error = own.refused("echo", service=service("--silent", f"--pid={file}"), seconds=1)
    assert (error.code, error.left) == ("call.timeout", False)
    assert error.message == "the server was not ready in time"
    wait_until(lambda: not any(map(is_alive, pids(file))))


@pytest.mark.parametrize("option", ["--silent", "--dead"])
def test_the_start_has_its_own_time_and_tells_what_the_server_said(
    own: Caller, option: str
) -> None:
    begun = time.monotonic()
    tools = service("--grumbles", option)
    error = own.refused("echo", service=tools, call_seconds=0.01, start_seconds=1)
    late = option == "--silent"
    assert (error.code, error.left) == ("call.timeout" if late else "call.transport", False)
    if late:
        assert time.monotonic() - begun >= 1, "the time of a call does not bound the start"
        assert (
            error.message
            == "the server was not ready in time: fetching a package | still fetching | no network"
        )
        assert "`timeout_seconds` of its binding, else of its service" in error.hint
    else:
        assert error.message.endswith(
            "status 1: still fetching | no network | cannot find my model file"
        )
    assert error.record
    assert error.record["stderr"].startswith("first\n")


def test_a_call_that_hangs_after_a_slow_start_has_its_own_time_too(own: Caller) -> None:
    error = own.refused("hangs", service=TOOLS, seconds=3600, call_seconds=0.5, start_seconds=3600)
    assert (error.code, error.left) == ("call.timeout", True)


@pytest.mark.parametrize(
    ("settings", "metadata", "seconds"),
    [
        ({"command": "npx"}, {}, 60.0),
        ({"command": "npx"}, {"timeout_seconds": 5}, 5.0),
        ({"url": "https://example.org/mcp"}, {"timeout_seconds": 5}, 0.0),
        ({"server": "official_text_tools"}, {}, 0.0),
    ],
)
def test_a_start_may_take_as_long_as_the_service_says(
    settings: dict[str, Any], metadata: dict[str, Any], seconds: float
) -> None:
    found = start_seconds(
        Service(id="tools", kind="mcp", settings=settings, metadata=ServiceMetadata.of(metadata))
    )
    assert found == seconds
    member = Member("b", "tools", "mcp", 30.0, start_seconds=found)
    assert member.limit == 30.0 + seconds
    assert ("start_seconds" in member.to_payload()) is (seconds > 0)
    assert chain_from_payload({"members": [member.to_payload()]}).members == (member,)


def test_a_server_without_trust_is_never_started(own: Caller) -> None:
    error = own.refused("echo", service=TOOLS.replace(trusted=False))
    assert (error.code, error.left) == ("service.untrusted", False)


def test_a_secret_reaches_the_server_and_the_redactor(tmp_path: Path) -> None:
    caller = Caller({"MY_KEY": "sesame-sesame"})
    try:
        body = caller(
            "surroundings", service=service(env={"KEY": "x${MY_KEY}", "A": "b"}, root=tmp_path)
        ).body
    finally:
        caller.invoker.close(5)
    assert {"KEY", "A", "PATH", "HOME"} <= set(body["names"])
    assert "SECRET_NAME" not in body["names"]
    assert body["cwd"] == str(tmp_path)
    assert caller.learned == ["sesame-sesame"]


def test_an_unset_variable_is_told_before_anything_starts(own: Caller) -> None:
    error = own.refused("echo", service=service(env={"KEY": "${NOT_THERE}"}))
    assert (error.code, error.left) == ("env.missing", False)


def test_closing_twice_is_fine_and_nothing_starts_afterwards() -> None:
    caller = Caller()
    caller("echo", service=TOOLS)
    caller.invoker.close(5)
    caller.invoker.close(5)
    assert caller.refused("echo", service=TOOLS).code == "call.transport"


# -- shipped tables ---------------------------------------------------------------------------------------------------


def test_a_shipped_server_is_called_without_any_process(own: Caller) -> None:
    shipped = Service(id="text", kind="mcp", settings={"server": "official_text_tools"})
    assert own("normalize", {"text": "a  b"}, service=shipped).body["text"] == "a b"
    raw = own("normalize", {"text": "a  b"}, service=shipped, response_mode="raw").body
    assert raw["structured"]["text"] == "a b"
    refused = own.refused("normalise", service=shipped)
    assert (refused.code, refused.hint) == ("call.rejected", "did you mean `normalize`?")
    assert own.refused("normalize", {"no": 1}, service=shipped).code == "request.value"


def test_every_shipped_tool_is_a_function_that_exists() -> None:
    import importlib

    from cogcli.specs.service import TABLES

    for table in TABLES.values():
        for module, function in table.values():
            assert callable(getattr(importlib.import_module(f"cogcli.official.{module}"), function))


def test_without_the_extra_the_line_that_installs_it_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "mcp", None)
    caller = Caller()
    with pytest.raises(RuntimeErrorBase) as caught:
        caller("echo", service=TOOLS)
    assert (caught.value.code, caught.value.hint) == ("env.extra", "pip install 'cogcli[mcp]'")
