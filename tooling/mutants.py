"""Change the pure rooms one place at a time and see whether their own tests notice: `python tooling/mutants.py`.

Each mutant is one changed expression or statement of `cogcli/governance` or `cogcli/context`. It is killed if a test
of `tests/unit/governance` or `tests/unit/context` that runs the place fails, or takes several times as long as it
should. All take the better part of an hour of one core, with `--every 5` a fifth of that; `--only TEXT...` takes the
modules whose path has a text, `--again FILE` the survivors of an earlier `--json FILE`. Exits 1 where fewer than GOAL
are killed.

Every mutant runs in a fork of this process, which has all libraries imported already. Names of types, documentation,
and the words of messages (texts of three words, those in f-strings) are not changed.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.abc
import importlib.util
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby
from operator import setitem
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("governance", "context")
TESTS = [f"tests/unit/{room}" for room in ROOMS]
GOAL = 0.9
SECONDS = 10
COMPARISONS: dict[type, tuple[type, ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}


class Mutation(NamedTuple):
    """One change of a tree: where, what, and what makes it."""

    node: ast.AST
    text: str
    apply: Callable[[], None]
    around: ast.AST | None
    """The function that the place is in."""


class Mutant(NamedTuple):
    """The mutation of this number in a module, with the tests that run its place."""

    module: str
    number: int
    line: int
    text: str
    tests: tuple[str, ...]


# -- what is changed --------------------------------------------------------------------------------------------------


def mutations(tree: ast.Module) -> list[Mutation]:
    """All mutations of a module, always in the same order."""
    return [found for body in [tree.body] for found in _of_block(body, None)]


def _of_block(block: list[ast.stmt], around: ast.AST | None) -> Iterator[Mutation]:
    for place, statement in enumerate(block):
        deleted = ast.copy_location(ast.Pass(), statement)
        if _is_deletable(statement, around):
            yield Mutation(statement, "delete the statement", partial(setitem, block, place, deleted), around)
        yield from _inside(statement, around)


def _is_deletable(statement: ast.stmt, around: ast.AST | None) -> bool:
    if isinstance(statement, ast.Expr):
        return not isinstance(statement.value, ast.Constant)
    kinds = (ast.Assign, ast.AugAssign, ast.Raise, ast.Break, ast.Continue)
    return around is not None and isinstance(statement, kinds)


def _inside(node: ast.AST, around: ast.AST | None) -> Iterator[Mutation]:
    """The mutations of a node's parts, types and documentation left out."""
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        around = node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases", "type"):
            continue
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            yield from _of_block(value, around)
        elif isinstance(value, list):
            for place, part in enumerate(value):
                if isinstance(part, ast.AST):
                    yield from _of_part(
                        part, lambda new, p=place, v=value: v.__setitem__(p, new), node, around
                    )  # type: ignore[misc]
        elif isinstance(value, ast.AST):
            yield from _of_part(value, partial(setattr, node, name), node, around)


def _of_part(
    part: ast.AST, put: Callable[[ast.AST], None], parent: ast.AST, around: ast.AST | None
) -> Iterator[Mutation]:
    if isinstance(parent, ast.Expr) and isinstance(part, ast.Constant):
        return
    if isinstance(parent, ast.JoinedStr) and isinstance(part, ast.Constant):
        return
    if around is None and isinstance(parent, ast.Assign) and isinstance(part, ast.Subscript):
        return  # the name of a type
    for text, new in _replacements(part, parent):
        ast.copy_location(new, part)
        ast.fix_missing_locations(new)
        yield Mutation(part, text, partial(put, new), around)
    yield from _inside(part, around)


