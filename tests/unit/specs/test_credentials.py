"""Credentials that are written out in a spec: an error in services and bindings, a warning and masked in skills."""

from __future__ import annotations

import pytest

from cogcli.base.problems import Problem
from cogcli.base.yaml.reader import parse
from cogcli.protocols import PROTOCOLS
from cogcli.specs.credentials import (
    address_holds_credential,
    find_in_capability,
    find_in_skill,
    header_holds_credential,
    keeps_secret,
    mask_places,
    text_holds_credential,
)
from cogcli.specs.shapes import check_file

SECRET = "sentinel-4711-sentinel"
SERVICE = "id: x\nkind: openapi\nbase_url: https://a.example\n"
SERVER = "id: x\nkind: mcp\ncommand: tool\n"
BINDING = "id: b\ncapability: a.b\nservice: x\nprotocol: openapi\nresponse: {}\n"
SKILL = 'id: a.b\nversion: "1.0.0"\nname: A\ndescription: B\noutputs: {}\n'


def told(kind: str, text: str) -> list[Problem]:
    parsed = parse(text.encode(), file="x.yaml")
    assert parsed.value is not None
    problems = check_file(kind, parsed.value, parsed.places, "x.yaml", PROTOCOLS).problems
    assert all("sentinel" not in problem.summary_line for problem in problems)
    return [problem for problem in problems if problem.code in ("secret.literal", "service.url")]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("service", SERVICE + f"metadata: {{headers: {{{header}: {value}{SECRET}}}}}\n")
        for header in ("Authorization", "authorization", "X-Api-Key", "x-auth-token", "X-Access-Token", "Api-Key",
                       "X-Session-Token", "X-Client-Secret", "X-Auth-Password")
        for value in ("", "Bearer ", "Basic ")
    ] + [
        ("service", SERVICE + "metadata: {headers: {X-Api-Key: '${A}-sentinel-0123456789-abc'}}\n"),
        ("binding", BINDING + "operation: a\nrequest: {}\nmetadata: {headers: {X-Forward: 'Bearer sentinel-1'}}\n"),
        ("service", SERVICE + f"spec_ref: https://a.example/api.json?token={SECRET}\n"),
        ("service", SERVICE + f"spec_ref: https://me:{SECRET}@a.example/api.json\n"),
        ("service", SERVICE.replace(".example", f".example/x?api_key={SECRET}")),
        ("service", SERVICE.replace(".example", f".example/x?a=1&key={SECRET}")),
        ("service", SERVICE.replace(".example", f".example/x?subscription-key={SECRET}")),
        ("service", SERVER + f"env: {{API_KEY: {SECRET}}}\n"),
        ("service", SERVER + f"env: {{GITHUB_PERSONAL_ACCESS_TOKEN: {SECRET}}}\n"),
        ("service", SERVER + f"args: [--api-key={SECRET}]\n"),
        ("service", SERVER + f"args: [-y, --token, {SECRET}]\n"),
        ("service", SERVER + f"args: [--header, 'Authorization: Bearer {SECRET}']\n"),
        ("service", SERVER + f"args: [-e, API_TOKEN={SECRET}]\n"),
        ("binding", BINDING + f"operation: a\nrequest: {{}}\nmetadata: {{headers: {{X-Api-Key: {SECRET}}}}}\n"),
        ("binding", BINDING + f"operation: a\nrequest: {{api_key: {SECRET}}}\n"),
        ("binding", BINDING + f"operation: a\nrequest: {{body: {{auth: [{{password: {SECRET}}}]}}}}\n"),
        ("binding", BINDING + f"operation: a\nrequest: {{token: {{$literal: {SECRET}}}}}\n"),
        ("binding", BINDING + f"operation: GET /a?access_token={SECRET}\nrequest: {{}}\n"),
    ],
)  # fmt: skip
def test_in_a_service_or_binding_it_is_an_error_with_a_way_out(kind: str, text: str) -> None:
    (problem,) = told(kind, text)
    assert problem.severity == "E"
    assert problem.hint


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (
            "service",
            SERVICE + "metadata: {headers: {Authorization: 'Token ${TOKEN}', X-Monkey: banana}}\n",
        ),
        (
            "service",
            SERVICE
            + "metadata: {headers: {X-Api-Key: 'app-client-of-harbour=${A_LONG_NAME_0123456789}'}}\n",
        ),
        (
            "service",
            SERVICE
            + "metadata: {headers: {X-Forward: 'Bearer ${TOKEN}', X-Trace-Context: '00-0af7651916cd43dd8448eb'}}\n",
        ),
        ("service", SERVICE + "auth_ref: TOKEN\n"),
        ("service", SERVICE.replace(".example", ".example/x?tokens_used=1&monkey=2")),
        (
            "service",
            SERVER
            + "env: {API_KEY: '${API_KEY}', TOKEN_FILE: /run/secrets/t, USE_TOKEN: 'true'}\n",
        ),
        (
            "service",
            SERVER
            + "args: [--token-file, /run/t, --max-tokens, '100', --monkey=x, serve, --token, --v]\n",
        ),
        (
            "binding",
            BINDING
            + "operation: a\nrequest: {api_key: input.key, password: '${input.a} ${input.b}'}\n",
        ),
        (
            "binding",
            BINDING
            + "operation: a\nrequest: {max_tokens: 100, token_type: bearer, secret: null}\n",
        ),
    ],
)
def test_what_only_looks_like_one_is_none(kind: str, text: str) -> None:
    assert told(kind, text) == []


