"""`context explain` and `context diff`, through the command (docs/reference/pack.md#placements)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support import foreign_tool
from support.project import Project, Result

pytestmark = pytest.mark.sampled(8)

DESK = Path(__file__).parents[2] / "docs/examples/support-desk"
FACTS = (
    {
        "subject": "order:ord_881",
        "predicate": "carrier",
        "value": "dhl",
        "observed_at": "2000-01-01T00:00:00Z",
    },
    {"subject": "order:ord_881", "predicate": "channel", "value": "web", "trust": "untrusted"},
    {"subject": "order:ord_881", "predicate": "note", "value": "fragile"},
)

NONE: dict[str, Any] = {"edges": [], "memories": [], "snapshot_ref": "kg_x"}


@pytest.fixture
def desk(project: Project) -> Project:
    shutil.copytree(
        DESK,
        project.root,
        dirs_exist_ok=True,
        ignore=shutil.ignore_patterns("__pycache__", ".cogcli"),
    )
    now = "2999-01-01T00:00:00Z"
    common = {"evidence_ref": "crm/1", "observed_at": now, "trust": "verified", "tenant_id": "acme"}
    lines = [json.dumps({**common, **fact}) for fact in FACTS]
    project.write("facts.jsonl", "\n".join(lines) + "\n")
    project.run("knowledge", "import", "facts.jsonl").assert_ok()
    return project


def _invoke(desk: Project, name: str, code: int) -> Path:
    result = desk.run("agent", "invoke", f"requests/{name}.json", "--json").assert_exit(code)
    return next(desk.root.rglob(result.json["episode_id"]))


def _explain(desk: Project, *words: str) -> Any:
    return desk.run("context", "explain", *words, "--json").assert_ok().json["context"]


def _why(desk: Project, word: str) -> list[tuple[str, str, str]]:
    found = _explain(desk, "@last", "--why", word)["placements"]
    return [(each["status"], each["stage"], each["reason"]) for each in found]


def test_each_word_of_a_turn_gets_its_answer(desk: Project) -> None:
    _invoke(desk, "needs-finance", 5)
    assert _why(desk, "orders.lookup") == [("in", "assembly", "allowed")]
    assert _why(desk, "payments.refund") == [("in", "assembly", "deferred")]
    assert _why(desk, "order.age_days") == [("out", "evidence", "missing")]
    assert _why(desk, "order.carrier") == [("out", "evidence", "stale")]
    assert _why(desk, "order.channel") == [("out", "evidence", "low_trust")]
    assert _why(desk, "order.note") == [("in", "assembly", "hops:1")]
    assert len(_why(desk, "order:ord_881")) == len(FACTS)
    assert _why(desk, "business:returns") == [("in", "assembly", "of_pack")]


def test_a_capability_that_is_kept_from_the_model_says_which_check_and_rule_did_so(
    desk: Project,
) -> None:
    refused = desk.run(
        "agent", "invoke", "requests/needs-finance.json", "--safety-mode", "read_only"
    ).assert_exit(1)
    assert refused.code == 1
    (placed,) = _explain(desk, "@last", "--why", "payments.refund")["placements"]
    assert (placed["status"], placed["stage"], placed["reason"], placed["check"]) == (
        "out", "policy", "above_safety_mode", "permission"
    )  # fmt: skip
    _invoke(desk, "allowed", 0)
    assert _why(desk, "payments.refund") == [("out", "tools", "not_in_intent")]


def test_all_of_it_is_what_the_episode_recorded(desk: Project) -> None:
    directory = _invoke(desk, "needs-finance", 5)
    recorded = json.loads((directory / "context.json").read_text())["turns"][0]
    found = _explain(desk, "@last")
    assert {name: found[name] for name in recorded["context_ledger"]} == recorded["context_ledger"]
    assert found["redactions"] == recorded["redactions"]
    assert found["budget_report"] == recorded["budget_report"]
    assert (found["turn"], found["turns"], found["intent"]) == (1, 1, "support.refund")
    blocks = {block["block_id"] for block in recorded["compiled_prompt"]["context_blocks"]}
    assert {each["block_id"] for each in found["placements"] if each["status"] == "in"} - {
        ""
    } == blocks
    text = desk.installed("context", "explain", "@last").assert_ok().out
    for stage in recorded["context_ledger"]["stage_hashes"]:
        assert f"\n  {stage} " in text


def test_nothing_but_the_episode_is_read(desk: Project) -> None:
    directory = _invoke(desk, "needs-finance", 5)
    before = _explain(desk, "@last")
    kept = desk.root.parent / "kept" / directory.name
    shutil.copytree(directory, kept)
    for name in ("packs", "capabilities", "bindings", "services", "cogcli.toml", ".cogcli"):
        path = desk.root / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert _explain(desk, str(kept)) == before
    assert not list(desk.root.rglob("*.db"))


def test_a_context_has_no_value_that_is_secret_by_its_name(desk: Project) -> None:
    desk.run(
        "agent", "invoke", "requests/needs-finance.json", "--param", "password=hunter2", "--json"
    ).assert_exit(5)
    desk.run("replay", "@last").assert_ok()
    assert _explain(desk, "@last")["intent"] == "support.refund"
    assert not [
        path for path in desk.root.rglob("*") if path.is_file() and b"hunter2" in path.read_bytes()
    ]


def test_an_unknown_word_says_what_may_have_been_meant(desk: Project) -> None:
    _invoke(desk, "needs-finance", 5)
    result = desk.run("context", "explain", "@last", "--why", "payment.refund").assert_exit(2)
    assert "did you mean `payments.refund`" in result.err
    assert "--why payments.refund" in result.err
    unheard = desk.run("context", "explain", "@last", "--why", "zzz").assert_exit(2)
    assert "what the stores did not give" in unheard.err


@pytest.mark.parametrize(
    ("word", "command"),
    [("mp_0123456789abcdef", "memory ls --why mp_0123456789abcdef --tenant acme"),
     ("order:ord_2", "knowledge query order:ord_2 --tenant acme")],
)  # fmt: skip
def test_what_a_turn_was_not_given_is_looked_up_in_the_stores(
    desk: Project, word: str, command: str
) -> None:
    _invoke(desk, "refused", 4)
    result = desk.run("context", "explain", "@last", "--why", word, "--json").assert_exit(2)
    assert f"cogcli {command}" in result.json["error"]["next"]
    assert desk.run(*command.split()).code in (
        0,
        2,
    )  # it parses; whether there is such a memory is another question


@pytest.mark.sampled(16)
def test_two_contexts_are_compared_block_by_block(desk: Project) -> None:
    _invoke(desk, "allowed", 0)
    _invoke(desk, "needs-finance", 5)
    found = desk.run("context", "diff", "@last~1", "@last#1", "--json").assert_ok().json["diff"]
    assert found["same"] is False
    assert [
        (each["change"], each["name"], each["stage"], each["reason"]) for each in found["blocks"]
    ] == [
        ("in", "policy.eval", "tools", "not_in_intent"),
        ("in", "payments.refund", "tools", "not_in_intent"),
    ]
    assert {"request_hash", "context_hash"} < {each["member"] for each in found["ledger"]}
    desk.run("context", "diff", "@last~1", "@last", "--exit-code").assert_exit(1)
    same = desk.run("context", "diff", "@last", "@last#1", "--exit-code").assert_ok()
    assert "nothing differs" in same.out
    assert found["contexts"][0].endswith("#1")


@pytest.mark.parametrize(
    "words",
    [("explain", "{}", "--turn", "2"), ("explain", "{}#7"), ("explain", "{}", "--turn", "0"),
     ("explain", "{}#"), ("diff", "{}"), ("diff", "{}", "{}#9"), ("diff", "{}", "{}#0"), ("explain", "")],
)  # fmt: skip
def test_a_turn_that_there_is_not_is_asked_wrongly(desk: Project, words: tuple[str, ...]) -> None:
    name = _invoke(desk, "refused", 4).name
    desk.run("context", *(word.format(name) for word in words)).assert_exit(2)


def test_the_run_of_a_skill_has_no_context(demo: Project) -> None:
    demo.run("run", "demo.greet", "-p", "text=hi").assert_ok()
    for words in (("explain", "@last"), ("diff", "@last", "@last")):
        result = demo.run("context", *words).assert_exit(2)
        assert "a run of `demo.greet`" in result.err
        assert "next: cogcli trace ep_" in result.err


def test_another_tools_episode_has_no_context(project: Project) -> None:
    runs = project.root / "runs"
    foreign_tool.write(runs / "ep_other", foreign_tool.release_notes("ep_other"))
    result = project.run("context", "explain", str(runs / "ep_other")).assert_exit(2)
    assert "another tool's episode" in result.err


def _log(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "events.jsonl").read_text().splitlines()]


def _altered(desk: Project, directory: Path, change: Any) -> Result:
    """What `context explain` says of a copy whose events were changed, without checksums that would tell so."""
    events = _log(directory)
    change(events)
    copy = desk.root.parent / "altered" / directory.name
    shutil.copytree(directory, copy)
    lines = [
        json.dumps({n: v for n, v in event.items() if n != "sum"}, separators=(",", ":"))
        for event in events
    ]
    (copy / "events.jsonl").write_text("\n".join(lines) + "\n")
    return desk.run("context", "explain", str(copy), "--json")


def _of(events: list[dict[str, Any]], kind: str) -> Any:
    return next(event["payload"] for event in events if event["event_type"] == kind)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "change",
    [
        lambda events: _of(events, "run.started")["agent"].update(fetched=NONE),
        lambda events: _of(events, "run.started")["agent"].update(fetched={}),
        lambda events: _of(events, "run.started").update(agent={"request": 1}),
        lambda events: _of(events, "run.started").update(agent=[1]),
        lambda events: _of(events, "run.started")["agent"]["request"].update(message=1),
        lambda events: _of(events, "run.started")["pins"].update(specs_blob="sha256:" + "0" * 64),
        lambda events: _of(events, "run.started")["pins"].update(specs_blob=None),
        lambda events: _of(events, "run.started")["policy"].update(pack="other@1.0.0"),
        lambda events: _of(events, "run.started")["policy"].update(budget={"turns": 10**9}),
        lambda events: _of(events, "context.compiled").update(turn="one", context=3),
        lambda events: _of(events, "context.compiled")["context"]["context_ledger"].update(context_hash="sha256:0"),
        lambda events: _of(events, "context.compiled")["context"]["context_ledger"].update(stage_hashes=7),
        lambda events: events.__delitem__(0),
    ],
)  # fmt: skip
def test_a_log_that_does_not_give_its_contexts_again_is_unreadable(
    desk: Project, change: Any
) -> None:
    result = _altered(desk, _invoke(desk, "refused", 4), change)
    result.assert_exit(3)
    assert result.json["error"]["code"] == "episode.unreadable"
    assert result.json["error"]["next"]
    assert "internal" not in result.out


def test_a_run_that_was_stopped_before_its_context_says_so(desk: Project) -> None:
    directory = _invoke(desk, "refused", 4)

    def cut(events: list[dict[str, Any]]) -> None:
        del events[3:]

    result = _altered(desk, directory, cut).assert_exit(2)
    assert "stopped before its first context" in result.json["error"]["message"]


def test_a_context_under_specs_that_changed_since_says_why_it_is_not_made_again(
    desk: Project,
) -> None:
    def changed(events: list[dict[str, Any]]) -> None:
        events[2] |= {
            "event_type": "run.resumed",
            "payload": {"changed_specs": ["pack:support-desk@4.0.0"]},
        }
        ledger = _of(events, "context.compiled")["context"]["context_ledger"]
        ledger["stage_hashes"] = {**ledger["stage_hashes"], "tools": "sha256:0"}

    result = _altered(desk, _invoke(desk, "refused", 4), changed).assert_exit(3)
    assert "continued with changed specs" in result.json["error"]["message"]
    assert "from `tools` on" in result.json["error"]["found"]
