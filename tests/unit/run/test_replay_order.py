"""Replay follows the order of the log: equal each time, on any machine, without a thread and without waiting.

A handful of replays; `COGCLI_LONG_TESTS=1` replays each episode 200 times beside two busy processes.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from support.sources import PACKAGE, said

from cogcli.base.calls import Answer, Attempt
from cogcli.base.system import SystemClock, SystemIds
from cogcli.declarations.options import RunOptions
from cogcli.protocols import PROTOCOLS
from cogcli.run.launch import Intercept, launch
from cogcli.run.prepare import RunEnvironment, RunRequest, prepare
from cogcli.run.replay import replay
from cogcli.specs.layers import Layer, layers_for
from cogcli.specs.registry import Registry

pytestmark = pytest.mark.sampled(2)

LONG = bool(os.environ.get("COGCLI_LONG_TESTS"))
CAPABILITY = "text.content.normalize"
RACING = [CAPABILITY, "text.language.detect", "text.section.split", "text.readability.score"]
STEPS = 1000 if LONG else 200


def shuffled() -> Intercept:
    """Calls that end in another order than they begin."""
    waits = random.Random(7)

    def answer(attempt: Attempt, send: Callable[[Attempt], Answer]) -> Answer:
        time.sleep(waits.random() / 500)
        return Answer({"text": attempt.input["text"], "removed": 0, "changed": False})

    return answer


def fan_out() -> list[dict[str, Any]]:
    return [step(f"s{n}", f"vars.n{n}", depends_on=[]) for n in range(STEPS)]


def four_ways() -> list[dict[str, Any]]:
    """Four chains that replace one value, then items four at a time and a race of four."""
    steps = []
    for way in "abcd":
        for n in range(5):
            one = step(f"{way}{n}", f"vars.{way}{n}", depends_on=[f"{way}{n - 1}"] if n else [])
            one["output"]["removed"] = "vars.latest"
            one["config"]["merge_strategy"] = "replace"
            steps.append(one)
    items = step("items", "vars.items", depends_on=["a4", "b4", "c4", "d4"])
    items["config"]["foreach"] = {
        "items": "['p', 'q', 'r', 's', 't', 'u']",
        "as": "item",
        "max_parallel": 4,
    }
    race = step("race", "vars.won", depends_on=["items"])
    race["config"]["scatter"] = {"capabilities": RACING, "merge": "first_success"}
    return [*steps, items, race]


def step(id: str, target: str, **config: Any) -> dict[str, Any]:
    return {
        "id": id,
        "uses": CAPABILITY,
        "input": {"text": "inputs.text"},
        "output": {"text": target},
        "config": config,
    }


@pytest.fixture(scope="module", params=[fan_out, four_ways], ids=["fan-out", "four ways"])
def episode(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("order")
    write_skill(root, request.param())
    layers = layers_for(project=None, project_trusted=False, registries=[], distrust="")
    registry = Registry(
        [*layers, Layer("test", str(root), True)], protocols=PROTOCOLS, base=str(root)
    )
    prepared = prepare(
        registry.reach("demo.order"),
        RunRequest("demo.order", {"text": "x"}, RunOptions(durability="none")),
        {},
    )
    environment = RunEnvironment(
        str(root / "runs"), str(root / "state"), {}, SystemClock(), SystemIds(), lambda: registry
    )
    result = launch(environment, prepared, intercept=shuffled())
    assert result.status == "ok", result.error
    return Path(result.directory)


def write_skill(root: Path, steps: list[dict[str, Any]]) -> None:
    folder = root / "skills/local/demo/order"
    folder.mkdir(parents=True)
    skill = {
        "id": "demo.order", "version": "1.0.0", "name": "Order", "description": "Steps side by side.",
        "inputs": {"text": {"type": "string", "required": True}}, "outputs": {}, "steps": steps,
    }  # fmt: skip
    (folder / "skill.yaml").write_bytes(orjson.dumps(skill))


def without_registry() -> Registry:
    return Registry([], protocols=PROTOCOLS, base="")


@contextmanager
def busy() -> Iterator[None]:
    """Two processes that keep two cores busy."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def replays(episode: Path, times: int) -> None:
    for _ in range(times):
        result = replay(episode, without_registry)
        assert result.difference is None, result.difference


def test_a_replay_is_equal_each_time(episode: Path) -> None:
    replays(episode, 5)


@pytest.mark.skipif(not LONG, reason="200 times: COGCLI_LONG_TESTS=1")
@pytest.mark.parametrize("part", range(8))
def test_a_replay_is_equal_each_time_under_load(episode: Path, part: int) -> None:
    """25 of the 200 replays in a part, so that a busy machine is not a failure."""
    with busy():
        replays(episode, 25)


@pytest.fixture
def nothing_to_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread starts, nothing sleeps, and nobody waits for a condition."""

    def refuse(what: str) -> Callable[..., None]:
        def use(*_: object, **__: object) -> None:
            raise AssertionError(f"a replay used {what}")

        return use

    monkeypatch.setattr(threading.Thread, "start", refuse("a thread"))
    monkeypatch.setattr(threading.Condition, "wait", refuse("a condition"))
    monkeypatch.setattr(time, "sleep", refuse("sleep"))


@pytest.mark.usefixtures("nothing_to_wait_for")
def test_a_replay_starts_no_thread_and_waits_for_nothing(episode: Path) -> None:
    replays(episode, 1)


@pytest.mark.usefixtures("nothing_to_wait_for")
@pytest.mark.parametrize("lost", [("step.completed",), ("step.started", "step.completed")])
def test_what_the_log_does_not_have_is_a_difference_at_once(
    episode: Path, tmp_path: Path, lost: tuple[str, ...]
) -> None:
    """A step whose answer, or whose whole call, was taken out of the log."""
    folder = tmp_path / episode.name
    shutil.copytree(episode, folder)
    lines = [orjson.loads(line) for line in (folder / "events.jsonl").read_bytes().splitlines()]
    step = next(
        line["step_id"] for line in reversed(lines) if line["event_type"] == "step.completed"
    )
    kept = [line for line in lines if line.get("step_id") != step or line["event_type"] not in lost]
    (folder / "events.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in kept))
    assert replay(folder, without_registry).difference is not None


def test_no_module_that_orders_events_can_wait() -> None:
    """In the engine `tasks.py` alone waits, for what the threads of `call_threads.py` give."""
    waiting = {"threading", "queue", "asyncio", "select", "signal"}
    for path in [*(PACKAGE / "run").rglob("*.py"), *(PACKAGE / "run/engine").rglob("*.py")]:
        used = {name.partition(".")[0] for name in said(path).modules}
        if path.parent.name == "runs":
            assert not used & {*waiting, "time"}, path
        elif path.name not in ("tasks.py", "call_threads.py"):
            assert not used & waiting, path
            assert ".sleep(" not in path.read_text(encoding="utf-8"), path