IN_STEPS = [
    f"input: {{password: {SECRET}}}",
    f"input: {{a: {{b: [{{apiKey: {SECRET}}}]}}}}",
    f"input: {{secret: {{user: {SECRET}}}}}",
    f"input: {{token: {{$literal: {SECRET}}}}}",
    f"input: {{credentials: [{SECRET}]}}",
    "input: {otp: 123456}",
    f"config: {{otherwise: {{token: {SECRET}}}}}",
    f"config: {{foreach: {{items: [{{password: {SECRET}}}]}}}}",
]


@pytest.mark.parametrize("step", IN_STEPS)
def test_in_a_skill_it_is_a_warning_and_masked_in_what_is_kept(step: str) -> None:
    text = SKILL + f"inputs: {{}}\nsteps: [{{id: s, uses: a.c, {step}}}]\n"
    (problem,) = told("skill", text)
    assert problem.severity == "W"
    raw = parse(text.encode(), file="x.yaml").value
    shown = mask_places(raw, find_in_skill(raw))
    assert not {"sentinel", "123456"} & {
        word for word in ("sentinel", "123456") if word in str(shown)
    }
    assert "[masked]" in str(shown)
    assert "[masked]" not in str(raw)
    assert list(find_in_skill(shown)) == []


@pytest.mark.parametrize("key", ["default: X", "enum: [X]", "examples: [X]"])
def test_so_it_is_among_the_values_of_a_field(key: str) -> None:
    field = f"{{password: {{type: string, description: what it is, {key.replace('X', SECRET)}}}}}"
    raw = parse(f"{SKILL}inputs: {field}\nsteps: []\n".encode(), file="x.yaml").value
    for shown in (mask_places(raw, find_in_skill(raw)), mask_places(raw, find_in_capability(raw))):
        assert "sentinel" not in str(shown)
        assert shown["inputs"]["password"]["description"] == "what it is"


@pytest.mark.parametrize(
    "step",
    [
        "input: {password: inputs.password, monkey: banana, tokens_used: 5, secret: null, token: ''}",
        "input: {token: item.token}, config: {foreach: {items: inputs.list}}",
        "input: {token: each.token}, config: {foreach: {items: inputs.list, as: each}}",
        "input: {page_token: false}, output: {token: vars.token}",
    ],
)
def test_references_and_plain_keys_stay(step: str) -> None:
    text = SKILL + f"inputs: {{}}\nsteps: [{{id: s, uses: a.c, {step}}}]\n"
    assert told("skill", text) == []
    raw = parse(text.encode(), file="x.yaml").value
    assert mask_places(raw, find_in_skill(raw)) is raw


@pytest.mark.parametrize("unit", ["x", "-", ".", ":", "://", "?", "${", "a:", "&a", "x1"])
def test_a_long_text_is_searched_in_linear_time(unit: str) -> None:
    text = unit * (100_000 // len(unit))  # a square of it would be minutes
    assert not text_holds_credential(text)
    assert not address_holds_credential(text)
    assert not keeps_secret(text + "1")
    assert header_holds_credential("X-Api-Key", "${KEY} " + text) is (unit == "x1")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("see https://ann:pw@example.org/x", True),
        ("see https://ann:p:w@example.org/x", True),
        ("see https://example.org:80/a@b", False),
        ("see https://a@b:c", False),
        ("1http://ann:pw@example.org", True),
    ],
)
def test_an_address_with_a_password_within_a_text(url: str, expected: bool) -> None:
    assert text_holds_credential(url) is expected
