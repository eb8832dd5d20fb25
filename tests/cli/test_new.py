"""`new ...`: what it writes is right as it stands, and it writes all or nothing."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.asgi import serving_app
from support.project import Project, Result
from support.shop_app import app

pytestmark = pytest.mark.sampled(12)

HEADER = "# yaml-language-server: $schema="


@pytest.fixture(autouse=True)
def terminal(project: Project) -> None:
    """Next commands are for terminals."""
    project.env |= {"COGCLI_FORCE_TTY": "120", "NO_COLOR": "1"}


@pytest.fixture
def begun(project: Project) -> Project:
    """A project as `new project .` makes one."""
    project.run("new", "project", ".").assert_ok()
    return project


def files(project: Project) -> dict[str, bytes]:
    """Every file of a project but runs."""
    found = {}
    for path in sorted(project.root.rglob("*")):
        name = path.relative_to(project.root).as_posix()
        if path.is_file() and not name.startswith(".cogcli/episodes"):
            found[name] = path.read_bytes()
    return found


def created(result: Result) -> list[str]:
    """The files of an answer, which are those of its envelope."""
    return result.assert_ok().out.splitlines()


def commands(result: Result) -> list[list[str]]:
    """The commands after `next:`."""
    lines = result.err.splitlines()
    first = next((n for n, line in enumerate(lines) if line.startswith("next: ")), len(lines))
    return [shlex.split(line.removeprefix("next:").strip())[1:] for line in lines[first:]]


def assert_right(project: Project, result: Result) -> None:
    """What was written passes every check, warnings included, is found by editors, and what is proposed runs."""
    names = created(result)
    assert names
    for name in names:
        text = (project.root / name).read_text(encoding="utf-8")
        if name.endswith(".yaml") and not name.startswith("documents/"):
            first = text.splitlines()[0]
            assert first.startswith(HEADER), name
            schema = (project.root / name).parent / first.removeprefix(HEADER)
            assert json.loads(schema.read_bytes())["title"].startswith("cogcli ")
            assert text.splitlines()[1:3] != [], name
    project.run("validate", "--strict").assert_ok()
    assert commands(result)
    for words in commands(result):
        project.run(*words).assert_ok()


def test_a_new_project_runs_its_skill_and_has_no_warning(project: Project) -> None:
    made = project.run("new", "project", "shop", env={"COGCLI_TRUST_PROJECT": ""})
    assert created(made) == [
        "shop/cogcli.toml",
        "shop/skills/local/demo/hello/skill.yaml",
        "shop/.gitignore",
    ]
    (run, check) = commands(made)
    assert json.loads(project.run(*run).assert_ok().out) == {"text": "Hello world", "words": 2}
    assert "0 errors, 0 warnings" in project.run(*check).assert_ok().out
    assert (project.root / "shop/.gitignore").read_text() == ".cogcli/\n"
    trusted = project.run("config", "show", "trust", "-C", "shop", env={"COGCLI_TRUST_PROJECT": ""})
    assert trusted.out == "folder\n"


def test_a_project_in_a_directory_with_files_changes_none_and_is_not_trusted(
    project: Project,
) -> None:
    project.write(".gitignore", "*.log\n")
    project.write("notes.md", "mine\n")
    before = files(project)
    made = project.run("new", "project", ".", env={"COGCLI_TRUST_PROJECT": ""})
    assert created(made) == ["cogcli.toml", "skills/local/demo/hello/skill.yaml"]
    assert files(project).items() >= before.items()
    assert "add .cogcli/ to .gitignore" in made.err
    assert (
        project.run("config", "show", "trust", env={"COGCLI_TRUST_PROJECT": ""}).out
        == "untrusted\n"
    )
    for words in commands(made):
        project.run(*words).assert_ok()


def test_schemas_are_those_of_the_schema_command(begun: Project) -> None:
    begun.run("schema", "--all", "-o", "all").assert_ok()
    for path in (begun.root / ".cogcli/schemas").iterdir():
        assert path.read_bytes() == (begun.root / "all" / path.name).read_bytes()


NEW: tuple[tuple[tuple[str, ...], str], ...] = (
    (("skill", "shop.report"), "skills/local/shop/report/skill.yaml"),
    (("skill", "shop.trial", "--channel", "candidate"), "skills/candidate/shop/trial/skill.yaml"),
    (("skill", "shop.brief", "--like", "text.brief"), "skills/local/shop/brief/skill.yaml"),
    (("skill", "--like", "text.brief"), "skills/local/text/my-brief/skill.yaml"),
    (("skill", "text.brief", "--like", "text.brief"), "skills/local/text/brief/skill.yaml"),
    (("capability", "orders.item.read"), "capabilities/orders.item.read.yaml"),
    (("pack", "shop-desk"), "packs/shop-desk/1.0.0.yaml"),
)


@pytest.mark.sampled(24)
@pytest.mark.parametrize(
    ("words", "file"), NEW, ids=lambda each: " ".join(each) if isinstance(each, tuple) else None
)
def test_what_is_written_is_right_and_never_replaced_unasked(
    begun: Project, words: tuple[str, ...], file: str
) -> None:
    made = begun.run("new", *words)
    assert created(made) == [file]
    assert_right(begun, made)
    path = begun.root / file
    path.write_text("x: mine\n")
    before = files(begun)
    refused = begun.run("new", *words, "--json").assert_exit(2)
    assert refused.json["error"]["code"] == "output.exists"
    assert files(begun) == before
    forced = begun.run("new", *words, "--force", "--json").assert_ok()
    assert forced.json["created"] == [file]
    assert path.read_text().startswith(HEADER)


def test_a_copied_skill_does_what_the_other_does_and_keeps_its_comments(begun: Project) -> None:
    begun.write(
        "skills/local/demo/first/skill.yaml",
        """
        # Why this skill is here.
        id: demo.first   # its name
        version: "1.0.0"
        name: First {of all}
        description: Tidies.
        domain: demo
        slug: first
        inputs: {id: {type: string, default: a  b}}
        outputs: {text: {type: string}}
        steps:
          # Why this step is here.
          - {id: tidy, uses: text.content.normalize, input: {text: inputs.id}, output: {text: outputs.text}}
        """,
    )
    begun.run("new", "skill", "other.second", "--like", "demo.first").assert_ok()
    text = (begun.root / "skills/local/other/second/skill.yaml").read_text()
    assert "# Why this skill is here." in text
    assert "id: other.second   # its name" in text
    assert "domain: other\nslug: second" in text
    assert "# Why this step is here." in text
    assert "name: First {of all}" in text
    assert json.loads(begun.run("run", "other.second").assert_ok().out) == {"text": "a b"}


def test_a_shipped_skill_is_replaced_only_by_a_copy_that_says_so(begun: Project) -> None:
    refused = begun.run("new", "skill", "text.brief", "--json").assert_exit(2)
    assert refused.json["error"]["code"] == "output.exists"
    assert "cogcli new skill text.brief --like text.brief" in refused.json["error"]["hint"]
    assert begun.run("new", "capability", "text.content.normalize", "--json").assert_exit(2).json[
        "error"
    ]["code"] == ("output.exists")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "words",
    [
        ("skill", "../../x.y"), ("skill", "a"), ("skill", "A.b"), ("skill", "a.b", "--channel", "../x"),
        ("skill", "a.b", "--channel", ""), ("skill",), ("skill", "a.b", "--like", "no.such"),
        ("capability", "../x.y"), ("capability", "a/b.c"), ("capability", "x"),
        ("pack", "../x"), ("pack", "a/b"), ("pack", ".x"), ("project", ""), ("project", "a\nb"),
        ("scenario", "no_such"), ("scenario", "../x"), ("scenario", "python_text_readability_score"),
    ],
)  # fmt: skip
def test_words_that_are_no_names_write_nothing(begun: Project, words: tuple[str, ...]) -> None:
    before = files(begun)
    begun.run("new", *words, "--json").assert_exit(2)
    assert files(begun) == before


@pytest.mark.parametrize(
    "words",
    [
        ("skill", "a.b"), ("skill", "--like", "text.brief"), ("capability", "a.b"), ("pack", "a"),
        ("scenario", "python_text_readability_score"), ("binding", "a.b", "--from-openapi", "x.json"),
    ],
)  # fmt: skip
def test_without_a_project_nothing_is_written(project: Project, words: tuple[str, ...]) -> None:
    refused = project.run("new", *words, "--json").assert_exit(3)
    assert refused.json["error"]["code"] == "project.none"
    assert refused.json["error"]["next"] == ["cogcli new project ."]
    assert files(project) == {}


@pytest.mark.sampled(24)
def test_all_files_are_written_or_none(begun: Project) -> None:
    begun.write("openapi.json", json.dumps(app.openapi()))
    (begun.root / "bindings").write_text("in the way")
    before = files(begun)
    begun.run(*ALL, "--json").assert_exit(3)
    assert files(begun) == before
    assert not list(begun.root.glob("capabilities/*"))


def test_a_link_does_not_lead_out_of_the_project(begun: Project, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (begun.root / "capabilities").symlink_to(outside)
    begun.run("new", "capability", "a.b", "--force").assert_exit(2)
    assert not list(outside.iterdir())


def test_a_cogcli_folder_that_is_kept_elsewhere_is_left_alone(
    begun: Project, tmp_path: Path
) -> None:
    (begun.root / ".cogcli").rename(tmp_path / "elsewhere")
    shutil.rmtree(tmp_path / "elsewhere/schemas")
    (begun.root / ".cogcli").symlink_to(tmp_path / "elsewhere")
    begun.run("new", "capability", "a.b").assert_ok()
    assert not (tmp_path / "elsewhere/schemas").exists()


# -- an API -----------------------------------------------------------------------------------------------------------

ALL = (
    "new", "binding", "shop.order", "--from-openapi", "openapi.json", "--all", "--keep-going", "--base-url",
    "http://127.0.0.1:1",
)  # fmt: skip


@pytest.fixture(scope="module")
def shop_url() -> Iterator[str]:
    """Where the shop is."""
    with serving_app(app) as url:
        yield url


@pytest.fixture
def shop(begun: Project, shop_url: str) -> Project:
    """A project with the document of the shop in it."""
    begun.write("openapi.json", json.dumps(app.openapi()))
    begun.env |= {
        "SHOP_ORDER_TOKEN": "the-token-of-the-shop",
        "SHOP_ORDER_API_KEY": "the-key-of-the-shop",
    }
    return begun


def call(project: Project, capability: str, inputs: dict[str, Any]) -> Any:
    """The outputs of a skill with one step, which calls this with these inputs."""
    shown = project.run("capabilities", "show", capability, "--json").assert_ok().json["spec"]
    given = ", ".join(
        f"{name}: {{$literal: {json.dumps(value)}}}" for name, value in inputs.items()
    )
    produced = ", ".join(f"{name}: outputs.{name}" for name in shown["outputs"])
    fields = ", ".join(f"{name}: {{type: any}}" for name in shown["outputs"])
    steps = f"- {{id: call, uses: {capability}, input: {{{given}}}, output: {{{produced}}}}}"
    project.skill("demo.call", steps, outputs=f"{{{fields}}}")
    return json.loads(project.run("run", "demo.call").assert_ok().out)


def test_all_operations_of_an_api_are_bound_and_run(shop: Project, shop_url: str) -> None:
    strict = [word for word in ALL[:-1] if word != "--keep-going"]
    shop.run(*strict, shop_url).assert_exit(1)
    made = shop.run(*ALL[:-1], shop_url, "--force")
    assert_right(shop, made)
    names = [name for name in created(made) if name.startswith("capabilities/")]
    assert names == [
        f"capabilities/shop.order.{word}.yaml"
        for word in (
            "read-order",
            "replace-order",
            "drop-order",
            "list-orders",
            "add-order",
            "upload",
            "me",
            "plain",
        )
    ]
    told = made.err.splitlines()
    assert "skipped photo: its reply is image/png, neither JSON nor text" in told
    assert "skipped old: it is deprecated" in told
    assert "8 bound, 2 skipped" in told
    assert "shop.order.me: `cookie.session` is left out: values in the cookie are not sent" in told
    assert f"$SHOP_ORDER_API_KEY is sent to {shop_url}: set it" in told

    one = call(shop, "shop.order.read-order", {"order_id": 3, "x_request_id": "r-1"})
    assert (one["id"], one["status"], one["note"], one["lines"]) == (
        3,
        "open",
        "r-1",
        [{"sku": "AB-1", "qty": 1}],
    )
    assert len(call(shop, "shop.order.list-orders", {"limit": 2})["result"]) == 2
    assert call(shop, "shop.order.list-orders", {"tag": ["a", "none"]}) == {"result": []}
    lines = [{"sku": "AB-1", "qty": 2}, {"sku": "CD-22"}]
    given = {"customer": "bo", "lines": lines, "address": {"street": "Quay 1"}}
    added = call(shop, "shop.order.add-order", given)
    assert (added["id"], added["customer"], added["total"]) == (7, "bo", 3.0)
    assert call(shop, "shop.order.add-order", {**given, "dry": True})["id"] == 0
    assert call(shop, "shop.order.replace-order", {**given, "order_id": 9})["id"] == 9
    assert call(shop, "shop.order.drop-order", {"order_id": 9}) == {}
    assert call(shop, "shop.order.me", {}) == {"result": {"name": "ana"}}
    assert call(shop, "shop.order.plain", {}) == {"text": "some text"}


@pytest.mark.sampled(24)
def test_every_binding_gets_a_scenario_that_is_green(shop: Project) -> None:
    bindings = [Path(name).stem for name in created(shop.run(*ALL)) if name.startswith("bindings/")]
    for binding in bindings:
        made = shop.run("new", "scenario", binding)
        assert created(made) == [f"tooling/openapi_scenarios/{binding}.json"]
    shop.run(*commands(made)[0]).assert_ok()
    checked = (
        shop.run("openapi", "verify-bindings", "--all", "--json").assert_ok().json["scenarios"]
    )
    assert [each["passed"] for each in checked] == [True] * len(bindings)
    added = json.loads(
        (shop.root / "tooling/openapi_scenarios/openapi_shop_order_add-order.json").read_bytes()
    )
    assert added["input"] == {"customer": "ana", "lines": [{"sku": "AB-1"}]}, (
        "the examples of the document"
    )
    assert added["expected_output"]["customer"] == "ana"
    shop.run("new", "scenario", bindings[0], "--json").assert_exit(2)


@pytest.mark.sampled(24)
def test_a_second_operation_joins_the_service_that_is_there_and_was_changed(shop: Project) -> None:
    url = ("--base-url", "http://127.0.0.1:1")
    first = ("new", "binding", "shop.order.read", "--from-openapi", "openapi.json", *url)
    made = shop.run(*first, "--operation", "read_order_orders__order_id__get")
    assert created(made) == [
        "services/local/shop-order.yaml",
        "capabilities/shop.order.read.yaml",
        "bindings/local/shop.order.read/openapi_shop_order_read.yaml",
    ]
    service = shop.root / "services/local/shop-order.yaml"
    service.write_text(service.read_text() + "# mine\n")
    second = (
        "new",
        "binding",
        "shop.order.drop",
        "--from-openapi",
        "openapi.json",
        "--operation",
        "dropOrder",
    )
    assert len(created(shop.run(*second))) == 2
    assert service.read_text().endswith("# mine\n")
    shop.write(
        "other.json", json.dumps({**app.openapi(), "info": {"title": "Another", "version": "1"}})
    )
    third = (
        "new",
        "binding",
        "shop.order.me",
        "--from-openapi",
        "other.json",
        "--operation",
        "me",
        *url,
    )
    assert shop.run(*third, "--json").assert_exit(2).json["error"]["code"] == "output.exists"


def test_a_capability_that_is_there_is_bound_and_kept(shop: Project) -> None:
    shop.write(
        "capabilities/shop.order.read.yaml",
        """
        id: shop.order.read
        version: "1.0.0"
        description: Mine.
        inputs: {order_id: {type: integer, required: true}, when: {type: string}}
        outputs: {total: {type: number, required: true}}
        properties: {side_effects: false}
        """,
    )
    mine = (shop.root / "capabilities/shop.order.read.yaml").read_bytes()
    words = (
        "new", "binding", "shop.order.read", "--from-openapi", "openapi.json",
        "--operation", "read_order_orders__order_id__get", "--base-url", "http://127.0.0.1:1",
    )  # fmt: skip
    made = shop.run(*words)
    assert "capabilities/shop.order.read.yaml" not in created(made)
    assert "input `when` is not sent" in made.err
    assert (shop.root / "capabilities/shop.order.read.yaml").read_bytes() == mine
    shop.run("validate", "--strict").assert_ok()
    refused = shop.run(
        "new", "binding", "text.content.normalize", *words[3:], "--json"
    ).assert_exit(2)
    assert "has no input named as the required `path.order_id`" in refused.json["error"]["message"]


@pytest.mark.sampled(24)
def test_several_operations_and_no_address_are_answered_with_commands_that_run(
    shop: Project,
) -> None:
    words = ("new", "binding", "shop.order", "--from-openapi", "openapi.json", "--json")
    many = shop.run(*words[:2], "shop.order.read", *words[3:]).assert_exit(2).json["error"]
    assert many["message"] == "the document has 10 operations"
    addressless = shop.run(*shlex.split(many["next"][0])[1:], "--json").assert_exit(2).json["error"]
    assert "it names no server" in addressless["message"]
    shop.run(*shlex.split(addressless["next"][0])[1:]).assert_ok()


def test_a_document_outside_the_project_is_copied(shop: Project, tmp_path: Path) -> None:
    os.replace(shop.root / "openapi.json", tmp_path / "api.json")
    words = ("new", "binding", "shop.order", "--from-openapi", str(tmp_path / "api.json"), *ALL[5:])
    names = created(shop.run(*words))
    assert names[0] == "documents/shop-order.json"
    assert (shop.root / names[0]).read_bytes() == (tmp_path / "api.json").read_bytes()
    shop.run("validate", "--strict").assert_ok()


@pytest.mark.sampled(24)
def test_a_document_in_yaml_is_copied_and_its_private_address_is_proposed(
    begun: Project, tmp_path: Path
) -> None:
    document = tmp_path / "an api.yaml"
    document.write_text(
        """openapi: 3.1.0
