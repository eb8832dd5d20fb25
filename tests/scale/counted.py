"""A project whose skill has an effect outside of the tool: a line in a file. It may kill its process around it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SOURCE = """
import os
import signal
import time

def count(text: str) -> dict[str, object]:
    word, _, rest = text.partition(":")
    if word == "fail":
        raise ValueError(rest)
    if word == "sleep":
        time.sleep(float(rest))
    die("die-before", text)
    with open("effects", "a") as file:
        file.write(text + "\\n")
    die("die-after", text)
    return {"text": text.upper()}

def die(flag: str, text: str) -> None:
    try:
        with open(flag) as file:
            wanted = file.read().split()
    except FileNotFoundError:
        return
    if text in wanted:
        with open(flag, "w") as file:
            file.write(" ".join(each for each in wanted if each != text))
        os.kill(os.getpid(), signal.SIGKILL)
"""
CAPABILITY = """
id: demo.count
version: "1.0.0"
description: Counts a text.
inputs: {text: {type: string, required: true}}
outputs: {text: {type: string, required: true}}
properties: PROPERTIES
"""
STEPS = "- {id: count, uses: demo.count, input: {text: inputs.text}, output: {text: outputs.text}}"
RUN = ("run", "demo.counted", "--batch", "in.jsonl", "-o", "out.jsonl")


PROPERTIES = {
    "effect": "{side_effects: true, idempotent: false}",
    "idempotent": "{side_effects: true, idempotent: true}",
    "none": "{side_effects: false}",
    "unknown": "{deterministic: true}",
}
"""What the capability declares, by effect class. Whatever it declares, each call is counted."""


def make_counted(project: Any, effect: str = "effect", *, more: str = "") -> Any:
    """Give a project the skill `demo.counted`, whose capability declares this effect class and `more`."""
    project.services(SOURCE)
    project.capability("demo.count", "count")
    text = CAPABILITY.replace("PROPERTIES", PROPERTIES[effect]) + more
    project.write("capabilities/demo.count.yaml", text)
    project.skill(
        "demo.counted", STEPS, inputs="{text: {type: string, required: true}}",
        outputs="{text: {type: string}}",
    )  # fmt: skip
    return project


def write_lines(project: Any, texts: Iterable[str], name: str = "in.jsonl") -> Path:
    """Write an input with a line for each text."""
    file: Path = project.write(name, "".join(json.dumps({"text": each}) + "\n" for each in texts))
    return file


def effects(project: Any) -> list[str]:
    """The effects so far, sorted."""
    file = project.root / "effects"
    return sorted(file.read_text().split()) if file.exists() else []


def rows(project: Any, name: str = "out.jsonl") -> list[dict[str, Any]]:
    """The rows of a result file."""
    return [json.loads(line) for line in (project.root / name).read_text().splitlines()]


def assert_same_outputs(project: Any, texts: list[str]) -> None:
    """Fail unless the results are those of a batch that was not killed, but for the lines that wait."""
    for row in rows(project):
        if row["status"] != "pending":
            expected = {"outputs": {"text": texts[row["line"] - 1].upper()}, "error": None}
            assert row == {**row, "status": "ok", "exit_code": 0, **expected}


def outcomes(project: Any, name: str = "out.jsonl") -> list[tuple[int, str]]:
    """Line and status of each row of a result file."""
    return [(row["line"], row["status"]) for row in rows(project, name)]


def batch_folder(project: Any) -> Path:
    """The folder of the only batch."""
    (found,) = (project.root / ".cogcli/episodes/.batches").glob("ba_*")
    path: Path = found
    return path
