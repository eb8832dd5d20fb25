"""The id of a user is judged at every door, before anything runs (docs/reference/user-memory.md)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.project import Project
from support.user_seed import seed_user

from cogcli.api import Project as Opened
from cogcli.base.errors import UsageError

INVALID = ("../etc", "a b", "-x", "", "a" * 65, "\u0430nn")
PACK = "support-desk@4.0.0"


def expect_usage(project: Project, *arguments: str) -> None:
    """The command ends with 2, names the id of a user, and leaves nothing."""
    error = project.run(*arguments, "--json").assert_exit(2).json["error"]
    assert error["code"] == "usage.value"
    assert "letters, digits" in json.dumps(error)
    assert not project.episodes
    assert not (project.root / ".cogcli/memory.db").exists()


@pytest.mark.parametrize("user", INVALID)
def test_an_invalid_id_is_refused_at_every_door(desk: Project, user: str) -> None:
    request = json.loads((desk.root / "requests/allowed.json").read_text())
    expect_usage(desk, "agent", "invoke", "requests/allowed.json", f"--user={user}")
    request["user"] = {**request.get("user", {}), "user_id": user}
    desk.write("request.json", json.dumps(request))
    expect_usage(desk, "agent", "invoke", "request.json")
    expect_usage(
        desk,
        "run",
        "text.brief",
        "-p",
        "text=x",
        "--pack",
        PACK,
        "--intent",
        "support.refund",
        f"--user={user}",
    )
    expect_usage(desk, "memory", "ls", f"--user={user}")
    with pytest.raises(UsageError, match="`user`"):
        Opened(desk.root).run("text.brief", {"text": "x"}, pack=PACK, intent="refund", user=user)


def test_data_of_an_invalid_id_is_shown_and_forgotten(project: Project) -> None:
    """Earlier versions stored such data."""
    project.write("cogcli.toml", "")
    path = project.root / ".cogcli/memory.db"
    path.parent.mkdir()
    for user in ("../etc", "-x", ""):
        seed_user(path, user=user, word="canary")
        assert b"canary" in path.read_bytes()
        shown = (
            project.run("agent", "profile", "show", "--json", "--", user)
            .assert_ok()
            .json["profile"]
        )
        assert (shown["user_id"], shown["interaction_count"] > 0) == (user, True)
        error = (
            project.run("agent", "profile", "forget", "--json", "--", user)
            .assert_exit(2)
            .json["error"]
        )
        for command in error["next"]:
            project.run(*_words(command)).assert_ok()
        assert b"canary" not in path.read_bytes()


def _words(command: str) -> list[str]:
    """The words of a printed command, as a shell reads them, without `cogcli`."""
    import shlex

    words: list[Any] = shlex.split(command)
    return words[1:]