info: {title: Shop, version: "1"}
servers: [{url: "http://127.0.0.1:8123"}]
paths:
  /up: {get: {operationId: up, responses: {"200": {description: It is.}}}}
"""
    )
    refused = begun.run("new", "binding", "shop.api.up", "--from-openapi", str(document), "--json")
    (proposed,) = refused.assert_exit(2).json["error"]["next"]
    assert "--base-url http://127.0.0.1:8123" in proposed, "what the document says"
    names = created(begun.run(*shlex.split(proposed)[1:]))
    assert names[0] == "documents/shop-api.yaml"
    assert (begun.root / names[0]).read_bytes() == document.read_bytes()
    begun.run("validate", "--strict").assert_ok()


def test_an_old_document_in_yaml_is_one_as_well(begun: Project) -> None:
    begun.write(
        "api.yaml",
        """
        openapi: 3.0.3
        info: {title: Old, version: "1"}
        servers: [{url: "https://{host}.example/v{n}", variables: {host: {default: api}, n: {default: "2"}}}]
        paths:
          /items/{id}:
            parameters: [{$ref: "#/components/parameters/Id"}]
            get:
              summary: Read an item.
              parameters:
                - {name: page, in: query, schema: {type: integer, minimum: 0, exclusiveMinimum: true}, example: 3}
                - {name: id, in: query, schema: {type: string}}
              responses:
                "200":
                  description: The item.
                  content:
                    application/json:
                      schema: {$ref: "#/components/schemas/Item"}
                      example: {name: a, id: 1, note: null}
        components:
          parameters: {Id: {name: id, in: path, required: true, schema: {type: integer}, example: 7}}
          schemas:
            Item:
              allOf:
                - type: object
                  required: [id, note]
                  properties: {id: {type: integer, description: "Its number: one."}}
                - {type: object, properties: {note: {type: string, nullable: true}, name: {type: string}}}
        """,
    )
    made = begun.run("new", "binding", "old.item.read", "--from-openapi", "api.yaml")
    assert_right(begun, made)
    assert "`query.id` is `query_id` here" in made.err
    capability = begun.run("capabilities", "show", "old.item.read", "--json").json["spec"]
    assert {name: field["required"] for name, field in capability["inputs"].items()} == {
        "id": True, "page": False, "query_id": False
    }  # fmt: skip
    assert {name: field["required"] for name, field in capability["outputs"].items()} == {
        "id": True, "note": False, "name": False
    }  # fmt: skip
    assert capability["outputs"]["id"]["description"] == "Its number: one."
    assert (
        'base_url: "https://api.example/v2"'
        in (begun.root / "services/local/old-item.yaml").read_text()
    )
    scenario = json.loads(
        (begun.root / "tooling/openapi_scenarios/openapi_old_item_read.json").read_bytes()
    )
    assert scenario["input"] == {"id": 7, "page": 3}, "the examples of the document"
    assert scenario["expected_output"] == {"id": 1, "name": "a"}
    again = begun.run(
        "new", "binding", "old.item.read", "--from-openapi", "api.yaml", "--channel", "candidate"
    )
    assert again.assert_exit(2).code == 2, "one binding has one id"


def test_a_binding_without_a_document_gets_a_scenario_with_a_reply_of_its_own(
    begun: Project,
) -> None:
    begun.capability(
        "demo.text.upper", "upper", extra="metadata: {examples: [{inputs: {text: an example}}]}\n"
    )
    begun.write(
        "services/local/demo.yaml", "id: demo\nkind: openapi\nbase_url: https://api.example\n"
    )
    path = begun.root / "bindings/local/demo.text.upper/demo_text_upper.yaml"
    text = (
        path.read_text()
        .replace("pythoncall", "openapi")
        .replace("response.text", "response.items.1.text")
    )
    path.write_text(text)
    made = begun.run("new", "scenario", "demo_text_upper")
    assert_scenario = json.loads((begun.root / created(made)[0]).read_bytes())
    assert assert_scenario["mock_server"]["replies"] == [
        {"body": {"items": [None, {"text": "text"}]}}
    ]
    assert assert_scenario["input"] == {"text": "an example"}
    begun.run(*commands(made)[0]).assert_ok()


def test_the_commands_after_a_project_elsewhere_run_where_one_stands(project: Project) -> None:
    (project.root / "work").mkdir()
    made = project.run("-C", "work", "new", "project", "a shop")
    for words in commands(made):
        project.run(*words).assert_ok()
    assert (project.root / "work/a shop/.cogcli/episodes").is_dir()


def test_a_second_binding_of_a_capability_says_how_one_is_chosen(shop: Project) -> None:
    words = (
        "--from-openapi",
        "openapi.json",
        "--operation",
        "me",
        "--base-url",
        "http://127.0.0.1:1",
    )
    shop.capability(
        "shop.order.me",
        "me",
        inputs="{}",
        outputs="{result: {type: object}}",
        request="{}",
        response="{}",
    )
    shop.services("def me() -> dict[str, object]:\n    return {}\n")
    made = shop.run("new", "binding", "shop.order.me", *words).assert_ok()
    assert commands(made)[0] == ["bindings", "explain", "shop.order.me"]


# -- what is there already, and what no spec may hold ---------------------------------------------------------------


def test_a_service_that_is_made_anew_keeps_its_address(shop: Project) -> None:
    words = (*ALL[:2], "mine.shop", *ALL[3:-2])
    shop.run(*words, "--base-url", "http://127.0.0.1:1").assert_ok()
    shop.run(*words, "--force").assert_ok()
    file = shop.root / "services/local/mine-shop.yaml"
    assert 'base_url: "http://127.0.0.1:1"' in file.read_text()
    shop.run(*words, "--force", "--base-url", "http://127.0.0.1:2").assert_ok()
    assert 'base_url: "http://127.0.0.1:2"' in file.read_text()


@pytest.mark.sampled(24)
def test_words_with_characters_that_no_spec_may_hold_are_written_without_them(
    begun: Project,
) -> None:
    bell = "be\x07ll"
    value = {
        "type": "string",
        "description": bell,
        "default": bell,
        "title": bell,
        "$comment": bell,
    }
    inner = {"type": "object", "properties": {"note": value}}
    reply = {"type": "object", "required": ["text"], "properties": {"text": value, "inner": inner}}
    parameter = {"name": "id", "in": "query", "schema": value, "description": bell}
    operation = {
        "operationId": "ring", "summary": bell, "parameters": [parameter],
        "responses": {"200": {"description": bell, "content": {"application/json": {"schema": reply}}}},
    }  # fmt: skip
    document = {
        "openapi": "3.1.0", "info": {"title": bell, "version": "1"},
        "servers": [{"url": "https://bells.example"}], "paths": {"/ring": {"get": operation}},
    }  # fmt: skip
    begun.write("bells.json", json.dumps(document))
    result = begun.run(
        "new", "binding", "bell.tower.ring", "--from-openapi", "bells.json"
    ).assert_ok()
    assert not result.err.startswith("error")
    capability = begun.run("capabilities", "show", "bell.tower.ring", "--json").json["spec"]
    assert capability["description"] == "bell"
    assert capability["inputs"]["id"]["description"] == "bell"
    begun.run("validate").assert_ok()


def test_a_reply_that_differs_from_status_to_status_is_no_required_output(begun: Project) -> None:
    def reply(kind: str) -> dict[str, Any]:
        content = {"application/json": {"schema": {"type": kind}}}
        return {"description": "One of two.", "content": content}

    responses = {"200": reply("string"), "202": reply("integer")}
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Jobs", "version": "1"},
        "servers": [{"url": "https://jobs.example"}],
        "paths": {
            "/job": {"get": {"operationId": "getJob", "summary": "A job.", "responses": responses}}
        },
    }
    begun.write("jobs.json", json.dumps(document))
    begun.run("new", "binding", "jobs.job.get", "--from-openapi", "jobs.json").assert_ok()
    capability = begun.run("capabilities", "show", "jobs.job.get", "--json").json["spec"]
    assert not capability["outputs"]["result"].get("required")


def test_a_file_where_a_folder_has_to_be_is_told_so(begun: Project) -> None:
    begun.write("capabilities", "")
    refused = begun.run("new", "capability", "a.b.c", "--json").assert_exit(3).json["error"]
    assert refused["code"] == "env.disk"
    assert refused["hint"] == "a file stands where a folder has to be: move it away"
