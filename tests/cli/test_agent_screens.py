"""What the commands that take an episode show of the five requests of the support desk."""

from __future__ import annotations

import fcntl
import json
import shlex
from datetime import datetime, timedelta
from typing import Any

import pytest
from support.project import Project

from cogcli.episode.listing.episode_row import read_row

pytestmark = pytest.mark.sampled(10)

CELLS = {
    "run_id", "trace_id", "request", "perception", "attention", "identity", "intent", "judgment", "policy_gate",
    "action", "consolidation", "reflection",
}  # fmt: skip


def _asked(desk: Project, name: str) -> Any:
    return desk.run("agent", "invoke", f"requests/{name}.json")


def test_the_layers_of_a_refund_are_the_documented_cells(desk: Project) -> None:
    _asked(desk, "needs-finance").assert_exit(5)
    (turn,) = desk.run("trace", "--view", "layers", "--json").assert_ok().json["trace"]["layers"]
    assert set(turn) >= CELLS
    assert turn["intent"] == {"name": "support.refund", "task_template": "refund_with_eligibility"}
    assert turn["policy_gate"] == {
        "verdict": "allow_with_gate",
        "approval_gate": "GATE_FINANCE_APPROVAL",
    }
    assert turn["action"] == [
        {"tool": "orders.lookup", "result": "ok"},
        {"tool": "policy.eval", "result": "ok"},
    ]
    tree = desk.run("trace").assert_ok()
    assert "policy: allow_with_gate GATE_FINANCE_APPROVAL by refund_limit" in tree.out
    assert "--approve payments.refund --by $USER:finance" in tree.err
    lines = desk.run("trace", "--view", "layers", "--format", "tsv").assert_ok().out.splitlines()
    assert "1\taction\torders.lookup ok, policy.eval ok" in lines


def test_a_run_without_an_agent_has_no_layers(demo: Project) -> None:
    demo.run("run", "demo.greet", "-p", "text=hi", "-q").assert_ok()
    assert "no agent ran" in demo.run("trace", "--view", "layers").assert_ok().out
    assert demo.run("trace", "--view", "layers", "--json").assert_ok().json["trace"]["layers"] == []


def test_progress_in_a_pipe_is_not_a_line_per_layer(desk: Project) -> None:
    lines = _asked(desk, "allowed").assert_ok().err.splitlines()
    kinds = [line.split()[1] for line in lines if line[:1] == "2"]
    assert not {"layer.completed", "functional_state.captured", "context.compiled"} & set(kinds)
    assert {"candidate.proposed", "critic.verified", "critic.scored", "decision.recorded"} <= set(
        kinds
    )
    events = desk.run("trace", "--view", "events").assert_ok().out
    assert events.count("layer.completed") == 11


@pytest.mark.parametrize(
    ("name", "gate"), [("escalates", "GATE_OPERATOR"), ("needs-finance", "payments.refund")]
)
def test_what_trace_says_to_type_answers_the_request(desk: Project, name: str, gate: str) -> None:
    _asked(desk, name).assert_exit(5)
    commands = [
        line for line in desk.run("trace").assert_ok().err.splitlines() if "--reject" in line
    ]
    words = commands[-1].split("cogcli ")[1].replace("$USER", "ann").split()
    assert words[3] == gate
    desk.run(*words).assert_exit(4)


def test_a_list_shows_what_agents_decided(desk: Project) -> None:
    for name in ("allowed", "refused", "escalates"):
        _asked(desk, name)
    for _ in range(2):
        rows = desk.run("ls", "--json").assert_ok().json["episodes"]
        found = [(row["decision"], row["intent"], row["pack"], row["user"]) for row in rows]
        pack = "support-desk@4.0.0"
        assert found == [
            ("escalated", "support.refund", pack, "cust_7"),
            ("refused", "support.refund", pack, "cust_7"),
            ("completed", "support.order_status", pack, "cust_7"),
        ]
    head = desk.run("ls", "--header").assert_ok().out.splitlines()[0].split("\t")
    assert head[-3:] == ["decision", "intent", "pack"]


def test_a_summary_has_the_decision_and_every_budget(desk: Project) -> None:
    _asked(desk, "over-budget").assert_exit(4)
    episode = next((desk.root / ".cogcli/episodes").glob("ep_*"))
    summary, decision = (
        json.loads((episode / f"{name}.json").read_text()) for name in ("summary", "decision")
    )
    names = ("decision_id", "decision_key", "status", "status_reason", "record_hash", "intent")
    assert summary["decision"] == {name: decision[name] for name in names} | {
        "pack_ref": decision["lineage"]["pack_ref"],
        "user_id": "cust_7",
    }
    budgets = summary["budgets"]
    assert budgets["turns"] == {"limit": 6, "used": 1}
    assert budgets["tool_calls.per_workflow"]["used"] == budgets["tokens.workflow"]["used"] == 0
    assert budgets["tokens.context"] == {"limit": 6000, "used": None}
    assert not {"soft", "heartbeat_ms"} & set(budgets)
    assert budgets["wall_clock_ms"]["limit"] == 300000
    desk.run("verify", "@last").assert_ok()


