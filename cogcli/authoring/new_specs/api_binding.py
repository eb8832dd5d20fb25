"""`new binding CAP --from-openapi FILE`: capability, binding and service of operations of an API
(docs/reference/command-line.md#new)."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from cogcli.app.registry import open_registry
from cogcli.app.settings import Settings
from cogcli.app.settings.own_writes import keep_trust
from cogcli.authoring.new_specs.api_service import (
    ApiDocument,
    Credentials,
    base_url_of,
    credentials,
    document_file,
    lacking_credentials,
    read_api,
    refused_document,
    service_file,
)
from cogcli.authoring.new_specs.binding_files import (
    binding_file,
    capability_file,
    fit_capability,
    id_words,
)
from cogcli.authoring.new_specs.new_files import (
    NewFile,
    NewSpecs,
    find_write_problems,
    project_of,
    refused_problem,
    schema_files,
)
from cogcli.authoring.new_specs.operation_spec import NotBindable, operation_spec
from cogcli.authoring.new_specs.operation_words import operation_words
from cogcli.base.api_documents.loader import document_digest
from cogcli.base.api_documents.openapi import Entry, OpenApiOperation
from cogcli.base.api_documents.references import MAX_BYTES
from cogcli.base.canonical import digest
from cogcli.base.errors import UsageError
from cogcli.base.files import read_regular
from cogcli.base.json_pointer import DocumentFault
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import Problem, list_known, suggestion
from cogcli.base.schema.containment import count_parts
from cogcli.base.terminal_text import visible
from cogcli.declarations.service_spec import Service
from cogcli.declarations.spec_types import LONGEST_ID
from cogcli.specs.catalog import Catalog
from cogcli.specs.id_grammar import CAPABILITY_ID, is_capability_id
from cogcli.specs.layers import PROJECT

MAX_OPERATIONS: Final = 500
MAX_PARTS: Final = 1_000_000
"""The most JSON values in the schemas of all operations, each with its references expanded: about a
minute of work."""
_TOO_LARGE: Final = (
    "its schemas are too large to be made with those of the others: name it with --operation"
)
_PREFIX: Final = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*(?:\.[a-z0-9]+(?:[_-][a-z0-9]+)*){0,3}")


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


class _OperationFiles(NamedTuple):
    """An operation with the files made for it."""

    entry: Entry
    capability: str
    binding: str
    files: list[NewFile]
    notes: list[str]


def new_binding(settings: Settings, asked: BindingRequest) -> NewSpecs:
    """Write capability, binding and service of one operation, or of all that can be bound.

    Raise UsageError or EnvironmentRefusal `project.none`, `project.link`, `env.disk`; then nothing
    was written.
    """
    project_of(settings)
    _require_id(asked)
    settings.inside(asked.file)
    return _Command(settings, asked, read_api(asked.file, project_of(settings))).make()


def _require_id(asked: BindingRequest) -> None:
    grammar = _PREFIX if asked.all else CAPABILITY_ID
    if grammar.fullmatch(asked.id) and len(asked.id) <= LONGEST_ID:
        return
    expected = (
        "1 to 4 words joined by dots, each id is to begin so"
        if asked.all
        else "2 to 5 words joined by dots"
    )
    message = f"`{visible(asked.id[:80])}` is not an id of a capability"
    raise UsageError(
        "usage.value", message, expected=f"{expected}, in small letters, digits, `-` and `_`"
    )


def _title(entry: Entry) -> str:
    return visible(entry.title[:120])


class _Command:
    """An execution of the command for one document."""

    def __init__(self, settings: Settings, asked: BindingRequest, document: ApiDocument) -> None:
        self._settings = settings
        self._asked = asked
        self._document = document
        self._catalog: Catalog = open_registry(settings).everything()
        id = asked.id if asked.all else asked.id.rpartition(".")[0]
        self._service = id.replace(".", "-")
        self._credentials: Credentials = credentials(document, self._service)
        self._address = ("", False)
        self._skipped: list[tuple[str, str]] = []
        self._room = MAX_PARTS

    def make(self) -> NewSpecs:
        """Write the files of the selected operations, and return the result."""
        bound = self._all() if self._asked.all else self._one()
        shared = self._service_files()
        doubts: list[Problem] = []
        while bound:
            files = [*shared, *(file for each in bound for file in each.files)]
            with keep_trust(self._settings) as written:
                found = find_write_problems(self._settings, files, force=self._asked.force)
                if not found.problems:
                    # The user named the document, and the bindings are made from the content that was read.
                    written(os.path.abspath(self._document.path), self._document.data)
                    for other in self._document.others:
                        written(other, read_regular(other, limit=MAX_BYTES))
                    doubts = found.doubts
                    break
            bound = self._without(bound, found.problems)
        if not bound:
            reasons = [f"{title}: {reason}" for title, reason in self._skipped]
            message = "no operation can be bound" if self._asked.all else f"operation {reasons[0]}"
            raise UsageError(
                "usage.value", message, hint="\n".join(reasons[:5]) if self._asked.all else ""
            )
        return self._summary(bound, files, doubts)

    def _summary(
        self, bound: list[_OperationFiles], files: list[NewFile], doubts: list[Problem]
    ) -> NewSpecs:
        shown = [
            self._settings.display_path(f"{self._settings.project}/{file.path}")
            for file in files
            if file.told
        ]
        notes = [f"{each.capability}: {note}" for each in bound for note in each.notes]
        notes += [f"{doubt.message} ({doubt.code})" for doubt in doubts]
        notes += [f"skipped {title}: {reason}" for title, reason in self._skipped]
        url, private = self._address
        notes += [
            f"${name} is sent to {url}: set it" for name in self._credentials.variables if url
        ]
        commands = [
            f"cogcli new scenario {bound[0].binding}",
            f"cogcli capabilities show {bound[0].capability}",
        ]
        needs_trust = (private or self._credentials.variables) and not self._settings.trust
        trust = ["cogcli config trust"] if needs_trust else []
        others = len(self._catalog.bindings_of.get(bound[0].capability, ())) > 0
        choose = [f"cogcli bindings explain {bound[0].capability}"] if others else []
        next = [*trust, *choose, *commands]
        counts = (len(bound), len(self._skipped)) if self._asked.all else (0, 0)
        return NewSpecs(shown, notes, next, *counts)

    def _service_files(self) -> list[NewFile]:
        """Return the schemas, and the service and document unless the project has them."""
        root, known = project_of(self._settings), self._catalog.services.get(self._service)
        if known is not None and known.layer != PROJECT:
            message = f"`{self._service}` is a service already: {known.file}"
            raise UsageError(
                "usage.value", message, hint="begin the capability's id with another word"
            )
        if known is not None and not self._asked.force:
            self._require_same(known)
            return schema_files(root)
        path = f"services/{self._asked.channel}/{self._service}.yaml"
        kept = known.keys.base_url if known is not None else None
        given = self._asked.base_url or kept
        self._address = base_url_of(
            self._document, given, lambda url: self._command("--base-url", url)
        )
        spec_ref, copies = document_file(self._document, root, self._service)
        service = service_file(
            self._document,
            path,
            self._service,
            address=self._address,
            given=self._credentials,
            spec_ref=spec_ref,
        )
        return [*schema_files(root), *copies, service]

    def _require_same(self, service: Service) -> None:
        """Raise UsageError `output.exists` for a service with another document or address."""
        url = self._asked.base_url
        if document_digest(service) != digest(self._document.data):
            what = "has another document"
        elif url is not None and url != service.keys.base_url:
            what = "has another address"
        else:
            return
        message = f"the service `{service.id}` exists and {what}: {service.file}"
        raise UsageError(
            "output.exists",
            message,
            hint="begin the capability's id otherwise, or --force to replace it",
        )

    def _one(self) -> list[_OperationFiles]:
        entry = self._entry()
        try:
            return [self._bound(entry, self._asked.id)]
        except NotBindable as reason:
            raise UsageError(
                "usage.value", f"operation `{_title(entry)}` cannot be bound: {reason}"
            ) from reason
        except DocumentFault as fault:
            raise refused_document(fault, self._document.path) from fault

    def _entry(self) -> Entry:
        """Return the entry of `--operation`, else the only one. Raise UsageError."""
        entries, name = self._document.api.entries, self._asked.operation
        titles = [_title(entry) for entry in entries]
        if name is None:
            return self._only_entry(titles)
        found = [entry for entry in entries if name in (entry.id, entry.title, entry.path)]
        if len(found) != 1:
            what = "several operations" if found else "no operation"
            hint = suggestion(name, titles) or list_known(
                [_title(each) for each in found] or titles
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
        next = (self._command("--operation", titles[0]), self._command("--all")) if titles else ()
        hint = f"name one with --operation: {list_known(titles)}"
        raise UsageError("usage.flag", message, hint=hint, next=next)

    def _command(self, *more: str) -> str:
        """Return the command with other flags."""
        asked = self._asked
        words = ["cogcli", "new", "binding", asked.id, "--from-openapi", asked.file, *more]
        words += (
            ["--operation", asked.operation]
            if asked.operation and "--operation" not in more
            else []
        )
        words += ["--all"] if asked.all and "--all" not in more else []
        words += (
            ["--base-url", asked.base_url] if asked.base_url and "--base-url" not in more else []
        )
        words += ["--outputs", ",".join(asked.outputs)] if asked.outputs else []
        return shlex.join([*words, *(["--force"] if asked.force else [])])

    def _all(self) -> list[_OperationFiles]:
        """Return the files of every operation that can be bound. The others are skipped with their
        reason.
        """
        entries = self._document.api.entries
        if len(entries) > MAX_OPERATIONS:
            message = f"the document has {len(entries):,} operations, at most {MAX_OPERATIONS} are made at once"
            raise UsageError("usage.value", message, hint="name one with --operation")
        return list(self._each(entries))

    def _each(self, entries: Sequence[Entry]) -> Iterator[_OperationFiles]:
        taken: dict[str, str] = {}
        for entry in entries:
            ids = [f"{self._asked.id}.{word}" for word in id_words(entry)]
            id = next((id for id in ids if id not in taken), ids[0])
            try:
                if not is_capability_id(id):
                    raise NotBindable(f"`{id[:40]}…` is too long for an id")
                if id in taken:
                    raise NotBindable(f"`{taken[id]}` is `{id}` already")
                if self._room <= 0:
                    raise NotBindable(_TOO_LARGE)
                bound = self._bound(entry, id)
                if self._document.api.operation_of(entry).deprecated:
                    raise NotBindable("it is deprecated")
            except (NotBindable, DocumentFault) as reason:
                self._skipped.append((_title(entry), str(reason)))
                continue
            taken[id] = _title(entry)
            yield bound

    def _require_room(self, operation: OpenApiOperation) -> None:
        """Count the schemas of an operation, with expanded references. Raise NotBindable beyond the
        limit.
        """
        schemas = [parameter.schema for parameter in operation.parameters] + [
            *operation.responses.values()
        ]
        size = sum(map(count_parts, [*schemas, operation.body and operation.body.schema]))
        if self._asked.all and size > self._room:
            self._room -= size // 4  # the work of finding this out counts
            raise NotBindable(_TOO_LARGE)
        self._room -= size

    def _without(
        self, bound: list[_OperationFiles], problems: Sequence[Problem]
    ) -> list[_OperationFiles]:
        """Return the operations without those that have problems. Raise UsageError for a problem of
        another file.
        """
        root = self._settings.project
        of_file = {
            self._settings.display_path(f"{root}/{file.path}"): each
            for each in bound
            for file in each.files
        }
        blamed: dict[str, Problem] = {}
        for problem in problems:  # causes are reported first
            if problem.file in of_file:
                blamed.setdefault(of_file[problem.file].capability, problem)
        if not blamed:
            raise refused_problem(problems[0])
        for each in bound:
            if cause := blamed.get(each.capability):
                self._skipped.append((_title(each.entry), f"{cause.message} ({cause.code})"))
        return [each for each in bound if each.capability not in blamed]

    def _bound(self, entry: Entry, id: str) -> _OperationFiles:
        """Return the files of an operation. Raise NotBindable or DocumentFault."""
        api = self._document.api
        operation = api.operation(entry.id or entry.path, None if entry.id else entry.method)
        if lacking := lacking_credentials(operation, self._credentials):
            raise NotBindable(lacking)
        self._require_room(operation)
        words = operation_words(self._document.value, entry)
        spec = operation_spec(operation, words)
        if self._asked.outputs:
            spec = spec.with_outputs(self._asked.outputs)
        known = self._catalog.capability(id)
        files: list[NewFile] = []
        own = f"capabilities/{id}.yaml"
        if known is None or (
            self._asked.force
            and known.file == self._settings.display_path(f"{self._settings.project}/{own}")
        ):
            files.append(capability_file(own, id, spec, words))
        else:
            spec = fit_capability(spec, known)
        binding_id = f"openapi_{id.replace('.', '_')}"
        other = self._catalog.bindings.get(binding_id)
        if other is not None and other.capability != id:
            raise NotBindable(f"`{binding_id}` is a binding of `{other.capability}` already")
        path = f"bindings/{self._asked.channel}/{id}/{binding_id}.yaml"
        files.append(binding_file(path, binding_id, id, self._service, entry, spec))
        return _OperationFiles(entry, id, binding_id, files, spec.notes)
