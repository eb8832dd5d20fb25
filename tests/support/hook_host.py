"""A host of hooks: it starts the installed command for each event, as Claude Code does."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

from support.gateway_client import COGCLI


class HookHost:
    """One session of Claude Code in a project."""

    def __init__(self, project: Any, session: str = "s1") -> None:
        self.project = project
        self.session = session

    @property
    def folder(self) -> Path:
        """The folder of sockets."""
        return Path(self.project.home / ".local/state/cogcli/hooks")

    def event(self, name: str, **members: Any) -> bytes:
        """The input of a hook."""
        common = {"session_id": self.session, "cwd": str(self.project.root)}
        return json.dumps({**common, "hook_event_name": name, **members}).encode()

    def start(self, data: bytes, *flags: str, host: str = "claude-code") -> subprocess.Popen[bytes]:
        """Start a hook with this input."""
        process = subprocess.Popen(
            [COGCLI, "gateway", "hook", host, *flags],
            cwd=self.project.root,
            env=self.project.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdin is not None
        process.stdin.write(data)
        process.stdin.close()
        process.stdin = None
        return process

    def run(
        self, data: bytes, *flags: str, host: str = "claude-code"
    ) -> tuple[int, dict[str, Any], str]:
        """Run a hook: its exit code, its JSON and its stderr."""
        process = self.start(data, *flags, host=host)
        out, err = process.communicate(timeout=120)
        return process.returncode, json.loads(out or b"{}"), err.decode()

    def ask(self, tool: str, id: str, *flags: str, **arguments: Any) -> tuple[str, str]:
        """The decision about a call, and its reason."""
        data = self.event("PreToolUse", tool_name=tool, tool_input=arguments, tool_use_id=id)
        code, answer, _ = self.run(data, *flags)
        found = answer["hookSpecificOutput"]
        assert code == (0 if found["permissionDecision"] == "allow" else 2)
        return found["permissionDecision"], found["permissionDecisionReason"]

    def tell(self, tool: str, id: str, response: Any, **arguments: Any) -> None:
        """Report the end of a call."""
        members = {"tool_name": tool, "tool_input": arguments, "tool_use_id": id}
        data = self.event("PostToolUse", tool_response=response, **members)
        assert self.run(data) == (0, {}, "")

    def end(self) -> None:
        """End the session, and wait until its server has ended."""
        self.run(self.event("SessionEnd", reason="exit"))
        self.wait_for_end()

    def wait_for_end(self) -> None:
        """Wait until no server holds the lock of the session."""
        import fcntl

        for _ in range(1200):
            with open(self.folder / f"claude-code.{self.session}.lock", "ab") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    time.sleep(0.05)
                    continue
                return
        raise AssertionError("the server of the session has not ended")