def _replacements(node: ast.AST, parent: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """What may stand in the place of an expression, with a description."""
    old = ast.unparse(node) if isinstance(node, ast.expr) else ""
    for new in _others(node):
        yield f"{old} -> {ast.unparse(new)}", new
    tested = isinstance(parent, ast.If | ast.IfExp | ast.While) and parent.test is node
    if (tested or isinstance(parent, ast.comprehension)) and isinstance(node, ast.expr):
        if isinstance(parent, ast.comprehension) and node not in parent.ifs:
            return
        yield f"{old} -> not it", ast.UnaryOp(ast.Not(), node)
    if isinstance(parent, ast.Return) and not (isinstance(node, ast.Constant) and node.value is None):
        yield f"return {old} -> return None", ast.Constant(None)


def _others(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            for other in COMPARISONS[type(operator)]:
                yield ast.Compare(
                    node.left, [*node.ops[:place], other(), *node.ops[place + 1 :]], node.comparators
                )
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        yield ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        for place in range(len(node.values)):
            rest = [*node.values[:place], *node.values[place + 1 :]]
            yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield node.operand
    elif isinstance(node, ast.IfExp):
        yield node.body
        yield node.orelse
    elif isinstance(node, ast.Dict) and len(node.keys) > 1:
        for place in range(len(node.keys)):
            yield ast.Dict(
                [*node.keys[:place], *node.keys[place + 1 :]],
                [*node.values[:place], *node.values[place + 1 :]],
            )
    elif isinstance(node, ast.Constant):
        yield from map(ast.Constant, _other_constants(node.value))


def _other_constants(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [value + 1, value - 1]
    prose = isinstance(value, str) and value.count(" ") > 1
    return [f"XX{value}"] if isinstance(value, str) and not prose else []


# -- which tests run which place --------------------------------------------------------------------------------------


class Baseline(NamedTuple):
    """What an undisturbed run showed: by module and line the tests that ran it, by test its seconds."""

    by_line: dict[str, dict[int, set[str]]]
    seconds: dict[str, float]


def measure() -> Baseline:
    """Run all tests once under coverage."""
    import coverage
    import pytest

    cover = coverage.Coverage(data_file=None, config_file=False, source=[f"cogcli/{room}" for room in ROOMS])
    seconds: Counter[str] = Counter()

    class Plugin:
        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
            name = item.nodeid.partition("[")[0]
            cover.switch_context(name)
            started = time.perf_counter()
            found = yield
            seconds[name] += time.perf_counter() - started
            return found  # type: ignore[return-value]

    cover.start()
    code = _run_tests(TESTS, [Plugin()])
    cover.stop()
    if code:
        raise SystemExit("the tests fail without any mutant")
    data, by_line = cover.get_data(), {}
    for file in data.measured_files():
        module = str(Path(file).relative_to(ROOT))
        lines = data.contexts_by_lineno(file).items()
        by_line[module] = {line: {name for name in names if name} for line, names in lines}
    return Baseline(by_line, dict(seconds))


def _run_tests(names: list[str], plugins: list[Any]) -> int:
    import pytest
    from hypothesis import Phase, settings

    class Repeatable:
        @pytest.hookimpl(tryfirst=True)
        def pytest_collection(self) -> None:
            """Equal examples each time, and none made smaller: whether a test fails is all that counts."""
            known = settings.get_profile("cogcli")
            phases = (Phase.explicit, Phase.generate)
            settings.register_profile("mutants", known, derandomize=True, database=None, phases=phases)
            settings.load_profile("mutants")

    options = [
        "-x",
        "-q",
        "--assert=plain",
        "-p",
        "no:randomly",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-o",
        "faulthandler_timeout=0",
    ]
    return int(pytest.main([*options, *names], plugins=[Repeatable(), *plugins]))


def all_mutants(baseline: Baseline, only: list[str]) -> list[Mutant]:
    """The mutants of the rooms; the quickest tests come first."""
    found = []
    for room in ROOMS:
        for path in sorted((ROOT / "cogcli" / room).glob("*.py")):
            module = str(path.relative_to(ROOT))
            if not any(text in module for text in only):
                continue
            lines = baseline.by_line.get(module, {})
            every = set().union(*lines.values()) if lines else set()
            for number, mutation in enumerate(mutations(ast.parse(path.read_text(encoding="utf-8")))):
                tests = _tests_at(mutation.node, lines) or _tests_at(mutation.around, lines) or every
                order = tuple(sorted(tests, key=lambda name: baseline.seconds[name]))
                found.append(Mutant(module, number, mutation.node.lineno, mutation.text, order))  # type: ignore[attr-defined]
    return found


def _tests_at(node: Any, lines: dict[int, set[str]]) -> set[str]:
    if node is None:
        return set()
    return set().union(*(lines.get(line, set()) for line in range(node.lineno, node.end_lineno + 1)))


# -- trying one -------------------------------------------------------------------------------------------------------


class Loader(importlib.abc.SourceLoader):
    """Gives one module of the rooms with its mutation."""

    def __init__(self, path: Path, number: int) -> None:
        self._path, self._number = path, number

    def get_filename(self, fullname: str) -> str:
        return str(self._path)

    def get_data(self, path: Any) -> bytes:
        return self._path.read_bytes()

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> Any:
        tree = ast.parse(data)
        mutations(tree)[self._number].apply()
        return compile(ast.fix_missing_locations(tree), path, "exec")

    def path_stats(self, path: Any) -> Any:
        raise OSError  # no cached bytes


class Finder(importlib.abc.MetaPathFinder):
    """Finds the mutated module before the one on disk."""

    def __init__(self, mutant: Mutant) -> None:
        self._name = mutant.module.removesuffix(".py").replace("/", ".")
        self._loader = Loader(ROOT / mutant.module, mutant.number)

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if fullname != self._name:
            return None
        return importlib.util.spec_from_loader(fullname, self._loader, origin=str(self._loader._path))


def is_killed(mutant: Mutant, tests: list[str], seconds: float) -> bool:
    """Whether one of these tests notices the mutant, or they take longer than so many seconds."""
    child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(BaseException):
            _silence()
            _forget()
            sys.meta_path.insert(0, Finder(mutant))
            code = _run_tests(tests, [])
        os._exit(0 if code == 0 else 1)
    deadline = time.monotonic() + seconds
    pause = 0.005
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) != 0
        time.sleep(pause)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def _forget() -> None:
    """Let the rooms and their tests be imported anew; all that they need stays."""
    again = ("cogcli.governance", "cogcli.context", "fakes", "tests", "test_", "reference_gate")
    for name in [name for name in sys.modules if name.startswith(again)]:
        del sys.modules[name]


def _silence() -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)


def _measured_in_child() -> Baseline:
    """The baseline, measured in a fork, so that coverage is not at work here."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.close(reading)
        _silence()
        found = measure()
        lists = {m: {n: sorted(names) for n, names in lines.items()} for m, lines in found.by_line.items()}
        with open(writing, "w", encoding="utf-8") as stream:
            json.dump([lists, found.seconds], stream)
        os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as stream:
        text = stream.read()
    os.wait()
    if not text:
        raise SystemExit("the tests fail without any mutant")
    lists, seconds = json.loads(text)
    return Baseline(
        {m: {int(n): set(names) for n, names in lines.items()} for m, lines in lists.items()}, seconds
    )


def _is_noticed(mutant: Mutant, baseline: Baseline) -> bool:
    """Whether a test notices the mutant; the slow ones are only asked where the quick ones do not."""
    quick = [name for name in mutant.tests if baseline.seconds[name] < 1]
    slow = [name for name in mutant.tests if baseline.seconds[name] >= 1]
    return any(
        is_killed(mutant, names, SECONDS + 3 * sum(baseline.seconds[name] for name in names))
        for names in (quick, slow)
        if names
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=[""], help="modules whose path has one of these texts")
    parser.add_argument("--json", type=Path, help="write the survivors to this file")
    parser.add_argument(
        "--again", type=Path, help="only the survivors of this file, if the lines are unchanged"
    )
    parser.add_argument("--every", type=int, default=1, help="one of so many mutants, for a quicker look")
    asked = parser.parse_args()
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    baseline = _measured_in_child()
    with open(os.devnull, "w", encoding="utf-8") as null, contextlib.redirect_stdout(null):
        _run_tests([*TESTS, "--collect-only"], [])  # imports what every mutant needs
    found = all_mutants(baseline, asked.only)[:: asked.every]
    if asked.again:
        known = {tuple(each) for each in json.loads(asked.again.read_text(encoding="utf-8"))}
        found = [mutant for mutant in found if (mutant.module, mutant.line, mutant.text) in known]
    survivors: list[Mutant] = []
    for module, mutants in groupby(found, key=lambda mutant: mutant.module):
        tried = list(mutants)
        left = [mutant for mutant in tried if not _is_noticed(mutant, baseline)]
        survivors += left
        for mutant in left:
            print(f"survived: {module}:{mutant.line}: {mutant.text}")
        print(f"{module:<36} {len(tried) - len(left):5} of {len(tried):5} killed", flush=True)
    if asked.json:
        lines = [[each.module, each.line, each.text] for each in survivors]
        asked.json.write_text(json.dumps(lines, indent=1), encoding="utf-8")
    share = 1 - len(survivors) / max(1, len(found))
    print(f"{len(found) - len(survivors)} of {len(found)} mutants killed: {share:.1%}, goal {GOAL:.0%}")
    return 0 if share >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
