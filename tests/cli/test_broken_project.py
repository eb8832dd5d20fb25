"""A project with defects of every kind: each is found at its line, and nothing else is."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cogcli.app.explain import pages

pytestmark = pytest.mark.sampled(8)

ROOT = Path(__file__).resolve().parents[2]
BROKEN = ROOT / "tests" / "specs" / "broken"
MARK = re.compile(r"# x-defect(?P<whole>-of-file)?: (?P<codes>[a-z. -]+)$")
KINDS = ("skills", "capabilities", "bindings", "services", "policies")
Defects = Counter[tuple[str, int, str]]


def seeded() -> Defects:
    """File, line and code of every mark."""
    found: Defects = Counter()
    for file in sorted(path for path in BROKEN.rglob("*") if path.suffix in (".yaml", ".yml")):
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if mark := MARK.search(line):
                place = file.relative_to(BROKEN).as_posix(), 0 if mark["whole"] else number
                found.update((*place, code) for code in mark["codes"].split())
    return found


@pytest.fixture
def shop(project: Any) -> Any:
    shutil.copytree(BROKEN, project.root, dirs_exist_ok=True)
    return project


def test_every_seeded_defect_is_found_at_its_line_and_nothing_else(shop: Any) -> None:
    problems = shop.run("validate", "--json").assert_exit(1).json["problems"]
    found: Defects = Counter((p["file"], p["line"], p["code"]) for p in problems)
    assert sorted((seeded() - found).elements()) == [], "not found"
    assert sorted((found - seeded()).elements()) == [], "not seeded"


def test_the_seeds_are_many_and_of_every_kind() -> None:
    defects = seeded()
    assert sum(defects.values()) >= 100
    assert len({code for _, _, code in defects}) >= 90
    for kind in KINDS:
        assert sum(count for (file, _, _), count in defects.items() if file.startswith(kind)) >= 3


@pytest.mark.sampled(16)
def test_every_problem_of_the_broken_project_has_a_frame_and_a_page(shop: Any) -> None:
    out = shop.run("validate").assert_exit(1).out
    assert out.count("  --> ") == sum(seeded().values())
    assert {code for _, _, code in seeded()} <= set(pages())


def test_the_shipped_registry_has_no_problem(project: Any) -> None:
    result = project.run("validate", "--strict", "-C", str(ROOT)).assert_ok()
    assert result.out.endswith("0 errors, 0 warnings.\n")
