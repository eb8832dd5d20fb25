"""Secrets on their way to services: they arrive, and nothing else of them remains. Names follow the list of cases."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from attack import attack, hold_all_episodes
from support.raw_server import Conversation, serving
from support.remote_project import SECRET, attempts, hits, remote

AUTH = "auth_ref: A_KEY\n"
ENV = {"A_KEY": SECRET}


def echoing(status: str, content_type: str = "application/json") -> Any:
    """A server that says the token back in every way it can think of."""

    def answer(conversation: Conversation) -> None:
        token = conversation.headers["authorization"].removeprefix("Bearer ")
        told = {
            "text": token, "detail": f"bad token {token}", token: "key", "deep": [{"t": f"<{token}>"}],
            "base64": base64.b64encode(token.encode()).decode(), "hex": token.encode().hex(),
        }  # fmt: skip
        body = json.dumps(told).encode()
        conversation.reply(
            body, status=status, headers=f"Content-Type: {content_type}\r\nX-Echo: {token}"
        )

    return answer


CASES = {
    "S02": ("500 Broken", "application/json"), "S02a": ("401 No", "text/plain"), "S02b": ("200 OK", "application/json"),
    "S02c": ("200 OK", "text/html"), "S02d": ("503 Busy", "application/octet-stream"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_S02_S03_an_echoed_token_is_nowhere(project: Any, case: str) -> None:
    status, content_type = CASES[case]
    with serving(echoing(status, content_type)) as server:
        command = remote(project, "openapi", server.url, "ask", service=AUTH)
        asked = project.run(*command, env=ENV)
        shown = project.run(*command[:-1], "--debug", env=ENV)
        assert server.requests[0].headers["authorization"] == f"Bearer {SECRET}"
    assert SECRET not in asked.out + asked.err + shown.out + shown.err
    assert hits(project) == []
    assert "authorization" in attempts(project)[0]["request"]["headers"]
    hold_all_episodes(project)


def test_S03_a_token_in_a_failure_to_connect_is_nowhere(project: Any) -> None:
    with serving(lambda c: c.close()) as server:
        metadata = '{headers: {X-Key: "${A_KEY}"}}'
        command = remote(project, "openapi", server.url, "ask", service=AUTH, metadata=metadata)
        for flags in ((), ("--debug",)):
            done = project.run(*command, *flags, env=ENV)
            assert SECRET not in done.out + done.err
    assert hits(project) == []


@pytest.mark.parametrize("query", ["?api_key=abc", "?x=1&token=abc", "?access_token=${A_KEY}"])
def test_S06_a_secret_in_a_url_is_refused(project: Any, query: str) -> None:
    outcome = attack(
        project, *remote(project, "openapi", f"https://a.example/{query}", "ask"), env=ENV
    )
    assert outcome.code == 3
    assert "service.url" in {problem["code"] for problem in outcome.envelope["problems"]}


@pytest.mark.parametrize("where", ["service", "binding", "auth_ref"])
def test_S07_an_untrusted_project_reads_no_variable(project: Any, where: str) -> None:
    header = 'headers: {X: "${AWS_SECRET_ACCESS_KEY}"}'
    lines = {
        "service": f"metadata: {{{header}}}\n",
        "auth_ref": "auth_ref: AWS_SECRET_ACCESS_KEY\n",
    }.get(where, "")
    metadata = f"{{{header}}}" if where == "binding" else "{}"
    command = remote(
        project,
        "openapi",
        "https://a.example",
        "ask",
        service=lines,
        metadata=metadata,
        network="public",
    )
    outcome = attack(
        project, *command, env={"COGCLI_TRUST_PROJECT": "", "AWS_SECRET_ACCESS_KEY": SECRET}
    )
    assert (outcome.code, outcome.error) == (3, "service.untrusted")
    assert SECRET.encode() not in outcome.out + outcome.err
    assert not project.episodes


@pytest.mark.parametrize("text", ["${HOME}${PATH}", "x ${A_KEY}", "${env.A_KEY}"])
def test_S08_bodies_take_no_variables(project: Any, text: str) -> None:
    command = remote(project, "openapi", "https://a.example", "ask", request=f'{{text: "{text}"}}')
    outcome = attack(project, *command, env=ENV)
    assert outcome.code == 3
    assert "request.template" in {problem["code"] for problem in outcome.envelope["problems"]}


def test_S08_a_value_that_looks_like_a_variable_is_text(project: Any) -> None:
    with serving(lambda c: c.reply(b'{"text": "fine"}')) as server:
        command = remote(project, "openapi", server.url, "ask")
        attack(project, *command, "-p", "text=${A_KEY} ${input.text}", env=ENV)
        assert json.loads(server.requests[0].body) == {"text": "${A_KEY} ${input.text}"}


def test_S09_what_stood_on_the_command_line_under_a_secret_name_is_masked(project: Any) -> None:
    fields = "{token: {type: string, required: true}}"
    with serving(lambda c: c.reply(b'{"text": "fine"}')) as server:
        command = remote(
            project, "openapi", server.url, "ask", inputs=fields, request="{token: input.token}"
        )
        outcome = attack(project, *command, "--input", json.dumps({"token": SECRET}))
        assert outcome.code == 0
        assert json.loads(server.requests[0].body) == {"token": SECRET}
    assert hits(project) == []


def test_S12_a_short_secret_is_told_and_still_sent(project: Any) -> None:
    with serving(lambda c: c.reply(b'{"text": "a"}')) as server:
        command = remote(project, "openapi", server.url, "ask", service=AUTH)
        checked = project.run("validate", "--json", env={"A_KEY": "a"}).json
        assert "secret.short" in {problem["code"] for problem in checked["problems"]}
        assert attack(project, *command, env={"A_KEY": "a"}).code == 0
        assert server.requests[0].headers["authorization"] == "Bearer a"
    hold_all_episodes(project)
