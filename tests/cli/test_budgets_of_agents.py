"""Budgets of an agent's run: time of each phase, costs, time of the run, through the installed command
(docs/reference/pack.md#budgets)."""

from __future__ import annotations

import json
from math import ceil
from typing import Any

import pytest
from support.agent_desk import ask, document, episode_of, payloads
from support.project import Project, Result

from cogcli.declarations.pack_spec import PHASES

STATUS_OF_RUN = {"denied": "vetoed", "failed": "error"}


def looks(desk: Project, *prices: str, delay_ms: int = 0) -> None:
    """Let the scripted model of the project answer about an order."""
    replies = [{"json": {"response": "It is on its way."}, "delay_ms": delay_ms}]
    desk.write("models/looks.yaml", json.dumps({"replies": replies}).encode())
    lines = ("[model]", 'adapter = "scripted"', 'name = "models/looks.yaml"', *prices)
    desk.write("cogcli.toml", "\n".join(lines).encode() + b"\n")


def invoke(desk: Project, *more: str) -> Result:
    asked = ("--message", "Where is order ord_881?", "--pack", "support-desk@4.0.0")
    return desk.run("agent", "invoke", *asked, *more, "--json")


def used(desk: Project) -> dict[str, int]:
    found: dict[str, int] = document(desk.episode, "decision")["budget"]["used"]
    return found


def assert_same_again(desk: Project) -> None:
    desk.run("verify", "@last").assert_ok()
    desk.run("replay", "@last").assert_ok()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("phase", PHASES)
def test_a_phase_that_takes_too_long_asks_a_person(desk: Project, phase: str) -> None:
    looks(desk)
    late = invoke(desk, "--budget", f"stage_latency_ms.{phase}=0").assert_exit(5)
    reason = f"budget_exceeded:latency:{phase}"
    assert reason in late.json["error"]["message"]
    assert payloads(desk.episode, "critic.scored")[-1]["verdict"] == "escalate"
    assert_same_again(desk)
    approve = ("resume", "@last", "--approve", "GATE_OPERATOR", "--by", "ann", "--json")
    result = desk.run(*approve).assert_ok()
    assert result.json["outputs"]["response"] == "It is on its way."
    (reflected,) = payloads(desk.episode, "reflection.recorded")[-1:]
    assert tuple(reflected["stage_ms"]) == PHASES
    kept = {each: used(desk)[f"stage_latency_ms.{each}"] for each in PHASES}
    assert kept == reflected["stage_ms"]
    assert kept[phase] > 0
    assert_same_again(desk)


def test_a_rejection_of_a_late_end_denies(desk: Project) -> None:
    looks(desk)
    invoke(desk, "--budget", "stage_latency_ms.consolidate=0").assert_exit(5)
    reject = ("resume", "@last", "--reject", "GATE_OPERATOR", "--by", "ann", "--json")
    assert desk.run(*reject).assert_exit(4).json["decision"]["status"] == "denied"
    assert_same_again(desk)


def test_the_time_in_which_a_run_waits_is_no_time_of_a_phase(desk: Project) -> None:
    def at(seconds: int) -> dict[str, str]:
        return {"COGCLI_FAKE_CLOCK": str(1_800_000_000 + seconds)}

    desk.run("agent", "invoke", "requests/needs-finance.json", env=at(0)).assert_exit(5)
    approve = ("resume", "@last", "--approve", "GATE_FINANCE_APPROVAL", "--by", "ann:finance")
    desk.run(*approve, env=at(3600)).assert_ok()
    assert all(used(desk)[f"stage_latency_ms.{phase}"] < 1_800_000 for phase in PHASES)
    (state,) = payloads(desk.episode, "functional_state.captured")
    assert state["budget_pressure"] < 1
    assert_same_again(desk)


def test_what_a_model_costs_is_charged(desk: Project) -> None:
    looks(desk, "price_in = 2.5", "price_out = 10")
    invoke(desk, "--budget", "cost_microusd=1000000").assert_ok()
    (answered,) = payloads(desk.episode, "model.answered")
    usage = answered["usage"]
    cost = ceil(usage["tokens_in"] * 2.5 + usage["tokens_out"] * 10)
    assert used(desk)["cost_microusd"] == cost > 0
    summary = document(desk.episode, "summary")["budgets"]["cost_microusd"]
    assert summary == {"limit": 1000000, "used": cost}
    assert_same_again(desk)


def test_a_model_that_would_cost_too_much_is_not_asked(desk: Project) -> None:
    looks(desk, "price_in = 2.5", "price_out = 10")
    result = invoke(desk, "--budget", "cost_microusd=100").assert_exit(4)
    decision: dict[str, Any] = result.json["decision"]
    assert decision["status_reason"] == "budget_exceeded:cost_microusd"
    assert payloads(desk.episode, "model.requested") == []
    assert_same_again(desk)


@pytest.mark.parametrize("prices", [(), ("price_in = 2.5",)])
def test_a_limit_of_costs_needs_prices(desk: Project, prices: tuple[str, ...]) -> None:
    looks(desk, *prices)
    refused = invoke(desk, "--budget", "cost_microusd=100").assert_exit(2)
    assert refused.json["error"]["expected"].startswith("price_in and price_out")
    assert not list(desk.root.rglob("events.jsonl"))
    other = ("--model", "scripted:models/other.yaml", "--budget", "cost_microusd=100")
    desk.write("models/other.yaml", (desk.root / "models/looks.yaml").read_bytes())
    looks(desk, "price_in = 2.5", "price_out = 10")
    invoke(desk, *other).assert_exit(2)  # the prices are those of another model


def test_prices_are_numbers_from_zero_on(desk: Project) -> None:
    looks(desk, "price_in = 0", "price_out = 0")
    invoke(desk, "--budget", "cost_microusd=0").assert_ok()
    assert used(desk)["cost_microusd"] == 0
    looks(desk, "price_in = -1")
    assert "expected a number from 0" in invoke(desk).assert_exit(3).err.replace("\n", " ")


@pytest.mark.parametrize(
    ("flags", "code", "status"),
    [
        (("--budget", "wall_clock_ms=400"), 4, ("denied", "budget_exceeded:wall_clock_ms")),
        (("--timeout", "0.4"), 6, ("failed", "run.timeout")),
    ],
)
def test_time_that_is_gone_while_a_model_thinks(
    desk: Project, flags: tuple[str, ...], code: int, status: tuple[str, str]
) -> None:
    looks(desk, delay_ms=20_000)
    result = invoke(desk, *flags).assert_exit(code)
    decision = result.json["decision"]
    assert (decision["status"], decision["status_reason"]) == status
    assert result.json["status"] == STATUS_OF_RUN[status[0]]
    state = json.loads((episode_of(desk, result) / "state.json").read_text())
    assert state["outcomes"]["status"] == result.json["status"]
    if code == 4:
        assert used(desk)["wall_clock_ms"] >= 400
        assert payloads(desk.episode, "budget.exceeded")[-1]["key"] == "wall_clock_ms"
    assert_same_again(desk)


def test_the_run_of_a_pack_has_no_budget_that_does_nothing(desk: Project) -> None:
    for key in ("stage_latency_ms.think", "cost", "tokens"):
        refused = ask(desk, "needs-finance", "--budget", f"{key}=1").assert_exit(2)
        assert "no budget" in refused.json["error"]["message"]
