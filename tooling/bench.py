"""Measure speed, memory and what detectors find: `python tooling/bench.py WHAT [--json]`.

Medians, and ratios against something run side by side: the bare interpreter, a bare loop that appends. Nothing here
is a test; machines are noisy.

`all --json` measures everything, and says on which machine: `generate_performance.py` writes the page from it.
"""

from __future__ import annotations

import argparse
import base64
import importlib.util
import json
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tooling.labelled import Score

ROOT = Path(__file__).resolve().parent.parent
COGCLI = Path(sys.executable).parent / "cogcli"


class Figure(NamedTuple):
    """One measured figure beside its goal; `unit` says what both are."""

    name: str
    value: float | None
    """None for what could not be measured; the note says why."""
    unit: str
    goal: float | None
    note: str = ""
    at_least: bool = False
    """Whether the goal is the least that is wanted, not the most."""

    @property
    def reached(self) -> bool | None:
        if self.goal is None or self.value is None:
            return None
        return self.value >= self.goal if self.at_least else self.value <= self.goal


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["all", *sorted(BENCHES)])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--size", type=int, default=1_000_000, help="the steps of `million`")
    parser.add_argument("--only", default="", help="of `all`: names with commas between them")
    arguments = parser.parse_args()
    if arguments.what == "all":
        chosen = arguments.only.split(",") if arguments.only else list(BENCHES)
        if unknown := sorted(set(chosen) - set(BENCHES)):
            parser.error(
                f"--only: found {', '.join(unknown)}, expected some of {', '.join(BENCHES)}"
            )
        _measure_all(chosen, arguments.size, as_json=arguments.json)
        return 0
    figures = _figures_of(arguments.what, arguments.size)
    if arguments.json:
        print(json.dumps([figure._asdict() for figure in figures], indent=2))
    else:
        _print(figures)
    return 0


def _figures_of(what: str, size: int = 1_000_000) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="cogcli-bench-") as folder:
        if what == "million":
            return list(million(Path(folder), size))
        return list(BENCHES[what](Path(folder)))


def _measure_all(chosen: list[str], size: int, *, as_json: bool) -> None:
    """Measure the chosen benches, one after the other, and print them with the machine. The figure of a bench that
    fails is its error, and the others follow.
    """
    machine = describe_machine()
    measured: dict[str, Any] = {}
    for what in chosen:
        print(f"== {what}", file=sys.stderr, flush=True)
        begun = time.monotonic()
        figures = _measure_in_process(what, size)
        if not as_json:
            _print(figures)
        measured[what] = {
            "minutes": round((time.monotonic() - begun) / 60, 1),
            "load": round(os.getloadavg()[1], 1),
            "figures": [{**figure._asdict(), "reached": figure.reached} for figure in figures],
        }
    if as_json:
        not_run = [what for what in BENCHES if what not in chosen]
        print(json.dumps({"machine": machine, "benches": measured, "not_run": not_run}, indent=1))


