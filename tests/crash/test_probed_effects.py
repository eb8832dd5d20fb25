"""Four effects over four protocols, killed anywhere: a service that can be asked spares people the question.

`COGCLI_LONG_TESTS=1` tries every point; else a sample.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from crash_flows import COGCLI, Done, Flow, Sandbox
from crash_service import Service
from crash_verdicts import LONG, Tell
from crash_zygote import Zygotes
from support.waiting import wait_until

pytestmark = pytest.mark.sampled(8)

PROBED = Path(__file__).resolve().parent / "probed"
FLOW = Flow("protocols", 0)
EFFECTS = ["a", "b", "c", "d"]
IMPORTS = (
    "mcp.client.stdio",
    "cogcli.protocols.mcp.invoker",
    "cogcli.protocols.mcp.session",
    "cogcli.protocols.mcp.stdio",
    "cogcli.protocols.mcp.checks",
    "cogcli.protocols.openrpc.invoker",
    "cogcli.cli.commands.verify",
)
"""What each command here would import itself, else."""


class Bench:
    """A service, its registry with and without probes, and a home that all runs share."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._points: dict[Path, range] = {}
        self.zygotes = Zygotes(imports=IMPORTS)
        self.service = Service()
        self.probed = self.service.registry(PROBED, root / "probed")
        self.mute = self.service.registry(PROBED, root / "mute")
        for file in self.mute.glob("capabilities/*.yaml"):
            lines = file.read_text().splitlines(keepends=True)
            file.write_text("".join(line for line in lines if not line.startswith("probe:")))

    def sandbox(self, name: str, registry: Path) -> Sandbox:
        """A fresh one."""
        place = self.root / f"{registry.name}-{name}"
        sandbox = Sandbox(place, registry, self.service, self.zygotes)
        sandbox.environment["HOME"] = str(self.root / "home")
        return sandbox

    def points(self, registry: Path) -> range:
        """The numbers of the calls at which a run can be killed."""
        if registry in self._points:
            return self._points[registry]
        sandbox = self.sandbox("calls", registry)
        names = sandbox.root / "names"
        done = sandbox.launch(*sandbox.asked(FLOW), CRASH_NAMES=str(names))
        assert (done.code, sandbox.ledger) == (0, EFFECTS), done
        self._points[registry] = range(1, len(names.read_text().split()) + 1)
        return self._points[registry]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    made = Bench(tmp_path_factory.mktemp("probed"))
    yield made
    made.zygotes.close()
    made.service.close()


