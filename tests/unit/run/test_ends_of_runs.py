"""Every run that began has exactly one end where its root has one, whatever it was doing then; else it has none."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.runner import Gate, ScriptedRunner, gives, member, raises
from fakes.runs import RUN_ID, Ran, Running, engine_for, request
from fakes.specs import capability, skill, step
from support.waiting import wait_until

from cogcli.base.calls import PageNotice, SampleNotice, ServiceNotice
from cogcli.base.errors import EffectInDoubtError, ServerFaultError
from cogcli.run.engine.run import execute

READ, FAILS, CONFIRMED = (
    capability("c.read"),
    capability("c.fails"),
    capability("c.confirmed", safety={"requires_confirmation": True}),
)
LOST, STUCK, BUG = (
    capability("c.lost", effect="effect"),
    capability("c.stuck", effect="effect"),
    capability("c.bug"),
)


def wait(name: str, uses: str) -> dict[str, Any]:
    return step(name, uses, output={"y": "outputs.y"}, depends_on=[])


WAITS = {
    "in doubt": [wait("deep", "c.lost")],
    "in doubt beside what is cancelled": [wait("deep", "c.lost"), wait("slow", "c.read")],
    "in doubt past its limit of time": [wait("deep", "c.lost"), wait("slow", "c.read")],
    "in doubt, cut off": [wait("deep", "c.stuck"), wait("slow", "c.read")],
    "waiting for a yes": [wait("deep", "c.confirmed")],
    "waiting for a yes beside what is cancelled": [
        wait("deep", "c.confirmed"),
        wait("slow", "c.read"),
    ],
    "a bug": [wait("deep", "c.bug")],
}
"""What goes on in the nested run when its root ends."""

SHAPES: dict[str, dict[str, Any]] = {
    "a step": {},
    "an item": {"foreach": {"items": "[1, 2]", "max_parallel": 2}},
    "a round": {"while": {"condition": "true", "max_iterations": 2}},
    "a target": {
        "scatter": {"capabilities": [{"name": "t", "uses": "skill:test.inner"}], "merge": "collect"}
    },
    "nested in nested": {},
}


class Scene:
    """A run in which one step waits in a nested run, until the step beside it fails."""

    def __init__(self, what: str, shape: str, **options: Any) -> None:
        self.slow, self.stuck, self.failing = Gate(y=1), Gate(y=1), Gate(y=1)
        self.fails = True
        runner = ScriptedRunner(
            {
                "c.read": self.slow,
                "c.lost": raises(
                    lambda: EffectInDoubtError("effect.in-doubt", "who knows", left=True)
                ),
                "c.stuck": self.stuck,
                "c.confirmed": gives(y=1),
                "c.bug": self._meet_a_bug,
                "c.fails": [self._fail],
            }
        )
        runner.members["c.stuck"] = (member("b", timeout=0.3),)
        more = dict(SHAPES[shape])
        if what == "in doubt past its limit of time":
            more["timeout"] = 0.2
        inner = skill(*WAITS[what], id="test.inner", outputs="y")
        middle = skill(
            step("n", "skill:test.inner", output={"y": "outputs.y"}), id="test.middle", outputs="y"
        )
        uses = "skill:test.middle" if shape == "nested in nested" else "skill:test.inner"
        nest = step("nest", "_scatter" if shape == "a target" else uses, depends_on=[], **more)
        main = skill(
            step("f", "c.fails", depends_on=[]), nest, step("z", "c.read", depends_on=["f"])
        )
        self.running = Running(
            main,
            runner,
            READ,
            FAILS,
            CONFIRMED,
            LOST,
            STUCK,
            BUG,
            nested=[inner, middle],
            **options,
        )

    def _fail(self, given: Any) -> Any:
        self.failing.entered.set()
        self.failing.open.wait(60)
        if not self.fails:
            return {"y": 1}
        raise ServerFaultError("call.server-error", "boom", left=True)

    def _meet_a_bug(self, given: Any) -> Any:
        # A bug ends the whole run. A failing step that has not begun by then would be skipped.
        self.failing.entered.wait(60)
        raise KeyError("bug")

    def result(self) -> Ran:
        try:
            return self.running.result()
        finally:
            for gate in (self.slow, self.stuck, self.failing):
                gate.open.set()


def ends_of(result: Ran) -> tuple[list[str], list[str]]:
    """The runs that began and those that ended, in the order of the log."""
    events = result.sink.events
    begun = [event.run_id or "" for event in events if event.event_type == "run.started"]
    return begun, [event.run_id or "" for event in events if event.event_type == "run.terminated"]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("what", WAITS)
def test_a_run_nested_in_one_that_ended_by_a_failure_beside_it_has_one_end(
    what: str, shape: str
) -> None:
    scene = Scene(what, shape)
    assert scene.failing.entered.wait(60)
    scene.failing.open.set()
    result = scene.result()
    begun, ended = ends_of(result)
    assert result.outcome.status == "error"
    assert len(begun) > 1
    assert sorted(ended) == sorted(begun)
    assert ended[-1] == begun[0], "the root ends last"


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("what", [what for what in WAITS if what != "a bug"])
def test_a_run_nested_in_one_that_waits_has_no_end(what: str, shape: str) -> None:
    scene = Scene(what, shape)
    scene.fails = False
    for gate in (scene.failing, scene.slow):
        gate.open.set()
    result = scene.result()
    assert result.outcome.status == "pending"
    assert ends_of(result)[1] == []


@pytest.mark.parametrize("signals", [1, 2])
@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_signal_ends_a_nested_run_only_with_its_root(
    shape: str, closed: bool, signals: int
) -> None:
    """A run that is closed ends though an effect is in doubt; one that is stopped waits."""
    scene = Scene("in doubt, cut off", shape)
    scene.running.engine.waits_in_doubt = not closed
    assert scene.failing.entered.wait(60)
    wait_until(lambda: "c.stuck" in [each.capability_id for each in scene.running.runner.attempts])
    for _ in range(signals):
        scene.running.interrupt()
    scene.slow.open.set()
    scene.fails = False
    scene.failing.open.set()
    result = scene.result()
    begun, ended = ends_of(result)
    assert result.outcome.status == ("aborted" if closed else "pending")
    assert sorted(ended) == (sorted(begun) if closed else [])


def test_a_nested_run_that_waits_ends_before_the_step_that_another_target_won() -> None:
    """What waited was one of several; with another's answer nobody is asked any more."""
    inner = skill(wait("deep", "c.confirmed"), id="test.inner", outputs="y")
    targets = [{"name": "waits", "uses": "skill:test.inner"}, {"name": "wins", "uses": "c.read"}]
    one = {"capabilities": targets, "merge": "first_success", "max_parallel": 1}
    runner = ScriptedRunner({"c.confirmed": gives(y=1), "c.read": gives(y=2)})
    result = Running(
        skill(step("s", "_scatter", scatter=one)), runner, READ, CONFIRMED, nested=[inner]
    ).result()
    begun, ended = ends_of(result)
    assert (result.outcome.status, sorted(ended)) == ("ok", sorted(begun))
    kinds = [(event.step_id or "", str(event.event_type)) for event in result.sink.events]
    assert kinds.index(("s#waits", "run.terminated")) < kinds.index(("s", "step.completed"))


class LateRunner(ScriptedRunner):
    """Services that report something when they are closed: what an abandoned call did, and that they stopped."""

    engine: Any = None

    def close(self, grace: float) -> None:
        super().close(grace)
        sample = SampleNotice(
            RUN_ID, "first", "c.read", "b", "asks", 1, 1, None, None, 5, "call.timeout", "late"
        )
        page = PageNotice(RUN_ID, "first", 1, 2, 10, 20, "https://h.example", 200, 5, 5)
        started = ServiceNotice("asks", "mcp", RUN_ID, "first")
        stopped = ServiceNotice("asks", "mcp")
        self.engine._service_changes.extend([sample, page, started, stopped])


def test_after_the_end_of_a_run_services_stop_and_no_call_reports_anything() -> None:
    runner = LateRunner({"c.read": [gives(y=1)]})
    made = skill(wait("first", "c.read"))
    engine = runner.engine = engine_for(runner, [READ], [made])
    execute(engine, engine.plan_of(made.id), request(), RUN_ID)
    names = [str(event.event_type) for event in engine.sink.events]
    assert names[names.index("run.terminated") + 1 :] == ["service.stopped"]
