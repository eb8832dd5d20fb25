"""The command in the process of a test gives what the installed one gives, and leaves nothing behind."""

from __future__ import annotations

import gc
import importlib
import os
import re
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from support.in_process import PURE, NeedsAProcess
from support.project import INSTALLED_ONLY, Project, Result
from test_goldens import FAKES, SCREENS, seed_defects

pytestmark = [
    pytest.mark.skipif(INSTALLED_ONLY, reason="every command runs as it is installed"),
    pytest.mark.sampled(2),
]

GREET = ("run", "demo.greet", "-p", "text=hi", "--trace-id", "trace-001")
FAILS = ("run", "demo.greet", "-p", "text=ho", "-p", "times=3", "--tag", "team=platform")
REVIEW = ("run", "demo.review", "-p", "text=hi", "--tag", "team=platform")
INPUT = ("run", "demo.greet", "--input", "-")
MORE: dict[str, tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]] = {
    "version": ((), ("--version",)),
    "help-json": ((), ("run", "--help", "--json")),
    "run-json": ((), (*GREET, "--json")),
    "run-quiet": ((), (*REVIEW, "-q")),
    "run-failed-json": ((), (*REVIEW, "--json")),
    "run-plain": ((), (*GREET, "--progress", "plain")),
    "trace-json": ((REVIEW,), ("trace", "--json")),
    "verify-json": ((GREET, FAILS), ("verify", "--all", "--json")),
    "schema": ((), ("schema", "events")),
    "config-show": ((), ("config", "show")),
    "config-trust": ((), ("config", "trust", "--json")),
    "doctor": ((), ("doctor", "--json")),
    "bindings-explain": ((), ("bindings", "explain", "demo.text.upper")),
    "openapi": ((), ("openapi", "verify-bindings")),
    "rerun": ((GREET,), ("rerun", "@last", "--json")),
    "replay": ((GREET,), ("replay", "@last")),
    "resume": ((GREET,), ("resume", "@last")),
    "export": ((), ("skills", "export", "demo.greet", "--to", "out")),
    "no-text": ((), ("run", "demo.greet", "-p", "text=a\0b".replace("\0", "\udcff"))),
    "long-ids": ((), ("explain", "--list", "--json")),
    "nowhere": ((), ("-C", "nowhere", "ls")),
}
LEFT_OUT = (
    "80",
    "help-inputs",
    "graph-dot",
    "trace-mermaid",
    "validate-concise",
    "diff-same",
    "gc-pin",
    "gc-criteria",
)
SHOWN = {name: (screen.before, screen.command) for name, screen in SCREENS.items()}
BOTH = {name: case for name, case in {**SHOWN, **MORE}.items() if name not in LEFT_OUT}
TIMES = re.compile(
    r'in \d+\.\d\ds|\d+ kB|"wall_ms":\d+|"(?:duration|latency)_ms": ?\d+|\b\d+ ?ms\b'
)
"""What differs from one time to the next."""
BLOB = re.compile("[0-9a-f]{64}")
"""Blobs are named by their content, which holds the project's place."""


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", BOTH)
def test_both_ways_give_the_same_code_and_streams(
    tmp_path: Path, warm_cache: Path, name: str
) -> None:
    inside, outside = twin(tmp_path / "a", warm_cache), twin(tmp_path / "b", warm_cache)
    before, command = BOTH[name]
    for project in (inside, outside):
        if name.startswith("validate"):
            seed_defects(project)
        for number, earlier in enumerate(before):
            project.run(*earlier, env={**FAKES, "COGCLI_FAKE_IDS": str(100 * number)})
    env = {**FAKES, "COGCLI_FAKE_IDS": "5000"}
    assert seen(inside, inside.run(*command, env=env)) == seen(
        outside, outside.started(*command, env=env)
    )


def twin(folder: Path, cache: Path) -> Project:
    folder.mkdir()
    return Project(folder, cache).demo()


def seen(project: Project, result: Result) -> tuple[Any, ...]:
    """All that a command gave, but where and when."""
    here = str(project.root.parent)
    texts = (TIMES.sub("TIME", text.replace(here, "PLACE")) for text in (result.out, result.err))
    files = [str(path.relative_to(here)) for path in project.root.parent.rglob("*")]
    # Copies of what is trusted lie in a folder that is named after the place of the project.
    files = [re.sub("/trust/[0-9a-f]{32}", "/trust/PROJECT", file) for file in files]
    named = sorted(BLOB.sub("blob", file) for file in files if "/__pycache__" not in file)
    return result.code, *texts, named