def _measure_in_process(what: str, size: int) -> list[Figure]:
    """Return the figures of a bench that runs in a process of its own. The peak memory of what a process starts is at
    least its own, and what earlier benches left makes later ones slower.
    """
    command = [sys.executable, __file__, what, "--json", "--size", str(size)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return [Figure(what, None, "", None, f"not measured: {lines[-1]}")]
    return [Figure(**each) for each in json.loads(done.stdout)]


def describe_machine() -> dict[str, str]:
    """Return what was measured where."""
    processors = re.findall(r"^model name\s*:\s*(.+)$", _text_of("/proc/cpuinfo"), re.M)
    memory = re.findall(r"^MemTotal:\s*(\d+) kB$", _text_of("/proc/meminfo"), re.M)
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return {
        "date": time.strftime("%Y-%m-%d"),
        "commit": commit.stdout.strip() or "unknown",
        "processor": processors[0] if processors else platform.processor() or "unknown",
        "cores": str(os.cpu_count()),
        "memory": f"{int(memory[0]) / 1e6:.0f} GB" if memory else "unknown",
        "disk": _file_system_of(tempfile.gettempdir()),
        "system": platform.platform(),
        "python": platform.python_version(),
        "load before": f"{os.getloadavg()[1]:.1f}",
    }


def _file_system_of(path: str) -> str:
    """Return the type of the file system of a path: that of the mount with the longest name above it."""
    mounts = [line.split()[1:3] for line in _text_of("/proc/mounts").splitlines()]
    above = [(place, kind) for place, kind in mounts if Path(path).is_relative_to(place)]
    return max(above, key=lambda mount: len(mount[0]), default=("", "unknown"))[1]


def _text_of(path: str) -> str:
    """Return the text of a file, or an empty one where there is none."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _print(figures: list[Figure]) -> None:
    width = max(len(figure.name) for figure in figures)
    for figure in figures:
        goal = "" if figure.goal is None else f"  goal {figure.goal:g} {figure.unit}"
        verdict = {True: "reached", False: "MISSED", None: ""}[figure.reached]
        value = "        -" if figure.value is None else f"{figure.value:9.2f}"
        print(
            f"{figure.name:<{width}}  {value} {figure.unit:<4}{goal:<18} {verdict:<8} {figure.note}"
        )


# -- start-up ---------------------------------------------------------------------------------------------------------


def startup(folder: Path) -> Iterator[Figure]:
    """CPU time of whole commands, as multiples of a bare interpreter measured in turn with them."""
    home = {
        "HOME": str(folder),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "XDG_STATE_HOME": str(folder / "state"),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "PATH": os.environ["PATH"],
    }
    project = folder / "project"
    write_registry(project, files=400)
    skill = ("run", "bench.two", "-p", "n:=1", "-q")

    def command(*arguments: str) -> Callable[[], float]:
        return lambda: cpu_ms([str(COGCLI), *arguments], project, home)

    def cold() -> float:
        for file in (folder / "cache").rglob("*"):
            if file.is_file():
                file.unlink()
        return command(*skill)()

    command(*skill)()
    for name, run, goal in (
        ("--version", command("--version"), 2.5),
        ("home", command(), 2.5),
        ("--help", command("--help"), 2.5),
        ("ls", command("ls"), 5.5),
        ("state show @last", command("state", "show", "@last"), 5.5),
        ("trace @last", command("trace", "@last"), 5.5),
        ("run, warm cache", command(*skill), 9),
        ("run, cold cache", cold, 25),
    ):
        mine, bare = in_turn(
            run, lambda: cpu_ms([sys.executable, "-c", "pass"], project, home), rounds=11
        )
        yield Figure(name, mine / bare, "x", goal, f"{mine:.1f} ms beside {bare:.1f} ms")
    for line in ("cogcli ", "cogcli run ", "cogcli trace ", "cogcli run bench.two --bind "):
        asked = {"_COGCLI_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": line}
        took = statistics.median(
            cpu_ms([str(COGCLI)], project, {**home, **asked}) for _ in range(11)
        )
        yield Figure(f"completion of `{line}`", took, "ms", 150)


def cpu_ms(command: list[str], folder: Path, environment: dict[str, str]) -> float:
    """User and system time of a command and its children, in milliseconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def wall_ms(command: list[str], folder: Path, environment: dict[str, str]) -> float:
    """Wall time of a command, in milliseconds."""
    started = time.perf_counter()
    subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    return 1000 * (time.perf_counter() - started)


def in_turn(a: Callable[[], float], b: Callable[[], float], *, rounds: int) -> tuple[float, float]:
    """The medians of two measurements taken alternately, so that both see the same machine."""
    pairs = [(a(), b()) for _ in range(rounds)]
    return statistics.median(p[0] for p in pairs), statistics.median(p[1] for p in pairs)


# -- steps ------------------------------------------------------------------------------------------------------------


def steps(folder: Path) -> Iterator[Figure]:
    """Cost per step of whole runs, log on, linear and fan-out, beside a loop that appends two lines a step."""
    bare = statistics.median(bare_append_us(folder / f"bare-{n}.jsonl", 1000) for n in range(5))
    yield Figure("bare loop: encode and append two 400-byte lines", bare, "us", None)
    costs: dict[tuple[str, int], float] = {}
    for shape in ("linear", "fan-out"):
        for count in (10, 100, 1000, 10_000):
            rounds = 5 if count <= 1000 else 3
            cost = statistics.median(
                run_us(folder / f"{shape}-{count}-{n}", count, shape) for n in range(rounds)
            )
            costs[shape, count] = cost
            goal = {("linear", 1000): 50.0, ("fan-out", 1000): 60.0}.get((shape, count))
            yield Figure(f"{shape}, {count} steps, per step", cost, "us", goal)
    for name, listener in displays():
        shown = statistics.median(
            run_us(folder / f"{name}-{n}", 1000, "linear", listener=listener) for n in range(5)
        )
        yield Figure(f"linear, 1000 steps with {name}, per step", shown, "us", 50)
    called = statistics.median(
        run_us(folder / f"shipped-{n}", 1000, "linear", runner_of=shipped_runner) for n in range(5)
    )
    said = f"{called - costs['linear', 1000]:.1f} us more than with a runner that returns its input"
    yield Figure("linear, 1000 calls of a shipped function, per step", called, "us", None, said)
    for shape, label in (
        ("conditional", "1000 steps with a condition"),
        ("retry", "1000 steps with a retry"),
        ("items", "a loop of 1000 items"),
        ("rounds", "a loop of 1000 rounds"),
    ):
        cost = statistics.median(run_us(folder / f"{shape}-{n}", 1000, shape) for n in range(5))
        yield Figure(f"{label}, per step", cost, "us", 90)
    yield from steps_with_secrets(folder, costs["linear", 1000])
    yield Figure("linear 1000 over the bare loop", costs["linear", 1000] / bare, "x", 12)
    yield Figure(
        "linear 10000 over 1000, whole run",
        costs["linear", 10_000] * 10 / costs["linear", 1000],
        "x",
        11,
    )
    yield Figure(
        "fan-out 10000 over 1000, whole run",
        costs["fan-out", 10_000] * 10 / costs["fan-out", 1000],
        "x",
        11,
    )


def displays() -> Iterator[tuple[str, Any]]:
    """The displays of `run -q`, and of a run whose progress is piped, writing to nowhere."""
    from cogcli.cli.live_run import DisplayListener
    from cogcli.cli.progress import EventStream, NoDisplay
    from cogcli.cli.streams import Screen

    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        screen = Screen({})
        screen.err.file = nowhere
        yield "a quiet display", DisplayListener(NoDisplay(screen))
        yield "a display of lines", DisplayListener(EventStream(screen))


def peers(folder: Path) -> Iterator[Figure]:
    """The same steps here and in other tools that record each step: microseconds a step, and how often ours fit in."""
    from peer_bench import SHAPES, STEPS, measure_peers

    ours = {
        shape: statistics.median(run_us(folder / f"{shape}-{n}", STEPS, shape) for n in range(5))
        for shape in SHAPES
    }
    for shape, cost in ours.items():
        yield Figure(f"cogcli, {shape}, {STEPS} steps", cost, "us", None)
    for each in measure_peers(folder):
        name = f"{each.peer}, {each.shape}, {STEPS} steps"
        if each.step_us is None:
            yield Figure(name, None, "us", None, each.reason)
        else:
            note = f"{each.step_us / ours[each.shape]:.1f} times ours"
            yield Figure(name, each.step_us, "us", None, note)


def million(folder: Path, size: int) -> Iterator[Figure]:
    """One episode of so many steps: time, disk and memory of its run, its resume after a kill, and its readers."""
    from million_bench import measure

    for figure in measure(folder, size):
        yield Figure(*figure)


def documents(folder: Path) -> Iterator[Figure]:
    """One operation of a large document."""
    from document_bench import measure

    for figure in measure(folder):
        yield Figure(*figure)


def gateway(folder: Path) -> Iterator[Figure]:
    """A decision under 100 rules, a call through the gateway, and calls a second."""
    from gateway_bench import measure

    yield from (Figure(*each) for each in measure(folder))


def pages(folder: Path) -> Iterator[Figure]:
    """5,000 rows of an API in 100 pages: time, memory and disk by the ways to read them."""
    from page_bench import measure

    for figure in measure(folder, str(COGCLI), measured, os.environ):
        yield Figure(*figure)


def steps_with_secrets(folder: Path, without: float) -> Iterator[Figure]:
    """Cost per step of runs that know ten secrets, one of them a key of 26 lines, and of searching a long text."""
    from cogcli.base.redact import Redactor

    drawn = Random(1)
    lines = [base64.b64encode(drawn.randbytes(48)).decode() for _ in range(26)]
    key = "\n".join(["-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----"])
    secrets = [key, *(f"sk-{drawn.randbytes(24).hex()}" for _ in range(9))]
    started = time.perf_counter()
    redactor = Redactor(secrets)
    redactor.mask_text("built when a text is first searched")
    built = time.perf_counter() - started
    cost = statistics.median(
        run_us(folder / f"secrets-{n}", 1000, "linear", redactor=redactor) for n in range(5)
    )
    said = f"{cost - without:.1f} us more than without"
    yield Figure("linear, 1000 steps with ten secrets, per step", cost, "us", 120.0, said)
    yield Figure("ten secrets: enumerate their forms", 1000 * built, "ms", 60.0)
    text = (ROOT / "docs/reference/episode.md").read_text("utf-8")
    text = (text * (1_000_000 // len(text) + 1))[:1_000_000]
    took = statistics.median(seconds_of(lambda: redactor.mask_text(text)) for _ in range(5))
    yield Figure("ten secrets: search a text of 1 MB", 1000 * took, "ms", 80.0)


def seconds_of(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def bare_append_us(path: Path, count: int) -> float:
    """Microseconds a step of a loop that builds, encodes and appends two events of about 400 bytes."""
    import orjson

    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    started = time.perf_counter()
    for number in range(count * 2):
        event = {
            "seq": number,
            "timestamp": "2026-01-01T00:00:00.000000Z",
            "event_type": "step.completed",
            "payload": {
                "step_id": f"s{number}",
                "step_status": "done",
                "output": {"n": number},
                "note": "x" * 230,
            },
            "prev": "sha256:" + "0" * 64,
        }
        os.write(descriptor, orjson.dumps(event) + b"\n")
    took = time.perf_counter() - started
    os.close(descriptor)
    return took / count * 1e6


def run_us(
    runs: Path,
    count: int,
    shape: str,
    policy: Any = None,
    clock_of: Callable[[], float] = time.perf_counter,
    redactor: Any = None,
    listener: Any = None,
    runner_of: Callable[[Any], Any] | None = None,
) -> float:
    """Microseconds a step of one run, from first event to last, sealing left out. Calls return their input, unless
    `runner_of` makes the runner of the capability.
    """
    from cogcli.base.calls import Answer, Attempt, BindingChain, Member
    from cogcli.base.redact import Redactor
    from cogcli.base.system import SystemClock, SystemIds
    from cogcli.declarations.capability_spec import Capability
    from cogcli.declarations.options import RunOptions
    from cogcli.declarations.skill_spec import Skill
    from cogcli.episode.store import Store
    from cogcli.run.engine.context import Engine
    from cogcli.run.engine.run import Request, execute

    class Constant:
        def chain(self, capability_id: str) -> BindingChain:
            return BindingChain((Member("bench", "bench", "pythoncall", 30.0),), {})

        def attempt(self, attempt: Attempt) -> Answer:
            return Answer({"n": attempt.input["n"]})

        def close(self, grace: float) -> None:
            return

    number = {"type": "integer", "required": True}
    capability = Capability.of(
        {"id": "bench.number.same", "version": "1.0.0", "description": "x", "inputs": {"n": number},
         "outputs": {"n": number}, "properties": {"side_effects": False}}
    )  # fmt: skip
    skill = Skill.of(bench_skill(count, shape))
    clock, ids = SystemClock(), SystemIds()
    journal = Store(str(runs)).create(
        f"ep_{ids.ulid()}",
        trace_id=ids.trace_id(),
        clock=clock,
        ids=ids,
        redactor=redactor or Redactor(()),
        durability="process",
    )
    engine = Engine(
        sink=journal, lines=journal, runner=runner_of(capability) if runner_of else Constant(), clock=clock, ids=ids,
        options=RunOptions(), listener=listener, capabilities={capability.id: capability}, skills={skill.id: skill},
        policy=policy,
    )  # fmt: skip
    request = Request("bench", {"n": 1}, {}, 0, {}, {})
    plan = engine.plan_of(skill.id)
    started = clock_of()
    finished = execute(engine, plan, request, ids.run_id())
    took = clock_of() - started
    journal.close()
    if finished.outcome.status != "ok":
        raise SystemExit(f"the run ended {finished.outcome.status}: {finished.outcome.error}")
    return took / count * 1e6


def shipped_runner(capability: Any) -> Any:
    """Return the runner of a command, which calls a shipped function for this capability."""
    from cogcli.base.redact import Redactor
    from cogcli.base.system import SystemClock
    from cogcli.declarations.binding_spec import Binding
    from cogcli.declarations.service_spec import Service
    from cogcli.protocols.invoker import InvokerContext
    from cogcli.protocols.live.runner import LiveRunner
    from cogcli.protocols.secrets import Secrets
    from cogcli.specs.catalog import Catalog
    from cogcli.specs.selection import SelectionOptions, select

    service = Service(id="bench", kind="pythoncall", module="cogcli.official.text", trusted=True)
    binding = Binding(
        id="bench",
        capability=capability.id,
        service=service.id,
        protocol="pythoncall",
        operation="normalize",
        request={"text": "number ${input.n}"},
        response={"n": "response.removed"},
        trusted=True,
    )
    catalog = Catalog(
        capabilities={capability.id: capability},
        bindings={binding.id: binding},
        bindings_of={capability.id: (binding.id,)},
        services={service.id: service},
    )
    return LiveRunner(
        catalog,
        lambda capability_id: select(catalog, capability_id, SelectionOptions()),
        InvokerContext(Secrets({}, Redactor(()).add), SystemClock(), ""),
    )


def bench_skill(count: int, shape: str) -> dict[str, Any]:
    config: dict[str, Any] = {"depends_on": []} if shape == "fan-out" else {}
    if shape == "conditional":
        config = {"condition": "inputs.n > 0"}
    if shape == "retry":
        config = {"retry": {"max_attempts": 2}}
    if shape in ("items", "rounds"):
        return _bench_loop(count, shape)
    return {
        "id": "bench.many",
        "version": "1.0.0",
        "name": "Bench",
        "description": "Many equal steps.",
        "inputs": {"n": {"type": "integer", "required": True}},
        "outputs": {},
        "steps": [
            {"id": f"s{n}", "uses": "bench.number.same", "input": {"n": "inputs.n"},
             "output": {"n": f"vars.n{n}"}, "config": config}
            for n in range(count)
        ],
    }  # fmt: skip


def _bench_loop(count: int, shape: str) -> dict[str, Any]:
    """A skill with one step that calls the capability once per item, or in so many rounds."""
    loop: dict[str, Any] = {"while": {"condition": True, "max_iterations": count}}
    if shape == "items":
        loop = {"foreach": {"items": [1] * count, "as": "item"}}
    return bench_skill(0, "linear") | {
        "steps": [
            {"id": "s", "uses": "bench.number.same", "input": {"n": "item" if shape == "items" else "inputs.n"},
             "output": {"n": "vars.n"}, "config": loop}
        ]
    }  # fmt: skip


# -- fan-out ----------------------------------------------------------------------------------------------------------

FANOUT_CALLS, FANOUT_WORKERS, FANOUT_SECONDS = 100, 32, 0.05
FANOUT_SERVER = """
import asyncio, sys

BODY = b'{"n": 1}'
REPLY = b"HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: %d\\r\\n\\r\\n%s" % (len(BODY), BODY)

async def serve(reader, writer):
    try:
        while head := await reader.readuntil(b"\\r\\n\\r\\n"):
            lines = head.lower().split(b"\\r\\n")
            await reader.readexactly(next(int(line[15:]) for line in lines if line.startswith(b"content-length:")))
            await asyncio.sleep(float(sys.argv[1]))
            writer.write(REPLY)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=256)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


def fanout(folder: Path) -> Iterator[Figure]:
    """Wall time of one run of independent HTTP calls to a server in a process of its own, beside the ideal."""
    command = [sys.executable, "-c", FANOUT_SERVER, str(FANOUT_SECONDS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = f"http://127.0.0.1:{int(server.stdout.readline())}"
            fanout_run(folder / "warm", url, 1)  # imports, once per process
            names = iter(range(100))
            took, bare = in_turn(
                lambda: fanout_run(folder / f"run-{next(names)}", url, FANOUT_CALLS),
                lambda: fanout_bare(url),
                rounds=9,
            )
        finally:
            server.kill()
    ideal = -(-FANOUT_CALLS // FANOUT_WORKERS) * FANOUT_SECONDS
    said = f"{took * 1000:.0f} ms, the ideal is {ideal * 1000:.0f} ms"
    yield Figure(
        f"{FANOUT_CALLS} calls of {FANOUT_SECONDS * 1000:.0f} ms", took / ideal, "x", 1.3, said
    )
    yield Figure(
        "bare threads and sockets, the same calls", bare / ideal, "x", None, f"{bare * 1000:.0f} ms"
    )


def fanout_bare(url: str) -> float:
    """Seconds that the same calls take without anything of ours: what the machine gives at this moment."""
    from concurrent.futures import ThreadPoolExecutor
    from http.client import HTTPConnection
    from threading import local

    kept = local()

    def call(_: int) -> None:
        if not hasattr(kept, "connection"):
            kept.connection = HTTPConnection(url.removeprefix("http://"))
        kept.connection.request("POST", "/same", b'{"n":1}', {"Content-Type": "application/json"})
        json.loads(kept.connection.getresponse().read())

    started = time.perf_counter()
    with ThreadPoolExecutor(FANOUT_WORKERS) as pool:
        list(pool.map(call, range(FANOUT_CALLS)))
    return time.perf_counter() - started


def fanout_run(runs: Path, url: str, count: int) -> float:
    """Seconds of one run, from first event to last, its connections opened anew."""
    from cogcli.base.redact import Redactor
    from cogcli.base.system import SystemClock, SystemIds
    from cogcli.declarations.binding_spec import Binding
    from cogcli.declarations.capability_spec import Capability
    from cogcli.declarations.options import RunOptions
    from cogcli.declarations.service_spec import Service
    from cogcli.declarations.skill_spec import Skill
    from cogcli.episode.store import Store
    from cogcli.protocols.invoker import InvokerContext
    from cogcli.protocols.live.runner import LiveRunner
    from cogcli.protocols.secrets import Secrets
    from cogcli.run.engine.context import Engine
    from cogcli.run.engine.run import Request, execute
    from cogcli.specs.catalog import Catalog
    from cogcli.specs.selection import SelectionOptions, select

    number = {"type": "integer", "required": True}
    capability = Capability.of(
        {"id": "bench.number.same", "version": "1.0.0", "description": "x", "inputs": {"n": number},
         "outputs": {"n": number}, "properties": {"side_effects": False}}
    )  # fmt: skip
    service = Service(
        id="bench", kind="openapi", network="private", settings={"base_url": url}, trusted=True
    )
    binding = Binding(
        id="bench",
        capability=capability.id,
        service="bench",
        protocol="openapi",
        operation="same",
        request={"n": "input.n"},
        response={"n": "response.n"},
        trusted=True,
    )
    catalog = Catalog(
        capabilities={capability.id: capability},
        bindings={"bench": binding},
        bindings_of={capability.id: ("bench",)},
        services={"bench": service},
    )
    skill = Skill.of(bench_skill(count, "fan-out"))
    clock, ids, redactor = SystemClock(), SystemIds(), Redactor(())
    runner = LiveRunner(
        catalog,
        lambda capability_id: select(catalog, capability_id, SelectionOptions()),
        InvokerContext(Secrets({}, redactor.add), clock, ""),
    )
    journal = Store(str(runs)).create(
        f"ep_{ids.ulid()}",
        trace_id=ids.trace_id(),
        clock=clock,
        ids=ids,
        redactor=redactor,
        durability="process",
    )
    engine = Engine(
        sink=journal, runner=runner, clock=clock, ids=ids, options=RunOptions(max_workers=FANOUT_WORKERS),
        capabilities={capability.id: capability}, skills={skill.id: skill},
    )  # fmt: skip
    plan = engine.plan_of(skill.id)
    started = time.perf_counter()
    finished = execute(engine, plan, Request("bench", {"n": 1}, {}, 0, {}, {}), ids.run_id())
    took = time.perf_counter() - started
    runner.close(0)
    journal.close()
    if finished.outcome.status != "ok":
        raise SystemExit(f"the run ended {finished.outcome.status}: {finished.outcome.error}")
    return took


# -- validate ---------------------------------------------------------------------------------------------------------


def validate(folder: Path) -> Iterator[Figure]:
    """Wall time of `validate` over a project of 500 spec files, start-up included."""
    project = folder / "project"
    write_registry(project, files=500)
    environment = {
        "HOME": str(folder),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "PATH": os.environ["PATH"],
    }
    command = [str(COGCLI), "validate", "-q"]
    took = statistics.median(wall_ms(command, project, environment) for _ in range(5))
    yield Figure("validate 500 files", took, "ms", 1000)
    project = folder / "expressions"
    write_expressions(project, skills=500)
    wall_ms(command, project, environment)
    took = statistics.median(wall_ms(command, project, environment) for _ in range(3))
    yield Figure("validate 500 skills with 3,000 expressions", took, "ms", 1000)


def quality(folder: Path) -> Iterator[Figure]:
    """What the shipped detectors find of what is there, in lines that were labelled by somebody who had not seen them:
    of the half that was never looked at, `held`, and of the other."""
    sys.path[:0] = [str(ROOT)]
    from cogcli.official.personal_data import find_personal_data
    from cogcli.official.secret_values import find_secrets
    from tooling.labelled import language_scores, personal_data_scores, secret_scores, total

    def of(score: Score, *, precision: bool = True) -> Iterator[Figure]:
        name = f"{score.detector}, {score.kind}, {score.split}"
        counts = f"{score.right} right, {score.wrong} wrong, {score.missed} missed"
        if precision:
            yield Figure(f"{name}: precision", score.precision, "", 0.95, counts, at_least=True)
        yield Figure(f"{name}: recall", score.recall, "", 0.90, counts, at_least=True)

    for score in personal_data_scores():
        yield from of(score)
    secrets = [*secret_scores()]
    for score in secrets:
        if score.kind != "none":
            yield from of(score, precision=False)
    for split in ("tune", "held"):
        yield from of(total(score for score in secrets if score.split == split))
    for score in language_scores():
        note = f"{score.right} of {score.right + score.missed}"
        yield Figure(
            f"language, {score.split}: accuracy", score.recall, "", 0.97, note, at_least=True
        )
    yield from _search_figures()
    yield from _stdlib_figures({"personal data": find_personal_data, "secrets": find_secrets})


def _search_figures() -> Iterator[Figure]:
    """How often the skill that a user means comes first, or among the first three."""
    from cogcli.app.inventory.skill import skill_row, texts_of_skill
    from cogcli.app.registry import open_registry
    from cogcli.app.settings import Settings
    from cogcli.specs.word_search import search
    from tooling.labelled import questions

    skills = open_registry(Settings({}, {}, base=str(ROOT))).everything().skills
    texts = {id: texts_of_skill(skill_row(skill), skill) for id, skill in skills.items()}
    for split in ("tune", "held"):
        asked = questions(split)
        found = [
            (search([each["question"]], texts).keys, {each["expected"], *each["accept"]})
            for each in asked
        ]
        for most in (1, 3):
            hits = sum(bool(right & set(keys[:most])) for keys, right in found)
            note = f"{hits} of {len(asked)}"
            yield Figure(
                f"skills search, {split}: among the first {most}", hits / len(asked), "", None, note
            )


def _stdlib_figures(detectors: dict[str, Callable[[str], list[Any]]]) -> Iterator[Figure]:
    """Findings in the modules of the standard library, its tests left out, where nothing is expected."""
    texts = [
        file.read_text(encoding="utf-8", errors="replace")
        for file in sorted(Path(os.__file__).parent.glob("*.py"))
        + sorted(Path(os.__file__).parent.glob("[a-z]*/*.py"))
        if "site-packages" not in file.parts and "test" not in file.parts
    ]
    size = sum(map(len, texts)) / 1e6
    for name, find in detectors.items():
        hits = sum(len(find(text[:1_000_000])) for text in texts)
        yield Figure(
            f"{name}: findings per MB of stdlib", hits / size, "", None, f"{hits} in {size:.1f} MB"
        )


def write_registry(project: Path, *, files: int) -> None:
    """A project of about `files` spec files, among them the skill `bench.two` of two shipped pythoncall steps."""
    shipped = ROOT / "capabilities" / "text.content.normalize.yaml"
    if not shipped.is_file():
        raise SystemExit("the shipped registry is not beside this script")
    _write(
        project / "skills/local/bench/two/skill.yaml",
        """
        id: bench.two
        version: "1.0.0"
        name: Two steps
        description: Two trivial steps.
        inputs:
          n: {type: integer, required: true}
        outputs:
          text: {type: string, required: true}
        steps:
          - id: first
            uses: text.content.normalize
            input: {text: {$literal: "One  two."}}
            output: {text: vars.text}
          - id: second
            uses: text.content.normalize
            input: {text: vars.text}
            output: {text: outputs.text}
        """,
    )
    for n in range((files - 1) // 3):
        _write_filler(project, f"bench.filler.n{n}")


def write_expressions(project: Path, *, skills: int) -> None:
    """A project of so many skills of six steps that each have a condition of their own."""
    for n in range(skills):
        steps = "".join(
            f"""
          - id: s{step}
            uses: text.content.normalize
            input: {{text: inputs.text}}
            output: {{text: outputs.{"text" if step == 0 else f"text{step}"}}}
            config:
              condition: "len(inputs.text) > {n} and (inputs.text != 'a{step}' or contains(lower(inputs.text), 'x{n}'))"
"""
            for step in range(6)
        )
        outputs = ", ".join(
            f"{'text' if step == 0 else f'text{step}'}: {{type: string}}" for step in range(6)
        )
        _write(
            project / f"skills/local/bench/n{n}/skill.yaml",
            f"""
        id: bench.n{n}
        version: "1.0.0"
        name: Conditions
        description: Six steps with conditions.
        inputs: {{text: {{type: string, required: true}}}}
        outputs: {{{outputs}}}
        steps:{steps}""",
        )


def _write_filler(project: Path, capability: str) -> None:
    slug = capability.rpartition(".")[2]
    _write(
        project / f"capabilities/{capability}.yaml",
        f"""
        id: {capability}
        version: "1.0.0"
        description: A filler that nothing uses but its own skill.
        inputs:
          text: {{type: string, required: true, description: Any text.}}
        outputs:
          text: {{type: string, required: true, description: The same text.}}
        properties: {{deterministic: true, side_effects: false, idempotent: true}}
        """,
    )
    _write(
        project / f"bindings/local/{capability}/{slug}.yaml",
        f"""
        id: {slug}_binding
        capability: {capability}
        service: official_text
        protocol: pythoncall
        operation: normalize
        request: {{text: input.text}}
        response: {{text: response.text}}
        """,
    )
    _write(
        project / f"skills/local/filler/{slug}/skill.yaml",
        f"""
        id: filler.{slug}
        version: "1.0.0"
        name: Filler
        description: One step.
        inputs:
          text: {{type: string, required: true}}
        outputs:
          text: {{type: string, required: true}}
        steps:
          - id: only
            uses: {capability}
            input: {{text: inputs.text}}
            output: {{text: outputs.text}}
        """,
    )


def _write(path: Path, text: str) -> None:
    import textwrap

    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text).lstrip(), encoding="utf-8")


# -- events -----------------------------------------------------------------------------------------------------------


def events(folder: Path) -> Iterator[Figure]:
    """Processor time of `state show --project` and `verify` over a log of 100,000 events; memory beyond that of a
    small one.
    """
    small, large = write_log(folder / "small", 1_000), write_log(folder / "large", 100_000)
    environment = {"HOME": str(folder), "PATH": os.environ["PATH"]}
    asked = (("project", ("state", "show", "--project"), 1300), ("verify", ("verify",), 2000))
    for name, command, goal in asked:
        costs = {}
        for episode in (small, large):
            took = [
                measured([str(COGCLI), *command, str(episode)], folder, environment)
                for _ in range(3)
            ]
            costs[episode] = (
                statistics.median(each.cpu_ms for each in took),
                statistics.median(each.peak for each in took),
            )
        yield Figure(f"{name} 100,000 events", costs[large][0], "ms", goal, "CPU")
        note = f"state.json has {(large / 'state.json').stat().st_size / 1e6:.1f} MB"
        yield Figure(
            f"{name}, memory beyond 1,000 events",
            (costs[large][1] - costs[small][1]) / 1e6,
            "MB",
            None,
            note,
        )


def write_log(runs: Path, count: int) -> Path:
    """A sealed episode of about `count` events: one step that goes through rounds, as the engine writes them."""
    from cogcli.base.redact import Redactor
    from cogcli.base.system import SystemClock, SystemIds
    from cogcli.declarations.envelope import draft_of
    from cogcli.declarations.events import (
        PlanCreated,
        RunStarted,
        RunTerminated,
        SkillRef,
        StepCompleted,
    )
    from cogcli.episode.seal import seal
    from cogcli.episode.store import Store

    clock, ids = SystemClock(), SystemIds()
    journal = Store(runs).create(
        f"ep_{ids.ulid()}", trace_id=ids.trace_id(), clock=clock, ids=ids, redactor=Redactor(()), durability="none"
    )  # fmt: skip
    run = ids.run_id()
    start = RunStarted(
        task="bench",
        seed=0,
        using="runner",
        skill=SkillRef(id="bench.rounds", version="1.0.0"),
        inputs={},
        frame={},
        options={},
        tags={},
        pins={"specs": {}, "policy": None, "cogcli": "0", "python": "3"},
        parent_run_id=None,
    )
    journal.append(draft_of(start, run))
    record = {
        "id": "s",
        "kind": "act",
        "description": "s",
        "status": "pending",
        "depends_on": [],
        "inputs": {},
    }
    plan = PlanCreated(
        source="planner.skill", rationale="bench", step_records=[record], steps=["act:s"]
    )
    journal.append(draft_of(plan, run, speaker=plan.source))
    for number in range((count - 4) // 2):
        _write_round(journal, run, f"s#{number}")
    done = StepCompleted(step_id="s", uses="bench.number.same", latency_ms=1)
    journal.append(draft_of(done, run, step_id="s", speaker="system"))
    end = RunTerminated(
        status="ok", status_reason=None, outputs={}, error=None, required_missing=[]
    )
    journal.append(draft_of(end, run))
    seal(journal)
    journal.close()
    return journal.directory


def _write_round(journal: Any, run: str, step: str) -> None:
    from cogcli.declarations.envelope import draft_of
    from cogcli.declarations.events import StepCompleted, StepStarted, Written

    intent = StepStarted(
        step_id=step,
        uses="bench.number.same",
        capability="bench.number.same",
        binding="bench",
        service="bench",
        input={"n": 1},
        reads=["inputs.n"],
        attempt=1,
        idempotency_key=f"{run}:{step}",
        side_effects="none",
        decision={"verdict": "allow", "policy": "builtin.default"},
    )
    begun = journal.append(draft_of(intent, run, step_id=step, speaker="bench"))
    end = StepCompleted(
        step_id=step,
        uses="bench.number.same",
        capability="bench.number.same",
        reads=["inputs.n"],
        output={"n": 1},
        writes=[Written(target="vars.n", strategy="overwrite", value=1)],
        latency_ms=1,
        action_id=f"act_{begun.id[3:]}",
        tool="pythoncall:bench",
        kind="act",
        attempts=[{"binding_id": "bench", "service_id": "bench", "status": "success"}],
    )
    journal.append(draft_of(end, run, step_id=step, speaker="bench", caused_by=begun.id))


class Measured(NamedTuple):
    """What a command took."""

    ms: float
    """Its wall time."""
    peak: float
    """Its memory in bytes."""
    cpu_ms: float


def measured(command: list[str], folder: Path, environment: dict[str, str]) -> Measured:
    """Run a command and return what it took."""
    with open(os.devnull, "wb") as null:
        started = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=null, stderr=null)
        _, status, usage = os.wait4(process.pid, 0)
        took = time.perf_counter() - started
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"{' '.join(command)} ended {os.waitstatus_to_exitcode(status)}")
    process.returncode = 0
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Measured(1000 * took, peak, 1000 * (usage.ru_utime + usage.ru_stime))


# -- index ------------------------------------------------------------------------------------------------------------


def index(folder: Path) -> Iterator[Figure]:
    """Wall time of finding one episode among 100,000, start-up included, with a warm index and beside few."""
    environment = {"HOME": str(folder), "PATH": os.environ["PATH"]}
    write_registry(folder / "project", files=6)
    runs = folder / "runs"
    command = [str(COGCLI), "--runs-dir", str(runs), "run", "bench.two", "-p", "n:=1", "-q"]
    subprocess.run(
        command, cwd=folder / "project", env=environment, stdout=subprocess.DEVNULL, check=True
    )
    (template,) = runs.glob("ep_*")

    def finding(*arguments: str, rounds: int = 5) -> float:
        words = [str(COGCLI), *arguments, "--runs-dir", str(runs)]
        return statistics.median(measured(words, folder, environment)[0] for _ in range(rounds))

    asked = (
        ("ls",),
        ("trace", "--trace-id", "needle-01"),
        ("trace", "@last"),
        ("trace", "ep_01M7Y0MN"),
    )
    copy_episode(template, "ep_01M7Y0MN000000000000000000", "needle-01")
    few = {words: finding(*words) for words in asked[:3]}
    for number in range(100_000):
        copy_episode(template, f"ep_01HF7YAT{number:018d}", f"{number:032x}")
    yield Figure("building it: trace --trace-id, once", finding(*asked[1], rounds=1), "ms", None)
    time.sleep(2.1)
    finding("ls", rounds=1)
    for words in asked:
        note = f"{few[words]:.0f} ms among two" if words in few else ""
        yield Figure(f"{' '.join(words)}, warm", finding(*words), "ms", 200, note)
    yield Figure(
        "ls --outcome error --skill a.b, warm",
        finding("ls", "--outcome", "error", "--skill", "a.b"),
        "ms",
        200,
    )
    changed = []
    for number in range(5):
        copy_episode(template, f"ep_01HF7YAV{number:018d}", "later")
        changed.append(finding("ls", rounds=1))
    yield Figure("ls after one more episode", statistics.median(changed), "ms", 100)


def copy_episode(template: Path, episode_id: str, trace_id: str) -> None:
    """Write a sealed episode like the template under other ids: what lists and look-ups read of it."""
    import orjson

    from cogcli.base.canonical import digest
    from cogcli.declarations.checksum import add_sum
    from cogcli.episode.document_bytes import to_bytes
    from cogcli.episode.log_lines import first_link

    head, lines = first_link(episode_id), []
    for line in (template / "events.jsonl").read_bytes().splitlines():
        event = orjson.loads(line)
        event |= {"episode_id": episode_id, "trace_id": trace_id, "prev": head}
        del event["sum"]
        lines.append(add_sum(orjson.dumps(event)))
        head = digest(lines[-1])
    summary = orjson.loads((template / "summary.json").read_bytes())
    summary |= {"episode_id": episode_id, "trace_id": trace_id}
    files = {"events.jsonl": b"\n".join(lines) + b"\n", "summary.json": to_bytes(summary)}
    manifest = orjson.loads((template / "manifest.json").read_bytes())
    entries = [each for each in manifest["files"] if each["name"] in files]
    for entry in entries:
        data = files[entry["name"]]
        entry |= {"sha256": digest(data)[7:], "size_bytes": len(data)}
    chain = {"events": len(lines), "head": head}
    manifest |= {"episode_id": episode_id, "files": entries, "chain": chain}
    target = template.parent / episode_id
    target.mkdir(mode=0o700)
    for name, data in {**files, "manifest.json": to_bytes(manifest)}.items():
        (target / name).write_bytes(data)


# -- archives ---------------------------------------------------------------------------------------------------------

ARCHIVED_EPISODES = 300


def archive(folder: Path) -> Iterator[Figure]:
    """Bytes and processor time of an episode of two steps, in its folder and in an archive."""
    from cogcli.api import Project
    from cogcli.episode.archive.reader import Archive
    from cogcli.episode.archive.writer import ArchiveWriter, EpisodeBytes, read_folder
    from cogcli.episode.folder import Folder

    write_registry(folder / "project", files=6)
    runs = (folder / "runs").resolve()
    project = Project(folder / "project", runs_dir=runs, environ={"HOME": str(folder)})
    for number in range(ARCHIVED_EPISODES):
        project.run("bench.two", {"n": number})
    episodes: dict[str, EpisodeBytes] = {}

    def read_all() -> None:
        for directory in sorted(runs.glob("ep_*")):
            with Folder.open(directory) as opened:
                episodes[directory.name] = read_folder(opened)

    reading = cpu_seconds(read_all)
    sizes = [
        len(data)
        for each in episodes.values()
        for data in (*each.files.values(), *each.blobs.values())
    ]
    path = runs / "bench.cogarchive"
    with ArchiveWriter(path) as writer:
        writing = cpu_seconds(lambda: [writer.append(*each) for each in episodes.items()])
    with Archive.open(path) as opened:
        found = cpu_seconds(lambda: [opened.read_episode(name) for name in episodes])
    count = len(episodes)
    each = f"of {count}"
    yield Figure("an episode's files", sum(sizes) / count, "B", None, each)
    yield Figure(
        "an archived episode, with its index entry", path.stat().st_size / count, "B", None, each
    )
    yield Figure("reading a folder", reading / count * 1e6, "µs", None, "CPU")
    yield Figure("writing a record", writing / count * 1e6, "µs", None, "CPU")
    yield Figure("reading a record", found / count * 1e6, "µs", None, "CPU")


# -- memory -----------------------------------------------------------------------------------------------------------


def memory(folder: Path) -> Iterator[Figure]:
    """Peak memory of a small run, beside a bare interpreter; and what 300,000 events more add to a run."""
    environment = {"HOME": str(folder), "PATH": os.environ["PATH"]}
    project = folder / "project"
    write_registry(project, files=400)
    command = [str(COGCLI), "run", "bench.two", "-p", "n:=1", "-q"]
    measured(command, project, environment)
    bare = statistics.median(
        measured([sys.executable, "-c", "pass"], project, environment)[1] for _ in range(3)
    )
    small = statistics.median(measured(command, project, environment)[1] for _ in range(3))
    yield Figure("a small run", small / 1e6, "MB", 60, f"bare interpreter {bare / 1e6:.1f} MB")
    peaks = {}
    for count in (1_000, 300_000):
        script = f"import sys; sys.path.insert(0, {str(ROOT / 'tooling')!r}); import bench; bench.write_events({count})"
        peaks[count] = measured([sys.executable, "-c", script], folder, environment)[1]
    yield Figure(
        "300,000 events more in a log being written",
        (peaks[300_000] - peaks[1_000]) / 1e6,
        "MB",
        10,
    )


def write_events(count: int) -> None:
    """Append so many events to a log, the last projection aside."""
    from cogcli.base.redact import Redactor
    from cogcli.base.system import SystemClock, SystemIds
    from cogcli.episode.store import Store

    clock, ids = SystemClock(), SystemIds()
    with tempfile.TemporaryDirectory(prefix="cogcli-bench-") as runs:
        journal = Store(runs).create(
            f"ep_{ids.ulid()}", trace_id=ids.trace_id(), clock=clock, ids=ids, redactor=Redactor(()),
            durability="none",
        )  # fmt: skip
        for number in range(count // 2):
            _write_round(journal, "run_0000000000000000", f"s#{number}")
        journal.close()


# -- context ----------------------------------------------------------------------------------------------------------


def context(folder: Path) -> Iterator[Figure]:
    """CPU time of compiling a context, of a turn, and of what a pack adds to each step, of pairs run in turn."""
    from cogcli.agent.context.compiler import compile_context

    given = large_input()
    compile_context(given)
    took = statistics.median(cpu_seconds(lambda: compile_context(given)) for _ in range(11))
    yield Figure("compile, 10,000 edges and 1,000 memories", took * 1e3, "ms", 100)
    names = iter(range(1_000_000))
    turns = [turn_ms(folder / f"turn-{next(names)}") for _ in range(22)]
    yield Figure("a turn without calls", statistics.median(turns[1:]), "ms", 5)
    for count, goal in ((0, None), (100, 40.0), (10_000, 60.0)):
        pack = bench_pack(count)
        policy = cpu_seconds(lambda pack=pack: policy_for(pack))  # type: ignore[misc]
        with_pack, without = in_turn(
            lambda pack=pack: step_us(folder / f"run-{next(names)}", pack),  # type: ignore[misc]
            lambda: step_us(folder / f"run-{next(names)}", None),
            rounds=9,
        )
        ratio = with_pack / without
        note = f"{with_pack:.1f} beside {without:.1f} us, {ratio:.2f} x; its policy, once: {policy * 1e3:.1f} ms"
        yield Figure(
            f"a pack of {count:,} rules, added to a step", with_pack - without, "us", goal, note
        )
        if not count:
            yield Figure("a step under a pack without rules", with_pack, "us", 90)


def turn_ms(runs: Path) -> float:
    """Milliseconds of CPU time of one turn of the template planner that makes no call: it asks for the order."""
    from cogcli.agent.cognition.invocation import Invocation, intent_of
    from cogcli.agent.cognition.loop import build_agent_run
    from cogcli.agent.context.inputs import AgentRequest, User
    from cogcli.base.redact import Redactor
    from cogcli.base.system import SystemClock, SystemIds
    from cogcli.declarations.options import RunOptions
    from cogcli.episode.store import Store
    from cogcli.policy.budgets import DEFAULTS, Budgets, merge_limits
    from cogcli.policy.run_policy import Requester, RunPolicy
    from cogcli.run.engine.context import Engine
    from cogcli.run.engine.run import Request, execute
    from cogcli.run.policy_request import PolicyRequest
    from cogcli.specs.catalog import Catalog
    from cogcli.specs.pack_skills import agent_skill_id, with_pack_skills

    given = large_input()
    pack, known = given.pack, given.capabilities
    asked = AgentRequest("Refund my order", user=User("cust_7"))
    intent = intent_of(pack, asked, known)
    limits = merge_limits(DEFAULTS, pack.meta.defaults.budget)
    policy = RunPolicy(pack, given.policy, Budgets({"turns": 6}), Requester(intent.intent, "cust_7"),
                       safety_mode="destructive")  # fmt: skip
    made = build_agent_run(
        Invocation(
            pack, asked, PolicyRequest(pack.ref), known, intent, limits, "destructive", policy
        )
    )
    skills = with_pack_skills(Catalog(capabilities=dict(known)), pack).skills
    clock, ids = SystemClock(), SystemIds()
    journal = Store(str(runs)).create(
        f"ep_{ids.ulid()}", trace_id=ids.trace_id(), clock=clock, ids=ids, redactor=Redactor(()), durability="process"
    )  # fmt: skip
    engine = Engine(sink=journal, runner=NoCalls(), clock=clock, ids=ids, options=RunOptions(), capabilities=known,
                    skills=skills, policy=policy)  # fmt: skip
    request = Request(made.task, {}, {}, 0, {}, made.pins, agent=made.payload)
    plan = engine.plan_of(agent_skill_id(pack))
    run_id = ids.run_id()
    took = cpu_seconds(lambda: execute(engine, plan, request, run_id, made.program))
    journal.close()
    return took * 1e3


class NoCalls:
    """A runner of a run that calls nothing."""

    def chain(self, capability_id: str) -> Any:
        raise AssertionError("no call is made")

    attempt = chain

    def close(self, grace: float) -> None:
        return


def cpu_seconds(run: Callable[[], Any]) -> float:
    """CPU time of this process during a function, in seconds."""
    started = time.process_time()
    run()
    return time.process_time() - started


def step_us(runs: Path, pack: Any, shape: str = "linear") -> float:
    """Microseconds of CPU time a step of a run of 1,000 steps, under a pack or none."""
    policy = policy_for(pack) if pack else None
    return run_us(runs, 1000, shape, policy, time.process_time)


def policy_for(pack: Any) -> Any:
    """The policy of a run under a pack, as `run --pack` makes it."""
    from cogcli.policy.budgets import Budgets
    from cogcli.policy.pack_policy import Policy
    from cogcli.policy.run_policy import Requester, RunPolicy

    rules = Policy.of(pack)
    slots = {"order": "order:o1"}
    asked = Requester("bench", "somebody", role="clerk")
    return RunPolicy(pack, rules, Budgets({"tool_calls.per_workflow": 10**6}), asked, safety_mode="destructive",
                     slots=slots)  # fmt: skip


def bench_pack(rules: int) -> Any:
    """A pack of so many rules, ten of them for the capability that is called, each reading an argument and a fact."""
    from cogcli.declarations.pack_spec import Pack

    def rule(number: int) -> dict[str, Any]:
        called = number % max(1, rules // 10) == 0
        capability = "bench.number.same" if called else f"bench.other.n{number}"
        condition = {
            "and": [{">": [{"var": "args.n"}, 100 + number]}, {"==": [{"var": "order.id"}, "o2"]}]
        }
        return {"rule_id": f"r{number}", "mode": "enforce", "applies_to": {"capabilities": [capability]},
                "if": condition, "then": {"verdict": "deny"}}  # fmt: skip

    return Pack.of(
        {
            "contract_meta": {"contract_version": "1.0", "issuer": "example.org"},
            "pack_meta": {"pack_id": "bench", "pack_version": "1.0.0"},
            "policy_layer": {
                "permissions": [{"role": "clerk", "allow": ["bench.number.same"]}],
                "rules": [rule(number) for number in range(rules)],
            },
            "tooling_layer": {
                "capabilities": {"bench.number.same": {"facts": {"order.n": "output.n"}}}
            },
            "decision_layer": {"intents": [{"id": "bench", "capabilities": ["bench.number.same"]}]},
        }
    )


def prove(folder: Path) -> Iterator[Figure]:
    """Time of proving how two packs of 500 rules compare, of which ten differ, with the start of the solver."""
    packs = [folder / f"{name}.yaml" for name in ("old", "new")]
    for number, path in enumerate(packs):
        path.write_text(json.dumps(proof_pack(500, number)), encoding="utf-8")
    write_capability(folder, "bench.number.same")
    command = [str(COGCLI), "policy", "diff", *map(str, packs), "--json"]

    def compare(*flags: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *flags], cwd=folder, capture_output=True, text=True, check=False
        )

    proof = json.loads(compare("--prove").stdout)["proof"]
    note = f"{proof['answer']}; without `--prove` "
    proven, compared = in_turn(
        lambda: seconds_of(lambda: compare("--prove")),
        lambda: seconds_of(compare),
        rounds=7,
    )
    note += f"{compared:.1f} s"
    yield Figure("`policy diff --prove`, two packs of 500 rules", proven, "s", 2, note)


def proof_pack(rules: int, edition: int) -> dict[str, Any]:
    """A pack whose rules all apply to one capability; the two editions differ in every fiftieth rule."""
    paths = [
        "args.amount",
        "order.total",
        "order.age",
        *(f"order.x{number}" for number in range(40)),
    ]

    def rule(number: int) -> dict[str, Any]:
        value, changed = {"var": [paths[number % len(paths)], 0]}, edition * (number % 50 == 0)
        kind = {"var": ["order.kind", "none"]}
        conditions = [
            {">": [value, 1000 + number + changed]},
            {"and": [{"in": [kind, [f"k{number}", "b", "c"]]}, {"<=": [value, -number]}]},
            {"or": [{"==": [{"var": "user.role"}, f"r{number}"]}, {"<": [value, -5000 - changed]}]},
            {
                "if": [
                    {"==": [kind, "vip"]},
                    {">": [value, 5000]},
                    {"!": {"<=": [value, 900 + number]}},
                ]
            },
        ]
        verdict = ("deny", "escalate", "allow_with_gate")[number % 3]
        return {
            "rule_id": f"r{number}",
            "mode": "enforce",
            "if": conditions[number % 4],
            "then": {"verdict": verdict},
            "tests": [
                {"data": {}, "expect": "error"},
            ],
        }

    listed = ["bench.number.same"]
    return {
        "contract_meta": {"contract_version": "1.0"},
        "pack_meta": {"pack_id": "bench", "pack_version": f"1.{edition}.0"},
        "policy_layer": {
            "permissions": [{"role": "clerk", "allow": listed}],
            "rules": [rule(number) for number in range(rules)],
        },
        "tooling_layer": {},
        "decision_layer": {"intents": [{"id": "bench", "capabilities": listed}]},
        "tone_and_comms": {"agent": {"role": "clerk"}},
    }


def write_capability(project: Path, id: str) -> None:
    """Write a capability without effects."""
    lines = [
        "version: 1.0.0",
        "description: x",
        "inputs: {}",
        "outputs: {}",
        "properties: {side_effects: false}",
    ]
    _write(project / f"capabilities/{id}.yaml", f"id: {id}\n" + "\n".join(lines) + "\n")


def large_input() -> Any:
    """The input of a compilation: the refund of the documentation's support desk over a large graph and memory."""
    from cogcli.agent.context.inputs import (
        AgentRequest,
        CompileInput,
        Edge,
        PromotedMemory,
        RunContext,
        User,
    )
    from cogcli.base.yaml import reader
    from cogcli.declarations.capability_spec import Capability
    from cogcli.declarations.pack_spec import Pack
    from cogcli.policy.pack_policy import Policy
    from cogcli.specs.shapes import check_file

    desk = ROOT / "docs/examples/support-desk"

    def raw(kind: str, path: Path) -> dict[str, Any]:
        parsed = reader.parse(path.read_bytes(), file=path.name)
        return dict(check_file(kind, parsed.value or {}, parsed.places, path.name, {}).raw or {})

    pack = Pack.of(raw("pack", desk / "packs/support-desk/4.0.0.yaml"))
    files = sorted((desk / "capabilities").glob("*.yaml"))
    capabilities = {
        each.id: each for each in (Capability.of(raw("capability", file)) for file in files)
    }
    now, user = "2026-05-04T09:30:00Z", User("cust_7", consent=("preference",))
    run = RunContext(
        "run_1",
        "trace_1",
        pack.tenant,
        "destructive",
        pack.tone.agent.role,
        pack.tone.agent.voice,
        now=now,
    )
    common: dict[str, Any] = {"observed_at": now, "trust": "verified", "tenant_id": pack.tenant}
    edges = [
        Edge("order:ord_881", name, f"crm/{name}", value=value, **common)
        for name, value in (("age_days", 12), ("total", 20))
    ]
    edges += [
        Edge(
            f"order:ord_{880 + n // 100}",
            f"note{n % 100}",
            f"crm/{n}",
            object=f"order:ord_{881 + n % 90}",
            **common,
        )
        for n in range(10_000 - len(edges))
    ]
    memories = [
        PromotedMemory(f"mem_{n:04}", "durable", "preference", "user:cust_7", f"likes{n}", "x" * 40, now,
                       user_id="cust_7", tenant_id=pack.tenant, rank=float(n * 37 % 1000))
        for n in range(1000)
    ]  # fmt: skip
    return CompileInput(
        pack, Policy.of(pack), AgentRequest("Refund order ord_881", user=user), run, capabilities,
        edges=tuple(edges), memories=tuple(memories), limits={"tokens.context": 6000.0},
    )  # fmt: skip


# -- batch ------------------------------------------------------------------------------------------------------------


def batch(folder: Path) -> Iterator[Figure]:
    """The goals of batches on one machine: wall time as ratios, and the memory of the coordinator."""
    lines = 300
    project = folder / "project"
    write_registry(project, files=6)
    environment = {"HOME": str(folder), "PATH": os.environ["PATH"], "COGCLI_TRUST_PROJECT": "1"}
    source = folder / "in.jsonl"
    source.write_text("".join(f'{{"n": {line}}}\n' for line in range(1, lines + 1)))
    numbers = iter(range(10_000))

    def run_batch(*flags: str, file: Path = source) -> Callable[[], float]:
        def take() -> float:
            words = ["run", "bench.two", "--batch", str(file), "-q", *flags]
            output = str(folder / f"out-{next(numbers)}.jsonl")
            runs = ["--runs-dir", str(folder / "runs"), "-o", output]
            return measured([str(COGCLI), *words, *runs], project, environment)[0]

        return take

    def run_program(program: str) -> float:
        command = [sys.executable, "-c", program, str(source), str(folder / "runs")]
        return measured(command, project, environment)[0]

    def run_one() -> float:
        words = ["run", "bench.two", "-p", "n:=1", "-q", "--runs-dir", str(folder / "runs")]
        return measured([str(COGCLI), *words], project, environment)[0]

    run_one()
    mine, loop = in_turn(run_batch("--keep", "folders"), lambda: run_program(_LOOP), rounds=5)
    note = f"{mine / lines:.2f} ms a line beside {loop / lines:.2f}"
    yield Figure("--jobs 1, folders / loop over runs, time", mine / loop, "x", 1.1, note)

    many = folder / "many.jsonl"
    many.write_text("".join(f'{{"n": {line}}}\n' for line in range(1, 2_001)))
    first = folder / "first.jsonl"
    first.write_text('{"n": 1}\n')
    archived = ("--keep", "archived")
    start = statistics.median(run_batch(*archived, file=first)() for _ in range(3))
    one, two = in_turn(
        run_batch(*archived, file=many), run_batch(*archived, "--jobs", "2", file=many), rounds=5
    )
    line, bare = (one - start) / 1_999, bare_line_ms(project)
    note = f"{line:.2f} ms a line without the start, beside {bare * 1000:.1f} µs"
    yield Figure("--jobs 1, archived / bare loop, time", line / bare, "x", 200, note)
    note = f"{two / 2_000:.2f} ms a line beside {one / 2_000:.2f}, with their starts"
    yield Figure("--jobs 2 / --jobs 1, archived, speed", one / two, "x", 1.6, note, at_least=True)

    pair = statistics.median(run_pair(run_one) for _ in range(5)) / 2
    folders = statistics.median(run_batch("--keep", "folders", "--jobs", "2")() for _ in range(5))
    note = f"{pair:.0f} ms a line of two processes at a time, in place of GNU parallel -j2"
    name = "--jobs 2 / a process per line, two at a time, speed"
    yield Figure(f"{name}, folders", pair / (folders / lines), "x", 12, note, at_least=True)
    yield Figure(f"{name}, archived", pair / (two / 2_000), "x", 35, note, at_least=True)

    yield from batch_memory(folder, project, environment)
    yield from batch_on_dask(folder, project, environment, run_batch, lines)


def batch_on_dask(
    folder: Path,
    project: Path,
    environment: dict[str, str],
    run_batch: Callable[..., Callable[[], float]],
    lines: int,
) -> Iterator[Figure]:
    """Wall time of a batch on two Dask workers that run already, beside two workers of its own."""
    if importlib.util.find_spec("distributed") is None:
        print("batch: Dask is not measured: the extra `scale` is not installed", file=sys.stderr)
        return
    place = folder / "scheduler.json"
    flags = ("--no-dashboard", "--scheduler-file", str(place))
    worker = ("worker", *flags, "--nthreads", "1", "--local-directory", str(folder))
    started: list[subprocess.Popen[bytes]] = []

    def start(*words: str) -> None:
        command = [sys.executable, "-m", "dask", *words]
        started.append(
            subprocess.Popen(
                command,
                cwd=project,
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )

    try:
        start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-show", *flags)
        start(*worker)
        start(*worker)
        while not (place.exists() and place.read_text().endswith("}")):
            time.sleep(0.05)
        on_dask = run_batch(
            "--keep", "folders", "--executor", f"dask:{json.loads(place.read_text())['address']}"
        )
        on_dask()
        local, dask = in_turn(run_batch("--keep", "folders", "--jobs", "2"), on_dask, rounds=5)
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()
    note = f"{dask / lines:.2f} ms a line beside {local / lines:.2f}"
    yield Figure("two Dask workers / --jobs 2, folders, time", dask / local, "x", 1.4, note)


def run_pair(run_one: Callable[[], float]) -> float:
    """Milliseconds of two runs at the same time."""
    with ThreadPoolExecutor(2) as pool:
        return max(pool.map(lambda _: run_one(), range(2)))


def bare_line_ms(project: Path) -> float:
    """Milliseconds of the two functions of `bench.two` and a JSON line, without any record: the median of 5."""
    command = [sys.executable, "-c", _BARE]
    found = [
        subprocess.run(command, cwd=project, capture_output=True, check=True, text=True).stdout
        for _ in range(5)
    ]
    return statistics.median(map(float, found))


def batch_memory(folder: Path, project: Path, environment: dict[str, str]) -> Iterator[Figure]:
    """How much more memory the coordinator of a large batch takes than that of 1,000 lines."""
    peaks = {}
    for lines in (1_000, 20_000):
        source = folder / f"lines-{lines}.jsonl"
        source.write_text("".join(f'{{"n": {line}}}\n' for line in range(1, lines + 1)))
        words = [
            "run",
            "bench.two",
            "--batch",
            str(source),
            "-q",
            "--keep",
            "archived",
            "--jobs",
            "2",
        ]
        runs = ["--runs-dir", str(folder / "runs"), "-o", str(folder / f"lines-{lines}.out.jsonl")]
        command = [sys.executable, "-c", _PEAK, *words, *runs]
        done = subprocess.run(
            command, cwd=project, env=environment, capture_output=True, check=True, text=True
        )
        peaks[lines] = int(done.stderr) / 1024
    note = f"{peaks[20_000]:.0f} MB; a million lines: tests/scale/test_batch_size.py"
    grown = peaks[20_000] - peaks[1_000]
    yield Figure("coordinator, 20,000 lines - 1,000 lines", grown, "MB", 15, note)


_BARE = """
import json
import time
from cogcli.official.text import normalize

lines = [json.dumps({"n": number}) for number in range(20_000)]
began = time.perf_counter()
for line in lines:
    json.loads(line)
    text = normalize(normalize("One  two.")["text"])["text"]
    json.dumps({"text": text})
print((time.perf_counter() - began) * 1000 / len(lines))
"""

_PEAK = """
import resource
import sys
from cogcli.__main__ import main

code = main()
assert not code, code
# After a command, standard output takes nothing more.
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""

_LOOP = """
import json
import os
import sys

from cogcli.app.run_skill import environment_of
from cogcli.app.settings import Settings
from cogcli.app.registry import open_registry
from cogcli.declarations.options import RunOptions
from cogcli.run.launch import launch
from cogcli.run.prepare import RunRequest, prepare_again, prepare_for_inputs

settings = Settings({"runs_dir": sys.argv[2]}, os.environ)
catalog = open_registry(settings).reach("bench.two")
request = RunRequest("bench.two", {}, RunOptions())
prepared = prepare_for_inputs(catalog, request, os.environ)
environment = environment_of(settings)
for line in open(sys.argv[1]):
    inputs = json.loads(line)
    assert launch(environment, prepare_again(prepared, request._replace(inputs=inputs))).status == "ok"
"""


BENCHES: dict[str, Callable[[Path], Iterator[Figure]]] = {
    "startup": startup,
    "steps": steps,
    "peers": peers,
    "batch": batch,
    "context": context,
    "fanout": fanout,
    "validate": validate,
    "events": events,
    "index": index,
    "memory": memory,
    "archive": archive,
    "prove": prove,
    "quality": quality,
    "documents": documents,
    "pages": pages,
    "gateway": gateway,
    "million": lambda folder: million(folder, 1_000_000),
}

if __name__ == "__main__":
    sys.exit(main())
