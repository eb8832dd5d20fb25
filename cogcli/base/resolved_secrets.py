"""The secrets that this process has resolved: a traceback, a cause and the report of a crash belong to no run."""

from __future__ import annotations

from functools import cache

from cogcli.base.redact import Redactor


@cache
def resolved_secrets() -> Redactor:
    """What knows each secret that was resolved, for masking what is shown."""
    return Redactor()
