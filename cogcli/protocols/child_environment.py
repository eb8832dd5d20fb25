"""What programs that we start see of our environment: a few names, everything else has to be named
(docs/reference/protocols.md#worker, docs/reference/protocols.md#mcp-stdio)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PASSED_ON: Final = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")


def inherited_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Those of the names that say something."""
    return {name: environ[name] for name in PASSED_ON if environ.get(name)}
