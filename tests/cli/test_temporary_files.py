"""Folders of temporary files: only that of a failure is left, and named (docs/reference/command-line.md#signals)."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from support.project import COGCLI, Project
from support.waiting import wait_until

pytestmark = pytest.mark.sampled(12)

SLOW = """
import time

def upper(text: str) -> dict[str, object]:
    time.sleep(60)
    return {"text": text}
"""
DELAYED = """
{"id": "late", "capability_id": "data.schema.validate", "binding_id": "openapi_data_schema_validate_mock",
 "input": {"data": {}, "schema": {}}, "expected_output": {},
 "mock_server": {"type": "data_schema_validate", "replies": [{"status": 200, "body": {}, "delay_ms": 25000}]}}
"""
ENDS = [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 143)]
COMMANDS = {
    "test": ("test", "demo.greet"),
    "verify-bindings": ("openapi", "verify-bindings", "--scenario", "late.json"),
}


@pytest.fixture
def place(demo: Project) -> Path:
    """Where the commands of the demo project keep temporary files."""
    demo.write(
        "skills/local/demo/greet/tests/case.yaml",
        "inputs: {text: hi}\nexpect: {outputs: {text: HI}}\n",
    )
    return Path(demo.env["TMPDIR"])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize(("ending", "code"), ENDS)
def test_a_signal_leaves_no_folder(
    demo: Project, place: Path, name: str, ending: str, code: int
) -> None:
    demo.write("demo_services.py", SLOW)
    demo.write("late.json", DELAYED)
    command = subprocess.Popen(
        [COGCLI, *COMMANDS[name]],
        cwd=demo.root,
        env=demo.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with command:
        wait_until(lambda: command.poll() is not None or [*place.rglob("events.jsonl")])
        assert [*place.iterdir()]
        command.send_signal(getattr(signal, ending))
        out, err = command.communicate(timeout=60)
        assert command.returncode == code, out + err
    assert not [*place.iterdir()]


def test_an_end_leaves_what_it_names_and_nothing_else(demo: Project, place: Path) -> None:
    demo.run("test").assert_ok()
    demo.run("openapi", "verify-bindings", "--scenario", "data.schema.validate.mock").assert_ok()
    assert not [*place.iterdir()]
    demo.write(
        "skills/local/demo/greet/tests/case.yaml",
        "inputs: {text: hi}\nexpect: {outputs: {text: ho}}\n",
    )
    told = demo.run("test").assert_exit(1).out
    (kept,) = place.rglob("ep_*")
    assert str(kept) in told
