"""A project that was accepted, and changed since: nothing of the change is used until it is accepted, too.

Each attack edits one file of an accepted project. A server on loopback, or a function of the project, shows whether the
edited file decided anything.
"""

from __future__ import annotations

import json
import re
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.project import Project, Result
from support.raw_server import RawServer, serving
from support.terminal import Terminal

pytestmark = pytest.mark.sampled(8)

DESK = Path(__file__).parents[2] / "docs/examples/support-desk"
TOKEN = "canary-of-a-token-0123456789"
TEXT = "{text: {type: string, required: true}}"
SEND = "capabilities/bank.money.send.yaml"
DOCUMENT = "services/bank.json"


@pytest.fixture
def bank() -> Iterator[RawServer]:
    with serving(lambda c: c.reply(b'{"text": "done"}')) as server:
        yield server


@pytest.fixture
def shop(tmp_path: Path, bank: RawServer) -> Project:
    """An accepted project: a skill that pays after a confirmation, one that looks an order up with a token."""
    project = Project(tmp_path)
    del project.env["COGCLI_TRUST_PROJECT"]
    project.env["BANK_TOKEN"] = TOKEN
    project.write("cogcli.toml", "max_workers = 2\n")
    project.write(
        "services/bank.yaml",
        f"id: bank\nkind: openapi\nbase_url: {bank.url}\nnetwork: private\nspec_ref: bank.json\n"
        "auth_ref: BANK_TOKEN\n",
    )
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    content = {"application/json": {"schema": schema, "example": {"text": "done"}}}
    answer = {"200": {"description": "ok", "content": content}}
    document = {
        "openapi": "3.0.3",
        "info": {"title": "Bank", "version": "1"},
        "paths": {
            "/orders": {"get": {"operationId": "order", "responses": answer}},
            "/payments": {"post": {"operationId": "pay", "responses": answer}},
        },
    }
    project.write(DOCUMENT, json.dumps(document, indent=1))
    guards = "safety: {trust_level: standard, requires_confirmation: true}\n"
    for capability, operation, effects in (
        ("bank.money.send", "pay", f"properties: {{side_effects: true}}\n{guards}"),
        ("bank.order.read", "order", "properties: {side_effects: false}\n"),
    ):
        project.write(
            f"capabilities/{capability}.yaml",
            f'id: {capability}\nversion: "1.0.0"\ndescription: Calls the bank.\ninputs: {{}}\n'
            f"outputs: {TEXT}\n{effects}",
        )
        name = capability.replace(".", "_")
        project.write(
            f"bindings/local/{capability}/{name}.yaml",
            f"id: {name}\ncapability: {capability}\nservice: bank\nprotocol: openapi\noperation: {operation}\n"
            "request: {}\nresponse: {text: response.text}\n",
        )
        project.skill(
            f"bank.{operation}",
            f"- {{id: ask, uses: {capability}, input: {{}}, output: {{text: outputs.text}}}}",
            outputs=TEXT,
        )
    project.run("config", "trust").assert_ok()
    return project


def edit(project: Project, path: str, *changes: tuple[str, str]) -> None:
    text = (project.root / path).read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (project.root / path).write_text(text)


def state(project: Project) -> tuple[str, list[tuple[str, str]]]:
    told = project.run("config", "show", "trust", "--json").assert_ok().json["trust"]
    return told["state"], [(each["change"], each["name"]) for each in told["changes"]]


def assert_refused(result: Result, name: str) -> None:
    """The run was refused, naming the file and the command that accepts it."""
    error = result.assert_exit(3).json["error"]
    assert error["code"] == "service.untrusted"
    assert name in error["message"]
    assert "cogcli config trust" in error["hint"] + " ".join(error["next"])


# -- the attacks ------------------------------------------------------------------------------------------------------


