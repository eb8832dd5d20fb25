"""Called functions: which may be called, and what they can do to a run. Names follow the list of hostile cases."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, NamedTuple

import pytest
from attack import COGCLI, attack, hold_all_episodes
from fakes.processes import is_gone

pytestmark = pytest.mark.sampled(12)

MODULE = """
import os
import subprocess
from os import system

MARK = {mark!r}


class Maker:
    def __init__(self, text):
        open(MARK, "w")


def good(text):
    return {{"text": text}}


def _private(text):
    open(MARK, "w")
    return {{"text": text}}


renamed = good
anonymous = lambda text: {{"text": text}}
run = subprocess.run


def prints(text):
    import sys

    for _ in range(1000):
        print("x" * 100_000)
    sys.stdout.write("\\x1b]0;stray\\x07")
    sys.stderr.write("\\x1b]0;stray\\x07")
    sys.__stdout__.write("stray")
    os.write(1, b"stray")
    subprocess.run(["echo", "stray"], check=False)
    return {{"text": "done"}}


def prints_late(text):
    import threading
    import time

    threading.Thread(target=lambda: (time.sleep(0.3), print("stray"))).start()
    return {{"text": "done"}}


def mutates(record):
    record["inner"].append("changed")
    record["new"] = 1
    return {{"text": "done"}}


def endless(text):
    while True:
        pass


def endless_told(text):
    open(text, "w").write(str(os.getpid()))
    endless(text)


def allocates(text):
    return {{"text": len(bytearray(8 * 1024**3))}}


def vanishes(text):
    os.kill(os.getpid(), 9)


def leaves(text):
    raise SystemExit(0)


def interrupts(text):
    raise KeyboardInterrupt


def recurses(text):
    return recurses(text)


def cyclic(text):
    value = []
    value.append(value)
    return {{"text": value}}


def deep(text):
    value = []
    for _ in range(100_000):
        value = [value]
    return {{"text": value}}


def raises_worse(text):
    class Worse(Exception):
        def __str__(self):
            raise ValueError

    raise Worse


def moves(text):
    os.chdir("/")
    os.environ.clear()
    os.umask(0)
    return {{"text": "done"}}
