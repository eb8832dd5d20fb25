"""The one command that runs every check: format, lint, strict types, tests, our own validation of the registry.

`python tooling/check.py` runs them all and stops at nothing; it exits 1 if any failed. `--long` adds the crash, fuzz
and peer runs that take minutes; without it they are named as skipped.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent

CHECKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("format", (str(BIN / "ruff"), "format", "--check", ".")),
    ("lint", (str(BIN / "ruff"), "check", ".")),
    ("types", (str(BIN / "mypy"),)),
    ("generated files", (sys.executable, "tooling/generate.py", "--check")),
    ("registry", (str(BIN / "cogcli"), "validate", "--strict", "-C", str(ROOT))),
    ("tests", (sys.executable, "-m", "pytest", "-n", "auto")),
)


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--long", action="store_true", help="also run what takes minutes")
    long = arguments.parse_args().long
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    if long:
        environment["COGCLI_LONG_TESTS"] = "1"
    failed = [name for name, command in CHECKS if not _passes(name, command, environment)]
    if not long:
        print("skipped: long runs, servers and the YAML suite from npm (python tooling/check.py --long)")
    print(f"{'failed: ' + ', '.join(failed) if failed else 'all checks passed'}", flush=True)
    return 1 if failed else 0


def _passes(name: str, command: tuple[str, ...], environment: dict[str, str]) -> bool:
    print(f"== {name}", flush=True)
    started = time.monotonic()
    code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    print(
        f"   {name}: {'ok' if code == 0 else f'exit {code}'} in {time.monotonic() - started:.1f} s",
        flush=True,
    )
    return code == 0


if __name__ == "__main__":
    sys.exit(main())