def test_a_capability_without_its_safety_block_pays_nothing(shop: Project, bank: RawServer) -> None:
    shop.run("run", "bank.pay", "--json").assert_exit(5)
    edit(shop, SEND, ("safety: {trust_level: standard, requires_confirmation: true}\n", ""))
    assert_refused(shop.run("run", "bank.pay", "--json"), SEND)
    assert bank.connections == 0
    shop.run("config", "trust", "--yes").assert_ok()
    shop.run("run", "bank.pay", "--json").assert_ok()
    assert bank.connections == 1


def test_an_edited_document_turns_no_get_into_a_delete(shop: Project, bank: RawServer) -> None:
    shop.run("run", "bank.order", "--json").assert_ok()
    (before,) = bank.requests
    assert before.line.startswith("GET /orders")
    assert TOKEN in before.headers["authorization"]
    edit(shop, DOCUMENT, ('"get"', '"delete"'))
    assert_refused(shop.run("run", "bank.order", "--json"), DOCUMENT)
    assert len(bank.requests) == 1


def test_a_rule_of_a_pack_that_no_longer_denies_lets_nobody_approve(tmp_path: Path) -> None:
    project = Project(tmp_path)
    del project.env["COGCLI_TRUST_PROJECT"]
    ignored = shutil.ignore_patterns("__pycache__", ".cogcli")
    shutil.copytree(DESK, project.root, dirs_exist_ok=True, ignore=ignored)
    pack = "packs/support-desk/4.0.0.yaml"
    edit(project, pack, ("order.age_days}, 30]", "order.age_days}, 0]"))
    project.run("config", "trust").assert_ok()
    run = (
        "run", "support.refund", "-p", "order_id=ord_881", "--pack", "support-desk@4.0.0", "--intent",
        "support.refund", "--user", "cust_7", "--json",
    )  # fmt: skip
    project.run(*run).assert_exit(4)
    edit(project, pack, ("{verdict: deny}", "{verdict: allow_with_gate, gate: GATE_OPERATOR}"))
    assert_refused(project.run(*run), pack)
    shown = project.run("config", "trust").assert_exit(2).err
    assert "support-desk@4.0.0: rule refund_window says allow_with_gate, was deny" in shown
    project.run("config", "trust", "--yes").assert_ok()
    project.run(*run).assert_exit(5)


