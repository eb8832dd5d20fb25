"""`gateway serve --ask-client`: the person at the client answers, in both generations of the protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.gateway_client import COGCLI, events_of, server_entry, text_of, write_host_file

anyio = pytest.importorskip("anyio")
mcp = pytest.importorskip("mcp")
pytestmark = pytest.mark.sampled(6)

PACK = """
contract_meta: {contract_version: "1.0"}
pack_meta: {pack_id: desk, pack_version: 1.0.0, defaults: {safety_mode: destructive}}
policy_layer:
  permissions: [{role: clerk, allow: [mcp.test.echo]}]
  gates: {boss: {approver_roles: [boss]}}
  rules:
    - {rule_id: ask, mode: enforce, if: {"!=": [{var: args.text}, ""]}, then: {verdict: allow_with_gate, gate: boss}}
tooling_layer: {capabilities: {mcp.test.echo: {approval_mode: network}}}
decision_layer:
  intents: [{id: help, phrases: [help], risk: network, capabilities: [mcp.test.echo]}]
tone_and_comms: {agent: {role: clerk}}
"""


class Person:
    """Who answers the questions of a client. `answer` is an action, or whether the action is approved."""

    def __init__(self, answer: str | bool) -> None:
        self.answer = answer
        self.questions: list[str] = []

    async def __call__(self, context: Any, params: Any) -> Any:
        from mcp_types import ElicitResult

        self.questions.append(params.message)
        if isinstance(self.answer, str):
            return ElicitResult(action=self.answer)  # type: ignore[arg-type]
        return ElicitResult(action="accept", content={"approve": self.answer})


def call_through(project: Any, person: Any, mode: str, *flags: str) -> Any:
    """The result of one call of a tool that asks, through a gateway."""
    from mcp.client import stdio

    stdio.PROCESS_TERMINATION_TIMEOUT = 60.0
    words = ["gateway", "serve", "-q", "--from", ".mcp.json", "--hold", "0", *flags]
    command = stdio.StdioServerParameters(
        command=COGCLI, args=words, env=project.env, cwd=project.root
    )

    async def main() -> Any:
        with anyio.fail_after(90):
            async with mcp.Client(command, mode=mode, elicitation_callback=person) as client:
                return await client.call_tool("test__echo", {"text": "hi"})

    return anyio.run(main)


@pytest.fixture
def ledger(project: Any) -> Path:
    """What the server of a project saw."""
    ledger = Path(project.root) / "ledger"
    write_host_file(project, test=server_entry(f"ledger={ledger}"))
    return ledger


@pytest.mark.sampled(12)
@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("answer", [True, False, "decline", "cancel"])
def test_the_person_at_the_client_answers(
    project: Any, ledger: Path, mode: str, answer: str | bool
) -> None:
    person = Person(answer)
    result = call_through(project, person, mode, "--ask-client")
    (question,) = person.questions
    assert '"text": "hi"' in question
    assert "test__echo" in question
    events = {event["event_type"]: event["payload"] for event in events_of(project.episode)}
    asked = events["approval.requested"]
    assert asked["action_hash"] in question
    made = ledger.exists() and "call echo" in ledger.read_text()
    if answer is True:
        assert text_of(result) == "hi"
        granted = events["approval.granted"]
        assert granted["by"] == "unauthenticated"
        assert granted["action_hash"] == asked["action_hash"]
        assert "proves no identity" in granted["reason"]
    elif answer == "cancel":
        assert result.meta["cogcli/status"] == "pending"
    else:
        assert result.meta["cogcli/code"] == "safety.rejected"
        assert events["approval.rejected"]["by"] == "unauthenticated"
    assert made == (answer is True)
    project.run("verify", "@last").assert_ok()
    project.run("replay", "@last").assert_ok()


def test_a_client_that_answers_with_an_error_leaves_its_call_waiting(
    project: Any, ledger: Path
) -> None:
    from mcp_types import ErrorData

    async def fail(context: Any, params: Any) -> Any:
        return ErrorData(code=-32603, message="nobody is here")

    result = call_through(project, fail, "legacy", "--ask-client")
    assert result.meta["cogcli/status"] == "pending"
    assert not ledger.exists() or "call echo" not in ledger.read_text()


def test_no_client_is_asked_without_the_flag_or_for_a_role(project: Any, ledger: Path) -> None:
    person = Person(True)
    result = call_through(project, person, "auto")
    assert result.meta["cogcli/status"] == "pending"
    assert call_through(project, None, "auto", "--ask-client").is_error
    project.write("packs/desk/1.0.0.yaml", PACK)
    pack = ("--pack", "desk@1.0.0", "--intent", "help", "--user", "ada")
    result = call_through(project, person, "auto", "--ask-client", *pack)
    assert result.meta["cogcli/status"] == "pending"
    assert person.questions == []
    assert not ledger.exists() or "call echo" not in ledger.read_text()


def test_an_answer_that_this_gateway_did_not_ask_for_is_refused(project: Any, ledger: Path) -> None:
    from mcp.client import stdio
    from mcp_types import ElicitResult

    words = ["gateway", "serve", "-q", "--from", ".mcp.json", "--hold", "0", "--ask-client"]
    command = stdio.StdioServerParameters(
        command=COGCLI, args=words, env=project.env, cwd=project.root
    )
    yes = {"approval": ElicitResult(action="accept", content={"approve": True})}

    async def main() -> None:
        with anyio.fail_after(90):
            async with mcp.Client(command, elicitation_callback=Person("cancel")) as client:
                await client.call_tool("test__echo", {"text": "hi"})
                with pytest.raises(Exception, match="requestState"):
                    await client.session.call_tool(
                        "test__echo", {"text": "hi"}, input_responses=yes, request_state="forged"
                    )
                with pytest.raises(Exception, match="requestState"):
                    await client.session.call_tool(
                        "test__echo", {"text": "hi"}, input_responses=yes, request_state="v1.x"
                    )

    anyio.run(main)
    types = [event["event_type"] for event in events_of(project.episode)]
    assert "approval.granted" not in types
    assert not ledger.exists() or "call echo" not in ledger.read_text()
