"""Programs of the host that do what else only a language model does: translate a text, write down speech.

A program is run without a shell, with the words of a service variable; it gets no secret and nothing of a text becomes
an option of it.
"""

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
    """Return what the program prints that reads the text from its standard input; `{target}` and `{source}` in its
    words are the languages. Raise Refused; OSError or RuntimeError where it fails.
    """
    for language in (target_language, source_language):
        if not _LANGUAGE.fullmatch(language):
            raise Refused(
                "bad-data", "a language is a name or a code: letters, digits, `-`, `_`, blanks"
            )
    words = _words(command, {"target": target_language, "source": source_language})
    return {
        "translation": _printed(words, text.encode()),
        "method": f"command:{os.path.basename(words[0])}",
    }


def transcribe(audio: str, command: str) -> dict[str, object]:
    """Return what the program prints for the sound file, whose path is `{audio}` in its words, or the last of them."""
    path = os.path.abspath(opened_as(audio) if (opened_as := OPENED_AS.get()) else audio)
    words = _words(command if "{audio}" in command else f"{command} {{audio}}", {"audio": path})
    return {"transcript": _printed(words, b""), "method": f"command:{os.path.basename(words[0])}"}


def _words(command: str, values: dict[str, str]) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise Refused("bad-data", f"the command cannot be split into words: {error}") from None
    if not words:
        raise Refused("bad-data", "the command is empty")
    for name, value in values.items():
        words = [word.replace(f"{{{name}}}", value) for word in words]
    return words


def _printed(words: list[str], given: bytes) -> str:
    environ = {name: os.environ[name] for name in _KEPT if name in os.environ}
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as told:
        source.write(given)
        source.seek(0)
        with subprocess.Popen(  # noqa: S603
            words,
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=told,
            env=environ,
            start_new_session=True,
        ) as process:
            try:
                output = _read(process) if process.stdout else b""
            finally:
                _end(process)
        told.seek(max(0, told.seek(0, os.SEEK_END) - _SHOWN))
        said = told.read().decode("utf-8", "replace").strip()
    if len(output) > _OUTPUT:
        raise Refused("too-large", f"{os.path.basename(words[0])} printed more than 8 MiB")
    if process.returncode:
        raise RuntimeError(f"{os.path.basename(words[0])} ended with {process.returncode}: {said}")
    text = output.decode("utf-8", "replace").strip()
    if not text:
        raise RuntimeError(f"{os.path.basename(words[0])} printed nothing: {said}")
    return text


def _read(process: subprocess.Popen[bytes]) -> bytes:
    """At most one byte more than may be printed; the program has ended, or is ended after its time."""
    timer = Timer(_SECONDS, _end, [process])
    timer.daemon = True
    timer.start()
    try:
        data = process.stdout.read(_OUTPUT + 1) if process.stdout else b""
        if len(data) <= _OUTPUT:
            process.wait()
        return data
    finally:
        timer.cancel()


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the program, where the system has groups of processes with its children."""
    with suppress(ProcessLookupError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
