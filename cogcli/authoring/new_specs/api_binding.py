"""`new binding CAP --from-openapi FILE`: capability, binding and service of operations of an API
(docs/reference/command-line.md#new)."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from cogcli.app.registry import open_registry
from cogcli.app.settings import Settings
from cogcli.authoring.new_specs.api_service import (
    KIND,
    ApiDocument,
    Credentials,
    base_url_of,
    credentials,
    document_file,
    explain_lacking_credentials,
    read_api,
    refused_document,
    service_file,
)
from cogcli.authoring.new_specs.binding_files import (
    BoundCall,
    binding_file,
    capability_file,
    fit_capability,
    id_word_candidates,
)
from cogcli.authoring.new_specs.new_files import (
    NewFile,
    NewSpecs,
    project_of,
    schema_files,
)
from cogcli.authoring.new_specs.operation_spec import NotBindable, operation_spec
from cogcli.authoring.new_specs.operation_words import operation_words
from cogcli.authoring.new_specs.written_operations import (
    OperationFiles,
    Written,
    WrittenOperations,
    listed_paths,
    require_bound_operations,
    require_capability_id,
    write_operations,
)
from cogcli.base.api_documents.loader import document_digest
from cogcli.base.api_documents.openapi import Entry, OpenApiOperation
from cogcli.base.api_documents.references import MAX_BYTES
from cogcli.base.canonical import digest
from cogcli.base.errors import UsageError
from cogcli.base.files import read_regular
from cogcli.base.json_pointer import DocumentFault
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import list_known_words, suggestion
from cogcli.base.schema.containment import count_parts
from cogcli.base.terminal_text import visible
from cogcli.declarations.service_spec import Service
from cogcli.specs.catalog import Catalog
from cogcli.specs.id_grammar import is_capability_id
from cogcli.specs.layers import PROJECT

MAX_OPERATIONS: Final = 500
MAX_PARTS: Final = 1_000_000
"""The most JSON values in the schemas of all operations, each with its references expanded: about a
minute of work."""
_TOO_LARGE: Final = (
    "its schemas are too large to be made with those of the others: name it with --operation"
)


class BindingRequest(NamedTuple):
    """The arguments of the command. `id` is the capability's id; with `all` it is the prefix of all
    ids."""

    id: str
    file: str
    operation: str | None = None
    all: bool = False
    base_url: str | None = None
    channel: str = "local"
    force: bool = False
    outputs: tuple[str, ...] = ()
    """The outputs that are declared; empty for all."""


def new_binding(settings: Settings, request: BindingRequest) -> NewSpecs:
    """Write capability, binding and service of one operation, or of all that can be bound.

    Raise UsageError or UnusableEnvironment `project.none`, `project.link`, `env.disk`; then nothing
    was written.
    """
    project_of(settings)
    require_capability_id(request.id, is_prefix=request.all)
    settings.require_inside(request.file)
    return _Command(settings, request, read_api(request.file, project_of(settings))).make()


def _entry_title(entry: Entry) -> str:
    return visible(entry.title[:120])


def _bound_call(entry: Entry) -> BoundCall:
    """Return the operation of an API document that the binding of its entry calls."""
    return BoundCall(KIND, entry.id or entry.path, "" if entry.id else entry.method)


class _Command:
    """An execution of the command for one document."""

    def __init__(self, settings: Settings, request: BindingRequest, document: ApiDocument) -> None:
        self._settings = settings
        self._request = request
        self._document = document
        self._catalog: Catalog = open_registry(settings).everything()
        id = request.id if request.all else request.id.rpartition(".")[0]
        self._service = id.replace(".", "-")
        self._credentials: Credentials = credentials(document, self._service)
        self._address = ("", False)
        self._skipped: list[tuple[str, str]] = []
        self._room = MAX_PARTS

    def make(self) -> NewSpecs:
        """Write the files of the selected operations, and return the result."""
        bound = self._bind_all() if self._request.all else self._bind_one()
        shared = self._service_files()
        found = write_operations(
            self._settings,
            shared,
            bound,
            self._skipped,
            force=self._request.force,
            keep=self._trust_document,
        )
        require_bound_operations(found.bound, self._skipped, all=self._request.all)
        return self._build_summary(found)

    def _trust_document(self, mark_written: Written) -> None:
        """Mark the document and its other files as trusted, because the user named them and the bindings depend on
        them.
        """
        mark_written(os.path.abspath(self._document.path), self._document.data)
        for other in self._document.others:
            mark_written(other, read_regular(other, limit=MAX_BYTES))

    def _build_summary(self, operations: WrittenOperations) -> NewSpecs:
        bound = operations.bound
        paths = listed_paths(self._settings, operations.files)
        notes = _list_notes(bound)
        notes += [f"{doubt.message} ({doubt.code})" for doubt in operations.doubts]
        notes += [f"skipped {title}: {reason}" for title, reason in self._skipped]
        url, private = self._address
        variables = self._credentials.variables
        if url:
            notes += [f"${name} is sent to {url}: set it" for name in variables]
        needs_trust = (private or variables) and not self._settings.trust
        trust = ["cogcli config trust"] if needs_trust else []
        commands = [*trust, *self._list_commands(bound[0])]
        counts = (len(bound), len(self._skipped)) if self._request.all else (0, 0)
        return NewSpecs(paths, notes, commands, *counts)

    def _list_commands(self, first: OperationFiles) -> Iterator[str]:
        """Yield the commands that try the first binding."""
        if self._catalog.bindings_of.get(first.capability):
            yield f"cogcli bindings explain {first.capability}"
        yield f"cogcli new scenario {first.binding}"
        yield f"cogcli capabilities show {first.capability}"

    def _service_files(self) -> list[NewFile]:
        """Return the schemas, and the service and document unless the project has them."""
        root, known = project_of(self._settings), self._catalog.services.get(self._service)
        if known is not None and known.layer != PROJECT:
            message = f"`{self._service}` is a service already: {known.file}"
            raise UsageError(
                "usage.value", message, hint="begin the capability's id with another word"
            )
        if known is not None and not self._request.force:
            self._require_same_service(known)
            return schema_files(root)
        path = f"services/{self._request.channel}/{self._service}.yaml"
        kept = known.keys.base_url if known is not None else None
        given = self._request.base_url or kept
        self._address = base_url_of(
            self._document, given, lambda url: self._command_line("--base-url", url)
        )
        spec_ref, copies = document_file(self._document, root, self._service)
        service = service_file(
            self._document,
            path,
            self._service,
            address=self._address,
            credentials=self._credentials,
            spec_ref=spec_ref,
        )
        return [*schema_files(root), *copies, service]

    def _require_same_service(self, service: Service) -> None:
        """Raise UsageError `output.exists` for a service with another document or address."""
        url = self._request.base_url
        if document_digest(service) != digest(self._document.data):
            difference = "has another document"
        elif url is not None and url != service.keys.base_url:
            difference = "has another address"
        else:
            return
        message = f"the service `{service.id}` exists and {difference}: {service.file}"
        raise UsageError(
            "output.exists",
            message,
            hint="begin the capability's id otherwise, or --force to replace it",
        )

    def _bind_one(self) -> list[OperationFiles]:
        entry = self._find_entry()
        try:
            return [self._operation_files(entry, self._request.id)]
        except NotBindable as reason:
            raise UsageError(
                "usage.value", f"operation `{_entry_title(entry)}` cannot be bound: {reason}"
            ) from reason
        except DocumentFault as fault:
            raise refused_document(fault, self._document.path) from fault

    def _find_entry(self) -> Entry:
        """Return the entry of `--operation`, else the only one. Raise UsageError."""
        entries, name = self._document.api.entries, self._request.operation
        titles = [_entry_title(entry) for entry in entries]
        if name is None:
            return self._only_entry(titles)
        found = [entry for entry in entries if name in (entry.id, entry.title, entry.path)]
        if len(found) != 1:
            what = "several operations" if found else "no operation"
            hint = suggestion(name, titles) or list_known_words(
                [_entry_title(each) for each in found] or titles
            )
            raise UsageError(
                "usage.value", f"the document has {what} `{visible(name[:80])}`", hint=hint
            )
        return found[0]

    def _only_entry(self, titles: list[str]) -> Entry:
        entries = self._document.api.entries
        if len(entries) == 1:
            return entries[0]
        message = f"the document has {len(entries)} operations"
        next = (
            (self._command_line("--operation", titles[0]), self._command_line("--all"))
            if titles
            else ()
        )
        hint = f"name one with --operation: {list_known_words(titles)}"
        raise UsageError("usage.flag", message, hint=hint, next=next)

    def _command_line(self, *more: str) -> str:
        """Return the command with other flags."""
        request = self._request
        words = ["cogcli", "new", "binding", request.id, "--from-openapi", request.file, *more]
        words += (
            ["--operation", request.operation]
            if request.operation and "--operation" not in more
            else []
        )
        words += ["--all"] if request.all and "--all" not in more else []
        words += (
            ["--base-url", request.base_url]
            if request.base_url and "--base-url" not in more
            else []
        )
        words += ["--outputs", ",".join(request.outputs)] if request.outputs else []
        return shlex.join([*words, *(["--force"] if request.force else [])])

    def _bind_all(self) -> list[OperationFiles]:
        """Return the files of every operation that can be bound. The others are reported with their reason."""
        entries = self._document.api.entries
        if len(entries) > MAX_OPERATIONS:
            message = f"the document has {len(entries):,} operations, at most {MAX_OPERATIONS} are made at once"
            raise UsageError("usage.value", message, hint="name one with --operation")
        return list(self._bind_each(entries))

    def _bind_each(self, entries: Sequence[Entry]) -> Iterator[OperationFiles]:
        taken: dict[str, str] = {}
        for entry in entries:
            ids = [f"{self._request.id}.{word}" for word in id_word_candidates(entry)]
            id = next((id for id in ids if id not in taken), ids[0])
            try:
                if not is_capability_id(id):
                    raise NotBindable(f"`{id[:40]}…` is too long for an id")
                if id in taken:
                    raise NotBindable(f"`{taken[id]}` is `{id}` already")
                if self._room <= 0:
                    raise NotBindable(_TOO_LARGE)
                bound = self._operation_files(entry, id)
                if self._document.api.operation_of(entry).deprecated:
                    raise NotBindable("it is deprecated")
            except (NotBindable, DocumentFault) as reason:
                self._skipped.append((_entry_title(entry), str(reason)))
                continue
            taken[id] = _entry_title(entry)
            yield bound

    def _require_size(self, operation: OpenApiOperation) -> None:
        """Count the schemas of an operation, with expanded references. Raise NotBindable beyond the
        limit.
        """
        schemas = [parameter.schema for parameter in operation.parameters] + [
            *operation.responses.values()
        ]
        size = sum(map(count_parts, [*schemas, operation.body and operation.body.schema]))
        if self._request.all and size > self._room:
            self._room -= size // 4  # the work of finding this out counts
            raise NotBindable(_TOO_LARGE)
        self._room -= size

    def _operation_files(self, entry: Entry, id: str) -> OperationFiles:
        """Return the files of an operation. Raise NotBindable or DocumentFault."""
        api = self._document.api
        operation = api.operation(entry.id or entry.path, None if entry.id else entry.method)
        if lacking := explain_lacking_credentials(operation, self._credentials):
            raise NotBindable(lacking)
        self._require_size(operation)
        words = operation_words(self._document.value, entry)
        spec = operation_spec(operation, words)
        if self._request.outputs:
            spec = spec.with_outputs(self._request.outputs)
        known = self._catalog.capability(id)
        files: list[NewFile] = []
        own = f"capabilities/{id}.yaml"
        if known is None or (
            self._request.force
            and known.file == self._settings.display_path(f"{self._settings.project}/{own}")
        ):
            files.append(capability_file(own, id, spec, words))
        else:
            spec = fit_capability(spec, known)
        binding_id = f"openapi_{id.replace('.', '_')}"
        other = self._catalog.bindings.get(binding_id)
        if other is not None and other.capability != id:
            raise NotBindable(f"`{binding_id}` is a binding of `{other.capability}` already")
        path = f"bindings/{self._request.channel}/{id}/{binding_id}.yaml"
        files.append(binding_file(path, binding_id, id, self._service, _bound_call(entry), spec))
        return OperationFiles(_entry_title(entry), id, binding_id, files, spec.notes)


def _list_notes(bound: Sequence[OperationFiles]) -> list[str]:
    """Return the notes on the written operations, each with its capability."""
    return [f"{each.capability}: {note}" for each in bound for note in each.notes]
