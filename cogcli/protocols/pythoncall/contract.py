"""pythoncall: checks of a binding against the signature of its function, read without importing it
(docs/reference/protocols.md#pythoncall, docs/reference/protocols.md#wire-checks)."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from cogcli.base.python_syntax import parse_python
from cogcli.declarations.binding_spec import Binding
from cogcli.protocols.contract_finding import (
    ContractFinding,
    ContractJudges,
    OperationContract,
    OperationInput,
    argument_findings,
)

_TYPES: Final = {
    "str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array", "dict": "object",
    "None": "null",
}  # fmt: skip

Function = ast.FunctionDef | ast.AsyncFunctionDef


def function_findings(
    binding: Binding, source: bytes, name: str, title: str
) -> Iterator[ContractFinding | OperationContract]:
    """Yield the findings and contract of a function, `title` in messages; none without a plain
    function of this name."""
    function = _find_function(source, name)
    if function is None:
        return
    arguments = function.args
    optional = len(arguments.args) - len(arguments.defaults)
    known = {
        each.arg: _operation_input(each, required=n < optional)
        for n, each in enumerate(arguments.args)
    }
    for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        known[each.arg] = _operation_input(each, required=default is None)
    only = arguments.posonlyargs
    for argument in only[: len(only) + optional]:
        message = (
            f"{title} takes `{argument.arg}` by position only, and arguments are given by name"
        )
        hint = "remove the `/` from its signature"
        yield ContractFinding("wire.parameter", "E", ("operation",), message, hint)
    yield from argument_findings(binding, title, known, takes_rest=arguments.kwarg is not None)
    yield OperationContract(
        title, {key: known[key] for key in binding.request if key in known}, None
    )


def _find_function(source: bytes, name: str) -> Function | None:
    """Return the function of this name that a call executes: the last definition. None if it is decorated."""
    found = _parse_functions(source).get(name)
    # A decorator may change the signature.
    return found if found and not found.decorator_list else None


@lru_cache(maxsize=64)  # cached, because many bindings and skills use the same module
def _parse_functions(source: bytes) -> Mapping[str, Function]:
    try:
        tree = parse_python(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    return {node.name: node for node in tree.body if isinstance(node, Function)}


def _operation_input(argument: ast.arg, *, required: bool) -> OperationInput:
    types = _annotation_types(argument.annotation)
    return OperationInput(argument.arg, required, {"type": sorted(types)} if types else None)


def _annotation_types(node: object) -> set[str]:
    """Return the JSON types of an annotation; empty for an unknown one."""
    match node:
        case ast.Name(id=name) if name in _TYPES:
            return {_TYPES[name]}
        case ast.Constant(value=None):
            return {"null"}
        case ast.Subscript(value=ast.Name(id="list" | "dict" as name)):
            return {_TYPES[name]}
        case ast.BinOp(op=ast.BitOr()):
            left, right = _annotation_types(node.left), _annotation_types(node.right)
            return left | right if left and right else set()
    return set()


JUDGES: Final = ContractJudges(
    lambda binding, capability, service, source: function_findings(
        binding, source, binding.operation, f"function `{binding.operation}`"
    ),
    lambda service: (),
)
