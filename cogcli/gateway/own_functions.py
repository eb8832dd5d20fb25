"""Functions of the program that holds a session: their specs and their calls
(docs/reference/api.md#own-functions).

1. A function is called by the engine alone: after the decision, with its intent on disk. Its result is recorded.
2. The specs are made in memory and pinned in the episode. Their module is `__main__`, which no service may name: no
   other process can make such a call.
"""

from __future__ import annotations

import asyncio
import inspect
import typing
from collections.abc import Callable, Coroutine, Iterable, Mapping
from types import FunctionType
from typing import Any, Final

from cogcli.base.calls import Answer, Attempt
from cogcli.base.canonical import digest_of
from cogcli.base.errors import ResponseMappingError, UsageError
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.field_spec import Fields, FieldType
from cogcli.declarations.service_spec import Service
from cogcli.declarations.value_types import Json
from cogcli.gateway.tool_specs import CALL_SECONDS
from cogcli.protocols.pythoncall.function_call import (
    PythonFunction,
    call_function,
    require_arguments,
)
from cogcli.specs.catalog import Catalog
from cogcli.specs.fields import fit_values
from cogcli.specs.id_grammar import is_capability_id

SERVICE: Final = "caller.functions"
RESULT: Final = "result"
"""The output of a function whose capability no file declares, and the member for a value that is no object."""
_LAYER: Final = "caller"
_TYPES: Final[dict[object, FieldType]] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    dict: "object",
}


class OwnFunction(NamedTuple):
    """A function that makes the calls of one capability."""

    capability: str
    function: Callable[..., object]
    is_read_only: bool = False
    """Whether the program declares that the function changes nothing. A declared capability overrides this."""
    seconds: float = CALL_SECONDS

    @property
    def name(self) -> str:
        """Its name, for logs and messages."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    @property
    def is_async(self) -> bool:
        """Whether a call returns an awaitable."""
        return inspect.iscoroutinefunction(self.function)

    def bind_arguments(
        self, positional: tuple[object, ...], keywords: Mapping[str, object]
    ) -> Json:
        """Return the arguments of a call by name. Raise TypeError if they do not fit the signature."""
        bound = inspect.signature(self.function).bind(*positional, **keywords)
        kinds = {each.name: each.kind for each in bound.signature.parameters.values()}
        arguments: Json = {}
        for name, value in bound.arguments.items():
            is_rest = kinds[name] is inspect.Parameter.VAR_KEYWORD
            arguments.update(value if is_rest else {name: value})
        return arguments

    @staticmethod
    def unwrap(output: Json) -> object:
        """Return the function's return value from the output of its call."""
        return output[RESULT] if output.keys() == {RESULT} else output


def make_function(
    function: Callable[..., object], capability: str, *, is_read_only: bool, seconds: float
) -> OwnFunction:
    """Return a function for a capability. Raise UsageError for an id or a signature that cannot be used."""
    if not is_capability_id(capability):
        text = f"`{capability[:80]}` is not the id of a capability"
        hint = "name it: gate.tool(function, capability='mail.send')"
        raise UsageError(
            "usage.value", text, expected="2 to 5 lower-case segments joined by dots", hint=hint
        )
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError) as error:
        text = f"`{capability}`: its function has no signature"
        raise UsageError("usage.value", text, hint="wrap it in a function of yours") from error
    for parameter in parameters.values():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            text = f"`{capability}`: `{parameter.name}` cannot be given by its name"
            raise UsageError("usage.value", text, expected="parameters with names")
    return OwnFunction(capability, function, is_read_only, seconds)


def with_functions(catalog: Catalog, functions: Iterable[OwnFunction]) -> Catalog:
    """Return a catalog in which each function, and nothing else, makes the calls of its capability."""
    own = {each.capability: each for each in functions}
    if not own:
        return catalog
    service: Json = {
        "id": SERVICE,
        "kind": "pythoncall",
        "module": "__main__",
        "isolation": "thread",
    }
    raws: Json = {f"service:{SERVICE}": service}
    capabilities, bindings = dict(catalog.capabilities), dict(catalog.bindings)
    for id, each in own.items():
        if id not in capabilities:
            raw = _build_capability(each)
            raws[f"capability:{id}"], capabilities[id] = raw, Capability.of(raw)
        binding = _build_binding(each, capabilities[id])
        bindings[binding["id"]] = Binding.of(binding, layer=_LAYER, trusted=True)
        raws[f"binding:{binding['id']}"] = binding
    host, defaults = catalog.host, catalog.defaults
    return catalog._replace(
        capabilities=capabilities,
        bindings=bindings,
        bindings_of={**catalog.bindings_of, **{id: (_binding_id(id),) for id in own}},
        services={
            **catalog.services,
            SERVICE: Service.of(service, layer=_LAYER, trusted=True),
        },
        # Neither a default nor a choice for this host names another binding of these capabilities.
        defaults=defaults._replace(bindings=_drop_members(defaults.bindings, own)),
        host=host._replace(
            active=_drop_members(host.active, own), overrides=_drop_members(host.overrides, own)
        ),
        raw={**catalog.raw, **raws},
        pins={**catalog.pins, **{key: digest_of(raw) for key, raw in raws.items()}},
    )


