"""An answer that is shown as it grows is the one that counts (docs/reference/agent-run.md#streaming)."""

from __future__ import annotations

import itertools
import json
from contextlib import nullcontext

import pytest
from support.agent_desk import document, use
from support.project import Project
from support.tinymodel import TinyModel

from cogcli.app.compile_context import parse_request
from cogcli.app.invoke_agent import GivenInvocation, invoke
from cogcli.app.settings import Settings
from cogcli.runs.policy_request import PolicyRequest
from cogcli.runs.prepare import RunRequest

REPLY = {"thinking": "It is in the post.", "response": 'It is on its way: "today", \u00e4 \u2603 \U0001f600.'}


@pytest.mark.parametrize("adapter", ["openai", "anthropic"])
@pytest.mark.parametrize("fault", ["", "fault:429:1:"])
def test_the_text_grows_to_the_reply_that_is_recorded(
    desk: Project, monkeypatch: pytest.MonkeyPatch, adapter: str, fault: str
) -> None:
    monkeypatch.chdir(desk.root)
    seen: list[str] = []
    with TinyModel(scripts={"says": [REPLY]}) as server:
        use(desk, server, f"{fault}script:says", adapter)
        settings = Settings({}, desk.env, base=str(desk.root))
        given = parse_request(json.loads((desk.root / "requests/allowed.json").read_text()))
        run = RunRequest("", {}, {}, None, policy=PolicyRequest("support-desk@4.0.0"))
        asked = GivenInvocation(given, run, memory=False, on_text=seen.append)
        result = invoke(settings, asked, lambda prepared, control: nullcontext(lambda event: None))
        assert server.requests[-1].body["stream"] is True
    assert len(seen) > 3
    assert all(later.startswith(sooner) for sooner, later in itertools.pairwise(seen))
    assert json.loads(seen[-1]) == REPLY
    assert result.outputs == {"response": REPLY["response"]}
    metrics = document(desk.episode, "state")["x-cognitive"]["trace"]["metrics"]
    assert (metrics["tokens_in"], metrics["tokens_out"]) == server.usage
    desk.run("replay", "@last").assert_ok()
