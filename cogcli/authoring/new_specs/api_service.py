"""The service of an API and its document (docs/reference/command-line.md#new).

The document is foreign: it decides the form of requests, but never environment variables or private
addresses."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

import orjson

from cogcli.authoring.new_specs.new_files import NewFile, spec_file
from cogcli.authoring.new_specs.operation_words import description_of, one_line
from cogcli.base.addresses import literal_refusal
from cogcli.base.api_documents.loader import parse_files, with_position
from cogcli.base.api_documents.openapi import OpenApiDocument, OpenApiOperation, Scheme
from cogcli.base.api_documents.references import MAX_BYTES
from cogcli.base.errors import USAGE, UsageError
from cogcli.base.files import UnreadableFile, read_regular
from cogcli.base.json_pointer import DocumentFault
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import Problem, ProblemsFound
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.protocols.openapi.contract import name_schemes
from cogcli.specs.id_grammar import is_settable

KIND: Final = "openapi"
DOCUMENTS: Final = "documents"
_EXAMPLE: Final = "http://127.0.0.1:8000"
"""An address that a local server often has."""


class ApiComponents(Record):
    """The shared parts of a document."""

    securitySchemes: Json


class SecuredPart(Record):
    """A part of a document that may require credentials: alternatives, each a set of scheme names."""

    security: list[Json]


class ApiServer(Record):
    """A server of a document."""

    url: str


class ApiInfo(Record):
    """The information about an API."""

    title: str


class ApiHead(SecuredPart):
    """The parts of a document about the service."""

    info: ApiInfo
    servers: list[ApiServer]
    components: ApiComponents
    paths: dict[str, dict[str, SecuredPart]]


class ApiDocument(NamedTuple):
    """A document: its path as given, its bytes, its value, and its parsed content. `others` are the additional files of
    the document.
    """

    path: str
    data: bytes
    value: Json
    api: OpenApiDocument
    head: ApiHead
    others: list[str]


def read_api(path: str, project: str) -> ApiDocument:
    """Return the document in a file, with the referenced files in the project or else next to it. Raise UsageError
    `input.file` or ProblemsFound `wire.document`.
    """
    if path.lower().startswith(("http://", "https://")):
        hint = "fetch it first: curl -o openapi.json URL"
        raise UsageError("input.file", f"`--from-openapi`: `{path[:200]}` is not a file", hint=hint)
    try:
        data = read_regular(path, limit=MAX_BYTES)
    except UnreadableFile as refused:
        raise UsageError("input.file", f"`--from-openapi`: `{path}` {refused.message}") from refused
    try:
        folder = os.path.dirname(os.path.realpath(path))
        root = os.path.realpath(project)
        is_inside = folder == root or folder.startswith(root.rstrip(os.sep) + os.sep)
        value, others = parse_files(data, path, root if is_inside else folder)
        api = OpenApiDocument(value)
        if others and not is_inside:
            data = orjson.dumps(value)  # the copy in the project is one file
        return ApiDocument(path, data, value, api, read_record(ApiHead, value), others)
    except DocumentFault as fault:
        raise refused_document(fault, path) from fault


def refused_document(fault: DocumentFault, path: str) -> ProblemsFound:
    """Return the error for a fault of the document, with its line."""
    at = with_position(fault, path)
    problem = Problem(at.code, "E", path, at.line, at.column, "", at.message, at.hint)
    return ProblemsFound([problem], unlisted=USAGE)


class Credentials(NamedTuple):
    """The credentials that an API expects: a bearer token and headers with variables, or the entries
    of `auth`.

    `schemes` are the security schemes that they satisfy.
    """

    token: str
    headers: dict[str, str]
    schemes: frozenset[str]
    auth: dict[str, Json]

    @property
    def variables(self) -> list[str]:
        """Return the names of the variables that contain credentials, without repeats."""
        named = re.findall(r"\$\{([A-Z0-9_]+)\}", " ".join(self.headers.values()))
        entries = self.auth.values()
        named += [entry[key] for entry in entries for key in _REFS if key in entry]
        return list(dict.fromkeys([*([self.token] if self.token else []), *named]))


_REFS: Final = ("bearer", "api_key", "user", "password")


def credentials(document: ApiDocument, service_id: str) -> Credentials:
    """Return the credentials for the security schemes of a document.

    A token and headers are enough if each is for one scheme; else there is an entry of `auth` for each
    scheme. The names of variables depend only on the service's id.
    """
    prefix = re.sub(r"[^A-Z0-9]+", "_", service_id.upper())
    prefix = prefix if prefix[:1].isalpha() else f"API_{prefix}"
    schemes = list(_usable_schemes(document))
    if any(scheme.header is None or scheme.word not in _PLAIN_WORDS for scheme in schemes):
        return _credentials_by_scheme(schemes, prefix)
    token, headers, taken = "", dict[str, str](), dict[str, str]()
    for scheme in schemes:
        if scheme.key.lower() in taken:
            continue
        taken[scheme.key.lower()] = scheme.name
        if scheme.kind == "token":
            token = f"{prefix}_TOKEN"
        elif scheme.kind == "basic":
            headers[scheme.key] = f"Basic ${{{prefix}_BASIC}}"
        else:
            number = "" if not headers else f"_{len(headers) + 1}"
            headers[scheme.key] = f"${{{prefix}_API_KEY{number}}}"
    return Credentials(token, headers, frozenset(taken.values()), {})


_PLAIN_WORDS: Final = ("Bearer", "Basic")


def _usable_schemes(document: ApiDocument) -> Iterator[Scheme]:
    """Yield the schemes in `security` whose credentials can be given, in the order of the document."""
    for name in _used_schemes(document.head):
        with suppress(DocumentFault):  # the operations that use it are skipped with this reason
            scheme = document.api.scheme(name)
            if scheme.kind and (scheme.header is None or is_settable(scheme.key)):
                yield scheme


def _credentials_by_scheme(schemes: list[Scheme], prefix: str) -> Credentials:
    auth: dict[str, Json] = {}
    for scheme in schemes:
        keys = sum("api_key" in entry for entry in auth.values())
        if scheme.kind == "key":
            number = f"_{keys + 1}" if keys else ""
            entry: Json = {"api_key": f"{prefix}_API_KEY{number}", "in": scheme.place}
            entry["name"] = scheme.key
        elif scheme.kind == "basic":
            entry = {"user": f"{prefix}_USER", "password": f"{prefix}_PASSWORD"}
        else:
            entry = {"bearer": f"{prefix}_TOKEN"}
            if scheme.word != "Bearer":
                entry["word"] = scheme.word
        auth[scheme.name] = entry
    return Credentials("", {}, frozenset(auth), auth)


def _used_schemes(head: ApiHead) -> list[str]:
    """Return the names of the schemes in `security`, in the order of the document."""
    operations = (part for item in head.paths.values() for part in item.values())
    required = (each for part in (head, *operations) for each in part.security)
    return list(dict.fromkeys(name for each in required for name in each))


def explain_lacking_credentials(operation: OpenApiOperation, credentials: Credentials) -> str:
    """Return why the credentials do not satisfy an operation; empty if they do."""
    if any({scheme.name for scheme in each} <= credentials.schemes for each in operation.security):
        return ""
    if not operation.security:
        return ""
    names = name_schemes(operation)
    return f"it asks for {names}, which cannot be given"


def _servers_clause(document: ApiDocument) -> str:
    """Return a clause for messages about the servers of a document."""
    servers = [one_line(each.url, 80) for each in document.head.servers]
    return f"its servers are {', '.join(servers)}" if servers else "it names no server"


def base_url_of(
    document: ApiDocument, base_url: str | None, command_with: Callable[[str], str]
) -> tuple[str, bool]:
    """Return the address of the service, and whether it is private.

    `command_with` builds the command with another address. Raise UsageError if the document has no
    single absolute address, or one that is not public.
    """
    url = base_url or document.api.server
    if url is None:
        message = (
            f"the document does not name the address of the service: {_servers_clause(document)}"
        )
        raise UsageError(
            "usage.flag", message, hint="give it: --base-url URL", next=(command_with(_EXAMPLE),)
        )
    host = _host_of(url)
    refusal = literal_refusal(host, "public")
    private = bool(refusal) and not literal_refusal(host, "private")
    if refusal and not (private and base_url):
        hint = "if it is yours, name it with --base-url URL" if private else ""
        message = f"the service cannot be at {one_line(url, 200)}: {host} {refusal}"
        raise UsageError(
            "usage.value", message, hint=hint, next=(command_with(url),) if private else ()
        )
    return url, private


def _host_of(url: str) -> str:
    """Return the host of an address; empty for a malformed one, which the check of the service reports."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def document_file(document: ApiDocument, root: str, service_id: str) -> tuple[str, list[NewFile]]:
    """Return `spec_ref`, and the copy of the document to write; no copy if it is already in the
    project.
    """
    real, inside = os.path.realpath(document.path), os.path.realpath(root).rstrip(os.sep) + os.sep
    relative = real.removeprefix(inside).replace(os.sep, "/")
    if real.startswith(inside) and not relative.startswith((".", "services/")):
        return relative, []
    is_json = document.data.lstrip()[:1] == b"{"
    path = f"{DOCUMENTS}/{service_id}.{'json' if is_json else 'yaml'}"
    return path, [NewFile(path, document.data, is_spec=False)]


def service_file(
    document: ApiDocument,
    path: str,
    service_id: str,
    *,
    address: tuple[str, bool],
    credentials: Credentials,
    spec_ref: str,
) -> NewFile:
    """Return the file of the service."""
    url, private = address
    value: Json = {"id": service_id, "kind": KIND, "base_url": url}
    if private:
        value["network"] = "private"
    value["spec_ref"] = spec_ref
    if credentials.token:
        value["auth_ref"] = credentials.token
    if credentials.auth:
        value["auth"] = credentials.auth
    title = description_of(document.head.info.title)
    metadata: Json = {"description": title} if title else {}
    if credentials.headers:
        metadata["headers"] = credentials.headers
    if metadata:
        value["metadata"] = metadata
    comment = (
        "# Where the API is. Its document, `spec_ref`, decides methods, paths and parameters.\n"
    )
    if credentials.variables:
        comment += f"# Secrets are read from the environment at each call: {', '.join(credentials.variables)}.\n"
    return spec_file("service", path, comment, value)
