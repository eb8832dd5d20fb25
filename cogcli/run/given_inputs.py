"""A run as a command line requests it: typed input texts, and all errors reported together
(docs/reference/command-line.md#inputs, docs/reference/command-line.md#problems-at-once).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from cogcli.base.errors import FAILURE_OF, CogcliError, InputValidationError, UsageError
from cogcli.base.jsonvalue import preview
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import Problem, ProblemsFound, suggestion
from cogcli.base.strict_json import InvalidJson, loads
from cogcli.declarations.field_spec import Fields
from cogcli.declarations.value_types import Json
from cogcli.run.input_origins import TYPED
from cogcli.run.prepare import (
    PreparedRun,
    RunRequest,
    prepare,
    prepare_for_inputs,
    skill_of,
)
from cogcli.specs.catalog import Catalog

_CODES: Final = {
    "json.encoding": "input.encoding",
    "json.empty": "input.empty",
    "json.size": "input.size",
    "json.nodes": "input.size",
}
_EXAMPLES: Final = {"array": '["a"]', "object": '{"a": 1}'}
"""An example of each type whose values are written as JSON."""
_BOOLEANS: Final = {"true": True, "false": False}


class InputText(NamedTuple):
    """The text of an input before conversion to its declared type. `where` names its place in messages."""

    text: str
    where: str


class InputFile(NamedTuple):
    """A file on the command line: its text is an input, or the file itself is one. `path` is `-` for stdin."""

    path: str
    read: Callable[[], InputText]
    """Returns its text. Raises UsageError, or UnusableEnvironment `project.link`."""


class RequestedRun(NamedTuple):
    """The run that a command line requests, parsed but not yet checked against any spec."""

    request: RunRequest
    """Its inputs are values, or a InputText or InputFile for each text without a type."""
    problems: Sequence[CogcliError]
    """Errors found while the command line was read."""
    doubtful: Iterable[str]
    """Inputs that were given but unreadable, as in `raise_together`."""


def prepare_given(catalog: Catalog, given: RequestedRun, environ: Mapping[str, str]) -> PreparedRun:
    """Return the prepared run, as `prepare` does. Raise its problems together with those of `given`.

    If the skill's file has errors, only these are raised.
    """
    skill = skill_of(catalog, given.request.skill_id)
    try:
        return _prepare_given(catalog, given, skill.inputs, environ)
    except CogcliError as error:
        if error.code.startswith("input.") and FAILURE_OF[error.code].cls is InputValidationError:
            error.next = error.next or (f"cogcli skills show {skill.id}",)
        from cogcli.specs.sample_inputs import sample_arguments  # for inputs with problems alone

        error.samples = sample_arguments(skill)
        raise


def _prepare_given(
    catalog: Catalog, given: RequestedRun, fields: Fields, environ: Mapping[str, str]
) -> PreparedRun:
    request = given.request
    inputs, unreadable = convert_texts(request.inputs, fields)
    # The content of a file was not typed, but the path of a file that is itself the input was.
    typed = [name for name in inputs if isinstance(request.inputs[name], InputFile)]
    sent = {name: TYPED for name in typed if name in fields and fields[name].type == "file"}
    request = request._replace(origins={**request.origins, **sent})
    problems = [*given.problems, *unreadable, *_unknown_capabilities(request, catalog)]
    try:
        prepared = prepare(catalog, request._replace(inputs=inputs), environ)
    except CogcliError as error:
        if not problems:
            raise
        raise_together(problems, error, doubtful=given.doubtful)
        raise
    raise_together(problems)
    return prepared


def prepare_given_for_inputs(
    catalog: Catalog, given: RequestedRun, environ: Mapping[str, str]
) -> PreparedRun:
    """Return a prepared run without inputs, as `prepare_for_inputs` does. Raise its problems together with those
    of `given`.
    """
    request = given.request
    skill_of(catalog, request.skill_id)
    problems = [*given.problems, *_unknown_capabilities(request, catalog)]
    try:
        prepared = prepare_for_inputs(catalog, request, environ)
    except CogcliError as error:
        if not problems:
            raise
        raise_together(problems, error)
        raise
    raise_together(problems)
    return prepared


def convert_texts(given: Mapping[str, object], fields: Fields) -> tuple[Json, list[UsageError]]:
    """Return the inputs with each string converted to its declared type, and an error for each string that does not
    fit.

    An input with an error is omitted.
    """
    inputs: Json = {}
    problems: list[UsageError] = []
    for name, value in given.items():
        wanted = fields[name].type if name in fields else "any"
        try:
            inputs[name] = _convert_value(value, wanted, name)
        except UsageError as error:
            problems.append(error)
    return inputs, problems


def _convert_value(value: object, wanted: str, name: str) -> object:
    """Return a given value in its declared type. Raise UsageError."""
    if isinstance(value, InputFile):
        if wanted == "file" and value.path == "-":
            text = f"`{name}`: a file is sent, and stdin is none"
            raise UsageError("input.file", text, hint="save it, and give its path")
        value = value.path if wanted == "file" else value.read()
    return _convert_text(value, wanted, name) if isinstance(value, InputText) else value


def _unknown_capabilities(request: RunRequest, catalog: Catalog) -> Iterator[UsageError]:
    """Yield an error for each capability of `--bind` or `--confirm` that the skill never calls, so that a typo
    fails.
    """
    known = {*catalog.capabilities, *catalog.aliases}
    for flag, names in (("--bind", request.options.bind), ("--confirm", request.options.confirm)):
        for name in names:
            if name not in known:
                what = f"`{flag}`: `{request.skill_id}` uses no capability `{name[:60]}`"
                yield UsageError(
                    "usage.value", what, hint=suggestion(name, sorted(known)) or "leave it out"
                )


def _convert_text(given: InputText, wanted: str, name: str) -> object:
    """Return the text converted to the declared type. Raise UsageError `input.type`."""
    text, where = given
    if wanted in ("string", "any", "file"):
        return text
    if wanted in _EXAMPLES:
        example = _EXAMPLES[wanted]
        if text.lstrip()[:1] != example[0]:
            what = f"`{name}`: expected {wanted}, found {preview(text)}"
            raise UsageError("input.type", what, hint=f"give JSON: -p '{name}:={example}'")
        return json_value(text, where)
    word = text.strip()
    if wanted == "boolean" and word in _BOOLEANS:
        return _BOOLEANS[word]
    if wanted in ("integer", "number") and _is_like_number(word):
        return json_value(word, where)
    expected = "true or false" if wanted == "boolean" else wanted
    raise UsageError("input.type", f"`{name}`: expected {expected}, found {preview(text)}")


def _is_like_number(word: str) -> bool:
    is_enclosed = word[:1] in "-0123456789" and word[-1:].isdigit()
    return is_enclosed and not set(word) - set("0123456789.eE+-")


def json_value(data: bytes | str, where: str, *, file: str = "") -> Any:
    """Parse JSON text from a file or from the place `where`. Raise UsageError with line and column."""
    try:
        return loads(data)
    except InvalidJson as error:
        code = _CODES.get(error.code, "input.json")
        message = f"`{where}`{' is not JSON' if code == 'input.json' else ''}: {error.message}"
        place = file or (where if error.line else "")
        refusal = UsageError(
            code, message, hint=error.hint, file=place, line=error.line, column=error.column
        )
        if place and not file:
            refusal.typed = {
                place: data.encode("utf-8", "replace") if isinstance(data, str) else data
            }
        raise refusal from error


def raise_together(
    problems: Sequence[CogcliError],
    error: CogcliError | None = None,
    *,
    doubtful: Iterable[str] = (),
) -> None:
    """Raise all errors as one ProblemsFound, or a single error unchanged. Return if there is no error.

    `error` is the error of loading the skill. `doubtful` names inputs that were given but unreadable, with `*` for all.
    Their `input.missing` is omitted. ProblemsFound determines the order and the exit code.
    """
    if not problems and error is None:
        return
    if len(problems) == 1 and error is None:
        raise problems[0]
    both = [problem_from_error(problem) for problem in problems]
    if error is not None:
        both += _find_load_problems(error, doubtful)
    if len(both) == 1:
        raise problems[0]
    found_all = ProblemsFound(both)
    found_all.typed = {place: text for problem in problems for place, text in problem.typed.items()}
    raise found_all


def _find_load_problems(error: CogcliError, doubtful: Iterable[str]) -> list[Problem]:
    """Return the problems of loading the skill, but omit `input.missing` of inputs in `doubtful`."""
    found = list(getattr(error, "problems", ())) or [problem_from_error(error)]
    names = ["" if name == "*" else f"`{name}`" for name in doubtful]
    return [
        problem
        for problem in found
        if problem.code != "input.missing" or not any(name in problem.message for name in names)
    ]


def problem_from_error(error: CogcliError) -> Problem:
    """Return a Problem with the same code, place, message and hint as the error."""
    hint = error.hint or (f"expected {error.expected}" if error.expected else "")
    return Problem(error.code, "E", error.file, error.line, error.column, "", error.message, hint)
