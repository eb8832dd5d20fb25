"""The screens, as files: every command at 80 and 120 columns and piped. `COGCLI_UPDATE_GOLDENS=1` writes them anew."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from support.guide_tool import REGISTRY, TOOL, write_files
from support.memory_seed import payload, propose
from support.user_seed import seed_user

GOLDENS = Path(__file__).parent / "goldens"
MODES = {"80": {"COGCLI_FORCE_TTY": "80"}, "120": {"COGCLI_FORCE_TTY": "120"}, "piped": {}}
FAKES = {"COGCLI_FAKE_CLOCK": "1795000000", "COGCLI_FAKE_IDS": "7"}

GREET = ("run", "demo.greet", "-p", "text=hi", "--trace-id", "trace-001")
FAILS = ("run", "demo.greet", "-p", "text=ho", "-p", "times=3", "--tag", "team=platform")
REVIEW = ("run", "demo.review", "-p", "text=hi", "--tag", "team=platform")
CASES: dict[str, tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]] = {
    "home": ((), ()),
    "help-run": ((), ("run", "--help")),
    "help-state": ((), ("state",)),
    "help-inputs": ((), ("help", "inputs")),
    "explain": ((), ("explain", "ref.unwritten")),
    "run-ok": ((), GREET),
    "run-failed": ((), REVIEW),
    "run-plan": ((), ("run", "demo.review", "-p", "text=hi", "--plan")),
    "run-bad-inputs": ((), ("run", "demo.greet", "-p", "txt=hi", "-p", "times=many")),
    "run-bad-json": ((), ("run", "demo.greet", "--input", '{"text": "hi",}')),
    "run-unknown": ((), ("run", "xylograph.qqq")),
    "trace-tree": ((REVIEW,), ("trace",)),
    "trace-step": ((REVIEW,), ("trace", "--step", "score", "--io")),
    "trace-table": ((REVIEW,), ("trace", "--view", "table", "--header")),
    "trace-timeline": ((REVIEW,), ("trace", "--view", "timeline")),
    "trace-lineage": ((REVIEW,), ("trace", "--view", "lineage")),
    "trace-why": ((REVIEW,), ("trace", "--why", "outputs.text")),
    "trace-full": ((GREET,), ("trace", "--view", "events", "--full", "--step", "second")),
    "trace-mermaid": ((REVIEW,), ("trace", "--format", "mermaid")),
    "trace-bad-why": ((REVIEW,), ("trace", "--why", "outputs.txt")),
    "diff": ((GREET, FAILS), ("diff",)),
    "diff-same": ((GREET,), ("diff", "@last", "@last")),
    "report": ((GREET,), ("report", "@last")),
    "diff-one": ((GREET, FAILS), ("diff", "@last")),
    "graph": ((), ("graph", "demo.review")),
    "graph-episode": ((REVIEW,), ("graph", "@last")),
    "graph-dot": ((REVIEW,), ("graph", "@last", "--format", "dot")),
    "gc": ((GREET, REVIEW), ("gc", "--keep", "1", "--dry-run")),
    "gc-criteria": ((GREET,), ("gc",)),
    "gc-ask": ((GREET,), ("gc", "--keep", "0")),
    "gc-pin": ((GREET,), ("gc", "--pin", "@last")),
    "ls-tsv": ((GREET, REVIEW), ("ls", "--format", "tsv", "--header", "--outcome", "error")),
    "trace-events": ((GREET,), ("trace", "--view", "events")),
    "trace-id": ((GREET, GREET), ("trace", "--trace-id", "trace-001")),
    "trace-skill": ((), ("trace", "demo.greet", "-p", "text=hi")),
    "state-show": ((REVIEW,), ("state", "show")),
    "state-path": ((GREET,), ("state", "show", "--path", "outcomes.actions[0].tool")),
    "state-absent": ((GREET,), ("state", "show", "--path", "outcome.status")),
    "state-check": ((GREET,), ("state", "show", "--check")),
    "ls": ((GREET, REVIEW), ("ls",)),
    "ls-md": ((GREET, REVIEW), ("ls", "--format", "md")),
    "verify": ((GREET,), ("verify",)),
    "skills-ls": ((), ("skills", "search", "demo")),
    "skills-list": ((), ("skills", "ls", "--domain", "demo")),
    "skills-show": ((), ("skills", "show", "demo.greet")),
    "skills-none": ((), ("skills", "search", "xylograph")),
    "capabilities-ls": ((), ("capabilities", "ls", "--domain", "demo")),
    "capabilities-show": ((), ("capabilities", "show", "demo.text.upper")),
    "ls-none": ((GREET, REVIEW), ("ls", "--skill", "demo.greet", "--outcome", "error")),
    "validate": ((), ("validate", "skills")),
    "validate-concise": ((), ("validate", "skills", "--format", "concise")),
    "validate-github": ((), ("validate", "skills", "--format", "github")),
    "validate-fixable": ((), ("validate", "skills")),
    "validate-fix": ((), ("validate", "skills", "--fix")),
    "new-project": ((), ("new", "project", "shop")),
    "new-exists": ((), ("new", "skill", "demo.greet")),
    "import-agent-skills": ((), ("import", "agent-skills", "tool")),
    "unknown-command": ((), ("rnu",)),
    "unknown-flag": ((), ("run", "demo.greet", "--inputfile", "a.json")),
}
WITH_MEMORY = {
    "memory-proposals": ((), ("memory", "proposals")),
    "memory-promote": (
        (("memory", "promote", "mp_d4ef670cbecf9ccc", "--by", "ann"),),
        ("memory", "promote", "mp_d3dc2bbf47db2ae9", "--by", "ann"),
    ),
    "memory-why": (
        (("memory", "promote", "mp_d4ef670cbecf9ccc", "--by", "ann"),),
        ("memory", "ls", "--why", "mp_d4ef670cbecf9ccc"),
    ),
    "memory-no-consent": (
        (),
        ("memory", "promote", "mp_a8b62229152aa18f", "--by", "ann", "--tenant", "acme"),
    ),
    "memory-unknown": ((), ("memory", "reject", "mp_0000000000000000")),
}
CASES |= WITH_MEMORY
WITH_USER = {
    "agent-profile": ((), ("agent", "profile", "show", "cust_7")),
    "agent-profile-forget": ((), ("agent", "profile", "forget", "cust_7")),
    "agent-profile-forgotten": ((), ("agent", "profile", "forget", "cust_7", "--yes")),
    "agent-sessions": ((), ("agent", "sessions", "ls")),
    "agent-session": ((), ("agent", "sessions", "show", "trip", "--user", "cust_7")),
    "agent-session-unknown": ((), ("agent", "sessions", "show", "trip", "--tenant", "acme")),
    "agent-jobs": ((), ("agent", "jobs", "ls", "--all")),
    "agent-jobs-run": ((), ("agent", "jobs", "run")),
}
CASES |= WITH_USER
REFUND = ("agent", "invoke", "requests/needs-finance.json", "--trace-id", "trace-001")
WHERE = ("agent", "invoke", "requests/allowed.json", "--trace-id", "trace-002")
ASK, WAITS, REFUSED = (
    ("agent", "invoke", f"requests/{name}.json") for name in ("allowed", "needs-finance", "refused")
)
WITH_DESK = {
    "agent-invoke": ((), WAITS),
    "agent-tree": ((WAITS,), ("trace",)),
    "agent-refused": ((REFUSED,), ("trace",)),
    "agent-layers": ((WAITS,), ("trace", "--view", "layers")),
    "agent-diff": ((ASK, REFUSED), ("diff",)),
    "agent-ls": ((ASK, WAITS), ("ls",)),
    "agent-rerun": ((REFUSED,), ("rerun", "@last")),
    "context-explain": ((REFUND,), ("context", "explain", "@last")),
    "context-why": ((REFUND,), ("context", "explain", "@last", "--why", "payments.refund")),
    "context-unknown": ((REFUND,), ("context", "explain", "@last", "--why", "order.agedays")),
    "context-diff": ((WHERE, REFUND), ("context", "diff", "@last~1", "@last")),
    "metrics": ((WHERE, REFUND), ("metrics", "--check")),
}
CASES |= WITH_DESK
WITH_CASES = {
    "test": ((), ("test", "--jobs", "1", "--coverage")),
    "test-unknown": ((), ("test", "xylograph.qqq")),
}
CASES |= WITH_CASES
LOOP = ("run", "demo.loop", "-p", 'words:=["a","b","c","d","e","f"]')
BAD_LOOP = ("run", "demo.loop", "-p", 'words:=["a","b","c","d","e",""]')
WITH_LOOP = {
    "loop-run": ((), LOOP),
    "loop-run-failed": ((), BAD_LOOP),
    "loop-trace": ((LOOP,), ("trace",)),
    "loop-trace-failed": ((BAD_LOOP,), ("trace",)),
    "loop-trace-full": ((BAD_LOOP,), ("trace", "--full")),
    "loop-rerun": ((BAD_LOOP,), ("rerun", "@last", "--failed-items", "--plan")),
}
CASES |= WITH_LOOP
WITH_DEFECT = (
    "validate",
    "validate-concise",
    "validate-github",
    "validate-fixable",
    "validate-fix",
)
ROWS = (
    "help",
    "home",
    "trace-t",
    "trace-e",
    "trace-l",
    "loop-t",
    "diff.",
    "diff-same",
    "graph.",
    "state",
    "ls.",
    "skills-l",
    "capabilities-l",
    "memory-proposals",
    "context-",
    "metrics",
    "agent-l",
    "agent-d",
    "agent-sessions",
    "agent-jobs",
)
"""Screens made of rows: these never exceed the width."""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CASES)
def test_screen_is_as_agreed(request: Any, name: str, mode: str) -> None:
    before, command = CASES[name]
    demo = request.getfixturevalue("desk" if name in WITH_DESK else "demo")
    if name in WITH_DEFECT:
        seed_defects(demo, fixable="fix" in name)
    if name in WITH_LOOP:
        seed_loop(demo)
    if name in WITH_MEMORY:
        propose(demo.root, payload("email"), payload("phone"))
        propose(demo.root, payload("letter", **{"class": "correction"}), tenant="acme", consent=())
    if name in WITH_USER:
        seed_user(demo.root / ".cogcli/memory.db")
    if name in WITH_CASES:
        write_cases(demo)
    if name == "import-agent-skills":
        write_files(
            demo.root / "tool",
            TOOL | {"services/official/texts.yaml": "id: texts\nkind: pythoncal\n"},
        )
        write_files(demo.root / "agent-skill-registry", REGISTRY)
    for number, earlier in enumerate(before):
        demo.run(*earlier, env={**FAKES, "COGCLI_FAKE_IDS": str(100 * number)})
    result = demo.run(*command, env={**FAKES, "COGCLI_FAKE_IDS": "5000", **MODES[mode]})
    text = transcript(result, command)
    if name in WITH_DESK:  # the example may change; what it hashes to is not part of a screen
        text = re.sub(r"\b[0-9a-f]{12,64}", lambda match: "0" * len(match[0]), text)
        text = re.sub(r"\bplan_(\d+)_[0-9a-f]{8}", r"plan_\1_00000000", text)
    if name == "skills-none":  # each skill that is shipped would change it
        text = re.sub(r"(?<=there are )\d+", "14", text)
    if name in WITH_CASES:
        text = re.sub(r"\d+ms|\d\.\d\ds", "1ms", re.sub(r"(?<=cogcli trace )\S+", "DIR", text))
    if mode == "piped":
        assert "\x1b" not in text
    elif name.startswith(ROWS):
        assert all(len(line) <= int(mode) for line in result.out.split("\n"))
    path = GOLDENS / f"{name}.{mode}.txt"
    if os.environ.get("COGCLI_UPDATE_GOLDENS"):
        path.write_text(text, encoding="utf-8")
    assert path.is_file(), "no golden yet: run with COGCLI_UPDATE_GOLDENS=1"
    assert text == path.read_text(encoding="utf-8")


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
