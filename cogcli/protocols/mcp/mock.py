"""An MCP server over stdio whose tools behave, well or badly, as their names say.

It runs by its path, without any library.

python mock.py [silent | deaf] [FILE]

`silent` never answers; `deaf` ignores a closed stdin and SIGTERM; FILE takes the ids of this
process and its child; the tool `forgets` knows no session in the first process of a FILE."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

MODE = sys.argv[1] if len(sys.argv) > 1 else ""
FILE = sys.argv[2] if len(sys.argv) > 2 else ""
TOOLS = "echo fails refuses nan twice huge noisy hangs dies breeds meta forgets".split()


def raw(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def write_response(id: int, **members: object) -> None:
    raw(json.dumps({"jsonrpc": "2.0", "id": id, **members}).encode() + b"\n")


def remember(pid: int) -> None:
    if FILE:
        with open(FILE, "a", encoding="utf-8", newline="\n") as file:
            file.write(f"{pid}\n")


def definition(name: str) -> dict[str, object]:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    return {"name": name, "description": os.environ.get("BENCH_SAYS", name), "inputSchema": schema}


def text_result(value: str) -> dict[str, object]:
    return {"content": [{"type": "text", "text": value}]}


def huge(id: int) -> None:
    raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"x":"' % id)
    for _ in range(20):
        raw(b"y" * 1_000_000)
    raw(b'"}}\n')


def noisy(id: int) -> None:
    raw(b"Loading model...\n\xff\xfe\n[1,2]\n{broken\n")
    write_response(id, result=text_result("fine"))


def breeds(id: int) -> None:
    sleep = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(3600)"]
    remember(subprocess.Popen(sleep, stdout=subprocess.DEVNULL, start_new_session=True).pid)  # noqa: S603
    write_response(id, result=text_result("bred"))


def forgets(id: int) -> None:
    with open(FILE, encoding="utf-8") as file:
        is_first = len(file.readlines()) == 1
    if is_first:
        write_response(id, error={"code": -32001, "message": "Session not found"})
    else:
        write_response(id, result={**text_result("x"), "structuredContent": {"a": 1}})


RAW = {
    "nan": b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":{"a":NaN}}}\n',
    "twice": b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":{"a":1,"a":2}}}\n',
}
"""The bytes of faulty answers, for an id."""
BEHAVIOURS: dict[str, Callable[[int], object]] = {
    "fails": lambda id: write_response(id, result={**text_result("no luck"), "isError": True}),
    "refuses": lambda id: write_response(id, error={"code": -32603, "message": "broken inside"}),
    "huge": huge,
    "noisy": noisy,
    "hangs": bool,
    "dies": lambda id: os._exit(3),
    "breeds": breeds,
    "forgets": forgets,
}
"""The tools that read no arguments."""


def call(id: int, name: str, params: dict[str, Any]) -> None:
    given = params.get("arguments") or {}
    if name == "echo":
        write_response(id, result={**text_result("x"), "structuredContent": {"a": given.get("a")}})
    elif name == "meta":
        write_response(
            id, result={**text_result("x"), "structuredContent": params.get("_meta") or {}}
        )
    elif name in RAW:
        raw(RAW[name] % id)
    elif name in BEHAVIOURS:
        BEHAVIOURS[name](id)
    else:
        write_response(id, error={"code": -32602, "message": "unknown tool"})


def answer(id: int, method: str, params: dict[str, Any]) -> None:
    if method == "initialize":
        result = {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "bench", "version": "1"},
        }
        write_response(id, result=result)
    elif method == "tools/list":
        write_response(id, result={"tools": [definition(name) for name in TOOLS]})
    elif method == "tools/call":
        call(id, params["name"], params)
    else:
        write_response(id, error={"code": -32601, "message": "unknown"})


def main() -> None:
    remember(os.getpid())
    if MODE == "silent":
        time.sleep(3600)
    if MODE == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            answer(message["id"], message["method"], message.get("params") or {})
    if MODE == "deaf":
        time.sleep(3600)


if __name__ == "__main__":
    main()
