"""The rules of the mcp client, each checked with our mock server over stdio
(docs/reference/protocols.md#mcp, docs/reference/protocols.md#own-rules)."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any, Final

from cogcli.protocols.invoker_rule import (
    DIRECTORY,
    SECRET,
    InvokerRule,
    InvokerRules,
    RuleCall,
    RuleCase,
    RuleRun,
)

SERVER: Final = str(Path(__file__).with_name("mock.py"))
_PATIENT: Final = 20.0
_SHORT: Final = 0.3
_ENVIRON: Final = {"PATH": os.defpath, "HOME": DIRECTORY, "BENCH_UNSEEN": SECRET}
_SHIPPED: Final = RuleCall(
    protocol="mcp", operation="normalize", service={"server": "official_text_tools"},
    request={"text": "input.a"}, response={"r": "response.text"}, input={"a": "a  b"},
)  # fmt: skip


def tool_call(tool: str, *options: str, **settings: Any) -> RuleCall:
    """Return a call of one tool, on a mock server that is started for it. `settings` are added to
    the service."""
    command = {"command": sys.executable, "args": ["-I", "-S", SERVER, *options]}
    return RuleCall(
        url="",
        protocol="mcp",
        operation=tool,
        service={**command, **settings},
        environ=_ENVIRON,
        network="public",
        extra="mcp",
    )


def _case(call: RuleCall, **wanted: Any) -> RuleCase:
    return RuleCase(None, call, **wanted)


def _fails(
    error: str | tuple[str, ...], call: RuleCall, *, left: bool | None = None, **wanted: Any
) -> RuleCase:
    return RuleCase(None, call, error=error, left=left, **wanted)


def _no_key(ran: RuleRun) -> str:
    return "" if "cogcli/idempotency-key" in ran.outputs["r"] else "no idempotency key in _meta"


def _find_orphans(ran: RuleRun) -> str:
    with open(os.path.join(os.path.dirname(ran.runs_dir), "pids"), encoding="utf-8") as lines:
        pids = [int(line) for line in lines]
    until = time.monotonic() + _PATIENT
    while alive := [pid for pid in pids if _is_alive(pid)]:
        if time.monotonic() > until:
            return f"still running: {len(alive)} of {len(pids)} processes"
        time.sleep(0.02)
    return ""


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (ProcessLookupError, FileNotFoundError):
        return False


def _describe(words: str) -> dict[str, str]:
    """Return the environment of a server whose tool has this description."""
    return {"BENCH_SAYS": words}


_TIMEOUT: Final = {"timeout_seconds": _SHORT}
_KEYED: Final = tool_call("echo", env=_describe("key ${BENCH_KEY}"))._replace(
    environ={**_ENVIRON, "BENCH_KEY": SECRET}
)
_LONELY: Final = tool_call("forgets", "", f"{DIRECTORY}/processes")

RULES: Final[InvokerRules] = {
    # First, since it takes longest: several are shown at a time.
    "orphans": InvokerRule("what a server leaves behind is ended with the run", (
        _case(tool_call("breeds", "deaf", f"{DIRECTORY}/pids"), fault=_find_orphans),)),
    "body": InvokerRule("structured content is the body; text mode gives {text}", (
        _case(tool_call("echo"), outputs={"r": {"a": 1}}),
        _case(tool_call("echo")._replace(metadata={"response_mode": "text"}), outputs={"r": {"text": "x"}}))),
    "arguments": InvokerRule("arguments are checked by the tool's schema before they leave", (
        _fails("request.value", tool_call("echo")._replace(input={"a": "one"}), left=False),)),
    "tool.unknown": InvokerRule("an unknown tool is refused before anything leaves", (
        _fails("call.rejected", tool_call("ecco"), left=False),)),
    "tool.error": InvokerRule("is_error is a rejection with the tool's words", (
        _fails("call.rejected", tool_call("fails"), left=True, says="no luck"),)),
    "rpc.error": InvokerRule("-32603 is a server fault", (
        _fails("call.server-error", tool_call("refuses"), left=True),)),
    "json.strict": InvokerRule("NaN and repeated keys fail their call", (
        *(_fails(("response.not-json", "call.server-error"), tool_call(tool)) for tool in ("nan", "twice")),)),
    "frame.big": InvokerRule("a frame over the cap fails its call", (_fails("response.size", tool_call("huge")),)),
    "noise": InvokerRule("lines that are no message are noise", (_case(tool_call("noisy")),)),
    "server.silent": InvokerRule("a server that never answers costs its time, no more", (
        _fails("call.timeout", tool_call("echo", "silent")._replace(service_metadata=_TIMEOUT), within=_PATIENT),)),
    "tool.hanging": InvokerRule("a tool that hangs ends at its deadline", (
        _fails("call.timeout", tool_call("hangs")._replace(metadata={"timeout_seconds": 3 * _SHORT + 1}),
               within=_PATIENT),)),
    "server.dies": InvokerRule("a closed connection is a transport failure", (
        _fails("call.transport", tool_call("dies"), left=True),)),
    "session.lost": InvokerRule("a session that the server does not know is opened again, and the call made there", (
        _case(_LONELY._replace(effect="effect"), outputs={"r": {"a": 1}}),)),
    "program": InvokerRule("a program that is not there is told", (
        _fails("call.transport", tool_call("echo", command="no-such-program-of-the-bench", args=[]), left=False),)),
    "environment": InvokerRule("a variable reaches the server, and no file", (_case(_KEYED, hidden=SECRET),)),
    "idempotency-key": InvokerRule("effects carry a key in _meta", (
        _case(tool_call("meta")._replace(effect="idempotent"), fault=_no_key),)),
    "pin": InvokerRule("a tool that changed since its first use is refused", (
        _case(tool_call("echo", env=_describe("adds numbers"))),
        _fails("safety.scope", tool_call("echo", env=_describe("adds numbers, and mails them")), says="description"))),
    "untrusted": InvokerRule("an untrusted layer starts nothing", (
        _fails("service.untrusted", tool_call("echo")._replace(trusted=False)),)),
    "server.shipped": InvokerRule("shipped tools need neither process nor SDK", (
        _case(_SHIPPED, outputs={"r": "a b"}),)),
}  # fmt: skip
