"""What the Python functions behind services may import of us; everything else here may change
(docs/reference/sdk.md). Importing this loads no library: each function imports what it needs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple

from cogcli.base.credential_names import credential_error, credential_reason
from cogcli.base.errors import ExpressionError, TransportError
from cogcli.base.errors import RuntimeErrorBase as CallFailed
from cogcli.base.host_access import ACCESS
from cogcli.base.refusal import Reason, Refused
from cogcli.base.wall.limits import ProcessLimits

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from cogcli.base.expressions import Lookup
    from cogcli.base.wall.confined_call import ProgramEnd
    from cogcli.declarations.field_spec import Fields
    from cogcli.protocols.http.fetch import Reply
    from cogcli.specs.registry import Registry
    from cogcli.stores.database import Database

__all__ = [
    "CallFailed",
    "CatalogField",
    "CatalogItem",
    "ProcessLimits",
    "Reason",
    "Refused",
    "SkillProblem",
    "address_refusal",
    "artifact",
    "call_confined",
    "capabilities",
    "compile_expression",
    "credential_refusal",
    "evaluate",
    "fetch",
    "has_store",
    "open_for_reading",
    "open_store",
    "outside_roots",
    "pattern_refusal",
    "run_behind_wall",
    "schema_errors",
    "seconds_left",
    "secret",
    "skill_problems",
    "skills",
    "unreachable",
    "writable_path",
    "write_file",
]

_SECONDS: Final = 20.0


# -- expressions ------------------------------------------------------------------------------------------------------


def compile_expression(text: str, names: Iterable[str]) -> Callable[[Mapping[str, Any]], Any]:
    """A function from values to the value of an expression over these names (docs/reference/execution.md#expressions).

    A name without a value is missing, as a path that leads nowhere: null where it is compared with null, else an error.
    Raises Refused `bad-data` for a text outside the language, and when it is called for what cannot be evaluated.
    """
    from cogcli.base import expressions

    try:
        expression = expressions.read_expression(text, frozenset(names))
    except expressions.ExpressionFault as fault:
        raise Refused("bad-data", f"expression `{text[:100]}`: {fault}", fault.hint) from None

    def value_of(values: Mapping[str, Any]) -> Any:
        try:
            return expressions.evaluate(expression, _look_up_in(values))
        except ExpressionError as error:
            raise Refused(
                "bad-data", f"expression `{text[:100]}`: {error.message}", error.hint
            ) from None

    return value_of


def _look_up_in(values: Mapping[str, Any]) -> Lookup:
    from cogcli.base.refs import MISSING
    from cogcli.state.namespaces import walk

    return lambda reference: walk(values.get(reference.namespace, MISSING), reference.segments)


def evaluate(text: str, values: Mapping[str, Any]) -> Any:
    """The value of an expression over named values: `evaluate("row.total > 100", {"row": row})`. Raises as
    `compile_expression`."""
    return compile_expression(text, values)(values)


# -- the network ------------------------------------------------------------------------------------------------------


def fetch(
    url: str,
    *,
    method: str = "GET",
    headers: tuple[tuple[str, str], ...] = (),
    body: bytes = b"",
    redirects: int = 0,
    most: int = 4 * 1024 * 1024,
    name: str = "",
) -> Reply:
    """The reply to a request, read whole, within 20 seconds and the time of the call.

    Addresses are judged as those of the function's service are, of each redirect anew; only a GET is redirected, so
    many times, never from https to http. No header of one host goes to another. `name` stands for the address in
    messages, where that is a secret. Raises the errors of a call: of the connection, the size, and each status that is
    no success.
    """
    from cogcli.protocols.http import fetch as http

    limits = {"redirects": redirects, "most": most}
    sent = http.Sent(url, method, headers, body, name)
    reply: Reply = http.fetch(ACCESS.get(), sent, seconds_left(), **limits)
    return reply


def seconds_left() -> float:
    """The time that one operation of this call may still take, at most 20 seconds."""
    deadline = ACCESS.get().deadline
    return _SECONDS if deadline is None else max(0.001, min(_SECONDS, deadline - time.monotonic()))


def secret() -> str:
    """What `auth_ref` of the function's service names, masked wherever it would be shown; empty where it names nothing.
    Raises ServiceResolutionError `env.missing`."""
    read = ACCESS.get().secret
    return read() if read else ""


def unreachable(message: str, *, left: bool) -> TransportError:
    """The error of a service that gave no answer; `left`: whether what it was asked may have reached it."""
    return TransportError("call.transport", message, left=left)


def address_refusal(host: str) -> str:
    """Why the public network has no such host, as far as its name or address tells; empty where it may have it."""
    from cogcli.base.addresses import literal_refusal

    return literal_refusal(host, "public")


# -- stores -----------------------------------------------------------------------------------------------------------


def open_store(name: str, versions: Sequence[Sequence[str]]) -> AbstractContextManager[Database]:
    """The SQLite file of this name in the project's store, made where there is none, closed at the end.

    `versions` as in `Database`. Its refusals, also of what is done inside, are errors of the call: `memory.damaged`,
    `memory.busy`, `env.disk`. Raises Refused `unsupported` where the run has no store.
    """
    from cogcli.stores.function_store import open_database

    directory = ACCESS.get().store_dir
    if not directory:
        raise Refused("unsupported", "this run has no directory for stores")
    return open_database(directory, name, versions)


def has_store(name: str) -> bool:
    """Whether anything is where a store of this name is, damaged or not; so that looking leaves no file."""
    directory = ACCESS.get().store_dir
    return bool(directory) and os.path.lexists(os.path.join(directory, name))


# -- files ------------------------------------------------------------------------------------------------------------


def outside_roots(path: str) -> str:
    """Why a file of this path is not read, by `files.roots`; empty where it may be."""
    roots = ACCESS.get().roots
    if not roots:
        return ""
    from cogcli.base.file_roots import is_within, outside_text

    return "" if is_within(os.path.realpath(path), roots) else outside_text(path, "files.roots")


def credential_refusal(real: str) -> str:
    """Why a file of a path without links is not read: it usually holds credentials, and the user did not type it as an
    input of the run; empty where it may be."""
    return "" if real in ACCESS.get().typed else credential_reason(real)


def open_for_reading(path: str, most: int) -> BinaryIO:
    """A regular file of at most so many bytes, opened to be read.

    Links are followed before the path is judged, the last one not when it is opened; no open waits for a pipe or
    touches a device. Raises Refused `bad-data` for what is not there, no regular file or outside of `files.roots`,
    `too-large`; SafetyScopeError `safety.scope` in a run that may reach a network for a file that usually holds
    credentials, unless the user typed its path.
    """
    _require_name(path)
    if why := outside_roots(path):
        raise Refused("bad-data", why, "add its folder to `files.roots`, if it may be read")
    from cogcli.base.files import FileRefused, open_regular

    real = os.path.realpath(path)
    if (why := credential_refusal(real)) and ACCESS.get().is_online():
        raise credential_error(path, why)
    try:
        return open_regular(real, limit=most)
    except FileRefused as refused:
        reason: Reason = "too-large" if refused.reason == "too-large" else "bad-data"
        raise Refused(reason, f"{os.path.basename(path)}: {refused.message}") from None


def _require_name(path: str) -> None:
    try:
        named = bool(path) and "\0" not in path and bool(os.fsencode(path))
    except ValueError:
        named = False
    if not named:
        raise Refused("bad-data", "the path is empty, or no file can have such a name")


def writable_path(path: str) -> str:
    """Where a file of this path may be written, its folders with links followed: below a root of `files.write_roots`,
    without any below the working directory. Raises Refused `bad-data`, also for a link and what is no regular file."""
    from cogcli.base.file_roots import roots_of, written_path

    _require_name(path)
    try:
        return written_path(path, roots_of(ACCESS.get().write_roots))
    except ValueError as error:
        raise Refused("bad-data", str(error)) from None


def write_file(path: str, data: bytes, *, replace: bool = False) -> str:
    """Write a file whole, or not at all; returns where. Raises Refused as `writable_path`, and `bad-data` where a file
    is there that is not to be replaced, and for what the system refuses."""
    from cogcli.base.files import write_atomic

    real = writable_path(path)
    _require_room(real)
    try:
        write_atomic(real, data, mode=0o644, replace=replace)
    except FileExistsError:
        raise Refused("bad-data", f"{os.path.basename(path)}: a file is there, and stays") from None
    except OSError as error:
        raise Refused(
            "bad-data", f"{os.path.basename(path)}: cannot be written ({error.strerror})"
        ) from None
    if ACCESS.get().files is not None:
        from hashlib import sha256

        _note_file(real, len(data), sha256(data).hexdigest())
    return real


_MOST_FILES = 100


def artifact(path: str) -> str:
    """Record a file that this call wrote: its path, size and hash stand in `result_artifacts` of the step and in
    `outcomes.artifacts` of `state.json` (docs/reference/sdk.md#artifact). Returns its path without links.

    Call it once the file is complete; the hash is that of its bytes at this moment. Raises Refused `bad-data` for what
    is no regular file or cannot be read, `too-large` for more than 100 files of a call.
    """
    from cogcli.base.files import FileRefused, measure_regular

    _require_name(path)
    real = os.path.realpath(path)
    _require_room(real)
    try:
        size, digest = measure_regular(real)
    except FileRefused as refused:
        raise Refused("bad-data", f"{os.path.basename(path)}: {refused.message}") from None
    _note_file(real, size, digest)
    return real


def _shown_path(real: str) -> str:
    """The path of a file without links, relative to the working directory where it lies below that."""
    return real.removeprefix(os.path.join(os.path.realpath(os.getcwd()), ""))


def _require_room(real: str) -> None:
    """Raise Refused `too-large` if the call has recorded as many other files as it may."""
    path = _shown_path(real)
    if sum(each["path"] != path for each in ACCESS.get().files or ()) >= _MOST_FILES:
        raise Refused("too-large", f"a call records at most {_MOST_FILES} files")


def _note_file(real: str, size: int, digest: str) -> None:
    """Record a file in the place of its earlier version."""
    files = ACCESS.get().files
    if files is not None:
        path = _shown_path(real)
        others = [each for each in files if each["path"] != path]
        files[:] = [*others, {"path": path, "size_bytes": size, "sha256": digest}]


# -- foreign bytes ----------------------------------------------------------------------------------------------------


def call_confined(
    function: str,
    limits: ProcessLimits,
    arguments: Mapping[str, Any],
    *,
    content: bytes | None = None,
    about: str = "",
    read: Sequence[str] = (),
) -> dict[str, Any]:
    """The result of `module:name`, an object of JSON, called in a confined process with `content` and the arguments.

    The process is behind the wall of the machine, keeps the limits also where there is none, and reads the files and
    folders `read` alone (docs/reference/service.md#isolation). `about` begins the messages. Raises Refused as the
    function does, `too-large` where it passes a limit or breaks, and ModuleNotFoundError for a library that is not
    installed.
    """
    from cogcli.base.wall import confined_call

    return confined_call.call_function(
        function, limits, arguments, content=content, about=about, read=read
    )


def run_behind_wall(
    command: Sequence[str],
    limits: ProcessLimits,
    *,
    content: bytes | None = None,
    read: Sequence[str] = (),
    scratch: str = "",
    environ: Mapping[str, str] | None = None,
    required: bool = True,
) -> ProgramEnd:
    """How a program ended that ran behind the wall, with `content` as its standard input. It reads `read`, and writes
    in the folder `scratch`. Raises Refused `unsupported` where the machine has no wall and one is `required`."""
    from cogcli.base.wall import confined_call

    return confined_call.run_program(
        command,
        limits,
        content=content,
        read=read,
        scratch=scratch,
        environ=environ,
        required=required,
    )


# -- schemas ----------------------------------------------------------------------------------------------------------


def schema_errors(schema: Any, value: Any) -> list[tuple[str, str]]:
    """The breaches of a JSON Schema of 2020-12 by a value, as (slash path, message): at most 20, none if it fits.

    Nothing is fetched, and patterns run in time linear in the text. Raises Refused `bad-data` for what is no schema, or
    one that cannot be applied, and `too-large` for a check that would take too long.
    """
    from cogcli.base.schema import validator

    if wrong := validator.invalid(schema):
        place, message = wrong[0]
        raise Refused(
            "bad-data", f"the schema is none: at `{'/'.join(map(str, place))}`: {message}"
        )
    if patterns := validator.refused_patterns(schema):
        raise Refused("bad-data", f"the schema has {patterns[0]}")
    found = validator.errors(schema, value)
    if found == [("", validator.TOO_MUCH)]:
        raise Refused("too-large", validator.TOO_MUCH)
    if found == [("", validator.UNUSABLE)]:
        raise Refused("bad-data", validator.UNUSABLE, "references stay inside the schema")
    return found


def pattern_refusal(pattern: str, *, backtracking: bool = False) -> str:
    """Why `schema_errors` cannot run a pattern in time linear in the text, or Python's `re` where `backtracking`; empty
    if it can."""
    from cogcli.base.schema import patterns

    return patterns.refusal(pattern, backtracking=backtracking)


# -- the catalog ------------------------------------------------------------------------------------------------------


class CatalogField(NamedTuple):
    """An input or output. `has_default`: it may be left out though it is required."""

    type: str
    required: bool
    description: str
    has_default: bool


class CatalogItem(NamedTuple):
    """A skill or capability as its file declares it. `channel` is of skills alone, `calls` names what their steps
    use."""

    id: str
    name: str
    description: str
    inputs: Mapping[str, CatalogField]
    outputs: Mapping[str, CatalogField]
    tags: tuple[str, ...]
    use_cases: tuple[str, ...]
    channel: str = ""
    calls: tuple[str, ...] = ()


class SkillProblem(NamedTuple):
    """What `cogcli validate` says of a skill; `severity` is E for an error, W for a warning, R for what only this
    machine lacks."""

    code: str
    severity: str
    line: int
    message: str
    hint: str


def skills() -> list[CatalogItem]:
    """The skills of the registry of the run, by id; those with errors in their file are left out. Raises Refused
    `unsupported` where no registry is known: in a worker process, and outside of a run."""
    from cogcli.specs.skill import list_targets

    return [
        _item(skill, channel=_channel(skill.file), calls=tuple(list_targets(skill)))
        for _, skill in sorted(_registry().skills().items())
    ]


def capabilities() -> list[CatalogItem]:
    """The capabilities of the registry of the run, by id. Raises as `skills`."""
    return [_item(one) for _, one in sorted(_registry().capabilities().items())]


def skill_problems(text: str) -> list[SkillProblem]:
    """What is wrong with the text of a `skill.yaml`, checked against the registry of the run as if it lay in its
    channel `local`; nothing is written. Raises as `skills`."""
    from cogcli.specs.checks import check

    registry = _registry()
    folder, slug = _place_of(text)
    root = [layer.root for layer in registry.layers if not layer.host][-1]
    path = f"{root}/skills/local/{folder}/{slug}/skill.yaml"
    catalog = registry.files([path], contents={path: text.encode("utf-8", "surrogatepass")})
    return [SkillProblem(p.code, p.severity, p.line, p.message, p.hint) for p in check(catalog)]


def _place_of(text: str) -> tuple[str, str]:
    """The folders of the id that a skill's text names first; any others where it names none."""
    import re

    found = re.search(
        r"^id:\s*[\"']?([a-z][a-z0-9-]*)\.([a-z][a-z0-9-]*)[\"']?\s*$", text, re.MULTILINE
    )
    return (found[1], found[2]) if found else ("given", "skill")


def _registry() -> Registry:
    opened = ACCESS.get().open_registry
    if opened is None:
        hint = "the service of a function that asks for it sets `isolation: thread`"
        raise Refused("unsupported", "the registry is not known here", hint)
    registry: Registry = opened()
    return registry


def _channel(file: str) -> str:
    parts = file.split("/")
    return parts[-4] if len(parts) > 3 and parts[-1] == "skill.yaml" else ""


def _item(spec: Any, **more: Any) -> CatalogItem:
    metadata: Mapping[str, Any] = spec.metadata
    tags, uses = (_texts(metadata.get(key)) for key in ("tags", "use_cases"))
    name = getattr(spec, "name", "") or spec.id
    described = spec.description, _fields(spec.inputs), _fields(spec.outputs)
    return CatalogItem(spec.id, name, *described, tags, uses, **more)


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _fields(fields: Fields) -> dict[str, CatalogField]:
    return {
        name: CatalogField(field.type, field.required, field.description, field.default is not None)
        for name, field in fields.items()
    }
