"""Disks that fill up, signals at the worst moment, secrets where they do not belong."""

from __future__ import annotations

import json
import resource
import sys
from typing import Any

import pytest
from attack import attack, hold_all_episodes

pytestmark = pytest.mark.sampled(8)

if sys.platform == "win32":
    pytest.skip("no such limits and signals here", allow_module_level=True)

GREET = ("run", "demo.greet", "-p", "text=hi")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("room", [0, 200, 1000, 2000, 3000, 4000, 5000, 6000, 20_000])
def test_a_disk_that_takes_no_more_ends_the_run_and_keeps_what_is_there(
    demo: Any, room: int
) -> None:
    attack(demo, *GREET)
    outcome = attack(
        demo,
        *GREET,
        "--json",
        "-q",
        before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)),
    )
    assert (outcome.code, outcome.error) in ((3, "env.disk"), (3, "env.runs-dir"), (0, None))
    for command in (("ls",), ("trace",), ("state", "show"), ("verify", "--all")):
        assert attack(demo, *command, "--json").code == 0


INTERRUPT = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), signal.{signal})

sys.meta_path.insert(0, Interrupt())
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
@pytest.mark.parametrize(
    "module", ["cogcli.cli.main", "orjson", "orjson.orjson", "cogcli.run.launch", "sqlite3"]
)
def test_a_signal_in_the_middle_of_an_import_ends_the_process_in_order(
    demo: Any, module: str, name: str, code: int
) -> None:
    """An exception that leaves the import of an extension module can end in a segmentation fault."""
    (demo.home / "sitecustomize.py").write_text(INTERRUPT.format(name=module, signal=name))
    outcome = attack(demo, *GREET, env={"PYTHONPATH": str(demo.home)}, installed=True)
    assert (outcome.code, outcome.out) == (code, b"")
    assert not demo.episodes


SECRET = "sentinel-4711-abcdef"


def test_what_stands_under_a_secret_key_is_in_no_file_and_on_no_screen(demo: Any) -> None:
    demo.write(
        "demo_services.py",
        f"""
        def upper(text):
            return {{"text": text, "api_key": {SECRET!r}, "deep": {{"clientSecret": {SECRET!r}}}}}

        def fail(text):
            raise ValueError("api_key={SECRET}")
        """,
    )
    binding = demo.root / "bindings/local/demo.text.upper/demo_text_upper.yaml"
    binding.write_text(binding.read_text().replace("{text: response.text}", "{text: response}"))
    capability = demo.root / "capabilities/demo.text.upper.yaml"
    capability.write_text(
        capability.read_text().replace(
            "outputs: {text: {type: string", "outputs: {text: {type: any"
        )
    )
    demo.skill(
        "demo.keeper",
        "- {id: a, uses: demo.text.upper, input: {text: inputs.login.user}, output: {text: vars.answer}}",
        inputs="{login: {type: object, required: true}}",
    )
    given = json.dumps({"login": {"user": "ana", "password": SECRET, "token_count": 7}})
    run, trace = ("run", "demo.keeper"), ("trace", "demo.keeper")
    for command in (
        (*run, "--json"),
        (*run, "--progress", "json"),
        (*run, "-v"),
        trace,
        (*trace, "--format", "jsonl"),
    ):
        outcome = attack(demo, *command, "--input", given)
        assert outcome.code == 0, outcome.err
        assert SECRET.encode() not in outcome.out + outcome.err
    for command in (
        ("trace", "--io"),
        ("trace", "--view", "events", "--full"),
        ("state", "show"),
        ("trace", "--json"),
    ):
        outcome = attack(demo, *command)
        assert SECRET.encode() not in outcome.out + outcome.err
    files = [path for path in demo.root.rglob(".cogcli/**/*") if path.is_file()]
    files += [path for path in demo.home.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]
    assert '"token_count":7' in (demo.episode / "events.jsonl").read_text()
    hold_all_episodes(demo)


def test_what_was_typed_is_not_echoed_when_a_secret_is_in_it(demo: Any) -> None:
    for command in (
        ("run", "demo.gret"),
        ("rn", "demo.greet"),
        ("run", "demo.greet", "-p", "txt=x"),
    ):
        outcome = attack(demo, *command, "-p", f"api_key={SECRET}", "--json")
        assert outcome.code == 2
        assert SECRET.encode() not in outcome.out + outcome.err
