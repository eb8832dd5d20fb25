"""`new binding` with documents of others: what is written is right whatever stands in them, or nothing is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.project import INSTALLED_ONLY, Project, Result
from support.raw_server import serving

pytestmark = pytest.mark.sampled(12)

URL = ("--base-url", "https://api.example")
HOSTILE = (
    "a: b # c", "two\nlines", "\x1b[2J\x07", "\u202eright to left", "x" * 300_000, "- [{", "---\n...", "'\"\\",
    "*alias &anchor !!tag", "${HOME}", "${input.x}", "input.x", "yes", "1:30", "\u2028", "\x85", "%TAG", "| >", "null",
    "outputs.x", "{{ x }}", "😀", "\\x00", "`", "",
)  # fmt: skip
NAMES = (
    "a b", "a.b", "../../../x", "x-own", "", "$ref", "$literal", "é", "__proto__", "-", "1st", "a" * 500, "yes", "on",
    "x\ny", "\x1b[31m", "input", "a-b_c", "X-Y", "body", "result", "${A}", "password", "~", "null",
)  # fmt: skip
TEXT = {"type": "string"}


@pytest.fixture
def begun(project: Project) -> Project:
    project.run("new", "project", ".").assert_ok()
    return project


def document(paths: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A document of OpenAPI 3.1 with one server."""
    return {
        "openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "paths": paths if paths is not None else {
            "/a": {"get": {"operationId": "a", "responses": {"200": reply(TEXT)}}}
        }, "servers": [{"url": "https://api.example"}], **more,
    }  # fmt: skip


def reply(schema: Any) -> dict[str, Any]:
    return {"description": "d", "content": {"application/json": {"schema": schema}}}


def files(project: Project) -> dict[str, bytes]:
    """Every file around the project and in it, but for caches."""
    found = {}
    for path in sorted(project.root.parent.rglob("*")):
        name = path.relative_to(project.root.parent).as_posix()
        if path.is_file() and "/.cache/" not in name:
            found[name] = path.read_bytes()
    return found