def test_what_is_typed_is_read_and_a_closed_stdin_is_none(demo: Project) -> None:
    for run in (demo.run, demo.installed):
        given = run(*INPUT, "-q", input='{"text": "typed"}').assert_ok()
        assert given.json == {"text": "TYPED"}
        assert (
            run(*INPUT, "--json", stdin_closed=True).json["error"]["code"]
            == (run(*INPUT, "--json", stdin_closed=True).json["error"]["code"])
        )


def test_nothing_of_the_process_is_changed(demo: Project) -> None:
    demo.services(
        """
        import gc, os, signal, sys, threading
        def upper(text: str) -> dict[str, object]:
            os.chdir("/")
            os.environ["LEFT_BEHIND"] = "x"
            os.umask(0)
            gc.disable()
            sys.path.insert(0, "/nowhere")
            sys.setrecursionlimit(5000)
            os.write(1, b"stray")
            return {"text": text + os.environ["ONLY_THERE"]}
        """
    )
    before = state()
    demo.run(*GREET, env={"ONLY_THERE": "!", "TZ": "Asia/Tokyo"}).assert_ok()
    assert state() == before
    assert "demo_services" not in sys.modules


def state() -> dict[str, Any]:
    """What a command could leave behind."""
    mask = os.umask(0)
    os.umask(mask)
    return {
        "directory": os.getcwd(),
        "variables": dict(os.environ),
        "mask": mask,
        "collects": gc.isenabled(),
        "path": sys.path[:],
        "depth": sys.getrecursionlimit(),
        "handlers": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        "threads": set(threading.enumerate()),
        "streams": [os.fstat(number).st_ino for number in (0, 1, 2)]
        + [sys.stdin, sys.stdout, sys.stderr],
    }


def test_each_command_finds_the_code_as_it_is_now(demo: Project) -> None:
    for word in ("one", "two"):
        demo.services(
            f"def upper(text: str) -> dict[str, object]:\n    return {{'text': '{word}'}}\n"
        )
        assert demo.run(*GREET, "-q").assert_ok().json == {"text": word}


def test_circuits_are_forgotten(demo: Project) -> None:
    for _ in range(7):
        failed = demo.run(*REVIEW, "--json").assert_exit(1)
        assert failed.json["error"]["code"] == "call.server-error"


def test_what_is_kept_between_commands_is_there() -> None:
    for name in PURE:
        module = importlib.import_module(name)
        functions = vars(module).values()
        assert any(
            hasattr(each, "cache_clear") and each.__module__ == name for each in functions
        ), name


LEFT_OVER = {
    "thread": "threading.Thread(target=time.sleep, args=(1,), daemon=True).start()",
    "process": "pathlib.Path('left').write_text(str(os.spawnlp(os.P_NOWAIT, 'sleep', 'sleep', '60')))",
    "open": "pathlib.Path('left').write_text(str(os.open('cogcli.toml', os.O_CREAT)))",
    "os._exit": "os._exit(3)",
}


@pytest.mark.parametrize("what", LEFT_OVER)
def test_what_only_the_end_of_a_process_ends_is_refused(
    demo: Project, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("support.in_process._ENDING_SECONDS", 0.0)
    demo.services(
        "import os, pathlib, threading, time\n"
        f"def upper(text: str) -> dict[str, object]:\n    {LEFT_OVER[what]}\n    return {{'text': ''}}\n"
    )
    demo.skill(
        "demo.once",
        "- {id: a, uses: demo.text.upper, input: {text: x}, output: {text: outputs.text}}",
    )
    with pytest.raises(NeedsAProcess, match=what):
        demo.run("run", "demo.once")
    if what == "process":
        os.kill(left(demo), signal.SIGKILL)
        os.waitpid(left(demo), 0)
    if what == "open":
        os.close(left(demo))


def left(project: Project) -> int:
    return int((project.root / "left").read_text())


def test_what_an_interpreter_reads_at_its_start_is_refused(demo: Project) -> None:
    for name, value in (("PYTHONPATH", "x"), ("LC_ALL", "tr_TR.ISO-8859-9"), ("LD_PRELOAD", "")):
        with pytest.raises(NeedsAProcess, match=name):
            demo.run("ls", env={name: value})


def test_a_second_command_at_the_same_time_is_refused(demo: Project) -> None:
    refused: list[BaseException] = []

    def beside() -> None:
        try:
            demo.run("ls")
        except NeedsAProcess as error:
            refused.append(error)

    thread = threading.Thread(target=beside)
    thread.start()
    thread.join()
    assert len(refused) == 1
