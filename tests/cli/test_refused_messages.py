"""A message that no model may read leaves no text behind (docs/reference/agent-run.md#withheld)."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from support.project import Project
from support.tinymodel import TinyModel

from cogcli.base.canonical import digest_of

pytestmark = pytest.mark.sampled(8)

CARD = "4111111111111111"
MESSAGE = f"Refund order ord_881 to my card {CARD}"
INVOKE = (
    "agent",
    "invoke",
    "--pack",
    "support-desk@4.0.0",
    "--user",
    "cust_7",
    "--session",
    "mon",
    "--json",
)
NOTICE = "[withheld: must_refuse:card]"


def use_learning_model(desk: Project, server: TinyModel) -> None:
    """Let the project ask this model, also about what is to be learned of its users."""
    lines = ('adapter = "openai"', 'name = "script:hi"', f'base_url = "{server.base_url}"')
    desk.write("cogcli.toml", "\n".join(("[model]", *lines, "")))


def stored_with(desk: Project, text: str) -> list[Path]:
    """The stored files that hold this text."""
    files = [path for path in (desk.root / ".cogcli").rglob("*") if path.is_file()]
    return [path for path in files if text.encode() in path.read_bytes()]


def sent_to(server: TinyModel) -> str:
    return b"".join(request.raw for request in server.requests).decode()


def interactions(desk: Project) -> list[dict[str, Any]]:
    export = ("agent", "profile", "export", "cust_7", "--tenant", "acme")
    rows: list[dict[str, Any]] = desk.run(*export).assert_ok().json["tables"]["interaction"]
    return rows


@pytest.fixture
def server() -> Any:
    with TinyModel(seed=1, scripts={"hi": [{"response": "It is 12 days old."}]}) as server:
        yield server


def test_a_message_that_a_guardrail_refuses_is_stored_as_hash_and_reason(
    desk: Project, server: TinyModel
) -> None:
    use_learning_model(desk, server)
    result = desk.run(*INVOKE, "--message", MESSAGE).assert_exit(4)
    assert result.json["decision"]["status_reason"] == "must_refuse:card"
    desk.run("agent", "jobs", "run").assert_ok()
    assert server.requests == []
    assert stored_with(desk, CARD) == []
    log = (desk.episode / "events.jsonl").read_text().splitlines()
    request = json.loads(log[0])["payload"]["agent"]["request"]
    assert (request["message"], request["refused_by"]) == (NOTICE, ["card"])
    assert request["message_hash"] == digest_of(MESSAGE)
    (row,) = interactions(desk)
    assert row["query"] == f"{NOTICE} {digest_of(MESSAGE)}"
    shown = desk.run(
        "agent", "sessions", "show", "mon", "--user", "cust_7", "--tenant", "acme", "--json"
    )
    (message,) = shown.assert_ok().json["session"]["messages"]
    assert (message["content"], message["message_hash"]) == (NOTICE, digest_of(MESSAGE))
    desk.run("replay", "@last").assert_ok()
    desk.run("verify", "@last").assert_ok()


def test_the_next_message_of_the_conversation_brings_the_notice_alone(
    desk: Project, server: TinyModel
) -> None:
    use_learning_model(desk, server)
    desk.run(*INVOKE, "--message", MESSAGE).assert_exit(4)
    desk.run(*INVOKE, "--message", "What about the refund of order ord_881?")
    sent = sent_to(server)
    assert NOTICE in sent
    assert CARD not in sent
    assert digest_of(MESSAGE) not in sent


@pytest.mark.parametrize(
    ("message", "more"),
    [(f"My card is {CARD}", ()), (MESSAGE, ("--param", f"note={CARD}"))],
    ids=["of no known intent", "with parameters"],
)
def test_a_guardrail_refuses_before_anything_is_written(
    desk: Project, message: str, more: tuple[str, ...]
) -> None:
    result = desk.run(*INVOKE, "--message", message, *more).assert_exit(4)
    assert result.json["decision"]["status_reason"] == "must_refuse:card"
    assert stored_with(desk, CARD) == []


def test_rerun_names_no_command_that_would_ask_with_the_notice(desk: Project) -> None:
    desk.run(*INVOKE, "--message", MESSAGE).assert_exit(4)
    error = desk.run("rerun", "@last", "--json").assert_exit(2).json["error"]
    assert "holds only the hash" in error["hint"]
    assert error["next"] == ["cogcli agent invoke --help"]


@pytest.mark.parametrize(
    ("message", "flags", "code", "reason"),
    [
        (
            "Refund order ord_881, it is zarquon",
            ("--budget", "tokens.context=40"),
            1,
            "context.overpacked",
        ),
        ("zarquon", (), 4, "unknown_intent"),
    ],
)
def test_of_a_message_that_was_never_planned_the_stores_keep_hash_and_reason(
    desk: Project, server: TinyModel, message: str, flags: tuple[str, ...], code: int, reason: str
) -> None:
    use_learning_model(desk, server)
    desk.run(*INVOKE, "--message", message, *flags).assert_exit(code)
    desk.run("agent", "jobs", "run").assert_ok()
    assert server.requests == []
    assert [
        path for path in stored_with(desk, "zarquon") if path.name.startswith("memory.db")
    ] == []
    assert interactions(desk)[0]["query"] == f"[withheld: {reason}] {digest_of(message)}"


def test_nothing_is_learned_of_a_message_that_a_person_rejects(
    desk: Project, server: TinyModel
) -> None:
    use_learning_model(desk, server)
    desk.run(*INVOKE, "--message", "Refund order ord_881 or my lawyer calls").assert_exit(5)
    desk.run("resume", "@last", "--reject", "GATE_OPERATOR", "--by", "ann").assert_exit(4)
    desk.run("agent", "jobs", "run").assert_ok()
    assert server.requests == []
    assert [
        path for path in stored_with(desk, "lawyer calls") if path.name.startswith("memory.db")
    ] == []


def test_a_job_that_an_older_version_queued_for_a_refused_message_asks_no_model(
    desk: Project, server: TinyModel
) -> None:
    use_learning_model(desk, server)
    desk.run(*INVOKE, "--message", MESSAGE).assert_exit(4)
    with sqlite3.connect(desk.root / ".cogcli/memory.db") as connection:
        connection.execute(
            "UPDATE interaction SET query = ?, rules = json_remove(rules, '$.withheld')", (MESSAGE,)
        )
        connection.execute(
            "INSERT INTO job VALUES ('jb_1', 'acme', 'cust_7', 'extract', 1, 1, 'queued', 0, '', '', '{}', '', 1)"
        )
    connection.close()
    desk.run("agent", "jobs", "run").assert_ok()
    assert server.requests == []
