"""`doctor` about services: missing programs, unreachable servers, and what to do about them."""

from __future__ import annotations

from typing import Any

import pytest
from support.raw_server import serving

pytestmark = pytest.mark.sampled(12)

GONE = "http://127.0.0.1:9"


def checks(project: Any, *flags: str, code: int = 0) -> dict[str, dict[str, Any]]:
    body = project.run("doctor", "--json", *flags).assert_exit(code).json
    return {check["name"]: check for check in body["checks"] if check["group"] == "services"}


@pytest.fixture(autouse=True)
def _here(project: Any) -> None:
    project.write("cogcli.toml", "")


def remote(project: Any, id: str, url: str, network: str = "private") -> None:
    project.write(
        f"services/local/{id}.yaml",
        f"id: {id}\nkind: openapi\nbase_url: {url}\nnetwork: {network}\n",
    )


def test_the_network_is_asked_only_when_it_is_wanted(project: Any) -> None:
    remote(project, "gone", GONE)
    found = checks(project)
    assert (found["network"]["status"], "add --net" in found["network"]["message"]) == (
        "skipped",
        True,
    )


def test_a_server_that_answers_is_told_from_one_that_does_not(project: Any) -> None:
    def answer(talk: Any) -> None:
        assert "Authorization" not in talk.request.decode("latin-1")
        talk.reply(b"", status="404 Not Found")

    with serving(answer) as server:
        remote(project, "there", server.url)
        remote(project, "gone", GONE)
        found = checks(project, "--net", code=1)
    assert (found["there"]["status"], "HTTP 404" in found["there"]["message"]) == ("ok", True)
    assert (found["gone"]["status"], bool(found["gone"]["fix"])) == ("error", True)
    assert GONE in found["gone"]["message"]


def test_a_server_is_asked_the_way_that_a_run_would_ask(project: Any) -> None:
    with serving(lambda talk: talk.reply(b"", status="404 Not Found")) as proxy:
        project.env |= {
            "COGCLI_USE_ENV_PROXY": "1",
            "http_proxy": proxy.url.replace("//", "//me:sentinel-word@"),
        }
        remote(project, "far", "http://far.example.test/base", "public")
        found = checks(project, "--net")["far"]
    assert (
        found["message"] == f"http://far.example.test/base through {proxy.url} answers (HTTP 404)"
    )


@pytest.mark.parametrize(
    ("url", "helped"), [(GONE, True), ("http://169.254.169.254/latest", False)]
)
def test_a_private_network_is_proposed_only_where_it_would_help(
    project: Any, url: str, helped: bool
) -> None:
    remote(project, "near", url, "public")
    problems = project.run("validate", "--json").assert_ok().json["problems"]
    [problem] = [problem for problem in problems if problem["code"] == "safety.scope"]
    assert ("network: private" in (problem["hint"] or "")) == helped


@pytest.mark.sampled(24)
def test_a_key_that_no_call_needs_is_a_note_and_an_error_once_one_does(project: Any) -> None:
    project.write(
        "services/local/brain.yaml",
        "id: brain\nkind: openapi\nbase_url: https://brain.example\nauth_ref: BRAIN_KEY\n"
        "metadata: {purpose: model}\n",
    )
    project.services(
        "def upper(text: str) -> dict[str, object]:\n    return {'text': text.upper()}\n"
    )
    project.capability("demo.text.upper", "upper")
    project.write(
        "bindings/local/demo.text.upper/brain_upper.yaml",
        "id: brain_upper\ncapability: demo.text.upper\nservice: brain\nprotocol: openapi\noperation: upper\n"
        "request: {text: input.text}\nresponse: {text: response.text}\n",
    )
    project.run("bindings", "activate", "demo.text.upper", "demo_text_upper").assert_ok()
    brain = checks(project)["brain"]
    assert brain["status"] == "skipped"
    assert brain["message"] == (
        "environment variable `BRAIN_KEY` is not set; what is called as things are does not need it"
    )
    project.env["BRAIN_KEY"] = "a-long-enough-word"
    project.run("bindings", "activate", "demo.text.upper", "brain_upper").assert_ok()
    del project.env["BRAIN_KEY"]
    brain = checks(project, code=1)["brain"]
    assert (brain["status"], "export BRAIN_KEY" in brain["fix"]) == ("error", True)


def test_a_program_that_is_not_there_is_told(project: Any) -> None:
    project.write("services/local/clock.yaml", "id: clock\nkind: mcp\ncommand: no-such-clock\n")
    found = checks(project, code=1)
    assert "no-such-clock" in found["clock"]["message"]
    assert "PATH" in found["clock"]["fix"]


@pytest.mark.sampled(24)
def test_an_untrusted_project_is_not_asked(project: Any) -> None:
    remote(project, "there", GONE)
    project.env["COGCLI_TRUST_PROJECT"] = "0"
    found = [
        each
        for each in project.run("doctor", "--json", "--net").json["checks"]
        if each["name"] == "there"
    ]
    assert [each["status"] for each in found] == ["error", "skipped"]
    assert "is not called" in found[0]["message"]


def test_a_literal_secret_in_a_file_is_not_shown_by_the_check_that_finds_it(project: Any) -> None:
    project.write(
        "services/local/open.yaml",
        "id: open\nkind: openapi\nbase_url: https://somebody:sentinel-one@example.org\n",
    )
    project.write(
        "services/local/told.yaml",
        "id: told\nkind: openapi\nbase_url: https://example.org\n"
        'metadata: {headers: {Authorization: "Bearer sentinel-two"}}\n',
    )
    for flags in ((), ("--json",), ("--format", "github")):
        result = project.run("validate", *flags).assert_exit(1)
        assert "service.url" in result.out + result.err
        assert "secret.literal" in result.out + result.err
        assert "sentinel" not in result.out + result.err
