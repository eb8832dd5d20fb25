"""The functions and types of cogcli that the Python functions behind services may import
(docs/reference/sdk.md).

Everything outside this module may change. Importing it loads no library: each function imports what
it needs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from cogcli.base.credential_names import credential_error, credential_reason
from cogcli.base.errors import ExpressionError, TransportError
from cogcli.base.errors import RuntimeErrorBase as CallFailed
from cogcli.base.host_access import ACCESS
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.refusal import Reason, Refused
from cogcli.base.wall.limits import ProcessLimits

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from cogcli.base.expressions import Lookup
    from cogcli.base.wall.confined_call import ProgramEnd
    from cogcli.declarations.field_spec import Fields
    from cogcli.protocols.http.fetch import FetchReply
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


def compile_expression(text: str, names: Iterable[str]) -> Callable[[Mapping[str, object]], Any]:
    """Return a function that computes an expression over named values
    (docs/reference/execution.md#expressions).

    A name without a value is missing: it is null if it is compared with null, else an error. Raise
    Refused `bad-data` for a text outside the language. The returned function raises it if the
    expression cannot be evaluated."""
    from cogcli.base import expressions

    try:
        expression = expressions.read_expression(text, frozenset(names))
    except expressions.ExpressionFault as fault:
        raise Refused("bad-data", f"expression `{text[:100]}`: {fault}", fault.hint) from None

    def value_of(values: Mapping[str, object]) -> Any:
        try:
            return expressions.evaluate(expression, _look_up_in(values))
        except ExpressionError as error:
            raise Refused(
                "bad-data", f"expression `{text[:100]}`: {error.message}", error.hint
            ) from None

    return value_of


def _look_up_in(values: Mapping[str, object]) -> Lookup:
    from cogcli.base.refs import MISSING
    from cogcli.state.namespaces import walk

    return lambda reference: walk(values.get(reference.namespace, MISSING), reference.segments)


def evaluate(text: str, values: Mapping[str, object]) -> Any:
    """Return the value of an expression over named values: `evaluate("row.total > 100", {"row":
    row})`. Raise the errors of `compile_expression`."""
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
) -> FetchReply:
    """Return the reply to a request, read whole, within 20 seconds and the time limit of the call.

    Each address, also of a redirect, is judged by the `network` setting of the function's service.
    Only GET requests follow redirects, at most `redirects`, never from https to http. No header of
    one host is sent to another. If the address is a secret, messages show `name` instead. Raise the
    errors of a call: connection, size, and each status that is no success."""
    from cogcli.protocols.http import fetch as http

    request = http.FetchRequest(url, method, headers, body, name)
    return http.fetch(ACCESS.get(), request, seconds_left(), redirects=redirects, max_bytes=most)


def seconds_left() -> float:
    """Return the seconds that one operation of this call may still take, at most 20."""
    deadline = ACCESS.get().deadline
    return _SECONDS if deadline is None else max(0.001, min(_SECONDS, deadline - time.monotonic()))


def secret() -> str:
    """Return the secret that `auth_ref` of the function's service names; empty if it names none.

    The secret is masked in all output. Raise ServiceResolutionError `env.missing`."""
    read = ACCESS.get().secret
    return read() if read else ""


def unreachable(message: str, *, left: bool) -> TransportError:
    """Return the error of a service that did not answer. `left` is whether the request may have
    reached it.
    """
    return TransportError("call.transport", message, left=left)


def address_refusal(host: str) -> str:
    """Return why a host is not in the public network, judged by its name or address alone; empty if
    it may be."""
    from cogcli.base.addresses import literal_refusal

    return literal_refusal(host, "public")


# -- stores -----------------------------------------------------------------------------------------------------------


def open_store(name: str, versions: Sequence[Sequence[str]]) -> AbstractContextManager[Database]:
    """Open the SQLite file of this name in the project's store, and close it at the end.

    A missing file is created. `versions` is as in `Database`. Database errors, also those inside
    the `with` block, become errors of the call: `memory.damaged`, `memory.busy`, `env.disk`. Raise
    Refused `unsupported` if the run has no store."""
    from cogcli.stores.function_store import open_database

    directory = ACCESS.get().store_dir
    if not directory:
        raise Refused("unsupported", "this run has no directory for stores")
    return open_database(directory, name, versions)


def has_store(name: str) -> bool:
    """Return whether a file of this store exists, damaged or not. The check creates no file."""
    directory = ACCESS.get().store_dir
    return bool(directory) and os.path.lexists(os.path.join(directory, name))


# -- files ------------------------------------------------------------------------------------------------------------


def outside_roots(path: str) -> str:
    """Return why a file outside `files.roots` may not be read; empty if the path is inside."""
    roots = ACCESS.get().roots
    if not roots:
        return ""
    from cogcli.base.file_roots import is_within, outside_text

    return "" if is_within(os.path.realpath(path), roots) else outside_text(path, "files.roots")


def credential_refusal(real: str) -> str:
    """Return why a file may not be read: it usually holds credentials, and the user did not type
    its path as an input.

    The path contains no links. Empty if the file may be read."""
    return "" if real in ACCESS.get().typed else credential_reason(real)


def open_for_reading(path: str, most: int) -> BinaryIO:
    """Open a regular file of at most `most` bytes for reading.

    The path is judged after its links are followed; a link put there later is not followed. Opening
    never waits for a pipe and never touches a device. Raise Refused `bad-data` for a path that is
    missing, no regular file or outside `files.roots`, and `too-large` for a larger file. Raise
    SafetyScopeError `safety.scope` if the run may reach a network and the file usually holds
    credentials, unless the user typed its path."""
    _require_name(path)
    if why := outside_roots(path):
        raise Refused("bad-data", why, "add its folder to `files.roots`, if it may be read")
    from cogcli.base.files import UnreadableFile, open_regular

    real = os.path.realpath(path)
    if (why := credential_refusal(real)) and ACCESS.get().is_online():
        raise credential_error(path, why)
    try:
        return open_regular(real, limit=most)
    except UnreadableFile as refused:
        reason: Reason = "too-large" if refused.reason == "too-large" else "bad-data"
        raise Refused(reason, f"{os.path.basename(path)}: {refused.message}") from None


def _require_name(path: str) -> None:
    """Raise Refused `bad-data` for an empty path or one that the system cannot represent."""
    try:
        named = bool(path) and "\0" not in path and bool(os.fsencode(path))
    except ValueError:
        named = False
    if not named:
        raise Refused("bad-data", "the path is empty, or no file can have such a name")


def writable_path(path: str) -> str:
    """Return the path where a file may be written, with the links of its folders followed.

    The path must be below a root of `files.write_roots`, or below the working directory if there
    are no roots. Raise Refused `bad-data` for any other path, a link, or anything that is no
    regular file."""
    from cogcli.base.file_roots import resolve_write_path, roots_of

    _require_name(path)
    try:
        return resolve_write_path(path, roots_of(ACCESS.get().write_roots))
    except ValueError as error:
        raise Refused("bad-data", str(error)) from None


def write_file(path: str, data: bytes, *, replace: bool = False) -> str:
    """Write a file whole or not at all, and return its path.

    Raise Refused as `writable_path` does, and `bad-data` if the file exists and `replace` is false,
    or if the system refuses the write."""
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

        _record_file(real, len(data), sha256(data).hexdigest())
    return real


_MAX_FILES = 100


def artifact(path: str) -> str:
    """Record a file that this call wrote, and return its path without links.

    Its path, size and hash are added to `result_artifacts` of the step and to `outcomes.artifacts`
    of `state.json` (docs/reference/sdk.md#artifact). Call it once the file is complete: the hash
    covers its bytes at this moment. Raise Refused `bad-data` for anything that is no regular file
    or cannot be read, `too-large` for more than 100 files of a call."""
    from cogcli.base.files import UnreadableFile, measure_regular

    _require_name(path)
    real = os.path.realpath(path)
    _require_room(real)
    try:
        size, digest = measure_regular(real)
    except UnreadableFile as refused:
        raise Refused("bad-data", f"{os.path.basename(path)}: {refused.message}") from None
    _record_file(real, size, digest)
    return real


def _display_path(real: str) -> str:
    """Return the display path of a path without links: relative if it is below the working
    directory.
    """
    return real.removeprefix(os.path.join(os.path.realpath(os.getcwd()), ""))


def _require_room(real: str) -> None:
    """Raise Refused `too-large` if the call has already recorded the maximum number of other files."""
    path = _display_path(real)
    if sum(each["path"] != path for each in ACCESS.get().files or ()) >= _MAX_FILES:
        raise Refused("too-large", f"a call records at most {_MAX_FILES} files")


def _record_file(real: str, size: int, digest: str) -> None:
    """Record a file; an earlier record of the same path is replaced."""
    files = ACCESS.get().files
    if files is not None:
        path = _display_path(real)
        others = [each for each in files if each["path"] != path]
        files[:] = [*others, {"path": path, "size_bytes": size, "sha256": digest}]


# -- foreign bytes ----------------------------------------------------------------------------------------------------


def call_confined(
    function: str,
    limits: ProcessLimits,
    arguments: Mapping[str, object],
    *,
    content: bytes | None = None,
    about: str = "",
    read: Sequence[str] = (),
) -> dict[str, Any]:
    """Call `module:name` with `content` and the arguments in a confined process; return its result,
    a JSON object.

    The process runs behind the wall of the machine; its limits hold even if the machine has no
    wall. It can read only the files and folders `read` (docs/reference/service.md#isolation).
    Messages begin with `about`. Raise Refused as the function does, `too-large` if it passes a
    limit or crashes, and ModuleNotFoundError for a library that is not installed."""
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
    """Run a program behind the wall with `content` as its standard input, and return how it ended.

    It can read `read` and write in the folder `scratch`. Raise Refused `unsupported` if a wall is
    `required` and the machine has none."""
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


def schema_errors(schema: object, value: object) -> list[tuple[str, str]]:
    """Return at most 20 violations of a JSON Schema of 2020-12 by a value, as (slash path,
    message); an empty list if it is valid.

    Nothing is fetched, and patterns run in time linear in the text. Raise Refused `bad-data` for a
    schema that is invalid or cannot be applied, and `too-large` for a check that would take too
    long.
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
    """Return why a pattern cannot run in time linear in the text; empty if it can.

    The engine is that of `schema_errors`, or Python's `re` with `backtracking`."""
    from cogcli.base.schema import patterns

    return patterns.refusal(pattern, backtracking=backtracking)


# -- the catalog ------------------------------------------------------------------------------------------------------


class CatalogField(NamedTuple):
    """An input or output. `has_default`: a caller may omit it even if it is required."""

    type: str
    required: bool
    description: str
    has_default: bool


class CatalogItem(NamedTuple):
    """A skill or capability as its file declares it. Only skills have a `channel`, and `calls`: the
    capabilities and skills that their steps use."""

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
    """One problem that `cogcli validate` reports for a skill. `severity` is E for an error, W for a
    warning, R for a requirement that only this machine lacks."""

    code: str
    severity: str
    line: int
    message: str
    hint: str


def skills() -> list[CatalogItem]:
    """Return the skills of the run's registry, sorted by id, without those whose files have errors.

    Raise Refused `unsupported` if no registry is known: in a worker process, and outside of a run.
    """
    from cogcli.specs.skill import list_targets

    return [
        _catalog_item(
            skill, channel=_channel_from_path(skill.file), calls=tuple(list_targets(skill))
        )
        for _, skill in sorted(_registry().skills().items())
    ]


def capabilities() -> list[CatalogItem]:
    """Return the capabilities of the run's registry, sorted by id. Raise Refused as `skills` does."""
    return [_catalog_item(one) for _, one in sorted(_registry().capabilities().items())]


def skill_problems(text: str) -> list[SkillProblem]:
    """Return the problems of a `skill.yaml` text, checked against the run's registry as if its file
    were in channel `local`.

    Nothing is written. Raise Refused as `skills` does."""
    from cogcli.specs.checks import check

    registry = _registry()
    folder, slug = _folders_from_id(text)
    root = [layer.root for layer in registry.layers if not layer.host][-1]
    path = f"{root}/skills/local/{folder}/{slug}/skill.yaml"
    catalog = registry.files([path], contents={path: text.encode("utf-8", "surrogatepass")})
    return [SkillProblem(p.code, p.severity, p.line, p.message, p.hint) for p in check(catalog)]


def _folders_from_id(text: str) -> tuple[str, str]:
    """Return the two folders (domain, slug) that the first id in a skill's text determines;
    placeholders without an id.
    """
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


def _channel_from_path(file: str) -> str:
    parts = file.split("/")
    return parts[-4] if len(parts) > 3 and parts[-1] == "skill.yaml" else ""


def _catalog_item(spec: Any, **more: Any) -> CatalogItem:
    metadata: Mapping[str, object] = spec.metadata
    tags, uses = (_declared_texts(metadata.get(key)) for key in ("tags", "use_cases"))
    name = getattr(spec, "name", "") or spec.id
    described = spec.description, _catalog_fields(spec.inputs), _catalog_fields(spec.outputs)
    return CatalogItem(spec.id, name, *described, tags, uses, **more)


def _declared_texts(value: object) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _catalog_fields(fields: Fields) -> dict[str, CatalogField]:
    return {
        name: CatalogField(field.type, field.required, field.description, field.default is not None)
        for name, field in fields.items()
    }
