"""The agent of the example asks a tiny real model over HTTP: what it says, what it fails at, what it costs
(docs/how-to/use-a-model.md)."""

from __future__ import annotations

from typing import Any, Final

import pytest
from support.agent_desk import (
    LOOKUP,
    PAID,
    REFUND,
    ask,
    document,
    episode_of,
    payloads,
    require_counted,
    require_governed,
    use,
    with_ledger,
)
from support.project import Project, Result
from support.tinymodel import TinyModel
from support.user_seed import interaction

from cogcli.agent.stores.agent_store import AgentStore

pytestmark = pytest.mark.sampled(10)

APPROVE: Final = (
    "resume",
    "@last",
    "--approve",
    "GATE_FINANCE_APPROVAL",
    "--by",
    "ann:finance",
    "--json",
)
SCRIPTS: Final[dict[str, list[str | dict[str, Any]]]] = {
    "pays": [{"tool_calls": [LOOKUP]}, {"tool_calls": [REFUND]}, {"response": "Refunded."}],
    "natively": [
        {"native_calls": [{"id": "c1", "name": "orders_lookup", "args": LOOKUP["args"]}]},
        {"response": "It is 12 days old."},
    ],
    "fenced": ["Sure!\n```json\n" + '{"response": "Which order?"}' + "\n```\nAnything else?"],
    "always": [{"tool_calls": [{"name": "orders.lookup", "args": {"order_id": f"ord_{n}"}}]} for n in (881, 440)],
}  # fmt: skip


def asked(
    desk: Project, name: str, *flags: str, adapter: str = "openai", seed: int = 1, request: str = "needs-finance",
    more: tuple[str, ...] = (), counted: bool = True,
) -> tuple[Result, TinyModel]:  # fmt: skip
    """What comes of a request to the model of this name, and its server, which has stopped."""
    with TinyModel(seed=seed, scripts=SCRIPTS) as server:
        use(desk, server, name, adapter, *more)
        result = ask(desk, request, *flags)
    if counted:
        require_counted(result, episode_of(desk, result), server)
    return result, server


def purposes(desk: Project, result: Result) -> list[str]:
    return [each["purpose"] for each in payloads(episode_of(desk, result), "model.requested")]


@pytest.mark.parametrize("adapter", ["openai", "anthropic"])
def test_raw_text_is_asked_for_again_until_nothing_is_left(desk: Project, adapter: str) -> None:
    result, server = asked(desk, "bigram", adapter=adapter)
    assert (result.code, result.json["error"]["code"]) == (1, "agent.reply")
    assert require_governed(desk, result) == "failed reply_unusable"
    assert purposes(desk, result) == ["judgment", "repair", "repair"] * 3
    repairs = [each.body["messages"][-1]["content"] for each in server.requests[1::3]]
    assert all("REPAIR:" in text and "not_json" in text for text in repairs)


@pytest.mark.parametrize("adapter", ["openai", "anthropic"])
def test_a_damaged_reply_is_repaired(desk: Project, adapter: str) -> None:
    result, _ = asked(desk, "bigram-half", adapter=adapter, seed=3)
    require_governed(desk, result)
    assert "repair" in purposes(desk, result)
    assert result.json["decision"]["status_reason"] != "reply_unusable"


@pytest.mark.parametrize("adapter", ["openai", "anthropic"])
def test_valid_replies_that_nobody_scripted_are_governed(desk: Project, adapter: str) -> None:
    result, _ = asked(desk, "bigram-json", adapter=adapter)
    require_governed(desk, result)


@pytest.mark.parametrize("adapter", ["openai", "anthropic"])
def test_a_refund_waits_for_a_person_and_is_finished(desk: Project, adapter: str) -> None:
    with_ledger(desk)
    with TinyModel(scripts=SCRIPTS) as server:
        use(desk, server, "script:pays", adapter)
        waiting = ask(desk).assert_exit(5)
        assert require_governed(desk, waiting).startswith("pending_approval")
        assert not (desk.root / PAID).exists()
        result = desk.run(*APPROVE).assert_ok()
        require_counted(result, episode_of(desk, result), server)
    assert (desk.root / PAID).read_text() == "'ord_881'\n"
    assert result.json["outputs"] == {"response": "Refunded."}
    assert require_governed(desk, result) == "completed"


