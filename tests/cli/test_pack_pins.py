"""`pack pin`, and what a bare id of a pack stands for (docs/reference/pack.md#pins)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support.project import Project

pytestmark = pytest.mark.sampled(12)

DESK = Path(__file__).parents[2] / "docs/examples/support-desk"
PACK, ID = "support-desk@4.0.0", "support-desk"
FILE = "packs/support-desk/4.0.0.yaml"
TOML = "# ours\nmax_workers = 2 # few\n"


@pytest.fixture
def desk(project: Project) -> Project:
    shutil.copytree(
        DESK,
        project.root,
        dirs_exist_ok=True,
        ignore=shutil.ignore_patterns("__pycache__", ".cogcli"),
    )
    project.write("cogcli.toml", TOML)
    return project


def _version(desk: Project, version: str, **change: str) -> str:
    """Another version of the pack, with one text of it changed; its reference with its hash."""
    text = (desk.root / FILE).read_text().replace("pack_version: 4.0.0", f"pack_version: {version}")
    for old, new in change.items():
        assert old in text
        text = text.replace(old, new)
    desk.write(f"packs/support-desk/{version}.yaml", text.encode())
    return desk.run("pack", "hash", f"support-desk@{version}").assert_ok().out.strip()


@pytest.mark.sampled(24)
def test_a_version_is_promoted_and_its_bare_id_works_wherever_a_pack_is_named(
    desk: Project,
) -> None:
    reference = desk.run("pack", "hash", PACK).assert_ok().out.strip()
    pinned = desk.run("pack", "pin", PACK).assert_ok()
    assert pinned.out.strip() == reference
    assert f"cogcli pack pin {ID} --remove" in pinned.err
    version = reference.partition("@")[2]
    assert (desk.root / "cogcli.toml").read_text() == f'{TOML}\n[packs.pins]\n{ID} = "{version}"\n'
    desk.write("data.json", json.dumps({"request": {"intent": "support.refund"}, "order": {}}))
    for line in (
        ("pack", "check"),
        ("pack", "hash"),
        ("policy", "test"),
        ("context", "compile", "--message", "refund", "--pack"),
    ):
        desk.run(*line, ID).assert_ok()
    desk.run(
        "policy", "eval", ID, "--capability", "payments.refund", "--data", "data.json"
    ).assert_exit(4)
    run = (
        "run",
        "support.refund",
        "-p",
        "order_id=ord_881",
        "--pack",
        ID,
        "--intent",
        "support.refund",
    )
    desk.run(*run, "--user", "cust_7", "--json").assert_exit(5)
    log = next(desk.root.rglob("events.jsonl"))
    desk.run("agent", "invoke", "requests/needs-finance.json", "--pack", ID).assert_exit(5)
    desk.run("memory", "recall", "refund", "--user", "cust_7", "--pack", ID).assert_ok()
    started = json.loads(log.read_text().splitlines()[0])["payload"]
    assert (started["policy"]["pack"], started["pins"]["policy"]) == (reference, reference)


def test_a_bare_id_without_a_pin_stands_for_nothing(desk: Project) -> None:
    refused = desk.run("pack", "hash", ID, "--json").assert_exit(3).json["error"]
    assert (refused["code"], refused["next"]) == ("pack.unpinned", [f"cogcli pack pin {PACK}"])
    desk.run("pack", "pin", PACK).assert_ok()
    assert (
        desk.run("pack", "hash", "suport-desk", "--json").assert_exit(3).json["error"]["code"]
        == "pack.unknown"
    )


def test_each_environment_has_pins_of_its_own(desk: Project) -> None:
    _version(desk, "4.1.0")
    desk.run("pack", "pin", PACK, "--env", "prod").assert_ok()
    desk.run("pack", "pin", "support-desk@4.1.0").assert_ok()
    assert desk.run("pack", "hash", ID).assert_ok().out.startswith("support-desk@4.1.0#")
    desk.env["COGCLI_ENV"] = "prod"
    assert desk.run("pack", "hash", ID).assert_ok().out.startswith("support-desk@4.0.0#")
    desk.env["COGCLI_ENV"] = "test"
    refused = desk.run("pack", "hash", ID, "--json").assert_exit(3).json["error"]
    assert refused["next"] == ["cogcli pack pin support-desk@4.1.0 --env test"]
    desk.env["COGCLI_ENV"] = "no such name"
    desk.run("pack", "hash", ID).assert_exit(2)
    desk.run("pack", "pin", PACK, "--env", "no such name").assert_exit(2)


def test_the_undo_of_a_promotion_runs_as_printed(desk: Project) -> None:
    _version(desk, "4.1.0")
    desk.run("pack", "pin", PACK).assert_ok()
    before = (desk.root / "cogcli.toml").read_text()
    printed = desk.run("pack", "pin", "support-desk@4.1.0").assert_ok().err
    undo = next(line.partition("cogcli ")[2] for line in printed.splitlines() if "undo: " in line)
    desk.run(*undo.split()).assert_ok()
    assert (desk.root / "cogcli.toml").read_text() == before
    again = desk.run("pack", "pin", PACK, "--json").assert_ok().json["pin"]
    assert (again["written"], again["before"]) == (False, again["reference"])
    desk.run("pack", "pin", ID, "--remove").assert_ok()
    assert (desk.root / "cogcli.toml").read_text() == f"{TOML}\n[packs.pins]\n"


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("gate: GATE_FINANCE_APPROVAL}", "gate: GATE_FINANC_APPROVAL}", "pack.reference"),
        ("{var: args.amount}, 200]", "{var: args.amount}, 250]", "policy.test"),
    ],
)
def test_what_fails_its_checks_is_not_promoted(
    desk: Project, old: str, new: str, code: str
) -> None:
    text = (desk.root / FILE).read_text()
    (desk.root / FILE).write_text(text.replace(old, new))
    assert desk.run("pack", "pin", PACK, "--json").assert_exit(1).json["error"]["code"] == code
    assert (desk.root / "cogcli.toml").read_text() == TOML


def test_a_pinned_pack_that_was_changed_is_another_one(desk: Project) -> None:
    desk.run("pack", "pin", PACK).assert_ok()
    text = (desk.root / FILE).read_text()
    (desk.root / FILE).write_text(
        text.replace("Refunds within 30 days.", "Refunds within 40 days.")
    )
    for line in (("pack", "hash", ID), ("policy", "test", ID)):
        assert desk.run(*line, "--json").assert_exit(3).json["error"]["code"] == "pack.mismatch"
    run = (
        "run",
        "support.refund",
        "-p",
        "order_id=ord_881",
        "--intent",
        "support.refund",
        "--json",
    )
    assert desk.run(*run, "--pack", ID).assert_exit(3).json["error"]["code"] == "pack.mismatch"
    desk.run(*run, "--pack", PACK, "--user", "cust_7").assert_exit(5)


def test_of_two_layers_with_other_bytes_only_the_hash_tells_which(desk: Project) -> None:
    own = desk.run("pack", "hash", PACK).assert_ok().out.strip()
    text = (desk.root / FILE).read_text()
    other = desk.write(f"other/{FILE}", text.encode())
    both = ("--registry", "other")
    desk.run("pack", "hash", PACK, *both).assert_ok()
    other.write_text(text.replace("Refunds within 30 days.", "Refunds within 40 days."))
    theirs = desk.run("pack", "hash", f"other/{FILE}", *both).assert_ok().out.strip()
    assert own != theirs
    run = (
        "run",
        "support.refund",
        "-p",
        "order_id=ord_881",
        "--intent",
        "support.refund",
        "--user",
        "cust_7",
    )
    for line in (("pack", "hash"), (*run, "--pack")):
        refused = desk.run(*line, PACK, *both, "--json").assert_exit(3).json["error"]
        assert refused["code"] == "pack.mismatch"
        assert own in refused["hint"]
    for reference in (own, theirs):
        assert desk.run("pack", "hash", reference, *both).assert_ok().out.strip() == reference
        paused = desk.run(*run, "--pack", reference, *both, "--json").assert_exit(5)
        started = next(desk.root.rglob(paused.json["episode_id"])) / "events.jsonl"
        first = json.loads(started.read_text().splitlines()[0])["payload"]
        assert first["pins"]["policy"] == reference
        answer = ("--approve", "GATE_FINANCE_APPROVAL", "--by", "ann:finance")
        desk.run("resume", paused.json["episode_id"], *answer, *both).assert_ok()
        desk.run("replay", paused.json["episode_id"], *both).assert_ok()


def test_pins_of_a_project_that_is_not_trusted_do_not_count(desk: Project) -> None:
    desk.run("pack", "pin", PACK).assert_ok()
    del desk.env["COGCLI_TRUST_PROJECT"]
    refused = desk.run("pack", "hash", ID, "--json").assert_exit(3).json["error"]
    assert (refused["code"], refused["next"][0]) == ("pack.unpinned", "cogcli config trust")
    own = desk.home / ".config/cogcli/config.toml"
    own.parent.mkdir(parents=True)
    own.write_text(f'[packs.pins]\n{ID} = "4.0.0"\n')
    desk.run("pack", "hash", ID).assert_ok()


@pytest.mark.parametrize(
    "wrong", ['pins = "x"', "pins.desk = 4", 'pins.desk = "4"', 'env.prod = "x"', "other = 1"]
)
def test_a_pin_that_is_none_is_told_with_its_place(desk: Project, wrong: str) -> None:
    desk.write("cogcli.toml", f"[packs]\n{wrong}\n")
    refused = desk.run("pack", "hash", PACK, "--json").assert_exit(3).json["error"]
    assert (refused["code"], refused["line"]) == ("config.key", 1)


def test_pins_are_shown_with_where_they_come_from(desk: Project) -> None:
    desk.run("pack", "pin", PACK).assert_ok()
    shown = desk.run("config", "show", "packs", "--json").assert_ok().json["settings"]["packs"]
    assert shown["value"][ID].startswith("4.0.0#sha256:")
    assert shown["origin"] == "cogcli.toml:4"


def test_a_pin_needs_a_project_and_a_reference(desk: Project) -> None:
    desk.run("pack", "pin", FILE).assert_exit(2)
    desk.run("pack", "pin", "support-desk@9.9.9").assert_exit(3)
    desk.run("pack", "pin", PACK, "--remove").assert_exit(2)
    assert "not pinned" in desk.run("pack", "pin", ID, "--remove").assert_ok().err