"""


class Case(NamedTuple):
    """A module and operation, and how the run must end: exit code and error code."""

    name: str
    module: str
    operation: str
    exit: int
    error: str | None


REFUSED = (
    Case("C01", "os", "system", 3, "service.forbidden"),
    Case("C01a", "subprocess", "run", 3, "service.forbidden"),
    Case("C01b", "builtins", "eval", 3, "service.forbidden"),
    Case("C01c", "cogcli.base.files", "write_atomic", 3, "service.forbidden"),
    Case("C01d", "json", "loads", 3, "service.forbidden"),
    Case("C01e", "orjson", "loads", 3, "service.module"),
    Case("C02", "hostile_services", "subprocess.run", 3, "binding.operation"),
    Case("C02a", "hostile_services", "system", 3, "service.module"),
    Case("C02b", "hostile_services", "run", 3, "service.module"),
    Case("C02c", "hostile_services", "good.__call__", 3, "binding.operation"),
    Case("C03", "hostile_services", "__import__", 3, "binding.operation"),
    Case("C03a", "hostile_services", "__builtins__", 3, "binding.operation"),
    Case("C03b", "hostile_services", "_private", 3, "binding.operation"),
    Case("C03c", "hostile_services", "Maker", 3, "service.module"),
    Case("C03d", "hostile_services", "anonymous", 3, "service.module"),
    Case("C03e", "hostile_services", "renamed", 3, "service.module"),
    Case("C03f", "hostile_services", "os", 3, "service.module"),
    Case("C03g", "..hostile_services", "good", 3, "value.range"),
    Case("C03h", "hostile services", "good", 3, "value.range"),
)
CALLED = (
    Case("C13", "hostile_services", "prints", 0, None),
    Case("C13a", "hostile_services", "prints_late", 0, None),
    Case("C16", "hostile_services", "leaves", 1, "call.server-error"),
    Case("C16a", "hostile_services", "interrupts", 1, "call.server-error"),
    Case("C16b", "hostile_services", "recurses", 1, "call.server-error"),
    Case("C16c", "hostile_services", "raises_worse", 1, "call.server-error"),
    Case("C16d", "hostile_services", "cyclic", 1, "response.not-json"),
    Case("C16e", "hostile_services", "deep", 1, "response.not-json"),
    Case("C16f", "hostile_services", "moves", 0, None),
)


def prepared(project: Any, module: str, operation: str, *, metadata: str = "{}") -> tuple[str, ...]:
    """A skill of one step that calls an operation; the command that runs it."""
    project.write("hostile_services.py", MODULE.format(mark=str(project.root / "mark")))
    service(project, module)
    project.write(
        "capabilities/hostile.text.take.yaml",
        'id: hostile.text.take\nversion: "1.0.0"\ndescription: Takes a text.\n'
        "inputs: {text: {type: string}, record: {type: object}}\noutputs: {text: {type: any}}\n"
        "properties: {side_effects: false}\n",
    )
    given = "{record: input.record}" if operation == "mutates" else "{text: input.text}"
    project.write(
        "bindings/local/hostile.text.take/take.yaml",
        "id: hostile_take\ncapability: hostile.text.take\nservice: hostile\nprotocol: pythoncall\n"
        f"operation: {operation}\nrequest: {given}\nresponse: {{text: response.text}}\nmetadata: {metadata}\n",
    )
    project.skill(
        "hostile.taking",
        "- {id: take, uses: hostile.text.take, input: {text: inputs.text, record: inputs.record},"
        " output: {text: outputs.text}}",
        inputs="{text: {type: string, default: x}, record: {type: object, default: {inner: []}}}",
        outputs="{text: {type: any}}",
    )
    return ("run", "hostile.taking", "--json")


def service(project: Any, module: str, isolation: str = "thread") -> None:
    project.write(
        "services/local/hostile.yaml",
        f"id: hostile\nkind: pythoncall\nmodule: {module}\nisolation: {isolation}\n",
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_what_no_service_exports_is_refused_before_anything_runs(project: Any, case: Case) -> None:
    outcome = attack(project, *prepared(project, case.module, case.operation))
    codes = {problem["code"] for problem in outcome.envelope["problems"]}
    assert (outcome.code, {case.error} <= codes) == (case.exit, True), codes
    assert not project.episodes
    assert not (project.root / "mark").exists()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CALLED, ids=lambda case: case.name)
def test_a_function_cannot_leave_its_step(project: Any, case: Case) -> None:
    outcome = attack(project, *prepared(project, case.module, case.operation))
    assert (outcome.code, outcome.error) == (case.exit, case.error)
    assert b"stray" not in outcome.out
    assert b"\x1b" not in outcome.err
    hold_all_episodes(project)


@pytest.mark.sampled(24)
def test_C04_a_module_that_may_not_be_called_is_not_even_imported(project: Any) -> None:
    command = prepared(project, "writes_on_import", "good")
    project.write(
        "writes_on_import.py",
        f"open({str(project.root / 'mark')!r}, 'w')\n{MODULE.format(mark='')}",
    )
    outcome = attack(project, *command, env={"COGCLI_TRUST_PROJECT": ""})
    assert (outcome.code, outcome.error) == (3, "service.untrusted")
    for looking in (
        ("validate", "--json"),
        ("doctor", "--json"),
        ("skills", "ls", "--json"),
        (*command, "--plan"),
    ):
        attack(project, *looking, env={"COGCLI_TRUST_PROJECT": ""})
        attack(project, *looking)
    assert not (project.root / "mark").exists()


@pytest.mark.parametrize(
    "name", ["json", "yaml", "enum", "typing", "orjson", "ruamel", "sitecustomize", "cogcli"]
)
def test_C06_modules_in_the_working_directory_shadow_nothing(project: Any, name: str) -> None:
    command = prepared(project, "hostile_services", "good")
    project.write(f"{name}.py", f"open({str(project.root / 'mark')!r}, 'w')\n")
    assert attack(project, *command).code == 0
    assert attack(project, "doctor", "--json").code in (0, 1)
    assert not (project.root / "mark").exists()


@pytest.mark.parametrize("search_path", [None, ":", ".", ":/nowhere"])
@pytest.mark.parametrize(
    "start", [(sys.executable, "-m", "cogcli"), (COGCLI,)], ids=["python-m", "script"]
)
def test_C06_nothing_is_imported_from_the_working_directory(
    project: Any, start: tuple[str, ...], search_path: str | None
) -> None:
    project.write("json.py", f"open({str(project.root / 'mark')!r}, 'w')\n")
    env = project.env if search_path is None else {**project.env, "PYTHONPATH": search_path}
    done = subprocess.run(
        [*start, "skills", "ls", "--json"],
        cwd=project.root,
        env=env,
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout)["exit_code"] == 0
    assert not (project.root / "mark").exists()


def test_C10_a_function_that_never_returns_is_left_behind_in_time(project: Any) -> None:
    command = prepared(project, "hostile_services", "endless", metadata="{timeout_seconds: 0.5}")
    outcome = attack(project, *command, installed=True)  # only the end of a process ends it
    assert (outcome.code, outcome.error) == (6, "call.timeout")
    hold_all_episodes(project)


@pytest.mark.sampled(24)
def test_C10_in_a_process_it_is_killed_and_uses_no_time_any_more(project: Any) -> None:
    command = prepared(
        project, "hostile_services", "endless_told", metadata="{timeout_seconds: 1.5}"
    )
    service(project, "hostile_services", isolation="process")
    file = project.root / ".cogcli" / "pid"
    file.parent.mkdir(exist_ok=True)
    outcome = attack(project, *command, "-p", f"text={file}")
    assert (outcome.code, outcome.error) == (6, "call.timeout")
    assert is_gone(int(file.read_text()))
    hold_all_episodes(project)


def test_C11_a_function_that_wants_all_memory_gets_none_of_ours(project: Any) -> None:
    command = prepared(project, "hostile_services", "allocates")
    service(project, "hostile_services", isolation="process")
    outcome = attack(project, *command)
    assert (outcome.code, outcome.error) == (1, "call.server-error")
    assert "MemoryError" in outcome.envelope["error"]["message"]
    hold_all_episodes(project)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CALLED, ids=lambda case: case.name)
def test_a_function_in_a_process_cannot_leave_its_step_either(project: Any, case: Case) -> None:
    command = prepared(project, case.module, case.operation)
    service(project, case.module, isolation="process")
    outcome = attack(project, *command)
    assert (outcome.code, outcome.error) == (case.exit, case.error)
    assert b"stray" not in outcome.out
    assert b"\x1b" not in outcome.err
    hold_all_episodes(project)


def test_a_worker_that_dies_fails_its_step_and_nothing_else(project: Any) -> None:
    command = prepared(project, "hostile_services", "vanishes")
    service(project, "hostile_services", isolation="process")
    outcome = attack(project, *command)
    assert (outcome.code, outcome.error) == (6, "call.transport")
    assert "was killed by SIGKILL" in outcome.envelope["error"]["message"]
    hold_all_episodes(project)


def test_C15_a_function_that_changes_its_input_changes_only_its_copy(project: Any) -> None:
    assert attack(project, *prepared(project, "hostile_services", "mutates")).code == 0
    shown = attack(project, "state", "show", "--path", "x-cognitive.inputs.record", "--json")
    assert shown.envelope["value"] == {"inner": []}
    excerpt = attack(
        project, "state", "show", "--path", "outcomes.actions[0].input_excerpt", "--json"
    )
    assert '{"inner":[]}' in excerpt.envelope["value"]
    hold_all_episodes(project)