def sample(points: range) -> Iterable[int]:
    return points if LONG else points[5 :: max(1, len(points) // 8)]


def error_of(done: Done) -> str:
    found: dict[str, Any] = (json.loads(done.out).get("error") or {}) if done.out else {}
    return str(found.get("code"))


def begun(sandbox: Sandbox) -> bool:
    return any(
        log.exists() and b"\n" in log.read_bytes()
        for log in (path / "events.jsonl" for path in sandbox.episodes)
    )


def sound(sandbox: Sandbox) -> list[str]:
    """What is wrong with an episode that was continued with to its end."""
    return [
        f"{word}: exit {done.code}: {done.out[:200]}"
        for word in ("verify", "replay")
        if (done := sandbox.command(word, "@last", *sandbox.flags())).code
    ]


def finished_unasked(bench: Bench, at: int, then: int = 0) -> list[str]:
    """Kill a run at a call, perhaps what continues with it, too, and continue with that: what is wrong."""
    sandbox = bench.sandbox(f"kill-{at}-{then}", bench.probed)
    sandbox.launch(*sandbox.asked(FLOW), at=at)
    if not begun(sandbox):
        sandbox.remove()
        return []
    if then:
        sandbox.launch("resume", "@last", *sandbox.flags(), at=then)
    last = sandbox.command("resume", "@last", *sandbox.flags())
    wrong = sound(sandbox)
    # A run that was killed after its end is sealed by the resume, or was before.
    if last.code not in (0, 2) or (last.code == 2 and error_of(last) != "episode.sealed"):
        wrong.append(f"resumed with exit {last.code}, {error_of(last)}: {last.err[-200:]}")
    if sandbox.ledger != EFFECTS:
        wrong.append(f"happened: {sandbox.ledger}")
    sandbox.remove()
    return [f"kill@{at}, {then}: {what}" for what in wrong]


@pytest.mark.sampled(2)
def test_with_probes_it_is_finished_without_a_question_nothing_twice_nothing_lost(
    bench: Bench, tell: Tell
) -> None:
    points = list(sample(bench.points(bench.probed)))
    with ThreadPoolExecutor(2) as pool:
        wrong = list(pool.map(lambda at: finished_unasked(bench, at), points))
    tell("killed, then probed", FLOW.name, len(points), sum(map(bool, wrong)))
    assert [what for each in wrong for what in each] == []


@pytest.mark.sampled(2)
def test_killed_while_a_probe_is_asked_it_is_finished_all_the_same(
    bench: Bench, tell: Tell
) -> None:
    calls = bench.points(bench.probed)
    firsts = calls[8::7] if LONG else calls[8::28]
    points = [(at, then) for at in firsts for then in (range(1, 20) if LONG else (4, 9))]
    with ThreadPoolExecutor(2) as pool:
        wrong = list(pool.map(lambda point: finished_unasked(bench, *point), points))
    tell("killed, then while probed", FLOW.name, len(points), sum(map(bool, wrong)))
    assert [what for each in wrong for what in each] == []


def asked_and_left(bench: Bench, at: int) -> list[str]:
    """Kill a run at a call, continue with it, leaving out what is asked about: what is wrong."""
    sandbox = bench.sandbox(f"kill-{at}", bench.mute)
    sandbox.launch(*sandbox.asked(FLOW), at=at)
    if not begun(sandbox):
        sandbox.remove()
        return []
    before = sandbox.ledger
    last = sandbox.command("resume", "@last", *sandbox.flags())
    wrong = []
    if last.code == 5:
        if error_of(last) != "effect.in-doubt":
            wrong.append(f"asked, but {error_of(last)}")
        if sandbox.ledger != before:
            wrong.append(f"before anybody answered: {before} became {sandbox.ledger}")
        sandbox.command("resume", "@last", "--in-doubt", "skip", *sandbox.flags())
    wrong += [f"`{key}` {n} times" for key, n in Counter(sandbox.ledger).items() if n > 1]
    wrong += sound(sandbox)
    sandbox.remove()
    return [f"kill@{at}: {what}" for what in wrong]


@pytest.mark.sampled(2)
def test_without_probes_each_doubt_is_asked_about_and_nothing_is_made_again(
    bench: Bench, tell: Tell
) -> None:
    points = list(sample(bench.points(bench.mute)))
    with ThreadPoolExecutor(2) as pool:
        wrong = list(pool.map(lambda at: asked_and_left(bench, at), points))
    tell("killed, without probes", FLOW.name, len(points), sum(map(bool, wrong)))
    assert [what for each in wrong for what in each] == []


@pytest.mark.sampled(32)
def test_a_service_that_may_yet_act_is_asked_about(bench: Bench) -> None:
    """It has begun when it is probed, and commits after that: it cannot say, and once it has committed it can."""
    sandbox = bench.sandbox("late", bench.probed)
    with bench.service.held():
        command = [COGCLI, *sandbox.asked(FLOW)]
        quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(
            command, cwd=sandbox.project, env=sandbox.environment, **quiet
        ) as process:
            wait_until(lambda: bench.service.has_begun(sandbox.ledger_file))
            process.kill()
        first = sandbox.command("resume", "@last", *sandbox.flags())
        assert (first.code, error_of(first)) == (5, "effect.in-doubt"), first
        assert not sandbox.ledger_file.exists()
    wait_until(lambda: not bench.service.has_begun(sandbox.ledger_file))
    last = sandbox.command("resume", "@last", *sandbox.flags())
    assert last.code == 0, last
    assert sandbox.ledger == EFFECTS
    assert sound(sandbox) == []
