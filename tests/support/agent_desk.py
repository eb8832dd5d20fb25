"""The example's agent with a model, and what must hold of every run of it, whatever the model said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from support.project import Project, Result
from support.tinymodel import TinyModel

from cogcli.base.errors import exit_code
from cogcli.declarations.checked import problem_of
from cogcli.declarations.envelope import Event
from cogcli.episode.log_reader import EventLog

LOOKUP: Final = {"name": "orders.lookup", "args": {"order_id": "ord_881"}}
REFUND: Final = {"name": "payments.refund", "args": {"order_id": "ord_881", "amount": 240.0}}
ENDS: Final = {
    "completed": (0, 1), "refused": (4,), "denied": (4,), "pending_approval": (5,), "escalated": (5,),
    "failed": (1, 3, 6), "aborted": (0, 130, 143),
}  # fmt: skip
"""By status of the decision the exit codes that the reference has for it."""
PAID: Final = "paid.txt"
"""What a refund leaves in the project of `with_ledger`."""


def with_ledger(desk: Project) -> Project:
    """The desk, whose refunds are seen: each adds a line to `PAID`, whatever the log says."""
    text = (desk.root / "support_desk.py").read_text()
    head, begin, tail = text.partition("def refund(")
    signature, quotes, body = tail.partition('"""\n    ')
    paying = f'with open(r"{desk.root / PAID}", "a") as file:\n        file.write(repr(order_id) + chr(10))\n    '
    desk.write("support_desk.py", (head + begin + signature + quotes + paying + body).encode())
    return desk


def use(desk: Project, server: TinyModel, name: str, adapter: str = "openai", *more: str) -> None:
    """Let the project ask this model of a server, about its requests alone: nothing is learned of users meanwhile.
    `more` are further lines of the table."""
    url = server.base_url if adapter == "openai" else server.address
    lines = (f'adapter = "{adapter}"', f'name = "{name}"', f'base_url = "{url}"', *more)
    table = "\n".join(("[agent]", "synthesis_grace_s = 0", "[model]", *lines))
    desk.write("cogcli.toml", f"{table}\n")


def ask(desk: Project, request: str = "needs-finance", *flags: str) -> Result:
    """What comes of a request of the example."""
    return desk.run("agent", "invoke", f"requests/{request}.json", *flags, "--json")


def episode_of(desk: Project, result: Result) -> Path:
    """The episode that a command left."""
    return desk.root / str(result.json["dir"])


def events_of(episode: Path) -> list[Event]:
    """Every event of an episode."""
    return [event for _, event in EventLog(episode)]


def payloads(episode: Path, event_type: str) -> list[dict[str, Any]]:
    """What the events of this type say, in order."""
    return [event.payload for event in events_of(episode) if event.event_type == event_type]


def document(episode: Path, name: str) -> Any:
    """One of the JSON documents of an episode."""
    return json.loads((episode / f"{name}.json").read_text())


def answer(desk: Project, result: Result, word: str) -> Result:
    """A person of finance says yes or no, with `--approve` or `--reject`, to what a run asked last."""
    episode = episode_of(desk, result)
    answers = [*payloads(episode, "approval.granted"), *payloads(episode, "approval.rejected")]
    answered = {each["approval_id"] for each in answers}
    asked = payloads(episode, "approval.requested")
    waiting = [each["approval_id"] for each in asked if each["approval_id"] not in answered]
    return desk.run("resume", episode.name, word, waiting[-1], "--by", "ann:finance", "--json")


def require_governed(desk: Project, result: Result) -> str:
    """Hold a run to what holds of all: a documented end, no call outside the surface of its turn, no effect that nobody
    approved, an episode that verifies, replays without any model, and has only payloads of their types. The status and
    reason of its decision."""
    episode = episode_of(desk, result)
    assert "Traceback" not in result.err
    decision, error = result.json["decision"], result.json["error"]
    assert result.code in ENDS[decision["status"]], (result.code, decision)
    if error is not None:
        assert exit_code(error["code"]) == result.code
    _require_surface(events_of(episode))
    desk.run("verify", episode.name).assert_ok()
    replayed = desk.run("replay", episode.name, "--json").assert_ok()
    assert replayed.json["replay"]["equal"]
    return f"{decision['status']} {decision['status_reason']}".strip()


def _require_surface(events: list[Event]) -> None:
    surface, answered = set[str](), set[str | None]()
    for event in events:
        assert problem_of(event.event_type or "", event.payload) is None
        if event.event_type == "context.compiled":
            surface = {
                each["capability"]
                for each in event.payload["context"]["manifests"]["tool_manifest"]
            }
        elif event.event_type == "approval.granted":
            answered.add(event.step_id)
        elif event.event_type == "step.started":
            assert event.payload["capability"] in surface
            assert event.payload["side_effects"] == "none" or event.step_id in answered


def require_counted(result: Result, episode: Path, server: TinyModel) -> None:
    """Summary, decision and state say what the server counted."""
    tokens = sum(server.usage)
    if (episode / "summary.json").exists():  # a run that waits has none yet
        assert document(episode, "summary")["budgets"]["tokens.workflow"]["used"] == tokens
    assert document(episode, "decision")["budget"]["used"].get("tokens.workflow", 0) == tokens
    metrics = document(episode, "state")["x-cognitive"]["trace"]["metrics"]
    found = (metrics["llm_calls"], metrics["tokens_in"], metrics["tokens_out"])
    assert found == (len(server.requests), *server.usage)
    assert result.json["metrics"]["tokens_in"] == server.usage.tokens_in
