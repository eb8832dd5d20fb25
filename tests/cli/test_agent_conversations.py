"""A conversation with the agent of the example: several messages, processes that are killed, and what comes after
(docs/reference/agent-run.md#model, docs/reference/user-memory.md#sessions)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.agent_desk import (
    LOOKUP,
    PAID,
    REFUND,
    answer,
    ask,
    document,
    episode_of,
    events_of,
    payloads,
    require_counted,
    require_governed,
    use,
    with_ledger,
)
from support.project import COGCLI, Project, Result
from support.tinymodel import TinyModel
from support.user_seed import AT, interaction
from support.waiting import wait_until

from cogcli.agent.stores import session_lock
from cogcli.agent.stores.agent_store import AgentStore
from cogcli.agent.stores.sessions import SessionSnapshot

pytestmark = pytest.mark.sampled(16)

SESSION = ("--session", "s1")
HELLO = {"response": "It is 12 days old.", "context_updates": {"facts": {"mood": "calm"}}}


def prompt_of(episode: Path, call: int = -1) -> str:
    """What the user's part of a prompt held."""
    return str(payloads(episode, "model.requested")[call]["request"]["messages"][-1]["content"])


@contextmanager
def alive(desk: Project, until: Callable[[], bool], *arguments: str) -> Iterator[None]:
    """The installed command from when `until` holds; then it is killed."""
    with subprocess.Popen(
        [COGCLI, *arguments, "--json"], cwd=desk.root, env=desk.env,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        try:
            wait_until(lambda: until() or process.poll() is not None)
            assert process.poll() is None
            yield
        finally:
            process.kill()


def killed(desk: Project, until: Callable[[], bool], *arguments: str) -> Path:
    """The episode of the installed command, killed once `until` holds."""
    with alive(desk, until, *arguments):
        pass
    return desk.episode


def invoked(request: str) -> tuple[str, ...]:
    return ("agent", "invoke", f"requests/{request}.json", *SESSION)


def resumed(desk: Project, episode: Path, *flags: str) -> Result:
    return desk.run("resume", episode.name, *flags, "--json")


def talk(desk: Project) -> list[Result]:
    """Three messages: an answer, a refund that a person approves, an answer."""
    first = ask(desk, "allowed", *SESSION).assert_ok()
    second = answer(
        desk, ask(desk, "needs-finance", *SESSION).assert_exit(5), "--approve"
    ).assert_ok()
    return [first, second, ask(desk, "allowed", *SESSION).assert_ok()]


REPLIES: list[Any] = [
    HELLO, {"tool_calls": [LOOKUP]}, {"tool_calls": [REFUND]}, {"response": "Refunded."},
    {"response": "You are welcome."},
]  # fmt: skip


def require_conversation(desk: Project, results: list[Result]) -> None:
    episodes = [episode_of(desk, result) for result in results]
    assert (desk.root / PAID).read_text() == "'ord_881'\n"
    assert "mood: calm" in prompt_of(episodes[1])
    last = prompt_of(episodes[2])
    for said in (
        "assistant: It is 12 days old.",
        "user: Refund order ord_881",
        "assistant: Refunded.",
    ):
        assert said in last
    for result in results:
        assert require_governed(desk, result) == "completed"
    shown = desk.run(
        "agent", "sessions", "show", "s1", "--user", "cust_7", "--tenant", "acme", "--json"
    ).assert_ok()
    assert "You are welcome." in shown.out


def test_three_messages_to_a_scripted_model(desk: Project) -> None:
    with_ledger(desk)
    scripts = {"one": REPLIES[:1], "two": REPLIES[1:4], "three": REPLIES[4:]}
    results = []
    for name, replies in scripts.items():
        desk.write(
            f"models/{name}.yaml", json.dumps({"replies": [{"json": reply} for reply in replies]})
        )
        model = ("--model", f"scripted:models/{name}.yaml")
        asked = ask(desk, "needs-finance" if name == "two" else "allowed", *SESSION, *model)
        results.append(answer(desk, asked, "--approve") if asked.code == 5 else asked)
    for name in scripts:
        (desk.root / f"models/{name}.yaml").unlink()
    require_conversation(desk, results)


@pytest.mark.parametrize("adapter", ["openai", "anthropic"])
def test_three_messages_to_a_server(desk: Project, adapter: str) -> None:
    with_ledger(desk)
    with TinyModel(scripts={"talk": REPLIES}) as server:
        use(desk, server, "script:talk", adapter)
        results = talk(desk)
    require_conversation(desk, results)


def test_a_conversation_with_a_model_that_nobody_scripted(desk: Project) -> None:
    with TinyModel(seed=5) as server:
        use(desk, server, "bigram-json")
        results = [ask(desk, "allowed", *SESSION) for _ in range(4)]
    for result in results:
        require_governed(desk, result)
    said = [
        each["content"]
        for each in document(episode_of(desk, results[-1]), "state")["x-agent"]["execution"][
            "messages"
        ]
    ]
    assert said.count("Where is order ord_881?") == 4


def test_a_question_that_was_cut_off_is_asked_again_and_charged_again(desk: Project) -> None:
    with TinyModel(scripts={"talk": [HELLO]}) as server:
        use(desk, server, "fault:slow:1:script:talk")
        episode = killed(desk, lambda: len(server.requests) == 1, *invoked("allowed"))
        assert payloads(episode, "model.answered") == []
        desk.run("replay", episode.name).assert_ok()
        result = resumed(desk, episode).assert_ok()
        assert [request.body["messages"] for request in server.requests][1:] == [
            server.requests[0].body["messages"]
        ]
        after = ask(desk, "allowed", *SESSION).assert_ok()
    (again,) = payloads(episode, "model.resent")
    (answered,) = payloads(episode, "model.answered")
    assert (again["call_id"], answered["usage"]["llm_calls"], answered["estimated"]) == (
        "m1",
        2,
        True,
    )
    assert answered["usage"]["tokens_in"] > 1.5 * answered["reply"]["usage"]["tokens_in"]
    used = document(episode, "decision")["budget"]["used"]["tokens.workflow"]
    assert used == answered["usage"]["tokens_in"] + answered["usage"]["tokens_out"]
    assert "assistant: It is 12 days old." in prompt_of(episode_of(desk, after))
    assert require_governed(desk, result) == require_governed(desk, after) == "completed"


def test_a_question_that_is_cut_off_twice_is_charged_three_times(desk: Project) -> None:
    with TinyModel(scripts={"talk": [HELLO]}) as server:
        use(desk, server, "fault:slow:2:script:talk")
        episode = killed(desk, lambda: len(server.requests) == 1, *invoked("allowed"))
        killed(desk, lambda: len(server.requests) == 2, "resume", episode.name)
        result = resumed(desk, episode).assert_ok()
        assert len(server.requests) == 3
    (answered,) = payloads(episode, "model.answered")
    assert (len(payloads(episode, "model.resent")), answered["usage"]["llm_calls"]) == (2, 3)
    assert require_governed(desk, result) == "completed"


@pytest.mark.sampled(32)
def test_a_message_may_come_before_the_one_that_was_cut_off_is_gone_on_with(desk: Project) -> None:
    with TinyModel(
        scripts={"talk": [HELLO, {"response": "Second."}, {"response": "Third."}]}
    ) as server:
        use(desk, server, "fault:slow:1:script:talk")
        episode = killed(desk, lambda: len(server.requests) == 1, *invoked("allowed"))
        other = ask(desk, "allowed", *SESSION).assert_ok()
        result = resumed(desk, episode).assert_ok()
        last = ask(desk, "allowed", *SESSION).assert_ok()
    prompt = prompt_of(episode_of(desk, last))
    assert "assistant: It is 12 days old." in prompt
    assert "assistant: Second." in prompt
    for each in (other, result, last):
        assert require_governed(desk, each) == "completed"


@pytest.mark.sampled(32)
def test_a_run_that_is_killed_in_an_effect_is_gone_on_with_when_a_person_has_said_what_became_of_it(
    desk: Project,
) -> None:
    begun = with_ledger(desk).root / PAID
    slow = (desk.root / "support_desk.py").read_text()
    waits = "__import__('time').sleep(60)\n    return {"
    desk.write("support_desk.py", slow.replace('return {"receipt"', waits + '"receipt"').encode())
    with TinyModel(
        scripts={"talk": [REPLIES[1], REPLIES[2], {"response": "Refunded."}, HELLO]}
    ) as server:
        use(desk, server, "script:talk")
        waiting = ask(desk, "needs-finance", *SESSION).assert_exit(5)
        episode = episode_of(desk, waiting)
        approve = ("--approve", "GATE_FINANCE_APPROVAL", "--by", "ann:finance")
        killed(desk, begun.exists, "resume", episode.name, *approve)
        doubt = resumed(desk, episode).assert_exit(5)
        assert doubt.json["error"]["code"] == "effect.in-doubt"
        assert len(server.requests) == 2
        receipt = '{"receipt": {"id": "rc_1", "status": "done", "amount": 240.0}}'
        result = resumed(desk, episode, "--in-doubt", "done", "--output", receipt).assert_ok()
        require_counted(result, episode, server)
        after = ask(desk, "allowed", *SESSION).assert_ok()
    assert begun.read_text() == "'ord_881'\n"
    assert [e.event_type for e in events_of(episode)].count("model.resent") == 0
    assert "assistant: Refunded." in prompt_of(episode_of(desk, after))
    assert require_governed(desk, result) == require_governed(desk, after) == "completed"


@pytest.mark.sampled(32)
def test_a_run_that_is_gone_on_with_is_the_only_one_of_its_conversation(
    desk: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_lock, "WAIT_SECONDS", 0)
    with TinyModel(scripts={"talk": [HELLO]}) as server:
        use(desk, server, "fault:slow:3:script:talk")
        episode = killed(desk, lambda: len(server.requests) == 1, *invoked("allowed"))
        before = (episode / "events.jsonl").read_bytes()
        with alive(desk, lambda: len(server.requests) == 2, *invoked("allowed")):
            busy = resumed(desk, episode).assert_exit(3)
        assert busy.json["error"]["code"] == "session.busy"
        assert (episode / "events.jsonl").read_bytes() == before
        with alive(desk, lambda: len(server.requests) == 3, "resume", episode.name):
            busy = ask(desk, "allowed", *SESSION).assert_exit(3)
            assert busy.json["error"]["code"] == "session.busy"
            ask(desk, "allowed", "--session", "s2").assert_ok()
        result = resumed(desk, episode).assert_ok()
    assert require_governed(desk, result) == "completed"


def test_a_run_with_an_open_question_is_closed_even_while_another_of_its_conversation_is_alive(
    desk: Project,
) -> None:
    with TinyModel() as server:
        use(desk, server, "fault:slow")
        episode = killed(desk, lambda: len(server.requests) == 1, *invoked("allowed"))
        with alive(desk, lambda: len(server.requests) == 2, *invoked("allowed")):
            result = resumed(desk, episode, "--abort").assert_ok()
        assert len(server.requests) == 2
    assert require_governed(desk, result) == "aborted closed"


def test_what_has_no_room_of_a_conversation_is_summed_up_by_the_model(desk: Project) -> None:
    said = {"role": "user", "content": "We spoke of boats. And of more.", "timestamp": AT}
    store = AgentStore(desk.root / ".cogcli/memory.db")
    store.consolidate(
        "acme", "cust_7", interaction("run_0"), session=SessionSnapshot("s1", (said,) * 45)
    )
    store.close()
    replies = [{"summary": "It was about ships."}, HELLO, "never", HELLO]
    with TinyModel(scripts={"talk": replies}) as server:
        use(desk, server, "script:talk")
        first = ask(desk, "allowed", *SESSION).assert_ok()
        assert require_governed(desk, first) == "completed"
        require_counted(first, episode_of(desk, first), server)
        asked = payloads(episode_of(desk, first), "model.requested")
        assert [each["purpose"] for each in asked] == ["summary", "judgment"]
        assert asked[0]["request"]["messages"][-1]["content"].count("We spoke of boats.") == 5
        assert "messages 1 to 5: It was about ships." in prompt_of(episode_of(desk, first))
        second = ask(desk, "allowed", *SESSION).assert_ok()
        spent = ask(desk, "allowed", *SESSION, "--budget", "tokens.workflow=1100").assert_exit(4)
    assert require_governed(desk, second) == "completed"
    assert "messages 1 to 7: We spoke of boats. We" in prompt_of(episode_of(desk, second))
    assert require_governed(desk, spent) == "denied budget_exceeded:tokens.workflow"
    assert len(server.requests) == 4
