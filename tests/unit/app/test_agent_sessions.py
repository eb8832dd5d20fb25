"""The door to conversations: one live run each (docs/reference/user-memory.md#sessions)."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from cogcli.agent.context.inputs import User
from cogcli.agent.stores import session_lock
from cogcli.agent.stores.interactions import Interaction
from cogcli.agent.use_cases.sessions import open_session
from cogcli.agent.use_cases.user_memory import consolidate, profile_of
from cogcli.app.settings import Settings
from cogcli.base.errors import UnusableEnvironment, UsageError
from cogcli.declarations.pack_spec import MemoryLayer

AT = "2026-11-01T09:30:00.000000Z"
SAID = {"role": "user", "content": "hello", "timestamp": AT}
DONE = Interaction("run_1", "ep_1", "evt_1", "hello", "hi", True, "fast", 1, 0, AT)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "cogcli.toml").touch()
    home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    return Settings({}, {**home, "COGCLI_TRUST_PROJECT": "1"}, base=str(tmp_path))


def locks(settings: Settings) -> list[str]:
    return [path.name for path in Path(settings.base, ".cogcli").glob("*.session-*")]


def test_what_a_run_said_is_there_for_the_next(settings: Settings) -> None:
    assert profile_of(settings, "t", User("u"), MemoryLayer()) is None
    assert not Path(settings.base, ".cogcli").exists()
    with open_session(settings, "t", "u", "s") as session:
        assert session.messages == ()
        consolidate(
            settings, "t", "u", DONE, session=session._replace(messages=(SAID,), mode="deep")
        )
    with open_session(settings, "t", "u", "s") as session:
        assert (session.messages, session.mode) == ((SAID,), "deep")
        assert len(locks(settings)) == 1
    with open_session(settings, "t", "v", "s") as session:
        assert session.messages == ()
    assert locks(settings) == []
    profile = profile_of(settings, "t", User("u"), MemoryLayer())
    assert profile is not None
    assert profile.interaction_count == 1


def test_of_one_session_one_run_lives_and_of_others_meanwhile(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_lock, "WAIT_SECONDS", 0)
    with open_session(settings, "t", "u", "s"):
        with open_session(settings, "t", "u", "s2"), open_session(settings, "s", "u", "s"):
            pass
        with pytest.raises(UnusableEnvironment) as refused, open_session(settings, "t", "u", "s"):
            pass
        assert refused.value.code == "session.busy"
        assert len(locks(settings)) == 1
    with open_session(settings, "t", "u", "s"):
        pass


def test_whoever_waits_comes_next_and_nobody_beside(settings: Settings) -> None:
    inside: list[int] = []
    most: list[int] = []

    def take(number: int) -> None:
        with open_session(settings, "t", "u", "s"):
            inside.append(number)
            most.append(len(inside))
            inside.remove(number)

    threads = [threading.Thread(target=take, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert most == [1] * 6


KILLED = """
import os, signal, sys
from cogcli.agent.use_cases.sessions import open_session
from cogcli.app.settings import Settings
environ = {"HOME": sys.argv[1], "COGCLI_TRUST_PROJECT": "1"}
with open_session(Settings({}, environ, base=sys.argv[1]), "t", "u", "s"):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_run_that_was_killed_holds_nothing(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run([sys.executable, "-c", KILLED, settings.base], check=False, timeout=60)
    assert len(locks(settings)) == 1
    monkeypatch.setattr(session_lock, "WAIT_SECONDS", 0)
    with open_session(settings, "t", "u", "s"):
        pass
    assert locks(settings) == []


def test_a_lock_whose_file_is_gone_holds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the opening of a file and its lock the holder may end, and a third make the file anew."""
    path, opened = tmp_path / "lock", os.open
    handles = [session_lock._try_lock(path)]

    def late(*arguments: Any) -> int:
        handle = opened(*arguments)
        monkeypatch.undo()
        path.unlink()
        os.close(handles.pop())
        handles.append(session_lock._try_lock(path))
        return handle

    monkeypatch.setattr(os, "open", late)
    assert session_lock._try_lock(path) == -1
    assert handles[0] >= 0
    os.close(handles[0])


@pytest.mark.parametrize("id", ["", ".s", "a/b", "a b", "ü", "x" * 65, "a\n"])
def test_ids_of_another_form_are_refused(settings: Settings, id: str) -> None:
    for user, session in ((id, "s"), ("u", id)):
        with pytest.raises(UsageError), open_session(settings, "t", user, session):
            pass
    assert not Path(settings.base, ".cogcli").exists()
