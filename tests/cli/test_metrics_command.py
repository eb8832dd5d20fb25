"""`metrics` over recorded episodes, through the command (docs/reference/agent-run.md#metrics)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support import foreign_tool
from support.project import Project

pytestmark = pytest.mark.sampled(10)

DESK = Path(__file__).parents[2] / "docs/examples/support-desk"
PACK = "packs/support-desk/4.0.0.yaml"
REQUESTS = {"allowed": 0, "needs-finance": 5, "refused": 4, "escalates": 5, "over-budget": 4}


@pytest.fixture
def desk(project: Project) -> Project:
    shutil.copytree(
        DESK,
        project.root,
        dirs_exist_ok=True,
        ignore=shutil.ignore_patterns("__pycache__", ".cogcli"),
    )
    return project


def _invoke(desk: Project, name: str) -> Path:
    result = desk.run("agent", "invoke", f"requests/{name}.json", "--json").assert_exit(
        REQUESTS[name]
    )
    return next(desk.root.rglob(result.json["episode_id"]))


def _measures(desk: Project, *words: str) -> dict[tuple[str, str | None], tuple[float, int]]:
    found = desk.run("metrics", *words, "--json").assert_ok().json["metrics"]
    return {
        (e["metric"], e["intent"]): (e["numerator"], e["denominator"]) for e in found["measures"]
    }


def _retarget(desk: Project, targets: str) -> None:
    file = desk.root / PACK
    text = file.read_text()
    before = "targets: [{intent: support.refund, metric: policy_compliance_rate, min: 1.0}]"
    assert before in text
    file.write_text(text.replace(before, f"targets: {targets}"))


@pytest.mark.sampled(20)
def test_all_seven_over_the_requests_of_the_example(desk: Project) -> None:
    for name in REQUESTS:
        _invoke(desk, name)
    desk.run("agent", "invoke", "--message", "Sing", "--pack", "support-desk@4.0.0").assert_exit(4)
    desk.run("resume", "@last~4", "--approve", "payments.refund", "--by", "ann:finance").assert_ok()
    found = _measures(desk)
    assert found["plan_verification_pass_rate", "support.refund"] == (1, 2)
    assert found["plan_verification_pass_rate", "support.order_status"] == (1, 1)
    assert found["plan_verification_pass_rate", "unknown_intent"] == (0, 0)
    assert found["tool_success_rate", None] == (4, 4)
    assert found["recovery_rate", None] == (0, 0)
    assert found["evidence_backed_rate", None] == (2, 2)
    assert found["policy_compliance_rate", "support.refund"] == (3, 3)
    milliseconds, runs = found["mean_time_to_safe_completion_ms", None]
    assert runs == 2
    took = [json.loads(path.read_text()) for path in desk.root.rglob("summary.json")]
    assert milliseconds == sum(each["duration_ms"] for each in took if each["status"] == "ok")
    assert found["loop_guard_trip_rate", None] == (0, 6)
    only = _measures(desk, "--intent", "support.order_status")
    assert only["loop_guard_trip_rate", None] == (0, 1)
    assert _measures(desk, "--pack", "support-desk", "--since", "1h")[
        "loop_guard_trip_rate", None
    ] == (0, 6)
    for pack in ("support-desk@4.0.1", "support", "support-desk@4", "support-desk@4.0.0#sha256:0"):
        assert _measures(desk, "--pack", pack)["loop_guard_trip_rate", None] == (0, 0)
    newest = _measures(desk, "@last~1", "@last~1", "@last~5")
    assert newest["loop_guard_trip_rate", None] == (0, 2)


def test_nothing_recorded_measures_nothing(desk: Project) -> None:
    assert set(_measures(desk).values()) == {(0, 0)}
    found = desk.run("metrics", "--json").assert_ok().json["metrics"]
    assert [each["value"] for each in found["measures"]] == [None] * 7
    checked = desk.run("metrics", "--check").assert_ok()
    assert "no target" in checked.err


def test_a_target_of_the_pinned_pack_is_missed(desk: Project) -> None:
    _invoke(desk, "over-budget")
    met = desk.run("metrics", "--check").assert_ok()
    assert "unmeasured: policy_compliance_rate of support.refund" in met.err
    _retarget(desk, "[{metric: plan_verification_pass_rate, min: 0.5}]")
    directory = _invoke(desk, "over-budget")
    result = desk.run("metrics", "--check", "--json").assert_exit(1)
    assert result.json["error"]["code"] == "metrics.missed"
    assert result.json["error"]["next"] == ["cogcli explain metrics.missed"]
    statuses = [each["status"] for each in result.json["metrics"]["targets"]]
    assert sorted(statuses) == ["missed", "unmeasured"]
    assert "plan_verification_pass_rate" in desk.installed("metrics").assert_ok().out
    _retarget_back = (desk.root / PACK).read_text()
    (desk.root / PACK).unlink()  # what a run pinned counts, not what is there now
    desk.run("metrics", directory.name, "--check").assert_exit(1)
    (desk.root / PACK).write_text(_retarget_back)


@pytest.mark.parametrize(
    "target",
    [
        "{metric: recovery_rates, min: 1}",
        "{metric: recovery_rate, min: 1, intent: support.refunds}",
    ],
)
def test_a_target_of_nothing_is_a_problem_of_the_pack(desk: Project, target: str) -> None:
    _retarget(desk, f"[{target}]")
    result = desk.run("pack", "check", PACK).assert_exit(1)
    assert "did you mean" in result.out + result.err


def test_the_run_of_a_skill_is_counted_by_nothing(demo: Project) -> None:
    demo.run("run", "demo.greet", "-p", "text=hi").assert_ok()
    assert set(_measures(demo).values()) == {(0, 0)}
    result = demo.run("metrics", "@last").assert_exit(2)
    assert "not a run of an agent" in result.err


def test_another_tools_episodes_are_passed_over_and_refused_by_name(desk: Project) -> None:
    _invoke(desk, "allowed")
    runs = next(desk.root.rglob("ep_*")).parent
    foreign_tool.write(runs / "ep_other", foreign_tool.release_notes("ep_other"))
    assert _measures(desk, "--check")["loop_guard_trip_rate", None] == (0, 1)
    desk.run("metrics", "ep_other").assert_exit(2)


def _without_sum(event: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name != "sum"}


def _alter(directory: Path, change: Any) -> None:
    path = directory / "events.jsonl"
    events = [json.loads(line) for line in path.read_text().splitlines()]
    change(events)
    path.chmod(0o600)
    lines = [
        e if isinstance(e, str) else json.dumps(_without_sum(e), separators=(",", ":"))
        for e in events
    ]
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    "change",
    [
        lambda events: events[0]["payload"]["pins"].update(specs_blob="sha256:" + "0" * 64),
        lambda events: events[0]["payload"].update(agent={"request": {}, "limits": []}, policy={"pack": "a@1"}),
        lambda events: events[0]["payload"]["policy"].update(safety_mode="godlike"),
        lambda events: next(e for e in events if e["event_type"] == "critic.verified").update(payload={}),
        lambda events: next(e for e in events if e["event_type"] == "context.compiled").update(payload=[1]),
        lambda events: events.insert(2, "{"),
    ],
)  # fmt: skip
def test_a_run_that_cannot_be_read_is_told_and_fails_a_check(desk: Project, change: Any) -> None:
    _invoke(desk, "allowed")
    _alter(_invoke(desk, "over-budget"), change)
    told = desk.run("metrics", "--json").assert_ok().json
    assert [each["code"] for each in told["warnings"]] == ["episode.unreadable"]
    assert told["metrics"]["runs"] == 1
    for words in (("--check",), ("@last",)):
        failed = desk.run("metrics", *words, "--json").assert_exit(3)
        assert failed.json["error"]["code"] == "episode.unreadable"


def test_a_run_whose_decision_was_taken_out_of_its_log_complied_with_nothing(desk: Project) -> None:
    directory = _invoke(desk, "allowed")

    def without_decisions(events: list[Any]) -> None:
        events[:] = [event for event in events if event["event_type"] != "policy.decided"]

    _alter(directory, without_decisions)
    found = _measures(desk, directory.name)
    assert found["policy_compliance_rate", None] == (0, 1)
    assert found["mean_time_to_safe_completion_ms", None] == (0, 0)


@pytest.mark.parametrize("words", [("--since", "soon"), ("nothing",), ("",), ("--intent",)])
def test_what_is_asked_wrongly(desk: Project, words: tuple[str, ...]) -> None:
    desk.run("metrics", *words).assert_exit(2)


def test_a_target_may_have_a_greatest_value(desk: Project) -> None:
    """Time and trips are better the smaller they are."""
    _retarget(desk, "[{metric: mean_time_to_safe_completion_ms}]")
    checked = desk.run("pack", "check", PACK).assert_exit(1)
    assert "neither `min` nor `max`" in checked.out
    _retarget_again(desk, "completion_ms}", "completion_ms, max: 0.001}")
    _invoke(desk, "allowed")
    missed = desk.run("metrics", "--check", "--json").assert_exit(1)
    (target,) = missed.json["metrics"]["targets"]
    assert (target["status"], target["min"], target["max"]) == ("missed", None, 0.001)
    assert "at most 0.001" in desk.run("metrics", "--check").assert_exit(1).err
    _retarget_again(desk, "max: 0.001", "max: 10000000")
    _invoke(desk, "allowed")
    statuses = (
        desk.run("metrics", "--check", "--json", "@last").assert_ok().json["metrics"]["targets"]
    )
    assert [each["status"] for each in statuses] == ["met"]


def _retarget_again(desk: Project, before: str, after: str) -> None:
    file = desk.root / PACK
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))