def bind(
    project: Project, value: Any, *words: str, id: str = "api.thing", name: str = "openapi.json"
) -> Result:
    """Bind operations of a document; nothing is written where that fails, and what is written has no error."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    (project.root / name).write_bytes(data)
    before = files(project)
    words = (*words, "--keep-going", "--force", "--json")
    result = project.run("new", "binding", id, "--from-openapi", name, *words)
    assert result.code in (0, 2), result.out + result.err
    assert "Traceback" not in result.err
    assert all(char.isprintable() or char == "\n" for char in result.err), result.err[:300]
    after = files(project)
    if result.code:
        assert after == before
    else:
        made = {f"{project.root.name}/{each}" for each in result.json["created"]}
        assert made <= after.keys()
        changed = {each for each in after if after[each] != before.get(each)}
        assert {
            each for each in changed if "/.cogcli/schemas/" not in each
        } <= made  # editors know the new ids
        project.run("validate", env={"API_TOKEN": "x" * 20, "API_API_KEY": "y" * 20}).assert_ok()
    return result


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "value",
    [
        b"", b"{", b"[]", b"\xff\xfe", b"a: [", b"null", b"a: &x 1\nb: *x", b"\x00", b"{" * 100_000, b"x" * 5_000_000,
        {"swagger": "2.0", "paths": {}}, {"openapi": "4.0.0"}, {"openapi": 3}, {"openapi": "3.1.0", "paths": []},
        document({}), document({"/a": None}), document({"/a": {"get": []}}),
        document({"/a": {"get": {"parameters": 1}}}),
        document({"/a": {"get": {"responses": []}}}), document({"/a": {"$ref": "#/paths/~1a"}}),
        document({"/a": {"get": {"responses": {"200": {"$ref": "#/components/responses/x"}}}}}),
        document({"/a": {"get": {"operationId": "a"}}, "/b": {"get": {"operationId": "a"}}}),
        document({"/a": {"get": {"security": [{"none": []}], "responses": {}}}}),
    ],
    ids=lambda value: repr(value)[:40],
)  # fmt: skip
def test_what_is_no_document_is_told_with_its_place(begun: Project, value: Any) -> None:
    error = bind(begun, value).assert_exit(2).json["error"]
    assert error["code"] in ("wire.document", "usage.value", "usage.flag", "input.file"), error


@pytest.mark.sampled(24)
def test_a_remote_reference_is_never_fetched(begun: Project) -> None:
    with serving(lambda conversation: None) as server:
        for target in (
            f"http://127.0.0.1:{server.port}/x.json",
            "other.json#/x",
            "file:///etc/passwd",
        ):
            value = document(
                {"/a": {"get": {"operationId": "a", "responses": {"200": reply({"$ref": target})}}}}
            )
            assert bind(begun, value).assert_exit(2).json["error"]["code"] == "wire.document"
        bind(begun, document(), "--base-url", f"http://127.0.0.1:{server.port}").assert_ok()
        assert not server.connections


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("servers", "word"),
    [
        ([], "names no server"), ([{"url": "/v1"}], "its servers are /v1"), ([{}], "its servers are"),
        ([{"url": "http://127.0.0.1:80"}], "loopback"), ([{"url": "http://localhost"}], "loopback"),
        ([{"url": "http://[::1]/"}], "loopback"), ([{"url": "http://2130706433/"}], "loopback"),
        ([{"url": "https://a.example"}, {"url": "https://b.example"}], "its servers are"),
        ([{"url": "file:///etc/passwd"}], "its servers are"), ([{"url": "http://169.254.169.254/"}], "link-local"),
        ([{"url": "https://user:pw@api.example"}], ""), ([{"url": "https://api.example/?token=abcdefgh"}], ""),
        ([{"url": "https://[bad"}], ""),
    ],
)  # fmt: skip
def test_an_address_that_the_document_may_not_name_is_refused(
    begun: Project, servers: Any, word: str
) -> None:
    error = bind(begun, document(servers=servers)).assert_exit(2).json["error"]
    assert word in error["message"]


@pytest.mark.sampled(24)
def test_texts_of_others_stay_texts(begun: Project) -> None:
    paths = {}
    for number, text in enumerate(HOSTILE):
        short = text[:1000]
        schema = {
            "type": "object",
            "description": text,
            "properties": {"a": {"enum": [short, "b"]}},
        }
        parameter = {"name": "q", "in": "query", "description": text, "schema": {"const": short}}
        paths[f"/{number}"] = {
            "post": {
                "summary": text, "description": text, "parameters": [parameter],
                "requestBody": {"content": {"application/json": {"schema": schema, "example": {"a": text}}}},
                "responses": {"200": reply(schema)},
            }
        }  # fmt: skip
    made = bind(
        begun, document(paths, info={"title": HOSTILE[0], "version": "1"}), "--all", id="api"
    ).assert_ok()
    skipped = [
        each["message"] for each in made.json["warnings"] if each["message"].startswith("skipped")
    ]
    assert all("character" in each or "two lines" in each for each in skipped), skipped
    assert len(skipped) == 3, (
        "control and bidirectional characters in a value cannot stand in a file"
    )
    for path in begun.root.rglob("*.yaml"):
        assert all(len(line) < 2000 for line in path.read_text().splitlines())


def test_names_of_others_become_names(begun: Project) -> None:
    every = {name: {"type": "string"} for name in NAMES}
    body = {"content": {"application/json": {"schema": {"type": "object", "properties": every}}}}
    paths: dict[str, Any] = {}
    for number, name in enumerate(NAMES):
        parameters = [{"name": name, "in": place, "schema": TEXT} for place in ("query", "header")]
        required = {"200": reply({"type": "object", "properties": every, "required": [name]})}
        paths[f"/{number}"] = {
            "post": {"parameters": parameters, "requestBody": body, "responses": required}
        }
    bind(begun, document(paths), "--all", id="api").assert_ok()
    assert len(list(begun.root.glob("capabilities/*"))) == len(NAMES)
    (first,) = begun.root.glob("bindings/local/api.post-0/*.yaml")
    sent = re.findall(r"input\.(\S+)", first.read_text())
    assert len(sent) == len(set(sent))
    assert first.read_text().count("body.") == len(NAMES) - 3


def test_ids_of_operations_lead_nowhere(begun: Project) -> None:
    ids = (
        "../../../../x",
        "/etc/x",
        "..",
        "a/../../b",
        "A" * 300,
        "\u202e",
        "con",
        "ü",
        "a b",
        "a\nb",
        "${X}",
        "a.b",
    )
    paths = {
        f"/{n}": {"get": {"operationId": id, "responses": {"200": reply(TEXT)}}}
        for n, id in enumerate(ids)
    }
    made = bind(begun, document(paths), "--all", id="api").assert_ok()
    for name in made.json["created"]:
        assert ".." not in Path(name).parts
        assert re.fullmatch(r"[a-z0-9_./-]+", name), name
    told = " ".join(warning["message"] for warning in made.json["warnings"])
    assert "too long for an id" in told
    assert "already" in told


@pytest.mark.sampled(24)
def test_credentials_come_from_variables_named_after_the_service(begun: Project) -> None:
    schemes = {
        "OPENAI_API_KEY": {"type": "http", "scheme": "bearer"},
        "AWS_SECRET_ACCESS_KEY": {"type": "apiKey", "in": "header", "name": "X-Key"},
        "bad": {"type": "apiKey", "in": "header", "name": "X\r\nHost: evil"},
        "host": {"type": "apiKey", "in": "header", "name": "Host"},
        "asked": {"type": "apiKey", "in": "query", "name": "key"},
        "basic": {"type": "http", "scheme": "basic"},
    }
    paths = {
        f"/{name}": {
            "get": {
                "operationId": name,
                "security": [{name: []}],
                "responses": {"200": reply(TEXT)},
            }
        }
        for name in schemes
    }
    value = document(
        paths,
        components={"securitySchemes": schemes},
        info={"title": "OPENAI ${HOME}", "version": "1"},
    )
    made = bind(begun, value, "--all", id="api").assert_ok()
    service = (begun.root / "services/local/api.yaml").read_text()
    assert set(re.findall(r"[A-Z][A-Z_]{5,}", service)) - {"OPENAI", *schemes} == {
        "API_TOKEN",
        "API_API_KEY",
        "API_API_KEY_",
        "API_USER",
        "API_PASSWORD",
    }
    assert "$API_TOKEN is sent to https://api.example: set it" in [
        each["message"] for each in made.json["warnings"]
    ]
    bound = {name for name in made.json["created"] if name.startswith("capabilities/")}
    assert bound == {
        "capabilities/api.openai-api-key.yaml",
        "capabilities/api.aws-secret-access-key.yaml",
        "capabilities/api.asked.yaml",
        "capabilities/api.basic.yaml",
    }


RECURSIVE = {"$ref": "#/components/schemas/T"}
SOUND: tuple[Any, ...] = (
    RECURSIVE, {"allOf": [RECURSIVE]}, {"type": "array", "items": {"type": "array", "items": RECURSIVE}},
    {"anyOf": [RECURSIVE, {"type": "null"}]}, {"type": "object", "properties": {"t": {"anyOf": [RECURSIVE, TEXT]}}},
    {"type": "object", "additionalProperties": TEXT}, {"type": ["string", "null"]}, True, {}, {"enum": [1, "a", None]},
    {"oneOf": [{"type": "object", "properties": {"a": TEXT}}, {"type": "array"}]}, {"properties": {"a": TEXT}},
    {"type": "object", "properties": {f"p{n}": TEXT for n in range(700)}}, {"$id": "http://x/", "type": "string"},
    {"type": ["object", "null"], "properties": {"a": TEXT}, "required": ["a"]}, {"minimum": 1e300},
    {"type": "object", "properties": {"a": {"type": "object", "properties": {f"p{n}": TEXT for n in range(3000)}}}},
)  # fmt: skip
ODD: tuple[Any, ...] = (
    {"type": "string", "pattern": "(a+)+$"}, {"type": "string", "pattern": "(?=x)y"}, False, 17, {"not": {}},
    {"$ref": "#/components/schemas/L"}, {"enum": []}, {"enum": [None]}, {"const": None}, {"type": "nonsense"},
    {"type": []}, {"items": 1}, {"multipleOf": 0}, {"type": "integer", "enum": [1.5]}, {"$ref": "#/paths"},
)  # fmt: skip
SCHEMAS = (*SOUND, *ODD)


@pytest.mark.sampled(24)
def test_any_schema_is_bound_or_refused(begun: Project) -> None:
    components = {
        "schemas": {
            "T": {"type": "object", "properties": {"next": RECURSIVE, "v": TEXT}},
            "L": {"$ref": "#/components/schemas/L"},
        }
    }
    paths: dict[str, Any] = {}
    for number, schema in enumerate(SCHEMAS):
        body = {"required": True, "content": {"application/json": {"schema": schema}}}
        paths[f"/reply/{number}"] = {"get": {"responses": {"200": reply(schema)}}}
        paths[f"/body/{number}"] = {
            "post": {"requestBody": body, "responses": {"200": reply(TEXT)}}
        }
        parameter = {"name": "q", "in": "query", "schema": schema}
        paths[f"/query/{number}"] = {
            "get": {"parameters": [parameter], "responses": {"200": reply(TEXT)}}
        }
    made = bind(begun, document(paths, components=components), "--all", id="api").assert_ok()
    skipped = [
        each["message"] for each in made.json["warnings"] if each["message"].startswith("skipped")
    ]
    bound = [name for name in made.json["created"] if name.startswith("capabilities/")]
    assert len(skipped) + len(bound) == 3 * len(SCHEMAS)
    for number in range(len(SOUND)):
        # Nothing that is too large to be compared is sent; only what is not an object can be in a query.
        assert f"capabilities/api.get-reply-{number}.yaml" in bound, skipped
        if number < len(SOUND) - 1:
            assert f"capabilities/api.post-body-{number}.yaml" in bound, skipped


@pytest.mark.sampled(3)
def test_ten_thousand_operations_are_refused_at_once_and_bound_one_by_one(begun: Project) -> None:
    paths = {
        f"/{n}": {"get": {"operationId": f"op{n}", "responses": {"200": reply(TEXT)}}}
        for n in range(10_000)
    }
    value = document(paths)
    assert (
        "10,000 operations"
        in bind(begun, value, "--all", id="api").assert_exit(2).json["error"]["message"]
    )
    many = bind(begun, value).assert_exit(2).json["error"]
    assert len(json.dumps(many)) < 2000
    bind(begun, value, "--operation", "op9999").assert_ok()


@pytest.mark.skipif(INSTALLED_ONLY, reason="it lowers a limit of this process")
def test_operations_that_are_too_large_together_are_bound_one_by_one(begun: Project) -> None:
    many = {
        f"S{n}": {
            "type": "object",
            "properties": {"next": {"$ref": f"#/components/schemas/S{n + 1}"}},
        }
        for n in range(200)
    }
    many["S200"] = TEXT
    one = {
        "responses": {"200": reply({"type": "array", "items": {"$ref": "#/components/schemas/S0"}})}
    }
    value = document({f"/{n}": {"get": one} for n in range(60)}, components={"schemas": many})
    (begun.root / "openapi.json").write_text(json.dumps(value))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cogcli.authoring.new_specs.api_binding.MAX_PARTS", 6_000)
        made = bind(begun, value, "--all", id="api").assert_ok()
    skipped = [
        each["message"] for each in made.json["warnings"] if each["message"].startswith("skipped")
    ]
    assert len(skipped) > 50
    assert all("too large to be made with those of the others" in each for each in skipped)
    bind(begun, value, "--operation", "GET /59").assert_ok()
