"""What every hostile case is held to, whatever it is about.

No traceback, no exit by signal, in time; with `--json` one envelope whose exit code is the process's and whose error
has a code with a page; nothing written but episodes and the user's cache.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from support.command_server import COGCLI

from cogcli.app.explain import pages

SECONDS = 120.0
"""A bound that only a hang exceeds: machines are noisy."""


class Outcome:
    """One command's end, already held to what must hold for all."""

    def __init__(self, code: int, out: bytes, err: bytes) -> None:
        self.code = code
        self.out = out
        self.err = err

    @property
    def envelope(self) -> Any:
        """The envelope of a command that was asked for one."""
        return json.loads(self.out)

    @property
    def error(self) -> str | None:
        """The code of the envelope's error."""
        error = self.envelope["error"]
        return error["code"] if error else None

    @property
    def findings(self) -> set[str]:
        """The codes that `verify` told."""
        return {finding["code"] for finding in self.envelope["findings"]}


def attack(
    project: Any, *arguments: str, env: Mapping[str, str] | None = None, input: bytes = b"", seconds: float = SECONDS,
    before: Any = None, wrap: tuple[str, ...] = (), installed: bool = False,
) -> Outcome:  # fmt: skip
    """Run a command against a project and hold it to the rules.

    It runs in this process, unless it is `wrap`ped in another command, something is done `before` it in its process,
    or it is to be the `installed` one.
    """
    known = _tree(project)
    begun = time.monotonic()
    env = {"PYTHONDONTWRITEBYTECODE": "1", **(env or {})}
    if wrap or before:
        outcome = _started(
            [*wrap, COGCLI, *arguments], project.root, {**project.env, **env}, input, before
        )
    else:
        run = project.installed if installed else project.run
        result = run(*arguments, input=input, env=env)
        outcome = Outcome(result.code, result.out_bytes, result.err_bytes)
    told = (arguments, outcome.code, outcome.out[-2000:], outcome.err[-2000:])
    assert time.monotonic() - begun < seconds, told
    assert 0 <= outcome.code != 70, told
    assert b"Traceback" not in outcome.out + outcome.err, told
    assert _changed(known, _tree(project)) == set(), told
    if "--json" in arguments:
        _hold_to_the_envelope(outcome)
    return outcome


def _started(
    words: list[str], cwd: Path, env: Mapping[str, str], input: bytes, before: Any
) -> Outcome:
    done = subprocess.run(
        words,
        cwd=cwd,
        env=env,
        input=input,
        capture_output=True,
        timeout=60,
        preexec_fn=before,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def _hold_to_the_envelope(outcome: Outcome) -> None:
    assert outcome.out.count(b"\n") == 1, outcome.out
    body = outcome.envelope
    assert body["schema"] == "cogcli.result/1"
    assert body["exit_code"] == outcome.code
    assert outcome.code in (0, 130, 143) or _codes() & {outcome.error}, body["error"]


@cache
def _codes() -> frozenset[str | None]:
    return frozenset(pages())


def _tree(project: Any) -> dict[Path, tuple[int, int]]:
    """Everything around a project but its episodes, the user's cache and key, and the pins of tools."""
    state = project.home / ".local"
    pins = state / "state" / "cogcli" / "pins"
    key = project.home / ".config" / "cogcli" / "episodes.key"
    kept = {str(folder) for folder in pins.parents if state in (folder, *folder.parents)}
    kept |= {str(folder) for folder in key.parents[:2]}
    own = {str(path) for path in (project.root / ".cogcli", project.home / ".cache", pins, key)}
    found = {}
    for folder, below, names in os.walk(project.root.parent):
        places = {os.path.join(folder, name) for name in (*below, *names)} - own
        below[:] = [name for name in below if os.path.join(folder, name) not in own]
        for place in places - kept:
            status = os.lstat(place)
            is_folder = os.path.isdir(place)
            found[Path(place)] = (
                0 if is_folder else status.st_size,
                0 if is_folder else status.st_mtime_ns,
            )
    return found


def _changed(
    before: dict[Path, tuple[int, int]], after: dict[Path, tuple[int, int]]
) -> set[tuple[Path, tuple[int, int]]]:
    return set(before.items()) ^ set(after.items())


def hold_all_episodes(project: Any) -> None:
    """Whatever was created verifies."""
    if project.episodes:
        assert attack(project, "verify", "--all", "--json").code == 0