KINDS = {
    "skill": "skills/local/bank/more/skill.yaml",
    "case": "skills/local/bank/pay/tests/one.yaml",
    "capability": "capabilities/bank.more.read.yaml",
    "binding": "bindings/local/bank.order.read/more.yaml",
    "service": "services/more.yaml",
    "policy": "policies/official_default_selection.yaml",
    "pack": "packs/desk/1.0.0.yaml",
    "active": ".agent-skills/active_bindings.json",
    "overrides": ".agent-skills/overrides.yaml",
    "services of the host": ".agent-skills/services.yaml",
    "scenario": "tooling/openapi_scenarios/one.json",
    "lock": "cogcli.lock.json",
    "settings": "cogcli.toml",
    "document": DOCUMENT,
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_each_kind_ends_the_trust_by_each_change_and_is_named(
    shop: Project, kind: str
) -> None:
    path = KINDS[kind]
    file = shop.root / path
    if not file.exists():
        shop.write(path, "{}\n")
        assert state(shop) == ("changed", [("added", path)])
        shop.run("config", "trust", "--yes").assert_ok()
    content = file.read_bytes()
    file.write_bytes(content + b"\n")
    assert state(shop) == ("changed", [("changed", path)])
    file.unlink()
    assert state(shop) == ("changed", [("removed", path)])
    for name in ("one", "two"):
        (shop.root.parent / name).write_bytes(content)
    file.symlink_to(shop.root.parent / "one")
    assert state(shop) == ("changed", [("changed", path)])
    shop.run("config", "trust", "--yes").assert_ok()
    assert state(shop) == ("accepted", [])
    file.unlink()
    file.symlink_to(shop.root.parent / "two")
    assert state(shop) == ("changed", [("changed", path)]), "retargeted"
    told = shop.run("config", "trust").assert_exit(2).err
    assert f"  changed {path}\n    leads to {shop.root.parent}/two\n" in told


def test_the_answers_of_a_scripted_model_are_part_of_what_was_accepted(shop: Project) -> None:
    shop.write("cogcli.toml", '[model]\nadapter = "scripted"\nname = "models/plan.yaml"\n')
    shop.write("models/plan.yaml", "turns: []\n")
    shop.run("config", "trust", "--yes").assert_ok()
    shop.write("models/plan.yaml", "turns: [other]\n")
    assert state(shop) == ("changed", [("changed", "models/plan.yaml")])


def test_links_that_leave_the_project_are_printed_before_they_are_accepted(shop: Project) -> None:
    outside = shop.root.parent / "outside"
    outside.mkdir()
    (shop.root / "policies").symlink_to(outside)
    told = shop.run("config", "trust", "--yes").assert_ok().err
    assert f"leaves the project: policies leads to {outside}\n" in told
    assert "leaves the project: services" not in told


def test_a_renamed_file_is_named_by_both_names(shop: Project) -> None:
    (shop.root / SEND).rename(shop.root / "capabilities/bank.money.sent.yaml")
    changes = [("removed", SEND), ("added", "capabilities/bank.money.sent.yaml")]
    assert state(shop) == ("changed", changes)


def test_an_entry_of_an_earlier_version_trusts_nothing_and_every_screen_says_so(
    shop: Project, bank: RawServer
) -> None:
    store = shop.home / ".config/cogcli/trust.json"
    body = json.loads(store.read_text())
    store.write_text(json.dumps({**body, "schema": "cogcli.trust/2"}))
    assert state(shop) == ("outdated", [])
    refused = shop.run("run", "bank.order", "--json").assert_exit(3).json["error"]
    assert "earlier version" in refused["message"]
    assert bank.connections == 0
    assert "earlier version" in shop.run("doctor").out
    shop.run("config", "trust").assert_ok()
    shop.run("run", "bank.order", "--json").assert_ok()


@pytest.mark.sampled(16)
def test_the_next_command_names_the_file_in_one_line(shop: Project) -> None:
    edit(shop, SEND, (SAFETY, ""))
    for line in (
        ("skills", "ls"),
        ("run", "text.brief", "-p", "text=A word."),
        ("trace", "text.brief", "-p", "text=A."),
    ):
        told = shop.run(*line).assert_ok().err
        assert (
            told.count(
                f"changed since it was accepted (changed {SEND})\nnext: cogcli config trust\n"
            )
            == 1
        )
    warnings = shop.run("skills", "ls", "--json").json["warnings"]
    assert [warning["code"] for warning in warnings] == ["service.untrusted"]
    assert SEND in warnings[0]["message"]


# -- what a change means ----------------------------------------------------------------------------------------------

SAFETY = "safety: {trust_level: standard, requires_confirmation: true}"
PACK = "packs/desk/1.0.0.yaml"
DESK_PACK = """\
contract_meta: {contract_version: "1.0"}
pack_meta: {pack_id: desk, pack_version: 1.0.0, defaults: {safety_mode: read_only}}
policy_layer:
  permissions: [{role: clerk, allow: [bank.order.read]}]
  guardrails: {must_refuse: [{id: cards, phrases: [card], reason: No.}]}
  rules: [{rule_id: no_sending, mode: enforce, if: true, then: {verdict: deny}}]
tooling_layer: {hosts: [a.example]}
"""
TOOL = "services/tool.yaml"
TOOL_TEXT = "id: tool\nkind: mcp\ncommand: ./tool.sh\nargs: [--fast]\nenv: {MODE: plain}\n"
PYTHON = "services/code.yaml"
OVERRIDE = ".agent-skills/capabilities/text.content.translate.yaml"

MEANINGS: list[tuple[str, str, str, str]] = [
    (SEND, SAFETY, "",
     "capability bank.money.send has no safety block any more: it had requires_confirmation, trust_level"),
    (SEND, "requires_confirmation: true", "x-a: 1", "capability bank.money.send no longer requires confirmation"),
    (SEND, "trust_level: standard", "trust_level: sandbox",
     "capability bank.money.send: trust_level sandbox, was standard"),
    (SEND, "side_effects: true", "side_effects: false", "capability bank.money.send now declares no side effects"),
    (PACK, "verdict: deny", "verdict: allow_with_gate, gate: G",
     "desk@1.0.0: rule no_sending says allow_with_gate, was deny"),
    (PACK, "verdict: deny", "verdict: allow", "desk@1.0.0: rule no_sending says allow, was deny"),
    (PACK, "mode: enforce", "mode: shadow", "desk@1.0.0: rule no_sending is no longer enforced"),
    (PACK, "if: true", "if: false", "desk@1.0.0: rule no_sending (deny) has other conditions"),
    (PACK, "rules: [{rule_id: no_sending", "x-rules: [{rule_id: no_sending",
     "desk@1.0.0: rule no_sending is gone, was deny"),
    (PACK, "allow: [bank.order.read]", "allow: [bank.order.read, bank.money.send]",
     "desk@1.0.0: role clerk: may now call bank.money.send"),
    (PACK, "id: cards", "id: other", "desk@1.0.0: must_refuse cards: the guardrail is gone"),
    (PACK, "hosts: [a.example]", "hosts: [a.example, evil.example]", "desk@1.0.0: calls may reach evil.example"),
    (PACK, "safety_mode: read_only", "safety_mode: destructive",
     "desk@1.0.0: safety_mode destructive, was read_only"),
    ("services/bank.yaml", "http://", "http://evil.example:80/", "service bank: new host evil.example:80"),
    ("services/bank.yaml", "auth_ref: BANK_TOKEN", "auth_ref: OTHER_TOKEN",
     "service bank: new variable or secret OTHER_TOKEN"),
    ("services/bank.yaml", "auth_ref: BANK_TOKEN", 'metadata: {headers: {X: "${AWS_KEY}"}}',
     "service bank: new variable or secret AWS_KEY"),
    (TOOL, "./tool.sh", "./other.sh", "service tool: new program ./other.sh --fast, was ./tool.sh --fast"),
    (TOOL, "plain", '"${AWS_KEY}"', "service tool: new variable or secret AWS_KEY"),
    (PYTHON, "module: code", "module: evil", "service code: new module evil, was code"),
    (DOCUMENT, '"get"', '"delete"', f"{DOCUMENT}: operation order is DELETE /orders, was GET /orders"),
    ("bindings/local/bank.order.read/bank_order_read.yaml", "operation: order", "operation: pay",
     "binding bank_order_read calls pay of service bank, was order of service bank"),
    ("skills/local/bank/order/skill.yaml", "bank.order.read", "bank.money.send",
     "skill bank.order: now calls bank.money.send"),
    ("cogcli.toml", "max_workers = 2", "builtin = false", "builtin False, was not set"),
    ("cogcli.toml", "max_workers = 2", '[model]\nbase_url = "https://evil.example/v1"',
     "model.base_url https://evil.example/v1, was not set"),
    (".agent-skills/active_bindings.json", "bank_order_read", "other",
     "capability bank.order.read is called through other, was bank_order_read"),
]  # fmt: skip


@pytest.fixture
def rich(shop: Project) -> Project:
    """The accepted project with a pack, a program, a module and a choice of its host."""
    shop.write(PACK, DESK_PACK)
    shop.write(TOOL, TOOL_TEXT)
    shop.write(PYTHON, "id: code\nkind: pythoncall\nmodule: code\n")
    shop.write(".agent-skills/active_bindings.json", '{"bank.order.read": "bank_order_read"}\n')
    shop.run("config", "trust", "--yes").assert_ok()
    return shop


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("path", "old", "new", "meaning"), MEANINGS)
def test_what_a_change_means_is_shown_before_it_is_accepted(
    rich: Project, path: str, old: str, new: str, meaning: str
) -> None:
    edit(rich, path, (old, new))
    shown = rich.run("config", "trust").assert_exit(2)
    assert f"  changed {path}\n" in shown.err
    assert f"    {meaning}\n" in shown.err
    assert state(rich)[0] == "changed", "nothing was accepted"
    accepted = rich.run("config", "trust", "--yes", "--json").assert_ok().json
    (change,) = [each for each in accepted["changes"] if each["name"] == path]
    assert meaning in change["meaning"]
    assert state(rich) == ("accepted", [])


