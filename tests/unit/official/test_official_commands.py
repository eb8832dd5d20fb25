"""Programs of the host instead of a language model (text.content.translate, audio.speech.transcribe)."""

from __future__ import annotations

import shlex
import sys
import wave

import pytest
from support.project import Project

from cogcli.official import commands
from cogcli.sdk import Refused


def python(source: str, *words: str) -> str:
    return shlex.join([sys.executable, "-c", source, *words])


UPPER = "import sys; print(sys.argv[1:], sys.stdin.read().upper())"


def test_a_program_translates_what_it_reads() -> None:
    found = commands.translate("le quai; $(rm x)", "en", python(UPPER, "{source}", "{target}"))
    assert found["translation"] == "['auto', 'en'] LE QUAI; $(RM X)"
    assert str(found["method"]).startswith("command:python")


@pytest.mark.parametrize("language", ["--output=/tmp/x", "", "-o", "a;b", "x" * 41, "a\nb"])
def test_no_language_becomes_an_option(language: str) -> None:
    with pytest.raises(Refused) as refused:
        commands.translate("text", language, python(UPPER, "{target}"))
    assert refused.value.reason == "bad-data"


@pytest.mark.parametrize("command", ["", "  ", "a 'b"])
def test_what_is_no_command_is_refused(command: str) -> None:
    with pytest.raises(Refused):
        commands.translate("text", "en", command)


def test_a_program_that_fails_or_says_nothing_gives_no_answer() -> None:
    with pytest.raises(RuntimeError, match="ended with 3: no such model"):
        commands.translate(
            "text",
            "en",
            python("import sys; sys.exit(print('no such model', file=sys.stderr) or 3)"),
        )
    with pytest.raises(RuntimeError, match="printed nothing"):
        commands.translate("text", "en", python("pass"))
    with pytest.raises(FileNotFoundError):
        commands.translate("text", "en", "no-such-program-here")


def test_a_flood_ends_the_program() -> None:
    with pytest.raises(Refused, match="8 MiB"):
        commands.translate("text", "en", python("while True: print('x' * 9999)"))


def test_a_program_that_takes_too_long_is_ended_with_its_children(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(commands, "_SECONDS", 0.2)
    source = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])"
    with pytest.raises(RuntimeError, match="ended with -9"):
        commands.translate("text", "en", python(source))


def test_it_gets_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-secret-of-the-tests")
    found = commands.translate("text", "en", python("import os; print(sorted(os.environ), '.')"))
    assert "OPENAI_API_KEY" not in str(found)


def test_speech_is_transcribed_in_a_run_behind_the_gates(project: Project) -> None:
    with wave.open(str(project.root / "-speech.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(b"\0\0" * 80)
    project.env["COGCLI_TRANSCRIBE_COMMAND"] = python(
        "import os, sys; print('Heard', os.path.basename(sys.argv[1]))"
    )
    run = (
        "run",
        "audio.transcribe-summary",
        "--json",
        "--bind",
        "audio.speech.transcribe=python_audio_speech_transcribe",
    )
    result = project.run(*run, "-p", "audio=-speech.wav").assert_ok().json
    assert result["outputs"]["transcript"] == "Heard -speech.wav"
    project.write("notes.wav", "no sound")
    assert (
        project.run(*run, "-p", "audio=notes.wav").assert_exit(4).json["error"]["code"]
        == "safety.gate"
    )
    del project.env["COGCLI_TRANSCRIBE_COMMAND"]
    assert (
        "`COGCLI_TRANSCRIBE_COMMAND` is not set"
        in project.run(*run, "-p", "audio=-speech.wav").assert_exit(3).out
    )
