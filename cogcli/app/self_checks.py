"""Verifying ourselves: the rules of an invoker, and the rows of the failure model, each really provoked."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from cogcli.app.openapi_checks import Verified
from cogcli.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogcli.verification.lines import Line, Lines
    from cogcli.verification.verdict import Verdict

_AT_ONCE = 8


def invoker_lines(protocol: str) -> Lines:
    """The rules of one protocol. Raises UsageError where nothing speaks it."""
    from cogcli.bindings.invokers.registry import INVOKERS
    from cogcli.verification import mcp_lines, openapi_lines, openrpc_lines

    known = {"openapi": openapi_lines.LINES, "openrpc": openrpc_lines.LINES, "mcp": mcp_lines.LINES}
    spoken = [name for name in known if name in INVOKERS]
    if protocol not in spoken:
        raise UsageError("usage.value", f"`--protocol`: found `{protocol}`, expected {', '.join(spoken)}")
    return known[protocol]


def error_lines() -> Lines:
    """Every row of the failure model: what keeps a run from starting, then what ends one."""
    from cogcli.app import start_rows
    from cogcli.verification import error_rows

    return {**start_rows.lines(), **error_rows.lines()}


def shown(lines: Lines, *, listener: Callable[[Verdict], None] | None = None) -> Verified:
    """Provoke every line, some at a time; the listener hears the verdicts in the order of the lines."""
    from concurrent.futures import ThreadPoolExecutor

    from cogcli.bindings.invokers.capture import diverted

    begun = time.monotonic()
    verdicts = []
    with diverted(), ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        for verdict in pool.map(lambda item: _one(*item), lines.items()):
            verdicts.append(verdict)
            if listener:
                listener(verdict)
    return Verified(tuple(verdicts), time.monotonic() - begun)


def _one(id: str, line: Line) -> Verdict:
    from cogcli.verification.bench import Bench
    from cogcli.verification.lines import verdict_of

    with Bench() as bench:
        return verdict_of(id, line, bench)
