"""The prompt that is sent is the one that was compiled, through the installed command
(docs/reference/agent-state.md#sizes)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.agent_desk import ask, episode_of, payloads, use
from support.project import Project
from support.tinymodel import TinyModel

from cogcli.agent.context.tokenizer import ESTIMATE

pytestmark = pytest.mark.sampled(4)

PACK = "packs/support-desk/4.0.0.yaml"


def with_texts(desk: Project, number: int) -> None:
    """Add business texts to the pack, of 90 tokens each."""
    text = (desk.root / PACK).read_text()
    head, line, tail = text.partition("  blocks:\n")
    more = [
        {"id": f"rule{n}", "priority": n, "text": f"Rule {n}. " + "Store credit counts. " * 20}
        for n in range(number)
    ]
    lines = "".join(f"    - {json.dumps(each)}\n" for each in more)
    desk.write(PACK, (head + line + lines + tail).encode())


def sent_tokens(request: dict[str, Any]) -> int:
    """The tokens of a recorded request by the estimator that charges."""
    texts = [message["content"] for message in request["messages"]]
    tools = [json.dumps(tool, separators=(",", ":")) for tool in json.loads(request["tools"])]
    return sum(ESTIMATE.count(text) for text in (*texts, *tools))


@pytest.mark.parametrize("script", ["script:pays", "script:natively"])
def test_texts_above_the_budget_leave_request_and_results_in_the_prompt(
    desk: Project, tiny_model: TinyModel, script: str
) -> None:
    with_texts(desk, 30)
    use(desk, tiny_model, script)
    result = ask(desk, "needs-finance", "--budget", "tokens.context=1500")
    episode = episode_of(desk, result)
    requests = [each["request"] for each in payloads(episode, "model.requested")]
    assert requests
    assert max(map(sent_tokens, requests)) <= 1500
    for request in requests:
        assert "@data request user untrusted" in request["messages"][-1]["content"]
    explained = desk.run("context", "explain", episode.name, "--json").assert_ok().json["context"]
    report = explained["budget_report"]
    assert report["truncated"]
    assert report["reserved"] > 0
    texts = "".join(message["content"] for message in requests[-1]["messages"])
    for n in range(30):
        (placed,) = [
            each for each in explained["placements"] if each["name"] == f"business:rule{n}"
        ]
        assert (placed["status"] == "in") is (f"Rule {n}." in texts)
    assert "reserved for the prompt" in desk.run("context", "explain", episode.name).out
    desk.run("verify", episode.name).assert_ok()
    desk.run("replay", episode.name).assert_ok()


def test_required_parts_without_room_are_overpacked_before_any_model_is_asked(
    desk: Project, tiny_model: TinyModel
) -> None:
    use(desk, tiny_model, "script:pays")
    result = ask(desk, "needs-finance", "--budget", "tokens.context=400").assert_exit(1)
    assert result.json["decision"]["status_reason"] == "context.overpacked"
    assert tiny_model.requests == []
    explained = desk.run("context", "explain", "@last", "--json").assert_ok().json["context"]
    assert explained["overpacked"] is True
    desk.run("replay", "@last").assert_ok()


def test_a_bucket_above_its_size_is_explained(desk: Project, tiny_model: TinyModel) -> None:
    with_texts(desk, 6)
    use(desk, tiny_model, "script:pays")
    ask(desk, "needs-finance", "--budget", "buckets.business=100")
    out = desk.run("context", "explain", "@last").assert_ok().out
    assert "above its size of 100: room was left" in out


def test_the_tools_of_an_agent_without_a_pack_fit_into_the_prompt_of_its_model(
    project: Project,
) -> None:
    project.write("models/says.yaml", 'replies: [{json: {response: "Paste the text."}}]')
    invoke = ("agent", "invoke", "--message", "Summarize this", "--model")
    result = project.run(*invoke, "scripted:models/says.yaml", "--json").assert_ok()
    (requested,) = payloads(episode_of(project, result), "model.requested")
    assert sent_tokens(requested["request"]) <= 8000
    assert "skill:text.summarize" in requested["request"]["messages"][1]["content"]
