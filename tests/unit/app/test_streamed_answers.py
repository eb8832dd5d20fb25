"""An answer that is shown as it grows is the one that counts (docs/reference/agent-run.md#streaming)."""

from __future__ import annotations

import itertools
import json
from contextlib import nullcontext

import pytest
from support.agent_desk import LOOKUP, REFUND, ask, document, episode_of, use
from support.project import Project
from support.tinymodel import TinyModel

from cogcli.agent.use_cases.compile_context import parse_request
from cogcli.agent.use_cases.invoke_agent import AgentCommandInput, invoke
from cogcli.app.resume import resume
from cogcli.app.settings import Settings
from cogcli.declarations.options import RunOptions
from cogcli.run.prepare import RunRequest
from cogcli.run.results import Control
from cogcli.run.resume import ResumeRequest

REPLY = {
    "thinking": "It is in the post.",
    "response": 'It is on its way: "today", \u00e4 \u2603 \U0001f600.',
}


@pytest.mark.parametrize("adapter", ["openai", "anthropic"])
@pytest.mark.parametrize("fault", ["", "fault:429:1:"])
def test_the_response_grows_to_the_reply_that_is_recorded(
    desk: Project, monkeypatch: pytest.MonkeyPatch, adapter: str, fault: str
) -> None:
    monkeypatch.chdir(desk.root)
    seen: list[str] = []
    with TinyModel(scripts={"says": [REPLY]}) as server:
        use(desk, server, f"{fault}script:says", adapter)
        settings = Settings({}, desk.env, base=str(desk.root))
        given = parse_request(json.loads((desk.root / "requests/allowed.json").read_text()))
        run = RunRequest("", {}, RunOptions(pack="support-desk@4.0.0"))
        asked = AgentCommandInput(given, run, memory=False, on_response=seen.append)
        result = invoke(settings, asked, lambda prepared, control: nullcontext(lambda event: None))
        assert server.requests[-1].body["stream"] is True
    assert len(seen) > 3
    assert all(later.startswith(sooner) for sooner, later in itertools.pairwise(seen))
    assert seen[-1] == REPLY["response"]
    assert result.outputs == {"response": REPLY["response"]}
    metrics = document(desk.episode, "state")["x-cognitive"]["trace"]["metrics"]
    assert (metrics["tokens_in"], metrics["tokens_out"]) == server.usage
    desk.run("replay", "@last").assert_ok()


def test_the_response_of_a_run_that_a_person_lets_go_on_grows_too(
    desk: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(desk.root)
    seen: list[str] = []
    calls = [{"tool_calls": [LOOKUP]}, {"tool_calls": [REFUND], "response": "Refunding."}]
    with TinyModel(scripts={"says": [*calls, REPLY]}) as server:
        use(desk, server, "script:says")
        waiting = ask(desk).assert_exit(5)
        assert "stream" not in server.requests[-1].body
        settings = Settings({}, desk.env, base=str(desk.root))
        request = ResumeRequest(approve=("GATE_FINANCE_APPROVAL",), by="ann:finance")
        control, directory = Control(), episode_of(desk, waiting)
        result = resume(
            settings, directory, request,
            listener=lambda event: None, control=control, on_response=seen.append,
        )  # fmt: skip
    assert result.outputs is not None
    assert (seen[-1], result.outputs["response"]) == (REPLY["response"], REPLY["response"])
    assert len(set(seen)) > 3
