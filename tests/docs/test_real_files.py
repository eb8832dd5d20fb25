"""What shipped skills say of files of Debian and Python is what the page shows (docs/reference/real-files.md)."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from typing import Any

import pytest
from support.project import Project

from tooling.real_files import PYLIB, SAMPLES, Sample, anchor, recorded, shown

ENTRIES = recorded()


def answer(project: Project, sample: Sample) -> Any:
    """What its lines print, the last of which is the skill."""
    *before, last = (line.replace("$PYLIB", PYLIB) for line in sample.lines)
    for line in before:
        subprocess.run(["bash", "-euc", line], cwd=project.root, check=True)
    return project.run(*shlex.split(last)[1:]).assert_ok().json


def altered(value: Any) -> Any:
    """A wrong answer: each text is reversed, each number and verdict another one."""
    if isinstance(value, dict):
        return {name: altered(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [altered(inner) for inner in value]
    return (
        not value
        if isinstance(value, bool)
        else f"{value}?"[::-1]
        if isinstance(value, str)
        else value + 1
    )


def all_hold(sample: Sample, given: Any) -> bool:
    try:
        return all(held for _, held in sample.holds(sample.place, given))
    except (KeyError, IndexError, ValueError, OSError):
        return False


@pytest.mark.sampled(12)
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.skill)
def test_a_skill_on_a_real_file(sample: Sample, project: Project) -> None:
    if sample.absence:
        pytest.skip(sample.absence)
    given = answer(project, sample)
    entry = ENTRIES[anchor(sample)]
    for words, held in sample.holds(sample.place, given):
        assert held, f"{sample.skill}: {words}\n{json.dumps(given, indent=1)[:4000]}"
        assert f"\n- {words}\n" in entry, "python tooling/real_files.py"
    assert not all_hold(sample, altered(given))
    if sample.fingerprint() in entry:
        assert shown(sample, given) in entry, "python tooling/real_files.py"


def test_the_page_has_an_entry_for_each_with_its_lines() -> None:
    assert list(ENTRIES)[1:] == [anchor(sample) for sample in SAMPLES]
    for sample in SAMPLES:
        assert "```sh\n" + "\n".join(sample.lines) + "\n```" in ENTRIES[anchor(sample)], (
            sample.skill
        )
    assert len({sample.skill.partition(".")[0] for sample in SAMPLES}) >= 10


def test_a_file_that_is_not_here_is_told() -> None:
    absent = SAMPLES[0]._replace(paths=("/usr/share/no-such-folder",))
    assert (
        absent.absence
        == "/usr/share/no-such-folder is not here, or empty (Debian package base-files)"
    )
    absent = SAMPLES[0]._replace(paths=("$PYLIB/no-such-file",), package="")
    assert absent.absence.startswith("$PYLIB/no-such-file is not here")
    assert not SAMPLES[0]._replace(paths=(os.__file__,)).absence
