"""What an agent learns of its user, and what its state tells of a run (docs/reference/user-memory.md#profile)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.agent_desk import payloads
from support.project import Project, Result

pytestmark = pytest.mark.sampled(4)

PACK, FILE = "support-desk@4.0.0", "packs/support-desk/4.0.0.yaml"
OWNER = ("--tenant", "acme", "--json")
LEARNED = [
    {"preferences": {"contact": "email"}, "goals": ["refund ord_881", "move house"]},
    {"preferences": {"contact": "phone"}},
    {},
    {"goals": ["move house"], "communication_style": "concise"},
]
"""Three interactions, then a synthesis that leaves out a goal which is over."""


def invoke(desk: Project, *flags: str) -> Result:
    user = {"user_id": "cust_7", "consent": ["preference"]}
    request = {"message": "Where is order ord_881?", "user": user, "pack_refs": [PACK]}
    desk.write("r.json", json.dumps(request).encode())
    return desk.run("agent", "invoke", "r.json", *flags, "--json")


def script(desk: Project, replies: list[Any]) -> tuple[str, str]:
    """The flags of a model with these replies."""
    lines = {"replies": [{"json": reply} for reply in replies]}
    desk.write("models/replies.yaml", json.dumps(lines).encode())
    return "--model", "scripted:models/replies.yaml"


def learn(desk: Project, profile: str) -> dict[str, Any]:
    """Three interactions and the jobs about them; the profile after them."""
    text = (desk.root / FILE).read_text()
    text = text.replace(
        "auto_promote: [evidence_link]", "auto_promote: [evidence_link, preference]"
    )
    desk.write(FILE, text.replace("confidence_floor: 0.7", "confidence_floor: 0.5").encode())
    desk.write("cogcli.toml", f'[agent]\nprofile = "{profile}"\nsynthesis_grace_s = 0\n')
    for _ in range(3):
        invoke(desk).assert_ok()
    desk.run("agent", "jobs", "run", *script(desk, LEARNED)).assert_ok()
    return shown(desk)


def shown(desk: Project) -> dict[str, Any]:
    found: dict[str, Any] = (
        desk.run("agent", "profile", "show", "cust_7", *OWNER).assert_ok().json["profile"]
    )
    return found


def history(desk: Project, state: str) -> dict[str, Any]:
    """By predicate the value of each proposal of the profile in this state."""
    rows = desk.run("memory", "proposals", "--all", *OWNER).assert_ok().json["proposals"]
    found = [row["candidate"] for row in rows if row["state"] == state]
    return {each["predicate"]: each["value"] for each in found if "." in each["predicate"]}


@pytest.mark.sampled(8)
def test_a_newer_preference_counts_and_the_synthesizer_removes_what_is_over(desk: Project) -> None:
    profile = learn(desk, "auto")
    assert profile["preferences"] == {"contact": "phone"}
    assert profile["goals"] == ["move house"]
    assert profile["communication_style"] == "concise"
    assert profile["synthesis_version"] == 2
    gone = history(desk, "superseded")
    assert gone == {"preferences.contact": "email", "goals.refund ord_881": "refund ord_881"}
    recalled = ("memory", "recall", "refund ord_881", "--user", "cust_7", "--consent", "preference")
    assert desk.run(*recalled, *OWNER).assert_ok().json["memories"] == []
    invoke(desk, *script(desk, [{"response": "In the post."}])).assert_ok()
    asked = payloads(desk.episode, "model.requested")[-1]["request"]["messages"][-1]["content"]
    assert "contact: phone" in asked
    assert "refund ord_881" not in asked
    desk.run("replay", "@last").assert_ok()


@pytest.mark.sampled(8)
def test_where_a_person_reviews_nothing_changes_before_they_say_so(desk: Project) -> None:
    assert learn(desk, "review")["goals"] == []
    waiting = desk.run("memory", "proposals", *OWNER).assert_ok().json["proposals"]
    ids = {row["candidate"]["predicate"]: row["proposal_id"] for row in waiting}
    for name in ("goals.refund ord_881", "goals.move house"):
        desk.run("memory", "promote", ids[name], "--by", "ann", *OWNER).assert_ok()
    assert shown(desk)["goals"] == ["refund ord_881", "move house"]
    desk.run("agent", "jobs", "run", *script(desk, [{}])).assert_ok()
    for _ in range(3):
        invoke(desk).assert_ok()
    desk.run(
        "agent", "jobs", "run", *script(desk, [{}, {}, {}, {"goals": ["move house"]}])
    ).assert_ok()
    assert shown(desk)["goals"] == ["refund ord_881", "move house"]
    waiting = desk.run("memory", "proposals", *OWNER).assert_ok().json["proposals"]
    (removal,) = (row for row in waiting if row["candidate"]["value"] is None)
    assert removal["candidate"]["predicate"] == "goals.refund ord_881"
    desk.run("memory", "promote", removal["proposal_id"], "--by", "ann", *OWNER).assert_ok()
    assert shown(desk)["goals"] == ["move house"]
    assert history(desk, "superseded") == {"goals.refund ord_881": "refund ord_881"}


def test_notices_are_notifications_of_the_state_and_debug_is_that_of_the_caller(
    desk: Project,
) -> None:
    calls = [{"tool_calls": [{"name": "vault.open", "args": {}}]}, {"response": "I cannot."}]
    invoke(desk, *script(desk, calls), "-v").assert_ok()
    path = ("state", "show", "@last", "--path")
    execution = desk.run(*path, "x-agent.execution").assert_ok().json
    (notice,) = execution["notifications"]
    assert (notice["type"], notice["text"]) == ("replan", "unknown_capability:vault.open")
    assert notice["timestamp"]
    assert execution["debug"] is True
    desk.run("verify", "@last").assert_ok()
    desk.run("replay", "@last").assert_ok()
    invoke(desk, *script(desk, calls[1:])).assert_ok()
    execution = desk.run(*path, "x-agent.execution").assert_ok().json
    assert (execution["notifications"], execution["debug"]) == ([], False)
