"""Programs of the host that translate a text or transcribe speech, instead of a language model."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from threading import Timer

from cogcli.official.files import OPENED_AS
from cogcli.sdk import Refused

__all__ = ["OPENED_AS", "transcribe", "translate"]

_SECONDS = 300
_OUTPUT = 8 * 1024 * 1024
_SHOWN = 200
_LANGUAGE = re.compile(r"[A-Za-z][A-Za-z0-9 _-]{0,39}")
_KEPT = ("HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "TZ", "USER")


def translate(
    text: str, target_language: str, command: str, source_language: str = "auto"
) -> dict[str, object]:
    """Return the output of a program that reads the text from its standard input.

    `{target}` and `{source}` in the command are replaced by the languages. Raise Refused for an
    unusable command, RuntimeError or OSError if the program fails.
    """
    for language in (target_language, source_language):
        if not _LANGUAGE.fullmatch(language):
            raise Refused(
                "bad-data", "a language is a name or a code: letters, digits, `-`, `_`, blanks"
            )
    arguments = _split_command(command, {"target": target_language, "source": source_language})
    return {
        "translation": _run_program(arguments, text.encode()),
        "method": f"command:{os.path.basename(arguments[0])}",
    }


def transcribe(audio: str, command: str) -> dict[str, object]:
    """Return the output of a program for a sound file. `{audio}` in the command is replaced by its
    path; without it the path becomes the last argument.
    """
    path = os.path.abspath(opened_as(audio) if (opened_as := OPENED_AS.get()) else audio)
    arguments = _split_command(
        command if "{audio}" in command else f"{command} {{audio}}", {"audio": path}
    )
    return {
        "transcript": _run_program(arguments, b""),
        "method": f"command:{os.path.basename(arguments[0])}",
    }


def _split_command(command: str, values: dict[str, str]) -> list[str]:
    """Return the arguments of a command with the values filled in. Raise Refused."""
    try:
        arguments = shlex.split(command)
    except ValueError as error:
        raise Refused("bad-data", f"the command cannot be split into words: {error}") from None
    if not arguments:
        raise Refused("bad-data", "the command is empty")
    for name, value in values.items():
        arguments = [argument.replace(f"{{{name}}}", value) for argument in arguments]
    return arguments


def _run_program(arguments: list[str], content: bytes) -> str:
    """Return the standard output of the program. Raise Refused, RuntimeError or OSError."""
    environ = {name: os.environ[name] for name in _KEPT if name in os.environ}
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as errors:
        source.write(content)
        source.seek(0)
        with subprocess.Popen(  # noqa: S603
            arguments,
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environ,
            start_new_session=True,
        ) as process:
            try:
                output = _read_output(process) if process.stdout else b""
            finally:
                _kill_tree(process)
        errors.seek(max(0, errors.seek(0, os.SEEK_END) - _SHOWN))
        error_text = errors.read().decode("utf-8", "replace").strip()
    if len(output) > _OUTPUT:
        raise Refused("too-large", f"{os.path.basename(arguments[0])} printed more than 8 MiB")
    if process.returncode:
        raise RuntimeError(
            f"{os.path.basename(arguments[0])} ended with {process.returncode}: {error_text}"
        )
    text = output.decode("utf-8", "replace").strip()
    if not text:
        raise RuntimeError(f"{os.path.basename(arguments[0])} printed nothing: {error_text}")
    return text


def _read_output(process: subprocess.Popen[bytes]) -> bytes:
    """Return the output of a process, at most one byte more than allowed. Kill the process after
    `_SECONDS`.
    """
    timer = Timer(_SECONDS, _kill_tree, [process])
    timer.daemon = True
    timer.start()
    try:
        data = process.stdout.read(_OUTPUT + 1) if process.stdout else b""
        if len(data) <= _OUTPUT:
            process.wait()
        return data
    finally:
        timer.cancel()


def _kill_tree(process: subprocess.Popen[bytes]) -> None:
    """Kill a process, and its children on systems with process groups."""
    with suppress(ProcessLookupError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
