"""Where the system gives no thread a call has not left, and the command says what is lacking."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fakes.runner import ScriptedRunner, gives
from fakes.runs import run
from fakes.sink import MemorySink
from fakes.specs import capability, skill, step

from cogcli.base import threads
from cogcli.declarations.envelope import Draft, Event

NO_MACHINE_HAS: int = 1 << 46


@contextmanager
def no_more() -> Iterator[None]:
    """The system refuses every further thread: none has room for a stack of that size."""
    before = threading.stack_size(NO_MACHINE_HAS)
    try:
        yield
    finally:
        threading.stack_size(before)


class Emptied(MemorySink):
    """A log; once the plan stands in it there are no more threads."""

    def append(self, draft: Draft, *, durable: bool = False) -> Event:
        if draft.event_type == "plan.created":
            threading.stack_size(NO_MACHINE_HAS)
        return super().append(draft, durable=durable)


@pytest.mark.parametrize("effect", ["none", "effect"])
def test_calls_that_got_no_thread_have_not_left(effect: str) -> None:
    called: list[Any] = []

    def script(given: dict[str, Any]) -> dict[str, Any]:
        called.append(given)
        return {"y": 1}

    try:
        result = run(
            skill(step("a", "c.a", depends_on=[]), step("b", "c.a", depends_on=[])),
            ScriptedRunner({"c.a": script}), capability("c.a", effect=effect), sink=Emptied(), keep_going=True,
        )  # fmt: skip
    finally:
        threading.stack_size(0)
    assert (result.outcome.status, result.code, result.outcome.error.exit_code) == (
        "error",
        "call.transport",
        6,
    )
    assert called == []
    for id in ("a", "b"):
        (attempt,) = result.closing(id).payload["attempts"]
        assert (attempt["code"], attempt["left"]) == ("call.transport", False)


def test_a_run_that_gets_none_at_all_says_so() -> None:
    with no_more(), pytest.raises(threads.NoThread):
        run(skill(step("a", "c.a")), ScriptedRunner({"c.a": gives(y=1)}), capability("c.a"))


def test_a_service_that_gets_none_has_not_been_called() -> None:
    """What a call needs a thread for is what comes before it leaves: a look-up, a session."""

    def starts(given: dict[str, Any]) -> dict[str, Any]:
        with no_more():
            threads.start(lambda: None, name="look-up")
        return {"y": 1}

    result = run(
        skill(step("a", "c.a")), ScriptedRunner({"c.a": starts}), capability("c.a", effect="effect")
    )
    assert (result.outcome.status, result.code) == ("error", "call.transport")


def test_the_command_says_what_is_lacking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from cogcli.cli import main

    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "COGCLI_RUNS_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    with no_more():
        code = main.run(["run", "text.language", "-p", "text=x", "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert (code, answer["exit_code"], answer["status"], answer["error"]["code"]) == (
        3,
        3,
        "error",
        "env.threads",
    )