@pytest.mark.parametrize("adapter", ["openai", "anthropic"])
def test_native_calls_of_a_provider_are_calls(desk: Project, adapter: str) -> None:
    result, _ = asked(desk, "script:natively", adapter=adapter, request="allowed")
    assert require_governed(desk, result.assert_ok()) == "completed"
    calls = document(episode_of(desk, result), "decision")["calls"]
    assert [each["capability"] for each in calls] == ["orders.lookup"]


def test_an_object_in_a_text_is_taken_out_of_it(desk: Project) -> None:
    result, _ = asked(desk, "script:fenced")
    assert result.assert_exit(1).json["outputs"]["response"] == "Which order?"
    notes = payloads(episode_of(desk, result), "agent.updated")[0]["notes"]
    assert [note["code"] for note in notes] == ["extracted"]
    require_governed(desk, result)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("adapter", ["openai", "anthropic"])
@pytest.mark.parametrize(
    ("fault", "exit_code", "code", "retried", "more"),
    [
        ("429", 6, "call.overloaded", ["rate_limited", "rate_limited"], ()),
        ("529", 6, "call.overloaded", ["overloaded", "overloaded"], ()),
        ("500", 1, "call.server-error", [], ()),
        ("400", 1, "call.rejected", [], ()),
        ("401", 3, "model.auth", [], ()),
        ("garbage", 1, "call.server-error", [], ()),
        ("cut", 6, "call.transport", ["unreachable", "unreachable"], ()),
        ("slow", 6, "call.timeout", ["timeout", "timeout"], ("timeout_s = 1",)),
    ],
)
def test_a_model_that_fails_ends_the_run_as_its_failure_says(
    desk: Project, adapter: str, fault: str, exit_code: int, code: str, retried: list[str], more: tuple[str, ...]
) -> None:  # fmt: skip
    if adapter == "anthropic" and fault in ("cut", "slow"):
        pytest.skip(
            "what happens on the way is the same for each provider, and waits between tries"
        )
    result, server = asked(desk, f"fault:{fault}", adapter=adapter, more=more)
    assert (result.code, result.json["error"]["code"]) == (exit_code, code)
    assert [
        each["reason"] for each in payloads(episode_of(desk, result), "model.retried")
    ] == retried
    assert len(server.requests) == len(retried) + 1
    assert require_governed(desk, result) == f"failed {code}"


def test_a_model_that_fails_twice_is_asked_a_third_time(desk: Project) -> None:
    result, server = asked(desk, "fault:429:2:script:fenced")
    assert result.assert_exit(1).json["outputs"]["response"] == "Which order?"
    (answer,) = payloads(episode_of(desk, result), "model.answered")
    assert (answer["usage"]["llm_calls"], len(server.requests)) == (3, 3)
    require_governed(desk, result)


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        ("tokens.workflow=3600", "budget_exceeded:tokens.workflow"),
        ("turns=1", "budget_exceeded:turns"),
        ("tool_calls.per_workflow=1", "budget_exceeded:tool_calls.per_workflow"),
    ],
)
def test_a_budget_stops_a_model_that_goes_on(desk: Project, budget: str, reason: str) -> None:
    result, server = asked(desk, "script:always", "--budget", budget, request="allowed")
    assert (result.code, result.json["error"]["code"]) == (4, "budget.exceeded")
    assert require_governed(desk, result) == f"denied {reason}"
    assert 1 <= len(server.requests) <= 2


