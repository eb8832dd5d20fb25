"""The screens of `screens.yaml`, as files: every command at 80 and 120 columns and piped.

`COGCLI_UPDATE_GOLDENS=1` writes the files anew.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from ruamel.yaml import YAML
from support.guide_tool import REGISTRY, TOOL, write_files
from support.memory_seed import payload, propose
from support.user_seed import seed_user

pytestmark = pytest.mark.sampled(8)

GOLDENS = Path(__file__).parent / "goldens"
MODES = {"80": {"COGCLI_FORCE_TTY": "80"}, "120": {"COGCLI_FORCE_TTY": "120"}, "piped": {}}
FAKES = {"COGCLI_FAKE_CLOCK": "1795000000", "COGCLI_FAKE_IDS": "7"}


class Screen(NamedTuple):
    """A row of `screens.yaml`."""

    command: tuple[str, ...]
    before: tuple[tuple[str, ...], ...]
    """Commands that run first."""
    seed: str
    """The name of the state that is there before, of SEEDS; empty for two small skills."""
    has_rows: bool
    """Whether it is made of rows, which never exceed the width of the terminal."""
    masked: tuple[str, ...]
    """The names of MASKS that hide what a screen need not agree on."""


KEYS = {"command", "before", "seed", "rows", "masked"}


def _read_screens() -> dict[str, Screen]:
    rows = YAML(typ="safe").load(Path(__file__).with_name("screens.yaml"))
    unknown = {key for row in rows.values() for key in row} - KEYS
    assert not unknown, unknown
    return {
        name: Screen(
            tuple(shlex.split(row["command"])),
            tuple(tuple(shlex.split(line)) for line in row.get("before", ())),
            row.get("seed", ""),
            row.get("rows", False),
            tuple(row.get("masked", ())),
        )
        for name, row in rows.items()
    }


SCREENS = _read_screens()
MASKS: dict[str, tuple[str, str | Callable[[re.Match[str]], str]]] = {
    "hashes": (r"\b[0-9a-f]{12,64}", lambda match: "0" * len(match[0])),
    "plans": (r"\bplan_(\d+)_[0-9a-f]{8}", r"plan_\1_00000000"),
    "count of skills": (r"(?<=there are )\d+", "14"),
    "folders": (r"(?<=cogcli trace )\S+", "DIR"),
    "times": (r"\d+ms|\d\.\d\ds", "1ms"),
}
"""What the example of an agent hashes to may change; each skill that is shipped changes their count."""


@pytest.mark.sampled(16)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SCREENS)
def test_screen_is_as_agreed(request: Any, name: str, mode: str) -> None:
    screen = SCREENS[name]
    project = request.getfixturevalue("desk" if screen.seed == "desk" else "demo")
    SEEDS[screen.seed](project)
    for number, earlier in enumerate(screen.before):
        project.run(*earlier, env={**FAKES, "COGCLI_FAKE_IDS": str(100 * number)})
    result = project.run(*screen.command, env={**FAKES, "COGCLI_FAKE_IDS": "5000", **MODES[mode]})
    text = transcript(result, screen.command)
    for mask in screen.masked:
        text = re.sub(*MASKS[mask], text)
    if mode == "piped":
        assert "\x1b" not in text
    elif screen.has_rows:
        assert all(len(line) <= int(mode) for line in result.out.split("\n"))
    path = GOLDENS / f"{name}.{mode}.txt"
    if os.environ.get("COGCLI_UPDATE_GOLDENS"):
        path.write_text(text, encoding="utf-8")
    assert path.is_file(), "no golden yet: run with COGCLI_UPDATE_GOLDENS=1"
    assert text == path.read_text(encoding="utf-8")


def seed_memory(project: Any) -> None:
    """Proposals of two tenants."""
    propose(project.root, payload("email"), payload("phone"))
    letter = payload("letter", **{"class": "correction"})
    propose(project.root, letter, tenant="acme", consent=())


def write_foreign_tool(project: Any) -> None:
    """A tool of agent-skills with its registry, of which one service is misspelt."""
    faulty = {"services/official/texts.yaml": "id: texts\nkind: pythoncal\n"}
    write_files(project.root / "tool", TOOL | faulty)
    write_files(project.root / "agent-skill-registry", REGISTRY)


def write_cases(project: Any) -> None:
    """Test cases: one passes, one fails, one is skipped, one cannot be read."""
    project.env["TMPDIR"] = str(project.root)
    folder = "skills/local/demo/greet/tests"
    project.write(f"{folder}/good.yaml", "inputs: {text: hi}\nexpect: {outputs: {text: HI}}\n")
    bad = "description: nobody shouts\ninputs: {text: hi}\nexpect: {outputs: {text: hi}, calls: {demo.text.upper: 1}}\n"
    project.write(f"{folder}/loud.yaml", bad)
    project.write(f"{folder}/web.yaml", "inputs: {text: hi}\nneeds: [network]\n")
    project.write(
        "skills/local/demo/review/tests/odd.yaml", "inputs: {text: hi}\nexpekt: {exit_code: 1}\n"
    )


def seed_loop(project: Any) -> None:
    """A skill that works through words; the empty one fails."""
    project.capability("demo.text.first", "first")
    with (project.root / "demo_services.py").open("a") as file:
        file.write('def first(text: str) -> dict[str, object]:\n    return {"text": text[0]}\n')
    project.skill(
        "demo.loop",
        """
        - id: each
          uses: demo.text.first
          input: {text: item}
          output: {text: outputs.letters}
          config: {foreach: {items: inputs.words}}
        - id: after
          uses: demo.text.upper
          input: {text: done}
          output: {text: outputs.word}
        """,
        inputs="{words: {type: array, items: {type: string}, required: true}}",
        outputs="{letters: {type: array}, word: {type: string}}",
    )


def seed_defects(project: Any, *, fixable: bool = False) -> None:
    """A misspelt reference, or what can be put right; suggestions of ids would follow the shipped registry."""
    skill = project.root / "skills/local/demo/greet/skill.yaml"
    text = skill.read_text().replace("input: {text: vars.text}", "input: {text: vars.txt}")
    if fixable:
        text = re.sub(r'version: "1.0.0"', "version: 1.0", skill.read_text()).replace(
            "uses:", "usess:", 1
        )
    skill.write_text(text)


def transcript(result: Any, command: tuple[str, ...]) -> str:
    """Both streams, stdout marked; machine-dependent figures replaced."""
    lines = [f"$ cogcli {' '.join(command)}".rstrip(), f"exit {result.code}"]
    lines += [f"» {line}" for line in result.out.split("\n")[:-1]]
    lines += result.err.split("\n")[:-1]
    text = re.sub(r"in \d+\.\d\ds\.", "in 0.00s.", "\n".join(lines)) + "\n"
    return re.sub(r"\(\d+ kB\)", "(20 kB)", text)


SEEDS: dict[str, Callable[[Any], None]] = {
    "": lambda project: None,
    "desk": lambda project: None,
    "agent-skills": write_foreign_tool,
    "cases": write_cases,
    "defects": seed_defects,
    "fixable defects": lambda project: seed_defects(project, fixable=True),
    "loop": seed_loop,
    "memory": seed_memory,
    "user": lambda project: seed_user(project.root / ".cogcli/memory.db"),
}
"""What is there before a screen, by the name that `screens.yaml` gives it."""