def test_rerun_names_the_command_that_asks_again(desk: Project) -> None:
    _asked(desk, "allowed").assert_ok()
    asked = ("agent", "invoke", "--message", "Refund order ord_881", "--pack", "support-desk@4.0.0")
    given = (
        "--user",
        "cust_8",
        "--param",
        'note:={"x": 1}',
        "--budget",
        "turns=2",
        "--safety-mode",
        "read_only",
    )
    desk.run(*asked, *given, "--tag", "team=a b", "--timeout", "7").assert_exit(1)
    for command in (("rerun", "@last"), ("rerun", "@last", "--plan"), ("resume", "@last")):
        result = desk.run(*command, "--json").assert_exit(2)
        (line,) = result.json["error"]["next"]
        words = shlex.split(line)
        assert words[0] == "cogcli"
        assert dict(zip(words[3::2], words[4::2], strict=True)) == {
            "--message": "Refund order ord_881", "--pack": "support-desk@4.0.0", "--user": "cust_8",
            "--param": 'note:={"x": 1}', "--budget": "turns=2", "--safety-mode": "read_only", "--tag": "team=a b",
            "--timeout": "7",
        }  # fmt: skip
    desk.run(*words[1:]).assert_exit(1)
    diff = desk.run("diff", "--exit-code", "--json").assert_ok().json["diff"]
    assert diff["same"]
    diff = desk.run("diff", "@last~2", "@last", "--json").assert_ok().json["diff"]
    assert {"intent", "status_reason"} <= {each["name"] for each in diff["decision"]}
    changed = {each["name"]: each["after"] for each in diff["turns"]}
    assert changed["turn 1 action"] == "skipped: safety_mode"
    lines = desk.run("diff", "@last~2", "@last").assert_ok().out.splitlines()
    assert any(line.startswith("  turns     turn 1 action  orders.lookup ok") for line in lines)


def test_state_show_has_the_decision_at_known_paths(desk: Project) -> None:
    _asked(desk, "refused").assert_exit(4)
    for path, value in (("x-decision.status", "refused"), ("links.decision", "decision.json")):
        assert desk.run("state", "show", "--path", path).assert_ok().out == f"{value}\n"
    shown = desk.run("state", "show", env={"COGCLI_FORCE_TTY": "100"}).assert_ok().out
    assert "decision  refused · must_refuse:card · support.refund · dc_" in shown


def test_what_is_asked_of_an_episode_without_steps_is_told(desk: Project) -> None:
    _asked(desk, "refused").assert_exit(4)
    assert "no step began" in desk.run("trace", "--step", "t1").assert_exit(2).err
    assert "context explain" in desk.run("explain", "@last").assert_exit(2).err
    explained = desk.run("policy", "explain", "@last").assert_ok().err
    assert (
        "the pack decided about no call of this run, which ended as refused: must_refuse:card"
        in explained
    )
    next(desk.root.rglob("decision.json")).write_text("{}")
    altered = desk.run("policy", "explain", "@last").assert_ok().err
    assert "which ended as refused" in altered, "the log says so, not the document"
    _asked(desk, "allowed").assert_ok()
    why = desk.run("trace", "--why", "outputs.response").assert_ok().out
    assert why == "outputs.response ← turn 1 (reply of order_status)\n"


COMMANDS = (
    "trace {}", "trace {} --view timeline", "trace {} --view table --format csv", "trace {} --view lineage",
    "trace {} --view layers --format md", "trace {} --view events --full", "trace {} --io", "trace {} --json",
    "trace {} --format mermaid", "trace {} --format dot", "graph {}", "state show {}", "state show {} --check",
    "diff {} @last", "verify {}", "replay {}", "rerun {}", "rerun {} --plan", "resume {}", "gc --pin {}",
    "context explain {}", "policy explain {}", "explain {}", "trace {} --follow", "resume {} --abort", "ls",
)  # fmt: skip
SAYS_NO = {"rerun": (2,), "explain": (2,), "resume": (0, 2, 5, 130)}


@pytest.mark.sampled(20)
@pytest.mark.parametrize(
    "name", ["allowed", "refused", "escalates", "over-budget", "needs-finance"]
)
def test_no_command_breaks_on_the_episode_of_an_agent(desk: Project, name: str) -> None:
    _asked(desk, name)
    for command in COMMANDS:
        words = command.format("@last").split()
        result = desk.run(*words)
        assert result.code in SAYS_NO.get(words[0], (0,)), f"{command}: {result.code}\n{result.err}"
        assert "Traceback" not in result.err
        assert "error[internal" not in result.err


def test_a_run_that_gives_no_sign_of_life_is_stalled(desk: Project) -> None:
    _asked(desk, "allowed").assert_ok()
    (episode,) = (desk.root / ".cogcli/episodes").glob("ep_*")
    lines = (episode / "events.jsonl").read_bytes().splitlines(keepends=True)
    for file in episode.iterdir():
        if file.is_file():
            file.unlink()
    until_call = next(n for n, line in enumerate(lines) if b'"step.started"' in line) + 1
    (episode / "events.jsonl").write_bytes(b"".join(lines[:until_call]))
    started = datetime.fromisoformat(json.loads(lines[0])["timestamp"])
    with (episode / "events.jsonl").open("rb") as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        later = [(started + timedelta(seconds=seconds)) for seconds in (20, 60)]
        row = read_row(episode)
        assert row.status == "running"
        assert [row.is_stalled(at.isoformat().replace("+00:00", "Z")) for at in later] == [
            False,
            True,
        ]
        env = {"COGCLI_FAKE_CLOCK": f"{later[1].timestamp():.0f}"}
        (listed,) = desk.installed("ls", "--json", env=env).assert_ok().json["episodes"]
        assert listed["status"] == "stalled"
        assert (
            desk.installed("trace", "--json", env=env).assert_ok().json["trace"]["status"]
            == "stalled"
        )
        shown = (
            desk.installed("state", "show", env={**env, "COGCLI_FORCE_TTY": "100"}).assert_ok().out
        )
        assert "stalled, no sign of life" in shown
    assert desk.run("ls", "--json").assert_ok().json["episodes"][0]["status"] == "interrupted"
