"""The other end of `crash_launcher.py --serve`: commands as processes of their own, without their imports' time."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

LAUNCHER = Path(__file__).resolve().parent / "crash_launcher.py"
SECONDS = 120


class Zygote:
    """One serving process. It runs one command at a time, of the installed package or of one in a directory."""

    def __init__(self, package: Path | None, imports: tuple[str, ...]) -> None:
        words = [sys.executable, str(LAUNCHER), "--serve"]
        own = {"CRASH_PACKAGE": str(package)} if package else {"PYTHONDONTWRITEBYTECODE": "1"}
        environment = {**os.environ, **own, "CRASH_IMPORTS": " ".join(imports)}
        self._process = subprocess.Popen(
            words,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def run(
        self, arguments: list[str], cwd: Path, env: dict[str, str], out: Path, err: Path
    ) -> int:
        """How a command ended; a signal is a negative number."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {
            "arguments": arguments,
            "cwd": str(cwd),
            "env": env,
            "stdin": os.devnull,
            "stdout": str(out),
            "stderr": str(err),
        }
        self._process.stdin.write(f"{json.dumps(request)}\n")
        child = int(self._process.stdout.readline())
        late = threading.Timer(SECONDS, _end, (child,))
        late.start()
        try:
            return int(self._process.stdout.readline())
        finally:
            late.cancel()

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def _end(child: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)


class Zygotes:
    """As many of one package as are asked for at once. `imports`: modules that its commands need besides."""

    def __init__(self, package: Path | None = None, imports: tuple[str, ...] = ()) -> None:
        self._package = package
        self._imports = imports
        self._idle: queue.SimpleQueue[Zygote] = queue.SimpleQueue()
        self._all: list[Zygote] = []

    def run(
        self, arguments: list[str], cwd: Path, env: dict[str, str], out: Path, err: Path
    ) -> int:
        """How a command ended."""
        try:
            zygote = self._idle.get_nowait()
        except queue.Empty:
            zygote = Zygote(self._package, self._imports)
            self._all.append(zygote)
        code = zygote.run(arguments, cwd, env, out, err)
        self._idle.put(zygote)
        return code

    def close(self) -> None:
        """End all."""
        for zygote in self._all:
            zygote.close()


INSTALLED = Zygotes()
