"""The secrets that this process has resolved. They mask output that belongs to no run, such as
tracebacks, causes and crash reports.
"""

from __future__ import annotations

from functools import cache

from cogcli.base.redact import Redactor


@cache
def resolved_secrets() -> Redactor:
    """Return the process-wide redactor, which knows each secret that was resolved."""
    return Redactor()
