"""The tool that changes the pure rooms to see whether their tests notice (tooling/mutants.py)."""

from __future__ import annotations

import ast
from pathlib import Path

from tooling.mutants import mutations

ROOM = Path(__file__).parents[2] / "cogcli/policy"
SOURCE = '''
"""A page."""
LIMIT: Final[int] = 3
Names = tuple[str, ...]
def of(a: int | None, b: bool = False) -> int | None:
    """What it says."""
    if a < LIMIT and not b:
        note(a)
        return a + 1
    return f"a long text of {a}"
'''
MADE = [
    "3 -> 4",
    "3 -> 2",
    "False -> True",
    "a < LIMIT and (not b) -> a < LIMIT or not b",
    "a < LIMIT and (not b) -> not b",
    "a < LIMIT and (not b) -> a < LIMIT",
    "a < LIMIT and (not b) -> not it",
    "a < LIMIT -> a <= LIMIT",
    "a < LIMIT -> a >= LIMIT",
    "not b -> b",
    "delete the statement",
    "a + 1 -> a - 1",
    "return a + 1 -> return None",
    "1 -> 2",
    "1 -> 0",
    "return f'a long text of {a}' -> return None",
]


def test_what_is_changed() -> None:
    assert sorted(each.text for each in mutations(ast.parse(SOURCE))) == sorted(MADE)


def test_each_mutant_is_another_program() -> None:
    text = (ROOM / "pressure.py").read_text(encoding="utf-8")
    programs = {ast.unparse(ast.parse(text))}
    count = len(mutations(ast.parse(text)))
    for number in range(count):
        tree = ast.parse(text)
        mutations(tree)[number].apply()
        compile(ast.fix_missing_locations(tree), "pressure.py", "exec")
        programs.add(ast.unparse(tree))
    assert len(programs) > 0.9 * count
