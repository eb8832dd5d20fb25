"""Which skills run here, and what the others need: `cogcli registry executability` (docs/reference/tooling.md)."""

from __future__ import annotations

import sys

from registry_command import run

if __name__ == "__main__":
    sys.exit(run("registry", "executability"))