def test_a_stricter_and_a_renamed_declaration_mean_nothing(rich: Project) -> None:
    edit(rich, SEND, ("trust_level: standard", "trust_level: privileged"))
    (rich.root / "bindings/local/bank.order.read/bank_order_read.yaml").rename(
        rich.root / "bindings/local/bank.order.read/renamed.yaml"
    )
    changes = rich.run("config", "trust", "--yes", "--json").assert_ok().json["changes"]
    assert [change["meaning"] for change in changes] == [[], [], []]


def test_a_capability_that_replaces_a_shipped_one_with_less_safety_is_shown(rich: Project) -> None:
    """The shipped declaration stands in for the one that the project did not have."""
    rich.write(
        "capabilities/code.snippet.execute.yaml",
        f'id: code.snippet.execute\nversion: "1.0.0"\ndescription: Runs.\ninputs: {TEXT}\noutputs: {TEXT}\n',
    )
    shown = rich.run("config", "trust").assert_exit(2).err
    assert "    capability code.snippet.execute has no safety block any more" in shown


def test_a_weakened_declaration_is_not_hidden_by_a_stricter_one_of_the_same_name(
    rich: Project,
) -> None:
    other = ".agent-skills/capabilities/bank.money.send.yaml"
    rich.write(other, (rich.root / SEND).read_text())
    rich.run("config", "trust", "--yes").assert_ok()
    edit(rich, SEND, (SAFETY, ""))
    edit(rich, other, ("trust_level: standard", "trust_level: privileged"))
    changes = rich.run("config", "trust", "--yes", "--json").assert_ok().json["changes"]
    assert {change["name"]: bool(change["meaning"]) for change in changes} == {
        SEND: True,
        other: False,
    }


