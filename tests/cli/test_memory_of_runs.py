"""What runs of an agent leave in memory, and who may recall it (docs/reference/pack.md#memory)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.agent_desk import payloads
from support.project import Project

pytestmark = pytest.mark.sampled(6)

PACK, FILE = "support-desk@4.0.0", "packs/support-desk/4.0.0.yaml"
CONSENT = ["evidence_link", "decision_outcome", "preference"]


def invoke(desk: Project, message: str = "Where is order ord_881?", **members: Any) -> None:
    user = {"user_id": "cust_7", "consent": CONSENT}
    request = {"message": message, "user": user, "pack_refs": [PACK], **members}
    desk.write("r.json", json.dumps(request).encode())
    desk.run("agent", "invoke", "r.json", "--json").assert_ok()


def rows(desk: Project, *command: str, **wanted: str) -> list[dict[str, Any]]:
    """The rows of a command of memory with these members."""
    result = desk.run("memory", *command, "--tenant", "acme", "--json").assert_ok().json
    found = [*result.get("memories", ()), *result.get("proposals", ())]
    return [row for row in found if all(row[name] == value for name, value in wanted.items())]


def recalled(desk: Project) -> dict[str, str]:
    """By entity and predicate why each memory is in the context of the last run, or not."""
    found = desk.run("context", "explain", "@last", "--json").assert_ok().json["context"]
    return {
        f"{each['entity']} {each['predicate']}": each["reason"]
        for each in found["placements"]
        if each["kind"] == "memory"
    }


def change(desk: Project, file: str, old: str, new: str) -> None:
    text = (desk.root / file).read_text()
    assert text.count(old) == 1
    desk.write(file, text.replace(old, new).encode())


def test_a_fact_keeps_the_classification_of_the_capability_that_gave_it(desk: Project) -> None:
    file = "capabilities/orders.lookup.yaml"
    text = (desk.root / file).read_text()
    desk.write(file, (text + "\nsafety: {data_classification: pii}\n").encode())
    invoke(desk)
    facts = rows(desk, "ls", tier="semantic")
    assert {row["candidate"]["predicate"] for row in facts} == {"age_days", "total"}
    assert {row["data_class"] for row in facts} == {"pii"}
    invoke(desk)
    assert recalled(desk)["order:ord_881 total"] == "class"
    prompt = json.dumps(
        payloads(desk.episode, "context.compiled")[-1]["context"]["compiled_prompt"]
    )
    assert '"memory:' not in prompt
    desk.run("replay", "@last").assert_ok()
    change(desk, FILE, "max_class: internal", "max_class: pii")
    invoke(desk)
    assert recalled(desk)["order:ord_881 total"] in ("recalled", "not_in_focus")
    tables = desk.run("agent", "profile", "export", "cust_7", "--tenant", "acme").json["tables"]
    assert {row["rules"]["data_class"] for row in tables["interaction"]} == {"pii"}


@pytest.mark.sampled(12)
def test_working_memory_is_written_for_the_session_and_recalled_there(desk: Project) -> None:
    invoke(desk, session_id="s1")
    kept = {
        row["candidate"]["predicate"]: row["candidate"]["value"]
        for row in rows(desk, "ls", tier="working")
    }
    assert kept == {
        "intent": "support.order_status",
        "order": "order:ord_881",
        "outcome": "answered",
    }
    assert {row["candidate"]["entity"] for row in rows(desk, "ls", tier="working")} == {
        "session:s1"
    }
    invoke(desk, "Where is order ord_100?", session_id="s1")
    assert recalled(desk)["session:s1 order"] in ("recalled", "not_in_focus")
    (now,) = (r for r in rows(desk, "ls", tier="working") if r["candidate"]["predicate"] == "order")
    assert now["candidate"]["value"] == "order:ord_100"
    (old,) = rows(desk, "proposals", "--all", tier="working", state="superseded")
    assert old["candidate"]["value"] == "order:ord_881"
    desk.run("replay", "@last").assert_ok()
    invoke(desk, "Where is order ord_100?", session_id="s2")
    assert {recalled(desk)[name] for name in recalled(desk) if "session:s1" in name} <= {"session"}
    invoke(desk)
    assert "s1" not in json.dumps(payloads(desk.episode, "context.compiled")[-1])


def test_a_forgotten_session_leaves_no_working_memory(desk: Project) -> None:
    invoke(desk, session_id="s1")
    invoke(desk, session_id="s2")
    forget = ("agent", "sessions", "forget", "s1", "--user", "cust_7", "--tenant", "acme")
    desk.run(*forget).assert_ok()
    entities = {row["candidate"]["entity"] for row in rows(desk, "ls", tier="working")}
    assert entities == {"session:s2"}


def test_working_memory_needs_consent_like_any_other(desk: Project) -> None:
    invoke(desk, user={"user_id": "cust_7"}, session_id="s1")
    assert rows(desk, "ls") == []
    assert {row["consent"] for row in rows(desk, "proposals", tier="working")} == {False}
