"""Commands that are forked end and speak as the installed command does (`support/command_server.py`)."""

from __future__ import annotations

import signal

import pytest
from support.command_server import CommandServer
from support.project import INSTALLED_ONLY, Project

pytestmark = pytest.mark.skipif(INSTALLED_ONLY, reason="every command is started as installed")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("arguments", "data"),
    [
        (("skills", "show", "demo.greet"), ""),
        (("run", "demo.greet", "-q", "--input-file", "-"), '{"text": "ö"}'),
        (("run", "demo.greet"), ""),
        (("run", "demo.nothing"), ""),
        (("no-such-command",), ""),
    ],
)
def test_a_forked_command_is_like_an_installed_one(
    demo: Project, arguments: tuple[str, ...], data: str
) -> None:
    forked = demo.installed(*arguments, input=data)
    started = demo.started(*arguments, input=data)
    assert (forked.code, forked.out, forked.err) == (started.code, started.out, started.err)


def test_a_signal_that_ends_it_is_said(demo: Project) -> None:
    demo.services("import os\ndef upper(text: str) -> None:\n    os.kill(os.getpid(), 9)\n")
    assert demo.installed("run", "demo.greet", "-p", "text=x").code == -signal.SIGKILL


def test_what_an_interpreter_reads_at_its_start_is_not_served() -> None:
    server = CommandServer()
    assert server.can_serve({"HOME": "/", "LANG": "C.UTF-8", "TZ": "UTC"})
    for name in ("PYTHONUTF8", "PYTHONPATH", "LC_ALL", "LD_PRELOAD"):
        assert not server.can_serve({name: "1"})


def test_commands_at_once_keep_apart(demo: Project) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(3) as pool:
        found = list(
            pool.map(
                lambda text: demo.installed("run", "demo.greet", "-q", "-p", f"text={text}").json,
                "abc",
            )
        )
    assert found == [{"text": "A"}, {"text": "B"}, {"text": "C"}]