def test_a_capability_that_is_gone_is_named_with_its_guards(rich: Project) -> None:
    (rich.root / SEND).unlink()
    shown = rich.run("config", "trust").assert_exit(2).err
    assert (
        f"  removed {SEND}\n    capability bank.money.send is gone, with its safety block\n"
        in shown
    )


def test_a_change_of_many_meanings_is_cut_and_a_large_text_is_not_shown(rich: Project) -> None:
    operations = {f"/p{n}": {"get": {"operationId": f"o{n}"}} for n in range(90)}
    rich.write(
        DOCUMENT, json.dumps({"openapi": "3.0.3", "paths": operations, "x-more": "x" * 600_000})
    )
    shown = rich.run("config", "trust", "--diff").assert_exit(2).err
    assert shown.endswith("next: cogcli config trust --yes\n"), "all of it was shown already"
    summary = shown.partition("since it was accepted: ")[2]
    assert summary.count("operation") == 39
    assert "not shown: 51 meanings, 0 files; all of it: cogcli config trust --diff\n" in summary
    assert shown.count(": operation o") == 129
    (line,) = [
        line
        for line in shown.splitlines()
        if line.startswith(f"{DOCUMENT}: too large to be shown; all: ")
    ]
    done = subprocess.run(
        line.partition("; all: ")[2], shell=True, cwd=rich.root, capture_output=True, check=False
    )
    assert done.stdout.count(b"x-more") == 1


