"""A process that may use little memory ends its run while it can (docs/reference/execution.md#memory)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from fakes.runner import ScriptedRunner, gives
from fakes.runs import Ran, run
from fakes.specs import capability, skill, step
from support.loopback_servers import reply, served
from support.project import COGCLI, Project

from cogcli.base import memory_limit

pytestmark = pytest.mark.sampled(4)

TIGHT = 1 << 20
"""Any process of Python is larger."""
API = """
openapi: 3.1.0
info: {title: Weather, version: 1.0.0}
servers: [{url: "%s"}]
paths:
  /weather:
    get:
      operationId: read
      responses: {"200": {description: ok, content: {application/json: {schema: {type: object}}}}}
"""


def run_two(
    monkeypatch: pytest.MonkeyPatch, limit: int | None, script: Any = None
) -> tuple[Ran, ScriptedRunner]:
    """A run of two parallel steps in a process with this limit."""
    monkeypatch.setattr(memory_limit, "find_limit", lambda: limit)
    monkeypatch.setattr(memory_limit, "share_arena", lambda: None)
    runner = ScriptedRunner({"c.a": script or gives(y=1)})
    plan = skill(step("a", "c.a", depends_on=[]), step("b", "c.a", depends_on=[]))
    return run(plan, runner, capability("c.a")), runner


def test_a_run_without_room_calls_nothing_and_ends_as_out_of_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result, runner = run_two(monkeypatch, TIGHT)
    error = result.outcome.error
    assert (result.outcome.status, result.code, error.exit_code) == ("error", "internal", 70)
    assert error.message == "out of memory: 0 MiB are left of 1 MiB"
    assert "ulimit -v" in error.hint
    assert runner.called() == []


@pytest.mark.parametrize("limit", [None, 1 << 46])
def test_a_run_with_room_is_not_ended(monkeypatch: pytest.MonkeyPatch, limit: int | None) -> None:
    assert run_two(monkeypatch, limit)[0].outcome.status == "ok"


@pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="the system does not report the size"
)
def test_calls_in_flight_need_room_for_their_responses() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * os.sysconf("SC_PAGE_SIZE") + 2 * memory_limit.ROOM
    memory_limit.require_room(limit)
    with pytest.raises(MemoryError):
        memory_limit.require_room(limit, calls=8)


def test_memory_that_runs_out_while_results_come_in_ends_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    called: list[Any] = []

    def script(given: dict[str, Any]) -> dict[str, Any]:
        called.append(given)
        return {"y": 1}

    def require_room(limit: int, calls: int = 0) -> None:
        if called:
            raise MemoryError("1 MiB are left of 9 MiB")

    monkeypatch.setattr(memory_limit, "require_room", require_room)
    result, _ = run_two(monkeypatch, 9 << 20, script)
    assert (result.outcome.status, result.code) == ("error", "internal")
    assert result.outcome.error.message == "out of memory: 1 MiB are left of 9 MiB"
    assert called


@pytest.mark.skipif(
    not Path("/proc/self/limits").exists(), reason="the system does not report the limit"
)
def test_the_limit_is_that_of_the_process() -> None:
    code = "import cogcli.base.memory_limit as m; print(m.find_limit())"
    python = Path(COGCLI).parent / "python"
    shown = [
        subprocess.run(
            ["sh", "-c", f"ulimit -v {kib}; exec {python} -c '{code}'"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        for kib in ("unlimited", 500_000)
    ]
    assert shown == ["None", str(500_000 << 10)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kib", "codes"), [(80_000, (70,)), (130_000, (0, 70)), (160_000, (0, 70))]
)
def test_parallel_http_steps_in_a_small_address_space_end(
    project: Project, kib: int, codes: tuple[int, ...]
) -> None:
    """Threads that reserve addresses for malloc left the interpreter no byte to unwind an exception with;
    the JSON encoder crashed the process when large responses came in together."""
    for path, text in {
        "capabilities/weather.read.yaml": "id: weather.read\nversion: '1.0.0'\ndescription: Reads.\ninputs: {}\n"
        "outputs: {text: {type: string}}\nproperties: {side_effects: false}\n",
        "services/local/weather.yaml": "id: weather\nkind: openapi\nspec_ref: docs/weather.yaml\nnetwork: private\n",
        "bindings/local/weather.read/weather.yaml": "id: weather_read\ncapability: weather.read\nservice: weather\n"
        "protocol: openapi\noperation: read\nrequest: {}\nresponse: {text: response.text}\n",
        "skills/local/weather/all/skill.yaml": "id: weather.all\nversion: '1.0.0'\nname: All\n"
        "description: Reads six times.\ninputs: {}\noutputs: {}\nsteps:\n"
        + "".join(
            f"  - {{id: r{n}, uses: weather.read, output: {{text: vars.r{n}}}, depends_on: []}}\n"
            for n in range(6)
        ),
    }.items():
        project.write(path, text)
    with served(
        reply(body=b'{"text": "%s"}' % (b"x" * 1_000_000), kind="application/json")
    ) as address:
        project.write("docs/weather.yaml", API % address)
        project.run("config", "trust", "--yes", ".").assert_ok()
        line = f"ulimit -v {kib}; exec {COGCLI} run weather.all --json"
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=project.root,
            env=project.env,
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert done.returncode in codes, done.stderr
    project.run("verify", "@last").assert_ok()


UNMAPPED = "x.so: failed to map segment from shared object"
WITHOUT_MEMORY = """
import sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise {error}

sys.meta_path.insert(0, Finder())
sys.argv = ["cogcli", "ls"]
from cogcli.__main__ import start
sys.exit(start())
"""


@pytest.mark.parametrize(
    ("module", "error"),
    [
        ("cogcli.cli.main", "MemoryError"),
        ("cogcli.cli.typer_app", "SystemError('error return without exception set')"),
        ("cogcli.cli.commands.ls", "MemoryError"),
        ("cogcli.app.episodes", f"ImportError({UNMAPPED!r})"),
    ],
)
def test_a_command_that_cannot_be_imported_for_want_of_memory_says_so(
    project: Project, module: str, error: str
) -> None:
    code = WITHOUT_MEMORY.format(module=module, error=error)
    done = subprocess.run(
        [Path(COGCLI).parent / "python", "-c", code],
        cwd=project.root, env=project.env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 70
    assert done.stderr.startswith(
        "error[internal]: out of memory\n  help  raise the limit of memory"
    )
    assert "Traceback" not in done.stderr
