"""The rules of the mcp client, each checked with our mock server over stdio
(docs/reference/protocols.md#mcp, docs/reference/protocols.md#own-rules)."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any, Final

from cogcli.verification.harness import Bench, HarnessCall, Ran
from cogcli.verification.rule_runner import (
    InvokerRule,
    InvokerRules,
    RuleBroken,
    RuleSkipped,
    require,
    require_error,
    require_ok,
)

SERVER: Final = str(Path(__file__).with_name("mcp_mock.py"))
_PATIENT: Final = 20.0
_SHORT: Final = 0.3
_SECRET: Final = "s3cr3t-of-the-bench"  # noqa: S105


def _call_tool(bench: Bench, tool: str, *options: str, **wire: Any) -> Ran:
    """Call one tool of a mock server started for it."""
    require_sdk()
    settings = {"command": sys.executable, "args": ["-S", SERVER, *options], **wire.pop("settings", {})}
    environ = {
        "PATH": os.defpath,
        "HOME": bench.directory,
        "BENCH_UNSEEN": _SECRET,
        **wire.pop("environ", {}),
    }
    given: dict[str, Any] = {"root": bench.directory, "network": "public", **wire}
    return bench.run(HarnessCall(protocol="mcp", operation=tool, service=settings, environ=environ, **given))


def require_sdk() -> None:
    """Raises RuleSkipped without the official SDK."""
    try:
        import mcp  # noqa: F401
    except ImportError as error:
        raise RuleSkipped("the SDK is not installed: pip install 'cogcli[mcp]'") from error


def _body(bench: Bench) -> None:
    ran = _call_tool(bench, "echo")
    require(require_ok(ran), {"r": {"a": 1}}, "outputs")
    ran = _call_tool(bench, "echo", metadata={"response_mode": "text"})
    require(require_ok(ran), {"r": {"text": "x"}}, "outputs of mode text")


def _arguments(bench: Bench) -> None:
    ran = _call_tool(bench, "echo", input={"a": "one"})
    error = require_error(ran, "request.value")
    require(error.left, False, "left")


def _tool_unknown(bench: Bench) -> None:
    require_error(_call_tool(bench, "ecco"), "call.rejected", left=False)


def _tool_fails(bench: Bench) -> None:
    error = require_error(_call_tool(bench, "fails"), "call.rejected", left=True)
    require("no luck" in error.message, True, "the tool's words in the message")


def _rpc_error(bench: Bench) -> None:
    require_error(_call_tool(bench, "refuses"), "call.server-error", left=True)


def _strict(bench: Bench) -> None:
    for tool in ("nan", "twice"):
        ran = _call_tool(bench, tool)
        if ran.error is None or ran.error.code not in ("response.not-json", "call.server-error"):
            raise RuleBroken(f"{tool}: found {ran.error and ran.error.code}, expected response.not-json")


def _frame(bench: Bench) -> None:
    require_error(_call_tool(bench, "huge"), "response.size")


def _noise(bench: Bench) -> None:
    require_ok(_call_tool(bench, "noisy"))


def _silent(bench: Bench) -> None:
    ran = _call_tool(bench, "echo", "silent", service_metadata={"timeout_seconds": _SHORT})
    require_error(ran, "call.transport")
    _require_prompt(ran)


def _hanging(bench: Bench) -> None:
    ran = _call_tool(bench, "hangs", metadata={"timeout_seconds": 3 * _SHORT + 1})
    require_error(ran, "call.timeout")
    _require_prompt(ran)


def _require_prompt(ran: Ran) -> None:
    if ran.seconds > _PATIENT:
        raise RuleBroken(f"ended after {ran.seconds:.1f} s")


def _dying(bench: Bench) -> None:
    require_error(_call_tool(bench, "dies"), "call.transport", left=True)


def _session_lost(bench: Bench) -> None:
    ran = _call_tool(bench, "forgets", "", os.path.join(bench.directory, "processes"), effect="effect")
    require(require_ok(ran), {"r": {"a": 1}}, "outputs")


def _program(bench: Bench) -> None:
    ran = _call_tool(bench, "echo", settings={"command": "no-such-program-of-the-bench", "args": []})
    require_error(ran, "call.transport", left=False)


def _environment(bench: Bench) -> None:
    ran = _call_tool(
        bench, "echo", settings={"env": {"BENCH_SAYS": "key ${BENCH_KEY}"}}, environ={"BENCH_KEY": _SECRET}
    )
    require_ok(ran)
    require(
        [n for n, data in ran.files.items() if _SECRET.encode() in data], [], "files that hold the secret"
    )


def _key(bench: Bench) -> None:
    ran = _call_tool(bench, "meta", effect="idempotent")
    require("cogcli/idempotency-key" in require_ok(ran)["r"], True, "an idempotency key in _meta")


def _pin(bench: Bench) -> None:
    require_ok(_call_tool(bench, "echo", settings={"env": {"BENCH_SAYS": "adds numbers"}}))
    ran = _call_tool(bench, "echo", settings={"env": {"BENCH_SAYS": "adds numbers, and mails them"}})
    error = require_error(ran, "safety.scope")
    require("description" in error.message, True, "the changed field in the message")


def _orphans(bench: Bench) -> None:
    file = os.path.join(bench.directory, "pids")
    require_ok(_call_tool(bench, "breeds", "deaf", file))
    with open(file, encoding="utf-8") as told:
        pids = [int(line) for line in told]
    until = time.monotonic() + _PATIENT
    while alive := [pid for pid in pids if _is_alive(pid)]:
        if time.monotonic() > until:
            raise RuleBroken(f"still running: {len(alive)} of {len(pids)} processes")
        time.sleep(0.02)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (ProcessLookupError, FileNotFoundError):
        return False


def _untrusted(bench: Bench) -> None:
    require_error(_call_tool(bench, "echo", trusted=False), "service.untrusted")


def _shipped(bench: Bench) -> None:
    wire = HarnessCall(
        protocol="mcp", operation="normalize", service={"server": "official_text_tools"},
        request={"text": "input.a"}, response={"r": "response.text"}, input={"a": "a  b"},
    )  # fmt: skip
    require(require_ok(bench.run(wire)), {"r": "a b"}, "outputs")


LINES: Final[InvokerRules] = {
    # First, since it takes longest: several are shown at a time.
    "orphans": InvokerRule("what a server leaves behind is ended with the run", _orphans),
    "body": InvokerRule("structured content is the body; text mode gives {text}", _body),
    "arguments": InvokerRule("arguments are checked by the tool's schema before they leave", _arguments),
    "tool.unknown": InvokerRule("an unknown tool is refused before anything leaves", _tool_unknown),
    "tool.error": InvokerRule("is_error is a rejection with the tool's words", _tool_fails),
    "rpc.error": InvokerRule("-32603 is a server fault", _rpc_error),
    "json.strict": InvokerRule("NaN and repeated keys fail their call", _strict),
    "frame.big": InvokerRule("a frame over the cap fails its call", _frame),
    "noise": InvokerRule("lines that are no message are noise", _noise),
    "server.silent": InvokerRule("a server that never answers costs its time, no more", _silent),
    "tool.hanging": InvokerRule("a tool that hangs ends at its deadline", _hanging),
    "server.dies": InvokerRule("a closed connection is a transport failure", _dying),
    "session.lost": InvokerRule(
        "a session that the server does not know is opened anew, and the call made there", _session_lost
    ),
    "program": InvokerRule("a program that is not there is told", _program),
    "environment": InvokerRule("a variable reaches the server, and no file", _environment),
    "idempotency-key": InvokerRule("effects carry a key in _meta", _key),
    "pin": InvokerRule("a tool that changed since its first use is refused", _pin),
    "untrusted": InvokerRule("an untrusted layer starts nothing", _untrusted),
    "server.shipped": InvokerRule("shipped tools need neither process nor SDK", _shipped),
}