def test_a_flood_of_harmless_changes_hides_no_grave_one(rich: Project) -> None:
    """Each file of the flood comes before the grave ones by name, and each kind has more than is shown."""
    urls = " ".join(f"https://h{n}.example/" for n in range(60))
    rich.write("skills/a/own/flood/skill.yaml", f"id: own.flood\ndescription: {urls}\nsteps: []\n")
    for number in range(60):
        rich.write(f".agent-skills/a{number:02}.yaml", "# nothing\n")
    rich.write(
        DOCUMENT,
        json.dumps({"paths": {f"/p{n}": {"get": {"operationId": f"o{n}"}} for n in range(60)}}),
    )
    with (rich.root / "cogcli.toml").open("a") as file:
        file.write("".join(f"x-a{n} = 1\n" for n in range(60)))
    edit(rich, SEND, (SAFETY, ""))
    rich.write("services/z.yaml", "id: z\nkind: openapi\nbase_url: https://evil.example/\n")
    with (rich.root / SEND).open("a") as file:
        file.write("# harmless\n" * 3000 + "# the end\n")
    shown = rich.run("config", "trust", "--diff").assert_exit(2).err
    lines = shown.partition("since it was accepted: ")[2].splitlines()
    assert "no safety block any more" in lines[2]
    assert "service z: new host evil.example" in "\n".join(lines[3:8])
    assert len(lines) < 50
    left = re.search(
        r"not shown: (\d+) meanings, (\d+) files; all of it: cogcli config trust --diff\n", shown
    )
    assert left is not None
    assert int(left[1]) > 100
    assert int(left[2]) >= 60
    (line,) = [line for line in shown.splitlines() if " more lines; all: " in line]
    command = line.partition("; all: ")[2]
    assert (
        "+# the end"
        in subprocess.run(
            command, shell=True, cwd=rich.root, capture_output=True, text=True, check=False
        ).stdout
    )
    changes = rich.run("config", "trust", "--json").assert_exit(2).json["changes"]
    assert sum(len(change["meaning"]) for change in changes) > 180, "a machine reads all of them"


def test_the_changed_text_is_shown_without_secrets_and_without_escapes(rich: Project) -> None:
    edit(
        rich,
        TOOL,
        ("args: [--fast]", 'args: [--api-key=canary-9876543210, "\x1b[2J"]'.replace("\x1b", "\\e")),
    )
    with (rich.root / SEND).open("a") as file:
        file.write("# \x1b]0;owned\x07 \u202e token: canary-9876543210\n")
        file.write("# https://user:canary-9876543210@a.example/\n")
    shown = rich.run("config", "trust", "--diff").assert_exit(2).err
    assert f"--- accepted/{TOOL}\n+++ now/{TOOL}\n" in shown
    assert "-args: [--fast]\n" in shown
    assert "+args: [--api-key=" in shown
    assert "canary" not in shown
    assert "\x1b]" not in shown
    assert "\u202e" not in shown


def test_only_accepting_a_change_needs_a_yes_without_a_terminal(shop: Project) -> None:
    shop.run("config", "trust").assert_ok()  # unchanged
    edit(shop, "cogcli.toml", ("2", "3"))
    refused = shop.run("config", "trust").assert_exit(2)
    assert "cogcli config trust --yes" in refused.err
    assert "since it was accepted: 1 change\n  changed cogcli.toml\n" in refused.err
    assert state(shop) == ("changed", [("changed", "cogcli.toml")])
    shop.run("config", "trust", "--yes").assert_ok()
    assert state(shop) == ("accepted", [])
    shop.run("config", "trust", "--revoke").assert_ok()
    shop.run("config", "trust").assert_ok()  # a first one needs none


@pytest.mark.parametrize(("typed", "after"), [("y", "accepted"), ("n", "changed")])
def test_a_terminal_asks(shop: Project, typed: str, after: str) -> None:
    edit(shop, SEND, (SAFETY, ""))
    terminal = Terminal(shop, "config", "trust", columns=110)
    terminal.send(typed, "accept 1 change? [y/N] ›")
    final = terminal.finish()
    assert "has no safety block any more" in final
    assert state(shop)[0] == after
    assert ("nothing was accepted" in final) is (after == "changed")