def test_nothing_is_asked_where_the_first_question_has_no_room(desk: Project) -> None:
    result, server = asked(desk, "script:always", "--budget", "tokens.workflow=500")
    assert require_governed(desk, result.assert_exit(4)) == "denied budget_exceeded:tokens.workflow"
    assert server.requests == []


def test_a_project_that_nobody_trusts_asks_no_model(desk: Project) -> None:
    del desk.env["COGCLI_TRUST_PROJECT"]
    with TinyModel() as server:
        use(desk, server, "bigram")
        result = ask(desk)
        assert result.code in (3, 5)
        assert server.requests == []


def test_a_key_goes_to_no_address_that_came_after_the_project_was_trusted(desk: Project) -> None:
    del desk.env["COGCLI_TRUST_PROJECT"]
    desk.env["TINY_KEY"] = "sk-tiny-4f0c81d2e7"
    desk.run("config", "trust").assert_ok()
    with TinyModel() as server:
        use(desk, server, "bigram", "openai", 'auth_ref = "env:TINY_KEY"')
        assert "changed cogcli.toml" in ask(desk).assert_exit(3).json["error"]["message"]
        assert "changed cogcli.toml" in desk.run("doctor").out
        assert server.requests == []


def test_a_key_that_is_not_there_is_told_before_anything_begins(desk: Project) -> None:
    with TinyModel(key="sk-tiny-key") as server:
        use(desk, server, "bigram", "openai", 'auth_ref = "env:TINY_KEY"')
        result = ask(desk)
        assert (result.code, result.json["error"]["code"]) == (3, "env.missing")
        assert server.requests == []


def test_a_key_is_sent_and_stands_nowhere(desk: Project) -> None:
    key = "sk-tiny-4f0c81d2e7"
    desk.env["TINY_KEY"] = key
    says = {"echo": [{"response": f"Your key is {key}."}]}
    with TinyModel(key=key, scripts=says) as server:
        use(desk, server, "script:echo", "openai", 'auth_ref = "env:TINY_KEY"')
        result = ask(desk, "allowed")
        assert len(server.requests) == 1
    require_governed(desk, result)
    assert key not in result.out + result.err
    for file in desk.root.rglob("*"):
        assert not file.is_file() or key.encode() not in file.read_bytes(), file


def test_the_installed_command_asks_retries_and_repairs(desk: Project) -> None:
    scripts = {"mends": ["What?", '{"response": "Which order?"']}
    with TinyModel(scripts=scripts) as server:
        scripts["mends"].append('{"response": "Which order?"}')
        use(desk, server, "fault:429:1:script:mends", "anthropic")
        result = desk.installed(
            "agent", "invoke", "requests/needs-finance.json", "--json"
        ).assert_exit(1)
        require_counted(result, episode_of(desk, result), server)
    assert purposes(desk, result) == ["judgment", "repair", "repair"]
    assert require_governed(desk, result) == "completed order.age_days"


@pytest.mark.parametrize("adapter", ["openai", "anthropic"])
def test_what_is_learned_costs_what_the_server_counted(desk: Project, adapter: str) -> None:
    """Also where an attempt failed, or gave what cannot be used."""
    store = AgentStore(desk.root / ".cogcli/memory.db")
    for number in range(3):
        store.consolidate("acme", "cust_7", interaction(f"run_{number}"))
    store.close()
    works = ("agent", "jobs", "run", "--json")
    with TinyModel(scripts={"learns": ["never", "[", {"goals": ["ship it"]}]}) as server:
        use(desk, server, "fault:500:1:script:learns", adapter)
        while desk.run(*works).code:
            pass
    jobs = desk.run("agent", "jobs", "ls", "--all", "--json").assert_ok().json["jobs"]
    assert sorted(job["attempts"] for job in jobs) == [1, 1, 1, 4]
    assert len(server.requests) == 7
    used = [job["transcript"]["usage"] for job in jobs]
    assert tuple(sum(each[name] for each in used) for name in server.usage._fields) == server.usage
    assert not any(each["estimated"] for each in used)
