"""Calling tools through the invoker, as a step would."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fakes.surroundings import surroundings

from cogcli.base.calls import Cancellation
from cogcli.base.errors import RuntimeErrorBase
from cogcli.declarations.binding_spec import Binding, BindingMetadata
from cogcli.declarations.service_spec import Service
from cogcli.protocols.invoker import CallLimits, InvocationRequest, InvocationResponse
from cogcli.protocols.mcp.invoker import Mcp

SERVER = str(Path(__file__).with_name("mcp_server.py"))
"""The test server; `python SERVER --option`."""
SECONDS = 30.0
"""More than anything here takes on any machine."""


def service(*options: str, root: Path | str = "", id: str = "tools", **settings: Any) -> Service:
    """The test server as a service."""
    command = {"command": sys.executable, "args": ["-S", SERVER, *options], **settings}
    return Service(id=id, kind="mcp", settings=command, root=str(root) or "/", trusted=True)


class Caller:
    """An invoker with its surroundings."""

    def __init__(self, environ: Mapping[str, str] | None = None, *, state_dir: str = "") -> None:
        self.learned: list[str] = []
        given = {
            "PATH": os.environ["PATH"],
            "HOME": "/",
            "SECRET_NAME": "not for servers",
            **(environ or {}),
        }
        self.invoker = Mcp(surroundings(given, learn=self.learned.append, state_dir=state_dir))

    def __call__(
        self, tool: str, arguments: dict[str, Any] | None = None, *, service: Service, seconds: float = SECONDS,
        effect: str = "none", cancel: Cancellation | None = None, call_seconds: float | None = None,
        start_seconds: float | None = None, **metadata: Any,
    ) -> InvocationResponse:  # fmt: skip
        """The answer of a tool."""
        binding = Binding(
            id="b",
            capability="c.x",
            service=service.id,
            protocol="mcp",
            operation=tool,
            request={},
            response={},
            metadata=BindingMetadata.of(metadata),
        )
        request = InvocationRequest(
            service=service,
            binding=binding,
            operation=tool,
            payload={"text": "hello"} if arguments is None else arguments,
            effect=effect,
            idempotency_key="key-1",
            capability_id="c.x",
            run_id="run_1",
            step_id="s",
            attempt=1,
            traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        )
        limits = call_seconds, start_seconds
        context = CallLimits(time.monotonic() + seconds, cancel or Cancellation(), *limits)
        return self.invoker.invoke(request, context)

    def refused(
        self, tool: str, *arguments: Any, service: Service, **more: Any
    ) -> RuntimeErrorBase:
        """The error that a call ends with."""
        with pytest.raises(RuntimeErrorBase) as caught:
            self(tool, *arguments, service=service, **more)
        return caught.value


def is_alive(pid: int) -> bool:
    """Whether a process still runs, zombies not counted."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def pids(file: Path) -> list[int]:
    """The processes that a server told of."""
    return [int(line) for line in file.read_text().split()] if file.exists() else []