def test_a_file_that_changes_while_the_question_waits_is_not_accepted(shop: Project) -> None:
    edit(shop, "cogcli.toml", ("2", "3"))
    terminal = Terminal(shop, "config", "trust", columns=110)
    terminal.until_asked("accept 1 change? [y/N] ›")
    edit(shop, SEND, (SAFETY, ""))
    terminal.send("y")
    terminal.finish()
    assert state(shop) == ("changed", [("changed", SEND)])


# -- the copies -------------------------------------------------------------------------------------------------------


def copies(project: Project) -> list[Path]:
    folder = project.home / ".local/state/cogcli/trust"
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_copies_are_private_follow_what_is_accepted_and_go_with_the_trust(shop: Project) -> None:
    kept = copies(shop)
    wanted = {path.read_bytes() for path in shop.root.rglob("*") if path.is_file()}
    assert {path.read_bytes() for path in kept} == wanted
    for path in kept:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    edit(shop, "cogcli.toml", ("2", "3"))
    shop.run("config", "trust", "--yes").assert_ok()
    assert {path.read_bytes() for path in copies(shop)} == wanted - {b"max_workers = 2\n"} | {
        b"max_workers = 3\n"
    }
    shop.run("config", "trust", "--revoke").assert_ok()
    assert copies(shop) == []


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"safety: {}")])
def test_a_copy_that_is_gone_or_damaged_is_not_believed(
    shop: Project, damage: Callable[[Path], object]
) -> None:
    for path in copies(shop):
        damage(path)
    edit(shop, SEND, (SAFETY, ""))
    shown = shop.run("config", "trust").assert_exit(2).err
    assert "no copy of the accepted file is left: what has changed in it is not known" in shown


# -- commands that write ----------------------------------------------------------------------------------------------


@pytest.fixture
def writing(shop: Project) -> Project:
    """The accepted project with something for each command that writes."""
    shop.write(
        "bindings/local/bank.order.read/second.yaml",
        (shop.root / "bindings/local/bank.order.read/bank_order_read.yaml")
        .read_text()
        .replace("id: bank_order_read", "id: second"),
    )
    shop.write(
        "policies/official_default_selection.yaml", "defaults: {bank.order.read: bank_order_read}\n"
    )
    shop.write(
        "in/notes/SKILL.md", "---\nname: notes\ndescription: Writes notes.\n---\nWrite notes.\n"
    )
    shop.write("in/notes/part.md", "more\n")
    paths = {
        "/things": {
            "get": {"operationId": "listThings", "responses": {"200": {"description": "ok"}}}
        }
    }
    info = {"title": "Things", "version": "1"}
    server = [{"url": "https://things.example"}]
    shop.write(
        "api.json",
        json.dumps({"openapi": "3.0.3", "info": info, "servers": server, "paths": paths}),
    )
    shop.run("config", "trust", "--yes").assert_ok()
    return shop


