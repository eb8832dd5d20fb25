"""Questions that a server asks inside a call reach the person at the client with `--ask-client` only
(docs/reference/gateway.md#questions).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from support.gateway_client import COGCLI, events_of, mark, server_entry, text_of, write_host_file

anyio = pytest.importorskip("anyio")
mcp = pytest.importorskip("mcp")


@pytest.fixture
def hosted(project: Any) -> Any:
    """A project with a server whose tool asks, and is marked read-only."""
    write_host_file(project, test=server_entry())
    mark(project, "test", "asks")
    return project


ASKING = str(Path(__file__).parents[1] / "support/asking_server.py")


def ask_through(project: Any, answer: dict[str, Any], mode: str, *flags: str) -> Any:
    """The text of the tool's result, the questions that the person at the client read, and the episode's notices."""
    from mcp.client import stdio
    from mcp_types import ElicitResult

    stdio.PROCESS_TERMINATION_TIMEOUT = 60.0
    words = ["gateway", "serve", "-q", "--from", ".mcp.json", "--hold", "0", *flags]
    command = stdio.StdioServerParameters(
        command=COGCLI, args=words, env=project.env, cwd=project.root
    )
    questions: list[str] = []

    async def person(context: Any, params: Any) -> Any:
        questions.append(params.message)
        return ElicitResult.model_validate(answer)

    async def main() -> Any:
        with anyio.fail_after(90):
            async with mcp.Client(command, mode=mode, elicitation_callback=person) as client:
                return await client.call_tool("test__asks", {"text": "Who are you?"})

    result = text_of(anyio.run(main))
    project.run("verify", "@last").assert_ok()
    project.run("replay", "@last").assert_ok()
    payloads = [event["payload"] for event in events_of(project.episode)]
    ((attempt,),) = [payload["attempts"] for payload in payloads if payload.get("attempts")]
    return result, questions, attempt.get("notices")


@pytest.mark.sampled(6)
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_question_of_a_server_is_answered_at_the_client(hosted: Any, mode: str) -> None:
    answer = {"action": "accept", "content": {"name": "Ada"}}
    result, questions, notices = ask_through(hosted, answer, mode, "--ask-client")
    assert json.loads(result) == answer
    assert questions == ["Server test asks, in a call of test__asks:\nWho are you?"]
    assert notices == ["the server asked: Who are you?", "the answer: accept, with name"]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("answer", "action"),
    [({"action": "decline"}, "decline"), ({"action": "accept", "content": {"name": 5}}, "cancel")],
)
def test_a_refusal_and_an_answer_that_does_not_fit_give_nothing(
    hosted: Any, answer: dict[str, Any], action: str
) -> None:
    result, questions, _ = ask_through(hosted, answer, "legacy", "--ask-client")
    assert json.loads(result)["action"] == action
    assert "content" not in json.loads(result)
    assert len(questions) == 1


@pytest.mark.sampled(6)
def test_without_the_flag_no_server_can_ask(hosted: Any) -> None:
    result, questions, notices = ask_through(hosted, {"action": "decline"}, "auto")
    assert (result, questions, notices) == ("nobody to ask", [], None)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_an_unfinished_result_is_completed_by_the_person_at_the_client(
    project: Any, mode: str
) -> None:
    write_host_file(project, test={"command": sys.executable, "args": [ASKING]})
    mark(project, "test", "asks")
    answer = {"action": "accept", "content": {"name": "Ada"}}
    result, questions, notices = ask_through(project, answer, mode, "--ask-client")
    assert result == "accept {'name': 'Ada'} state-1"
    assert questions == ["Server test asks, in a call of test__asks:\nWho are you?"]
    assert notices == ["the server asked: Who are you?", "the answer: accept, with name"]


@pytest.mark.sampled(6)
def test_an_unfinished_result_that_asks_for_a_model_is_refused(project: Any) -> None:
    write_host_file(project, test={"command": sys.executable, "args": [ASKING, "--asks=sampling"]})
    mark(project, "test", "asks")
    result, questions, _ = ask_through(project, {"action": "decline"}, "auto", "--ask-client")
    assert "call.rejected" in result
    assert "sampling/createMessage" in result
    assert questions == []
