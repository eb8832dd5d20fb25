"""The one command that runs every check: format, lint, strict types, tests, our own validation of the registry.

`python tooling/check.py` runs them all and stops at nothing; it exits 1 if any failed. The tests run alongside the
other checks. A seed decides their order, their sample and their generated examples. It follows from the commit, so a
commit has the same tests everywhere.

`--every-case` leaves no case of a sampled test out. It takes most of an hour; it is for a change that reaches far.
`--quick` is for while one edits: the same checks, of the tests those that need neither processes nor seconds.
`--long` adds the crash, fuzz and peer runs that take minutes, and runs the command as it is installed wherever a test
runs one; without it they are named as skipped. A long run draws its seed. `--seed N` chooses another one.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent

CHECKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("format", (str(BIN / "ruff"), "format", "--check", ".")),
    ("lint", (str(BIN / "ruff"), "check", ".")),
    ("types", (str(BIN / "mypy"),)),
    ("generated files", (sys.executable, "tooling/generate.py", "--check")),
    ("registry", (sys.executable, "tooling/validate_registry.py")),
    ("prose", (sys.executable, "tooling/prose.py")),
)
WORKERS = (os.cpu_count() or 1) + 1
"""One more than there are processors: a test that waits for a service or a limit leaves its processor to another."""
TESTS = (sys.executable, "-m", "pytest", "-n", str(WORKERS), "--dist", "worksteal")
COLLECTION = (sys.executable, "-m", "pytest", "--collect-only", "-qq", "-p", "no:randomly")
QUICK = ("-m", "not slow", "tests/unit", "tests/architecture")


MEMORY = Path("/dev/shm")
"""A file system in memory, where the tests' many syncs cost nothing."""
ROOM = 4 * 1024**3


class Done(NamedTuple):
    """A check that has ended; its output is empty where it was shown while it ran."""

    name: str
    code: int
    seconds: float
    output: bytes


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    which = arguments.add_mutually_exclusive_group()
    which.add_argument("--quick", action="store_true", help="leave out what takes long")
    which.add_argument("--every-case", action="store_true", help="leave no sampled case out")
    which.add_argument("--long", action="store_true", help="also run what takes minutes")
    arguments.add_argument("--seed", type=int, help="order, sample and examples of the tests")
    asked = arguments.parse_args()
    environment = dict(os.environ)
    # Every process of the tests would compile what it imports, and each worker rewrite every test.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    if asked.long:
        environment |= {"COGCLI_LONG_TESTS": "1", "COGCLI_TEST_INSTALLED": "1"}
    seed = asked.seed
    if seed is None:
        seed = random.getrandbits(32) if asked.long else _seed_of_commit()
    seeds = (f"--randomly-seed={seed}", f"--hypothesis-seed={seed}")
    tests = (*TESTS, *seeds, *(QUICK if asked.quick else ()))
    if asked.every_case:
        tests = (*tests, "--every-case")
    if not asked.long and _has_room_in_memory():
        environment["PYTEST_DEBUG_TEMPROOT"] = str(MEMORY)
    with ThreadPoolExecutor(1) as beside:
        waiting = [beside.submit(_done, *check, environment, shown=False) for check in CHECKS]
        if not (ROOT / "tests" / "__pycache__").exists():
            # The assertions of a fresh clone are rewritten once, and not by each worker.
            _done("collection", COLLECTION, environment, shown=False)
        print(f"== tests, with --seed {seed}", flush=True)
        ran = [_done("tests", tests, environment, shown=True)]
        ran += [check.result() for check in waiting]
    for done in ran:
        _tell(done)
    if not asked.long:
        print(
            "skipped: long runs, servers and the YAML suite from npm, tests outside the drawn sample"
        )
        print("         (python tooling/check.py --long runs them)")
    failed = [done.name for done in ran if done.code]
    print(f"{'failed: ' + ', '.join(failed) if failed else 'all checks passed'}", flush=True)
    return 1 if failed else 0


def _seed_of_commit() -> int:
    """Return a number that follows from the commit that is checked out; 0 outside a repository."""
    command = ("git", "rev-parse", "HEAD")
    commit = subprocess.run(command, cwd=ROOT, capture_output=True, check=False).stdout.strip()
    return crc32(commit) if commit else 0


def _has_room_in_memory() -> bool:
    return os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= ROOM


def _done(name: str, command: tuple[str, ...], environment: dict[str, str], *, shown: bool) -> Done:
    started = time.monotonic()
    to = {} if shown else {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(command, cwd=ROOT, env=environment, check=False, **to)  # type: ignore[call-overload]
    return Done(name, done.returncode, time.monotonic() - started, done.stdout or b"")


def _tell(done: Done) -> None:
    if done.code:
        print(f"== {done.name}", flush=True)
        sys.stdout.buffer.write(done.output)
        sys.stdout.flush()
    elif done.name == "prose":
        print(f"   {done.output.decode().strip()}", flush=True)
    how = "ok" if done.code == 0 else f"exit {done.code}"
    print(f"   {done.name}: {how} in {done.seconds:.1f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