def _drop_members(members: Mapping[str, Any], names: Mapping[str, object]) -> dict[str, Any]:
    """Return the members whose names are not in `names`."""
    return {name: value for name, value in members.items() if name not in names}


def _binding_id(capability: str) -> str:
    return f"caller_{capability.replace('.', '_')}"


def _build_capability(function: OwnFunction) -> Json:
    """Return the capability of a function that no file declares."""
    about = " ".join((inspect.getdoc(function.function) or function.name).split())
    return {
        "id": function.capability,
        "version": "1.0.0",
        "description": about[:200],
        "inputs": _build_inputs(function.function),
        "outputs": {RESULT: {"type": "any"}},
        "properties": {"side_effects": not function.is_read_only},
    }


def _build_inputs(function: Callable[..., object]) -> Json:
    """Return the inputs of a function's capability: its parameters, as JSON types."""
    try:
        hints = typing.get_type_hints(function)
    except (NameError, TypeError, AttributeError, ValueError, SyntaxError):  # of an annotation
        hints = {}
    return {
        name: {
            "type": _field_type(hints.get(name)),
            **({"required": True} if parameter.default is parameter.empty else {}),
        }
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind != parameter.VAR_KEYWORD
    }


def _field_type(hint: object) -> FieldType:
    known = typing.get_origin(hint) or hint
    return _TYPES.get(known, "any") if isinstance(known, type) else "any"


def _build_binding(function: OwnFunction, capability: Capability) -> Json:
    return {
        "id": _binding_id(function.capability),
        "capability": function.capability,
        "service": SERVICE,
        "protocol": "pythoncall",
        "operation": function.name,
        "request": {name: f"input.{name}" for name in capability.inputs},
        "response": {name: f"response.{name}" for name in capability.outputs},
        "metadata": {"timeout_seconds": function.seconds},
    }


class FunctionCaller:
    """Makes the calls of functions, and passes all other calls on. It is an `Intercept`, for any thread."""

    def __init__(self, functions: Iterable[OwnFunction], catalog: Catalog) -> None:
        self._functions = {each.capability: each for each in functions}
        self._outputs = {id: catalog.capabilities[id].outputs for id in self._functions}
        self.loop: asyncio.AbstractEventLoop | None = None
        """The event loop that runs async functions. Without one each call has a loop of its own."""

    def __call__(self, attempt: Attempt, send: Callable[[Attempt], Answer]) -> Answer:
        """Make one attempt. Raise the errors of `call_function`, and ResponseMappingError for unfitting outputs."""
        own = self._functions.get(attempt.capability_id)
        if own is None:
            return send(attempt)
        outputs = self._outputs[own.capability]
        function = self._prepare_function(own, attempt, outputs)
        require_arguments(function, attempt.input)
        body = call_function(function, attempt.input, attempt.deadline)
        kept, violations = fit_values(outputs, body)
        if violations:
            text = "; ".join(each.message for each in violations)
            raise ResponseMappingError("response.type", f"`{own.name}` returned: {text}", left=True)
        return Answer(kept)

    def _prepare_function(
        self, own: OwnFunction, attempt: Attempt, outputs: Fields
    ) -> PythonFunction:
        """Return the function in the form that the service invoker calls."""
        names, required, takes_rest = _parameter_names(own.function)

        def perform(**arguments: object) -> object:
            value = own.function(**arguments)
            if inspect.iscoroutine(value):
                value = self._run_coroutine(value, attempt)
            return _as_object(value, outputs)

        perform.__module__ = getattr(own.function, "__module__", None) or "__main__"
        adapted = typing.cast("FunctionType", perform)
        return PythonFunction(own.name, adapted, required, names, takes_rest, is_async=False)

    def _run_coroutine(self, work: Coroutine[Any, Any, object], attempt: Attempt) -> object:
        """Return the result of a coroutine. The coroutine is cancelled when the attempt ends."""
        loop = self.loop
        if loop is None or not loop.is_running():
            return asyncio.run(work)
        running = asyncio.run_coroutine_threadsafe(work, loop)

        def cancel() -> None:
            running.cancel()

        with attempt.cancel.on_cancel(cancel):
            return running.result()


def _parameter_names(
    function: Callable[..., object],
) -> tuple[frozenset[str], frozenset[str], bool]:
    """Return the names of a function's parameters, those without a default, and whether it accepts any other name."""
    parameters = inspect.signature(function).parameters.values()
    named = [each for each in parameters if each.kind != each.VAR_KEYWORD]
    required = frozenset(each.name for each in named if each.default is each.empty)
    return frozenset(each.name for each in named), required, len(named) < len(parameters)


def _as_object(value: object, outputs: Fields) -> object:
    """Return a result as an object: any other value becomes the single output."""
    if len(outputs) == 1:
        (name,) = outputs
        is_whole = isinstance(value, dict) and name in value and name != RESULT
        return value if is_whole else {name: value}
    return {} if value is None else value
