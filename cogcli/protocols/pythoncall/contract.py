"""pythoncall: a binding against the signature of its function, read without importing it
(docs/reference/protocols.md#pythoncall, docs/reference/protocols.md#wire-checks)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, Final

from cogcli.core.problems import suggestion
from cogcli.core.python_syntax import module_of
from cogcli.protocols.contract_finding import ContractFinding, ContractJudges, OperationContract, Taken
from cogcli.specs.binding import Binding
from cogcli.specs.capability import Capability
from cogcli.specs.service import Service

_TYPES: Final = {
    "str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array", "dict": "object",
    "None": "null",
}  # fmt: skip

Function = ast.FunctionDef | ast.AsyncFunctionDef


def python_findings(
    binding: Binding, capability: Capability, service: Service, source: bytes
) -> Iterator[ContractFinding | OperationContract]:
    """The findings about the arguments, then the function's contract."""
    yield from function_findings(binding, source, binding.operation, f"function `{binding.operation}`")


def function_findings(
    binding: Binding, source: bytes, name: str, title: str
) -> Iterator[ContractFinding | OperationContract]:
    """The findings and contract of a function, called `title` in messages; none where the source has no plain
    function of
    this name."""
    function = _function(source, name)
    if function is None:
        return
    known = dict(_parameters(function))
    for name in _positional(function):
        message = f"{title} takes `{name}` by position only, and arguments are given by name"
        yield ContractFinding(
            "wire.parameter", "E", ("operation",), message, "remove the `/` from its signature"
        )
    for name, taken in known.items():
        if taken.required and name not in binding.request:
            message = f"{title} requires `{name}`, which is not given"
            yield ContractFinding(
                "wire.parameter", "E", ("request",), message, f"add {name} to request", key=True
            )
    for key in binding.request:
        if key not in known and function.args.kwarg is None:
            hint = suggestion(key, known) or f"it takes {', '.join(list(known)[:6]) or 'nothing'}"
            message = f"{title} takes no `{key}`"
            yield ContractFinding("wire.parameter", "E", ("request", key), message, hint, key=True)
    yield OperationContract(title, {key: known[key] for key in binding.request if key in known}, None)


def _function(source: bytes, name: str) -> Function | None:
    """The function of this name that a call reaches: the last definition; None if it is decorated."""
    try:
        tree = module_of(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found = [node for node in tree.body if isinstance(node, Function) and node.name == name]
    # What a decorator leaves of the signature is not known.
    return found[-1] if found and not found[-1].decorator_list else None


def _positional(function: Function) -> list[str]:
    """Required arguments that cannot be given by name."""
    only = function.args.posonlyargs
    every = len(only) + len(function.args.args)
    return [arg.arg for arg in only[: every - len(function.args.defaults)]]


def _parameters(function: Function) -> Iterator[tuple[str, Taken]]:
    arguments = function.args
    optional = len(arguments.args) - len(arguments.defaults)
    for index, argument in enumerate(arguments.args):
        yield argument.arg, _taken(argument, required=index < optional)
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield argument.arg, _taken(argument, required=default is None)


def _taken(argument: ast.arg, *, required: bool) -> Taken:
    types = _annotated(argument.annotation)
    return Taken(argument.arg, required, {"type": sorted(types)} if types else None)


def _annotated(node: Any) -> set[str]:
    """The JSON types of an annotation; empty for one that is not understood."""
    if isinstance(node, ast.Name):
        return {_TYPES[node.id]} if node.id in _TYPES else set()
    if isinstance(node, ast.Constant) and node.value is None:
        return {"null"}
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        return {_TYPES[node.value.id]} if node.value.id in ("list", "dict") else set()
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        left, right = _annotated(node.left), _annotated(node.right)
        return left | right if left and right else set()
    return set()


JUDGES: Final = ContractJudges(python_findings, lambda service: ())
