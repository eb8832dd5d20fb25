"""A client of `cogcli serve mcp`: calls every tool that the arguments name, and prints how each call ended, as JSON.

`trap.py` starts this file as a program. It imports the standard library alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, Final

AT_ONCE: Final = 8


def main(command: list[str], given: dict[str, Any], skills: list[str]) -> None:
    """Call the tools, eight at a time."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin
    assert process.stdout

    def send(method: str, parameters: dict[str, Any], **more: Any) -> None:
        print(
            json.dumps({"jsonrpc": "2.0", "method": method, "params": parameters, **more}),
            file=process.stdin,
            flush=True,
        )

    client = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "trap", "version": "1"},
    }
    send("initialize", client, id="begin")
    process.stdout.readline()
    send("notifications/initialized", {})
    found: dict[str, str] = {}
    waiting, open_calls = list(skills), 0
    while waiting or open_calls:
        while waiting and open_calls < AT_ONCE:
            skill = waiting.pop()
            send("tools/call", {"name": skill.replace(".", "__"), "arguments": given}, id=skill)
            open_calls += 1
        line = process.stdout.readline()
        if not line:
            break
        answer = json.loads(line)
        if answer.get("id") in skills:
            open_calls -= 1
            failed = "error" in answer or answer["result"].get("isError")
            found[answer["id"]] = json.dumps(answer) if failed else "ok"
    process.stdin.close()
    process.wait(30)
    print(json.dumps(found))


if __name__ == "__main__":
    main(*json.loads(sys.stdin.read()))
