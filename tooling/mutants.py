"""Change the pure rooms one place at a time and see whether their own tests notice: `python tooling/mutants.py`.

Each mutant is one changed expression or statement of `cogcli/policy` or `cogcli/agent/context`. It is killed if a test
of `tests/unit/policy` or `tests/unit/agent` that runs the place fails, or computes several times as long as it
should (then it counts as killed, and is told). All take half an hour of one core, with `--every 5` a
fifth of that; `--only TEXT...` takes the modules whose path has a text, `--again FILE` the survivors of an earlier
`--json FILE`, which is written after each module. `--quick` leaves out the slow tests, half of the time; what survives
so is tried with them by `--again`. Exits 1 where fewer than GOAL are killed.

Every mutant runs in a fork of this process, in which all tests are collected. A change within a function is first put
into the function that is there; what no test notices then, and any other change, is tried with the rooms and what
depends on them imported anew. Names of types, documentation, and the words of messages (texts of three words, those in
f-strings) are not changed.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.abc
import importlib.util
import inspect
import json
import os
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from inspect import CO_OPTIMIZED
from itertools import groupby
from operator import setitem
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("policy", "agent/context")
TESTS = ["tests/unit/policy", "tests/unit/agent"]
GOAL = 0.95
SECONDS = 10
KILLED, SURVIVED, TIMED_OUT = "killed", "survived", "timed out"
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
    """The outermost function that the place is in."""


class Mutant(NamedTuple):
    """A mutation of a module, whose tree this is, with the tests that run its place."""

    module: str
    tree: ast.Module
    mutation: Mutation
    tests: tuple[str, ...]
    others: tuple[str, ...]
    """The tests that may ask for it, too."""

    @property
    def line(self) -> int:
        """The line of the place."""
        return int(self.mutation.node.lineno)  # type: ignore[attr-defined]

    @property
    def module_name(self) -> str:
        """The name that the module is imported by."""
        return self.module.removesuffix(".py").replace("/", ".")

    def made(self) -> CodeType:
        """The code of the changed module. To be called once, in a fork."""
        self.mutation.apply()
        return compile(ast.fix_missing_locations(self.tree), str(ROOT / self.module), "exec")


# -- what is changed --------------------------------------------------------------------------------------------------


def mutations(tree: ast.Module) -> list[Mutation]:
    """All mutations of a module, always in the same order."""
    return [found for body in [tree.body] for found in _of_block(body, None)]


def _of_block(block: list[ast.stmt], around: ast.AST | None) -> Iterator[Mutation]:
    for place, statement in enumerate(block):
        deleted = ast.copy_location(ast.Pass(), statement)
        if _is_deletable(statement, around):
            yield Mutation(
                statement, "delete the statement", partial(setitem, block, place, deleted), around
            )
        yield from _inside(statement, around)


def _is_deletable(statement: ast.stmt, around: ast.AST | None) -> bool:
    if isinstance(statement, ast.Expr):
        return not isinstance(statement.value, ast.Constant)
    kinds = (ast.Assign, ast.AugAssign, ast.Raise, ast.Break, ast.Continue)
    return around is not None and isinstance(statement, kinds)


def _inside(node: ast.AST, around: ast.AST | None) -> Iterator[Mutation]:
    """The mutations of a node's parts, types and documentation left out."""
    if around is None and isinstance(node, ast.FunctionDef | ast.Lambda):
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
    if isinstance(parent, ast.Return) and not (
        isinstance(node, ast.Constant) and node.value is None
    ):
        yield f"return {old} -> return None", ast.Constant(None)


