"""Calls and times of the kept runs: `cogcli registry stats` (docs/reference/tooling.md)."""

from __future__ import annotations

import sys

from registry_command import run

if __name__ == "__main__":
    sys.exit(run("registry", "stats"))