WRITERS: dict[str, list[tuple[str, ...]]] = {
    "activate": [("bindings", "activate", "bank.order.read", "second")],
    "skill": [("new", "skill", "own.first"), ("new", "skill", "own.second", "--like", "bank.pay")],
    "capability": [("new", "capability", "own.thing.read")],
    "pack": [
        ("new", "pack", "own"),
        ("pack", "pin", "own@1.0.0"),
        ("pack", "pin", "own", "--remove"),
    ],
    "binding": [
        (
            "new",
            "binding",
            "own.thing.list",
            "--from-openapi",
            "api.json",
            "--operation",
            "listThings",
        )
    ],
    "scenario": [("new", "scenario", "bank_order_read")],
    "case": [("run", "bank.order"), ("test", "--record", "@last")],
    "import": [("skills", "import", "in/notes", "--capability", "text.content.summarize")],
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("writer", WRITERS)
def test_what_a_command_of_the_user_writes_is_accepted_with_the_project(
    writing: Project, writer: str
) -> None:
    before = {path for path in writing.root.rglob("*") if path.is_file()}
    for line in WRITERS[writer]:
        writing.run(*line).assert_ok()
        assert state(writing) == ("accepted", []), line
    new = {
        path for path in writing.root.rglob("*") if path.is_file() and ".cogcli" not in path.parts
    } - before
    assert new, "nothing was written"
    assert {path.read_bytes() for path in new} <= {path.read_bytes() for path in copies(writing)}


@pytest.mark.sampled(16)
def test_nothing_else_is_accepted_with_what_a_command_writes(writing: Project) -> None:
    writing.run("new", "capability", "own.thing.read").assert_ok()
    edit(writing, SEND, (SAFETY, ""))
    writing.run("new", "capability", "own.thing.write").assert_ok()
    changes = [("changed", SEND), ("added", "capabilities/own.thing.write.yaml")]
    assert state(writing) == ("changed", changes), "the trust had ended before the command began"
    writing.run("config", "trust", "--revoke").assert_ok()
    writing.run("new", "capability", "own.thing.copy").assert_ok()
    assert state(writing) == ("untrusted", [])


def test_fixes_and_accepted_outputs_keep_the_trust(shop: Project) -> None:
    shop.skill("own.sum", '- {id: a, uses: text.content.normalize, inputt: {text: "x"}, output: {text: outputs.text}}',
               outputs=TEXT)  # fmt: skip
    shop.write(
        "skills/local/own/tidy/tests/one.yaml",
        "inputs: {}\nexpect: {outputs: {text: wrong}}\n",
    )
    shop.skill(
        "own.tidy",
        "- {id: a, uses: text.content.normalize, input: {text: \"'a  b'\"}, output: {text: outputs.text}}",
        outputs=TEXT,
    )
    shop.run("config", "trust", "--yes").assert_ok()
    shop.run("validate", "skills", "--fix")
    assert "inputt" not in (shop.root / "skills/local/own/sum/skill.yaml").read_text()
    assert state(shop) == ("accepted", [])
    shop.run("test", "own.tidy", "--update").assert_ok()
    assert "wrong" not in (shop.root / "skills/local/own/tidy/tests/one.yaml").read_text()
    assert state(shop) == ("accepted", [])


def test_an_accepted_document_of_a_service_keeps_the_trust(tmp_path: Path) -> None:
    paths = {
        "/things": {"get": {"operationId": "things", "responses": {"200": {"description": "ok"}}}}
    }
    document: dict[str, Any] = {
        "openapi": "3.0.3",
        "info": {"title": "T", "version": "1"},
        "paths": paths,
    }
    with serving(lambda c: c.reply(json.dumps(document).encode())) as server:
        project = Project(tmp_path)
        del project.env["COGCLI_TRUST_PROJECT"]
        project.write("cogcli.toml", "")
        project.write(
            "services/things.yaml",
            f"id: things\nkind: openapi\nbase_url: {server.url}\nnetwork: private\nspec_ref: things.json\n",
        )
        project.write("services/things.json", json.dumps({**document, "paths": {}}))
        project.run("config", "trust").assert_ok()
        project.run("services", "refresh", "things", "--accept").assert_ok()
        assert "things" in (project.root / "services/things.json").read_text()
        assert state(project) == ("accepted", [])


def test_a_damaged_state_directory_is_an_error_that_names_it(shop: Project) -> None:
    folder = shop.home / ".local/state/cogcli/trust"
    subprocess.run(["rm", "-rf", str(folder)], check=True)
    folder.write_text("a file")
    edit(shop, "cogcli.toml", ("2", "3"))
    refused = shop.run("config", "trust", "--yes", "--json").assert_exit(3).json["error"]
    assert refused["code"] == "env.disk"
    assert state(shop)[0] == "changed"