def _others(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            for other in COMPARISONS[type(operator)]:
                yield ast.Compare(
                    node.left,
                    [*node.ops[:place], other(), *node.ops[place + 1 :]],
                    node.comparators,
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
    """What an undisturbed run showed: by module and line the tests that ran it, by test its seconds of computing."""

    by_line: dict[str, dict[int, set[str]]]
    seconds: dict[str, float]


def measure() -> Baseline:
    """Run all tests once under coverage."""
    import coverage
    import pytest

    cover = coverage.Coverage(
        data_file=None, config_file=False, source=[f"cogcli/{room}" for room in ROOMS]
    )
    seconds: Counter[str] = Counter()

    class Plugin:
        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
            name = item.nodeid.partition("[")[0]
            cover.switch_context(name)
            started = time.process_time()
            found = yield
            seconds[name] += time.process_time() - started
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
            settings.register_profile(
                "mutants", known, derandomize=True, database=None, phases=phases
            )
            settings.load_profile("mutants")

    options = [
        "-x",
        "-q",
        "--every-case",
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
    quick = {name for name, seconds in baseline.seconds.items() if seconds < 1}
    for room in ROOMS:
        for path in sorted((ROOT / "cogcli" / room).glob("*.py")):
            module = str(path.relative_to(ROOT))
            if not any(text in module for text in only):
                continue
            lines = baseline.by_line.get(module, {})
            every = set().union(*lines.values()) if lines else set()
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for mutation in mutations(tree):
                tests = (
                    _tests_at(mutation.node, lines) or _tests_at(mutation.around, lines) or every
                )
                order = tuple(sorted(tests, key=lambda name: baseline.seconds[name]))
                # What a table or a default says may be asked by tests that run no line of its module.
                others = quick - tests if mutation.around is None else set()
                found.append(Mutant(module, tree, mutation, order, tuple(sorted(others))))
    return found


def _tests_at(node: Any, lines: dict[int, set[str]]) -> set[str]:
    if node is None:
        return set()
    return set().union(
        *(lines.get(line, set()) for line in range(node.lineno, node.end_lineno + 1))
    )


# -- trying one -------------------------------------------------------------------------------------------------------


class Loader(importlib.abc.SourceLoader):
    """Gives one module of the rooms with its mutation."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def get_filename(self, fullname: str) -> str:
        return str(ROOT / self._mutant.module)

    def get_data(self, path: Any) -> bytes:
        return b""

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> Any:
        return self._mutant.made()

    def path_stats(self, path: Any) -> Any:
        raise OSError  # no cached bytes


class Finder(importlib.abc.MetaPathFinder):
    """Finds the mutated module before the one on disk."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if fullname != self._mutant.module_name:
            return None
        return importlib.util.spec_from_loader(fullname, Loader(self._mutant))


class Collected:
    """The tests of this process, by name, and what must be imported anew for a change to be whole."""

    def __init__(self, session: Any, anew: set[str]) -> None:
        self._session, self._anew = session, anew
        self._items = {name: list(items) for name, items in groupby(session.items, key=_name)}

    def run_in_place(self, mutant: Mutant, names: list[str]) -> int | None:
        """0 where these tests pass with the change put into the functions that there are, None where it is in none."""
        if not _put_in_place(mutant):
            return None
        items = [item for name in names for item in self._items[name]]
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self._session.testsfailed:
                return 1
        return 0

    def run_anew(self, mutant: Mutant, names: list[str]) -> int:
        """0 where these tests pass with the change, the rooms imported anew."""
        _forget(self._anew)
        sys.meta_path.insert(0, Finder(mutant))
        return _run_tests(names, [])


def _name(item: Any) -> str:
    return str(item.nodeid.partition("[")[0])


def _put_in_place(mutant: Mutant) -> bool:
    """Whether the mutation is in a function of the module, or of a class in it: then that has the changed code now."""
    around = mutant.mutation.around
    if not isinstance(around, ast.FunctionDef):
        return False
    module = sys.modules[mutant.module_name]
    place = (around.name, min(node.lineno for node in (around, *around.decorator_list)))
    codes = [code for code in _functions_in(mutant.made()) if _place_of(code) == place]
    own = [each for each in _functions_of(vars(module)) if each.__module__ == module.__name__]
    live = [each for each in own if _place_of(each.__code__) == place]
    for function in live:
        function.__code__ = codes[0]
    return bool(live)


def _place_of(code: CodeType) -> tuple[str, int]:
    return code.co_name, code.co_firstlineno


def _functions_in(code: CodeType) -> Iterator[CodeType]:
    """The functions of a module, and of the classes in it, as they were compiled."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType) and inner.co_flags & CO_OPTIMIZED:
            yield inner
        elif isinstance(inner, CodeType):
            yield from _functions_in(inner)


def _functions_of(members: Mapping[str, Any]) -> Iterator[FunctionType]:
    """The functions among the values of a namespace and of its classes, those within decorators, too."""
    for value in list(members.values()):
        value = getattr(value, "fget", None) or getattr(value, "__func__", value)
        value = inspect.unwrap(value) if callable(value) else value
        if isinstance(value, FunctionType):
            yield value
        elif isinstance(value, type) and value.__module__ == members.get("__name__"):
            yield from _functions_of(vars(value))


def outcome(run: Callable[[], int | None], seconds: float) -> str:
    """What running tests in a fork says: whether one fails, or they compute longer than so many seconds."""
    child = os.fork()
    if child == 0:
        code: int | None = 1
        with contextlib.suppress(BaseException):
            _limit(int(seconds) + 1)
            _silence()
            code = run()
        os._exit(0 if not code else 1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code in (-signal.SIGXCPU, -signal.SIGALRM):
        return TIMED_OUT
    return KILLED if code else SURVIVED


def _limit(seconds: int) -> None:
    """Let this process compute so long; what waits for ever ends too, but a busy machine makes nothing late."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    signal.alarm(20 * seconds)


def _dependents() -> set[str]:
    """The rooms and all that was made from them: each would continue with the room as it was."""
    found = {
        name
        for name in sys.modules
        if name.startswith(tuple(f"cogcli.{room.replace('/', '.')}" for room in ROOMS))
    }
    others = {name for name in sys.modules if name.startswith("cogcli.")}
    while more := {name for name in others - found if _takes_from(name, found)}:
        found |= more
    return found


def _takes_from(name: str, modules: set[str]) -> bool:
    values = vars(sys.modules[name]).values()
    return any(getattr(value, "__module__", None) in modules for value in values)


def _forget(rooms: set[str]) -> None:
    """Let the rooms, what depends on them and their tests be imported anew; all that they need stays."""
    tests = ("fakes", "tests", "test_", "reference_gate")
    for name in [name for name in sys.modules if name in rooms or name.startswith(tests)]:
        del sys.modules[name]


def _silence() -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)


def _measured_in_child(rooms: set[str]) -> Baseline:
    """The baseline, measured in a fork as a mutant's tests run, so that coverage is not at work here."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.close(reading)
        _silence()
        _forget(rooms)
        found = measure()
        lists = {
            m: {n: sorted(names) for n, names in lines.items()}
            for m, lines in found.by_line.items()
        }
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
        {m: {int(n): set(names) for n, names in lines.items()} for m, lines in lists.items()},
        seconds,
    )


def tried(mutant: Mutant, baseline: Baseline, collected: Collected, is_quick: bool) -> str:
    """What becomes of the mutant; the slow tests are only asked where the quick ones do not notice it."""
    quick = [name for name in mutant.tests if baseline.seconds[name] < 1]
    slow = [name for name in mutant.tests if baseline.seconds[name] >= 1 and not is_quick]
    anew = ((collected.run_anew, names) for names in (quick, list(mutant.others), slow))
    ways = ((collected.run_in_place, quick), *anew)
    for run, names in ways:
        limit = SECONDS + 3 * sum(baseline.seconds[name] for name in names)
        found = outcome(partial(run, mutant, names), limit) if names else SURVIVED
        if found != SURVIVED:
            return found
    return SURVIVED


def try_all(
    found: list[Mutant], baseline: Baseline, collected: Collected, kept: Path | None, is_quick: bool
) -> int:
    """How many survive. Tells of each module, and writes all survivors to a file after each."""
    survivors: list[Mutant] = []
    for module, mutants in groupby(found, key=lambda mutant: mutant.module):
        results = [(mutant, tried(mutant, baseline, collected, is_quick)) for mutant in mutants]
        for mutant, what in results:
            if what != KILLED:
                print(
                    f"{what}: {module}:{mutant.line}: {mutant.mutation.text}", file=sys.__stdout__
                )
        survivors += (left := [mutant for mutant, what in results if what == SURVIVED])
        line = f"{module:<36} {len(results) - len(left):5} of {len(results):5} killed"
        print(line, file=sys.__stdout__, flush=True)
        if kept:
            lines = [[each.module, each.line, each.mutation.text] for each in survivors]
            kept.write_text(json.dumps(lines, indent=1), encoding="utf-8")
    return len(survivors)


class Job:
    """A plugin of the tests: they are collected, but instead of running them, mutants are tried with them."""

    count = survived = 0

    def __init__(self, asked: argparse.Namespace) -> None:
        self._asked = asked

    def pytest_runtestloop(self, session: Any) -> bool:
        """Try all mutants that are asked for."""
        anew = _dependents()
        baseline = _measured_in_child(anew)
        found = all_mutants(baseline, self._asked.only)[:: self._asked.every]
        if self._asked.again:
            known = {
                tuple(each) for each in json.loads(self._asked.again.read_text(encoding="utf-8"))
            }
            found = [
                each for each in found if (each.module, each.line, each.mutation.text) in known
            ]
        self.count = len(found)
        collected = Collected(session, anew)
        self.survived = try_all(found, baseline, collected, self._asked.json, self._asked.quick)
        return True


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", nargs="+", default=[""], help="modules whose path has one of these texts"
    )
    parser.add_argument("--json", type=Path, help="write the survivors to this file")
    parser.add_argument(
        "--again", type=Path, help="only the survivors of this file, if the lines are unchanged"
    )
    parser.add_argument(
        "--every", type=int, default=1, help="one of so many mutants, for a quicker look"
    )
    parser.add_argument(
        "--quick", action="store_true", help="ask no test that takes a second or longer"
    )
    asked = parser.parse_args()
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    with open(os.devnull, "w", encoding="utf-8") as null, contextlib.redirect_stdout(null):
        job = Job(asked)
        _run_tests([*TESTS, "--capture=no"], [job])
    share = 1 - job.survived / max(1, job.count)
    print(f"{job.count - job.survived} of {job.count} mutants killed: {share:.1%}, goal {GOAL:.0%}")
    return 0 if share >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
