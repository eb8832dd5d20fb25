"""Measures of source code: lines, functions, branches, and places to look at. Runs in a process of
its own.
"""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from cogcli.sdk import Refused

_LONG = 60
_BRANCHED = 10
_MANY_ARGUMENTS = 7
_MAX_WARNINGS = 200
_SUFFIXES = dict(
    pair.split(":")
    for pair in (
        "c:c c++:cpp cpp:cpp c#:cs csharp:cs go:go java:java javascript:js js:js kotlin:kt"
        " lua:lua perl:pl php:php ruby:rb rust:rs scala:scala swift:swift typescript:ts ts:ts"
    ).split()
)
_BRANCHES = (
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ExceptHandler,
    ast.IfExp,
    ast.comprehension,
    ast.match_case,
)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class FunctionMetrics(NamedTuple):
    """A function: its name, first line, lines, branches plus one, and arguments."""

    name: str
    line: int
    length: int
    complexity: int
    arguments: int


def measure(code: str, language: str) -> dict[str, object]:
    """Return metrics, warnings and a summary of code. Raise Refused."""
    if language == "python":
        functions, other_metrics, warnings = _measure_python(code)
    elif language in _SUFFIXES:
        functions, other_metrics, warnings = _measure_by_lizard(code, _SUFFIXES[language])
    else:
        languages = ", ".join(("python", *_SUFFIXES))
        raise Refused(
            "unsupported", f"code in {language!r:.40} is not read", f"there are {languages}"
        )
    lines = code.splitlines()
    worst = max((each.complexity for each in functions), default=0)
    metrics: dict[str, Any] = {
        "lines": len(lines),
        "blank_lines": sum(not line.strip() for line in lines),
        "functions": len(functions),
        "longest_function": max((each.length for each in functions), default=0),
        "max_complexity": worst,
        "average_complexity": round(
            sum(each.complexity for each in functions) / max(len(functions), 1), 2
        ),
        **other_metrics,
    }
    warnings = sorted(
        [*warnings, *_function_warnings(functions)], key=lambda warning: warning["line"]
    )
    counts = f"{len(lines)} lines, {len(functions)} functions, at most {worst} paths through one"
    summary = f"{counts}; {len(warnings)} places to look at."
    return {"metrics": metrics, "warnings": warnings[:_MAX_WARNINGS], "summary": summary}


def _function_warnings(functions: list[FunctionMetrics]) -> list[dict[str, Any]]:
    warnings = []
    for each in functions:
        if each.length > _LONG:
            warnings.append(
                _finding_entry(each.line, "long-function", f"`{each.name}` has {each.length} lines")
            )
        if each.complexity > _BRANCHED:
            warnings.append(
                _finding_entry(
                    each.line, "many-branches", f"`{each.name}` has {each.complexity} paths"
                )
            )
        if each.arguments > _MANY_ARGUMENTS:
            warnings.append(
                _finding_entry(
                    each.line, "many-arguments", f"`{each.name}` takes {each.arguments} arguments"
                )
            )
    return warnings


def _finding_entry(line: int, rule: str, message: str) -> dict[str, Any]:
    return {"line": line, "rule": rule, "message": message}


def _measure_python(
    code: str,
) -> tuple[list[FunctionMetrics], dict[str, Any], list[dict[str, Any]]]:
    try:
        tree = ast.parse(code)
    except SyntaxError as error:
        raise Refused("bad-data", f"syntax error: line {error.lineno}: {error.msg}") from None
    except ValueError as error:
        raise Refused("bad-data", f"no Python: {error}") from None
    nodes = list(ast.walk(tree))
    functions = [_python_metrics(node) for node in nodes if isinstance(node, _DEFINITIONS)]
    further = {
        "classes": sum(isinstance(node, ast.ClassDef) for node in nodes),
        "imports": sum(isinstance(node, ast.Import | ast.ImportFrom) for node in nodes),
        "comment_lines": sum(line.lstrip().startswith("#") for line in code.splitlines()),
        "names": sorted({each.name for each in functions}),
    }
    return functions, further, [warning for node in nodes for warning in _node_warnings(node)]


def _python_metrics(node: ast.FunctionDef | ast.AsyncFunctionDef) -> FunctionMetrics:
    complexity, waiting = 1, list(ast.iter_child_nodes(node))
    while waiting:
        part = waiting.pop()
        if isinstance(part, _DEFINITIONS):
            continue  # it is counted by itself
        complexity += isinstance(part, _BRANCHES) + (
            len(part.values) - 1 if isinstance(part, ast.BoolOp) else 0
        )
        waiting += ast.iter_child_nodes(part)
    arguments = node.args
    count = len(arguments.posonlyargs) + len(arguments.args) + len(arguments.kwonlyargs)
    return FunctionMetrics(
        node.name,
        node.lineno,
        (node.end_lineno or node.lineno) - node.lineno + 1,
        complexity,
        count,
    )


def _node_warnings(node: ast.AST) -> list[dict[str, Any]]:
    """Return a warning for a node that is often a mistake, in any kind of program."""
    if isinstance(node, ast.ExceptHandler) and node.type is None:
        return [
            _finding_entry(
                node.lineno, "bare-except", "`except:` also catches what should end the program"
            )
        ]
    if isinstance(node, _DEFINITIONS):
        defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
        mutable = any(isinstance(each, ast.List | ast.Dict | ast.Set) for each in defaults)
        text = f"`{node.name}` has a default that all calls share and may change"
        return [_finding_entry(node.lineno, "shared-default", text)] if mutable else []
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("eval", "exec")
    ):
        return [_finding_entry(node.lineno, "dynamic-code", f"`{node.func.id}` runs text as code")]
    if (
        isinstance(node, ast.keyword)
        and node.arg == "shell"
        and getattr(node.value, "value", None) is True
    ):
        return [
            _finding_entry(node.value.lineno, "shell", "`shell=True` lets a text become a command")
        ]
    if isinstance(node, ast.Compare) and any(
        isinstance(sign, ast.Is | ast.IsNot)
        and isinstance(right, ast.Constant)
        and isinstance(right.value, str | int)
        and not isinstance(right.value, bool)
        for sign, right in zip(node.ops, node.comparators, strict=True)
    ):
        return [
            _finding_entry(
                node.lineno, "identity", "`is` asks for the same object, not for an equal value"
            )
        ]
    return []


def _measure_by_lizard(
    code: str, suffix: str
) -> tuple[list[FunctionMetrics], dict[str, Any], list[dict[str, Any]]]:
    import lizard

    analysis = lizard.analyze_file.analyze_source_code(f"code.{suffix}", code)
    functions = [
        FunctionMetrics(
            each.name,
            each.start_line,
            each.length,
            each.cyclomatic_complexity,
            each.parameter_count,
        )
        for each in analysis.function_list
    ]
    names = sorted({each.name for each in functions})
    return functions, {"code_lines": analysis.nloc, "names": names}, []
