"""The rules of the mcp client, each checked with our mock server over stdio
(docs/reference/protocols.md#mcp, docs/reference/protocols.md#own-rules)."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cogcli.protocols.invoker_rule import (
    SECRET,
    InvokerRule,
    InvokerRules,
    RuleBench,
    RuleBroken,
    RuleCase,
    RuleRun,
    RuleSkipped,
    require_ok,
)

SERVER: Final = str(Path(__file__).with_name("mock.py"))
_PATIENT: Final = 20.0
_SHORT: Final = 0.3
_SHIPPED: Final = {
    "protocol": "mcp", "operation": "normalize", "service": {"server": "official_text_tools"},
    "request": {"text": "input.a"}, "response": {"r": "response.text"}, "input": {"a": "a  b"},
}  # fmt: skip


def tool_members(
    bench: RuleBench, tool: str, *options: str, settings: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None, **members: Any,
) -> dict[str, Any]:  # fmt: skip
    """Members of a call of one tool of a mock server started for it. Raises RuleSkipped without the official SDK."""
    try:
        import mcp  # noqa: F401
    except ImportError as error:
        raise RuleSkipped("the SDK is not installed: pip install 'cogcli[mcp]'") from error
    return {
        "protocol": "mcp",
        "operation": tool,
        "service": {
            "command": sys.executable,
            "args": ["-I", "-S", SERVER, *options],
            **(settings or {}),
        },
        "environ": {
            "PATH": os.defpath,
            "HOME": bench.directory,
            "BENCH_UNSEEN": SECRET,
            **(environ or {}),
        },
        "root": bench.directory,
        "network": "public",
        **members,
    }


def _case(
    tool: str, *options: str, wanted: Mapping[str, Any] | None = None, **members: Any
) -> RuleCase:
    """A call of a tool, and what must come of it."""
    return RuleCase(
        None, setting=lambda bench: tool_members(bench, tool, *options, **members), **(wanted or {})
    )


def _fails(code: str, tool: str, *options: str, left: bool | None = None, **more: Any) -> RuleCase:
    wanted: dict[str, Any] = {name: more.pop(name) for name in ("says", "within") if name in more}
    return _case(tool, *options, wanted={"error": code, "left": left, **wanted}, **more)


def _call(bench: RuleBench, tool: str, *options: str, **members: Any) -> RuleRun:
    return bench.call(None, **tool_members(bench, tool, *options, **members))[0]


def _strict(bench: RuleBench) -> None:
    for tool in ("nan", "twice"):
        ran = _call(bench, tool)
        if ran.error is None or ran.error.code not in ("response.not-json", "call.server-error"):
            raise RuleBroken(
                f"{tool}: found {ran.error and ran.error.code}, expected response.not-json"
            )


def _session_lost(bench: RuleBench) -> None:
    ran = _call(bench, "forgets", "", os.path.join(bench.directory, "processes"), effect="effect")
    if require_ok(ran) != {"r": {"a": 1}}:
        raise RuleBroken(f"found {ran.outputs}, expected what the second session answers")


def _key(bench: RuleBench) -> None:
    if "cogcli/idempotency-key" not in require_ok(_call(bench, "meta", effect="idempotent"))["r"]:
        raise RuleBroken("no idempotency key in _meta")


def _orphans(bench: RuleBench) -> None:
    file = os.path.join(bench.directory, "pids")
    require_ok(_call(bench, "breeds", "deaf", file))
    with open(file, encoding="utf-8") as lines:
        pids = [int(line) for line in lines]
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


def _says(words: str) -> dict[str, Any]:
    return {"settings": {"env": {"BENCH_SAYS": words}}}


RULES: Final[InvokerRules] = {
    # First, since it takes longest: several are shown at a time.
    "orphans": InvokerRule("what a server leaves behind is ended with the run", _orphans),
    "body": InvokerRule("structured content is the body; text mode gives {text}", (
        _case("echo", wanted={"outputs": {"r": {"a": 1}}}),
        _case("echo", wanted={"outputs": {"r": {"text": "x"}}}, metadata={"response_mode": "text"}))),
    "arguments": InvokerRule("arguments are checked by the tool's schema before they leave", (
        _fails("request.value", "echo", left=False, input={"a": "one"}),)),
    "tool.unknown": InvokerRule("an unknown tool is refused before anything leaves", (
        _fails("call.rejected", "ecco", left=False),)),
    "tool.error": InvokerRule("is_error is a rejection with the tool's words", (
        _fails("call.rejected", "fails", left=True, says="no luck"),)),
    "rpc.error": InvokerRule("-32603 is a server fault", (_fails("call.server-error", "refuses", left=True),)),
    "json.strict": InvokerRule("NaN and repeated keys fail their call", _strict),
    "frame.big": InvokerRule("a frame over the cap fails its call", (_fails("response.size", "huge"),)),
    "noise": InvokerRule("lines that are no message are noise", (_case("noisy"),)),
    "server.silent": InvokerRule("a server that never answers costs its time, no more", (
        _fails("call.timeout", "echo", "silent", within=_PATIENT,
               service_metadata={"timeout_seconds": _SHORT}),)),
    "tool.hanging": InvokerRule("a tool that hangs ends at its deadline", (
        _fails("call.timeout", "hangs", within=_PATIENT, metadata={"timeout_seconds": 3 * _SHORT + 1}),)),
    "server.dies": InvokerRule("a closed connection is a transport failure", (
        _fails("call.transport", "dies", left=True),)),
    "session.lost": InvokerRule(
        "a session that the server does not know is opened again, and the call made there", _session_lost),
    "program": InvokerRule("a program that is not there is told", (
        _fails("call.transport", "echo", left=False,
               settings={"command": "no-such-program-of-the-bench", "args": []}),)),
    "environment": InvokerRule("a variable reaches the server, and no file", (
        _case("echo", wanted={"hidden": SECRET}, environ={"BENCH_KEY": SECRET},
              **_says("key ${BENCH_KEY}")),)),
    "idempotency-key": InvokerRule("effects carry a key in _meta", _key),
    "pin": InvokerRule("a tool that changed since its first use is refused", (
        _case("echo", **_says("adds numbers")),
        _fails("safety.scope", "echo", says="description", **_says("adds numbers, and mails them")))),
    "untrusted": InvokerRule("an untrusted layer starts nothing", (
        _fails("service.untrusted", "echo", trusted=False),)),
    "server.shipped": InvokerRule("shipped tools need neither process nor SDK", (
        RuleCase(None, _SHIPPED, outputs={"r": "a b"}),)),
}  # fmt: skip
