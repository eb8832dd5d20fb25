"""`agent chat` in a real terminal (docs/reference/agent-run.md#chat)."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from support.project import Project
from support.ssh_keys import make_key, person, require_ssh

if sys.platform == "win32":
    pytest.skip("no pseudo-terminals here", allow_module_level=True)
from support.terminal import Terminal

pytestmark = pytest.mark.sampled(12)

PROMPT = "›"
GOLDEN = Path(__file__).with_name("goldens") / "agent-chat.txt"
HELLO = {"when": ["hello"], "json": {"response": "Hello, how can I help?"}, "pause_ms": 5}
SLOW = {
    "when": ["take your time"],
    "json": {"response": "one two three four five"},
    "pause_ms": 400,
}
REFUNDED = {"when": ["result:1 payments.refund"], "json": {"response": "Refunded."}}
REFUND = {
    "when": ["result:0 orders.lookup"],
    "json": {
        "tool_calls": [{"name": "payments.refund", "args": {"order_id": "ord_881", "amount": 240}}]
    },
}
LOOKUP = {
    "when": ["please refund"],
    "json": {
        "tool_calls": [{"name": "orders.lookup", "args": {"order_id": "ord_881"}}],
        "context_updates": {"facts": {"asked_for": "refund"}, "strategy": "look up, then decide"},
    },
}


@pytest.fixture
def chat(desk: Project) -> Any:
    """Starts a chat with a model that answers by words."""
    desk.write("models/talk.yaml", json.dumps({"replies": [SLOW, REFUNDED, REFUND, LOOKUP, HELLO]}))

    def start(*more: str) -> Terminal:
        words = (
            "--pack",
            "support-desk@4.0.0",
            "--user",
            "cust_7",
            "--model",
            "scripted:models/talk.yaml",
        )
        terminal = Terminal(
            desk, "agent", "chat", *words, "--session", "s1", *more, rows=60, columns=100
        )
        terminal.until("/quit")
        return terminal

    return start


def test_a_conversation_on_the_screen(chat: Any) -> None:
    terminal = chat()
    terminal.send("hello, where is order ord_881?", PROMPT)
    terminal.until("Hello, how can I help?")
    for word, shown in (
        ("/mode deep", "mode deep"),
        ("/why", "context explain"),
        ("/state", "goal:"),
        ("/nosuch", "no /nosuch"),
    ):
        terminal.send(word, PROMPT)
        terminal.until(shown)
    terminal.send("/quit", PROMPT)
    screen = terminal.finish()
    assert terminal.process.exitstatus == 0
    shown = re.sub(r"ep_[0-9A-Z]{12}", "ep_EPISODE", screen) + "\n"
    if os.environ.get("COGCLI_UPDATE_GOLDENS"):
        GOLDEN.write_text(shown, encoding="utf-8")
    assert shown == GOLDEN.read_text(encoding="utf-8")


LONG = " ".join(f"word{n}" for n in range(60))
DRAFT = {
    "when": ["please look"],
    "json": {
        "response": "Looking.",
        "tool_calls": [{"name": "orders.lookup", "args": {"order_id": "ord_881"}}],
    },
}
ANSWER = {"when": ["result:0 orders.lookup"], "json": {"response": LONG}, "pause_ms": 20}


@pytest.mark.parametrize(("rows", "columns"), [(12, 40), (24, 80)])
def test_an_invoked_agent_answers_as_its_model_writes_and_once(
    desk: Project, rows: int, columns: int
) -> None:
    desk.write("models/talk.yaml", json.dumps({"replies": [ANSWER, DRAFT]}))
    message = ("--message", "please look, where is order ord_881?", "--user", "cust_7")
    words = ("--pack", "support-desk@4.0.0", "--model", "scripted:models/talk.yaml")
    terminal = Terminal(desk, "agent", "invoke", *message, *words, rows=rows, columns=columns)
    terminal.until("word30")
    growing = "\n".join(terminal.screen.display)
    assert "word59" not in growing
    assert "✓ t1_call1" in growing
    final = terminal.finish()
    assert terminal.process.exitstatus == 0
    assert not terminal.screen.cursor.hidden
    assert "".join(final.split()).count("word59") == 1
    assert "Looking." not in final
    assert terminal.raw.decode().count(LONG) == 1


@pytest.mark.sampled(24)
@pytest.mark.parametrize(
    ("variables", "flags", "steps"),
    [
        ({"NO_COLOR": "1"}, (), True),
        ({"CI": "1"}, (), True),
        ({"TERM": "dumb"}, (), True),
        ({}, ("-q",), False),
        ({}, ("--progress", "lines"), True),
        ({}, ("--progress", "none"), False),
    ],
)
def test_an_invoked_agent_that_may_not_redraw_answers_as_a_whole(
    desk: Project, variables: dict[str, str], flags: tuple[str, ...], steps: bool
) -> None:
    desk.write("models/talk.yaml", json.dumps({"replies": [ANSWER, DRAFT]}))
    desk.env |= variables
    message = ("--message", "please look, where is order ord_881?", "--user", "cust_7")
    words = ("--pack", "support-desk@4.0.0", "--model", "scripted:models/talk.yaml")
    terminal = Terminal(desk, "agent", "invoke", *message, *words, *flags, rows=40, columns=100)
    terminal.finish()
    shown = terminal.raw.decode()
    assert terminal.process.exitstatus == 0
    assert shown.count("word0 word1") == shown.count(LONG) == 1
    assert "Looking." not in shown
    assert ("t1_call1" in shown) == steps
    assert "\x1b[" not in shown or not variables


def test_an_invoked_agent_writes_the_answer_alone_to_a_pipe(desk: Project) -> None:
    desk.write("models/talk.yaml", json.dumps({"replies": [ANSWER, DRAFT]}))
    message = ("--message", "please look, where is order ord_881?", "--user", "cust_7")
    words = ("--pack", "support-desk@4.0.0", "--model", "scripted:models/talk.yaml")
    result = desk.run("agent", "invoke", *message, *words).assert_ok()
    assert result.out == f"{LONG}\n"
    assert "word1" not in result.err
    assert "\x1b" not in result.err


def test_ctrl_c_stops_the_answer_and_stays(chat: Any, desk: Project) -> None:
    terminal = chat()
    terminal.send("where is order ord_881? take your time", PROMPT)
    terminal.until("one two")
    assert "five" not in "\n".join(terminal.screen.display)
    terminal.process.sendintr()
    terminal.until("stopped")
    terminal.send("hello, where is order ord_881?", PROMPT)
    terminal.until("Hello, how can I help?")
    terminal.leave(PROMPT)
    assert terminal.process.exitstatus == 0
    rows = desk.run("ls", "--json").assert_ok().json["episodes"]
    assert sorted(row["status"] for row in rows) == ["aborted", "ok"]
    for row in rows:
        desk.run("verify", row["episode_id"]).assert_ok()
        desk.run("replay", row["episode_id"]).assert_ok()


@pytest.mark.sampled(24)
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_that_ends_the_process_ends_the_answer_and_the_conversation(
    chat: Any, desk: Project, name: str
) -> None:
    terminal = chat()
    terminal.send("where is order ord_881? take your time", PROMPT)
    terminal.until("one two")
    terminal.process.kill(getattr(signal, name))
    assert "stopped" in terminal.finish()
    assert terminal.process.exitstatus == 143
    (row,) = desk.run("ls", "--json").assert_ok().json["episodes"]
    assert row["status"] == "aborted"
    desk.run("replay", row["episode_id"]).assert_ok()


def test_words_before_the_first_message_say_that_nothing_was_asked(chat: Any) -> None:
    terminal = chat()
    for word in ("/why", "/state", "/trace", "/budget"):
        terminal.send(word, PROMPT)
    screen = terminal.leave(PROMPT)
    assert screen.count("nothing was asked yet") == 4
    assert "no model reasons here" not in screen


@pytest.mark.sampled(24)
def test_what_waits_is_approved_by_a_role_and_not_by_the_user(chat: Any) -> None:
    terminal = chat()
    terminal.send("please refund order ord_881", PROMPT)
    terminal.until("/approve or /reject")
    terminal.send("/approve", PROMPT)
    terminal.until("as whom?")
    terminal.send("/approve cust_7:finance", PROMPT)
    terminal.until("approve? [y/N]")
    terminal.send("y")
    terminal.until("policy.approval")
    terminal.send("/approve ann:finance", PROMPT)
    terminal.send("n")
    terminal.send("/approve ann:finance", PROMPT)
    terminal.send("y")
    terminal.until("Refunded.")
    terminal.leave(PROMPT)
    assert terminal.process.exitstatus == 0


def test_what_waits_for_a_signature_is_signed_in_the_conversation(desk: Project, chat: Any) -> None:
    require_ssh()
    pack = desk.root / "packs/support-desk/4.0.0.yaml"
    gate = "approver_roles: [finance]"
    pack.write_text(pack.read_text().replace(gate, f"signed: true, {gate}"))
    settings = desk.home / ".config/cogcli/config.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(person("ann", make_key(desk.home / "ann")))
    terminal = chat()
    terminal.send("please refund order ord_881", PROMPT)
    terminal.until("/approve or /reject")
    terminal.send("/approve ann:finance", PROMPT)
    terminal.until("only a signed answer counts: /approve NAME:ROLE --sign FILE")
    terminal.send(f"/approve ann:finance --sign {desk.home}/absent", PROMPT)
    terminal.send("y")
    terminal.until("signing.ssh")
    terminal.send("/approve ann:finance --key", PROMPT)
    terminal.until("write /approve NAME:ROLE")
    terminal.send(f"/approve ann:finance --sign {desk.home}/ann", PROMPT)
    terminal.send("y")
    terminal.until("Refunded.")
    terminal.leave(PROMPT)
    log = [
        json.loads(line) for line in next(desk.root.rglob("events.jsonl")).read_text().splitlines()
    ]
    (granted,) = [each for each in log if each["event_type"] == "approval.granted"]
    assert granted["payload"]["signature"]["key"].startswith("SHA256:")


def test_a_customer_reads_the_text_of_the_rule_that_asks(desk: Project, chat: Any) -> None:
    pack = "packs/support-desk/4.0.0.yaml"
    asks = "      then: {verdict: allow_with_gate, gate: GATE_FINANCE_APPROVAL}\n"
    text = (
        (desk.root / pack)
        .read_text()
        .replace(asks, f"{asks}      say: One moment, ${{order.id}}.\n")
    )
    desk.write(pack, text.encode())
    terminal = chat()
    terminal.send("please refund order ord_881", PROMPT)
    terminal.until("One moment, ord_881.")
    terminal.until("/approve or /reject")
    terminal.leave(PROMPT)


def test_what_waits_is_kept_until_it_is_answered(chat: Any) -> None:
    terminal = chat()
    terminal.send("please refund order ord_881", PROMPT)
    terminal.until("/approve or /reject")
    terminal.send("hello, where is order ord_881?", PROMPT)
    terminal.until("1 request still waits")
    terminal.send("/quit", PROMPT)
    terminal.until("waits: cogcli resume ep_")
    terminal.finish()


def test_what_waits_is_approved_after_another_message(chat: Any) -> None:
    terminal = chat()
    terminal.send("please refund order ord_881", PROMPT)
    terminal.until("/approve or /reject")
    terminal.send("hello, where is order ord_881?", PROMPT)
    terminal.until("1 request still waits")
    terminal.send("/approve ann:finance", PROMPT)
    terminal.send("y")
    terminal.until("Refunded.")
    terminal.send("/approve", PROMPT)
    terminal.until("nothing waits for an approval")
    terminal.leave(PROMPT)


def test_a_conversation_needs_a_terminal(desk: Project) -> None:
    result = desk.run("agent", "chat", "--pack", "support-desk@4.0.0").assert_exit(2)
    assert "agent invoke --session" in result.err


def test_without_pack_and_model_a_message_finds_a_skill_and_a_yes_runs_it(project: Project) -> None:
    terminal = Terminal(project, "agent", "chat", rows=60, columns=100)
    terminal.until("skills without effects")
    terminal.send("summarize a text", PROMPT)
    terminal.until("@FILE")
    assert "  cogcli run text.summarize -p text=@FILE" in map(str.rstrip, terminal.screen.display)
    terminal.send("It rains. It rains all day. Nobody goes out.")
    terminal.until("run it? [y/N]")
    terminal.send("y")
    terminal.until("ok in")
    terminal.until_asked(PROMPT)
    terminal.process.sendintr()
    terminal.until("leaves")
    assert "\\n" not in terminal.leave(PROMPT)
    assert terminal.process.exitstatus == 0
