"""What must be equal where the lines of a batch run: versions, specs, modules, and which bindings may be called
(docs/reference/batch.md#dask).

A worker finds its own facts. The batch sends what it expects, to be compared: nothing of it grants anything.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from hashlib import blake2b, sha256
from typing import Final

from cogcli import __version__
from cogcli.app.settings import Settings
from cogcli.app.settings.owner_key import ensure_key
from cogcli.app.verify_episodes import trusted_of
from cogcli.base.canonical import digest_of
from cogcli.base.files import UnreadableFile, read_regular
from cogcli.base.named_tuple import NamedTuple
from cogcli.run.prepare import PreparedRun
from cogcli.specs.catalog import Catalog
from cogcli.specs.eligibility import reasons
from cogcli.specs.module_lookup import module_file
from cogcli.specs.selection import SelectionOptions
from cogcli.specs.spec_snapshot import document_of

_PERSON: Final = b"cogcli/worker/1"
_LARGEST_MODULE: Final = 16 * 1024 * 1024


class WorkerFacts(NamedTuple):
    """The facts of one process about a prepared run."""

    specs: str
    """The digest of all specs that the skill reaches."""
    pins: dict[str, str]
    """The digest of each spec file."""
    modules: dict[str, str]
    """The digest of the source of each module that has functions of services."""
    reasons: dict[str, list[str]]
    """By binding the codes of the reasons why it may not be called here; variables, trust and extras are some."""


class Versions(NamedTuple):
    """The versions that are equal in the batch and its workers."""

    cogcli: str
    distributed: str
    python: str
    """Major and minor version."""


class UserIdentity(NamedTuple):
    """Identifiers of a user, without secrets. If two sides share one member, each accepts the other's episodes as its
    own.
    """

    owner: str
    """A keyed hash of the nonce of the batch."""
    signer: str
    """The public key that signs episodes. Empty without one."""

    def is_same(self, other: UserIdentity) -> bool:
        """Return whether both sides accept each other's episodes as their own."""
        return self.owner == other.owner or bool(self.signer and self.signer == other.signer)


def find_identity(settings: Settings, nonce: str) -> UserIdentity:
    """Return the identity of the user of this process."""
    key = ensure_key(settings.environ)
    owner = blake2b(nonce.encode(), key=key, digest_size=32, person=_PERSON).hexdigest()
    return UserIdentity(owner, "".join(trusted_of(settings).own_keys))


def find_versions() -> Versions:
    """Return the versions of this process."""
    from importlib.metadata import version

    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    return Versions(__version__, version("distributed"), python)


def find_facts(prepared: PreparedRun) -> WorkerFacts:
    """Return the facts of this process about a prepared run."""
    catalog = prepared.catalog
    return WorkerFacts(
        specs=digest_of(document_of(catalog)),
        pins=dict(sorted(catalog.pins.items())),
        modules=dict(_find_modules(catalog)),
        reasons=_find_reasons(catalog, prepared.selection),
    )


def _find_modules(catalog: Catalog) -> Iterator[tuple[str, str]]:
    """Yield each module of the services with the digest of its source; empty if it is not found."""
    for id in sorted(catalog.services):
        service = catalog.services[id]
        if service.module:
            file = module_file(service.module, service.root)
            yield service.module, "" if file is None else _digest_of_file(file)


def _digest_of_file(file: str) -> str:
    try:
        return sha256(read_regular(file, limit=_LARGEST_MODULE)).hexdigest()
    except (UnreadableFile, OSError):
        return ""


def _find_reasons(catalog: Catalog, selection: SelectionOptions) -> dict[str, list[str]]:
    found = {}
    for id in sorted(catalog.bindings):
        codes = {reason.code for reason in reasons(catalog, catalog.bindings[id], selection)}
        found[id] = sorted(codes)
    return found


def compare_versions(expected: Versions, found: Versions) -> list[str]:
    """Return how the versions of a worker differ, as text; empty if they are equal."""
    pairs = zip(Versions._fields, expected, found, strict=True)
    return [
        f"it has {name} {theirs}, the batch {ours}"
        for name, ours, theirs in pairs
        if ours != theirs
    ]


def compare_facts(expected: WorkerFacts, found: WorkerFacts) -> list[str]:
    """Return how a worker differs from the batch, as text; empty if it does not."""
    specs = _find_unequal(expected.pins, found.pins)
    if expected.specs != found.specs and not specs:
        specs = ["a spec"]
    modules = _find_unequal(expected.modules, found.modules)
    return [
        *(f"{name} is another one" for name in specs),
        *(f"the source of module {name} is another one" for name in modules),
        *_compare_reasons(expected, found),
    ]


def _compare_reasons(expected: WorkerFacts, found: WorkerFacts) -> Iterator[str]:
    for id in _find_unequal(expected.reasons, found.reasons):
        ours, theirs = expected.reasons.get(id, []), found.reasons.get(id, [])
        lacking = [code for code in theirs if code not in ours]
        excess = [code for code in ours if code not in theirs]
        if lacking:
            yield f"binding {id} cannot be called there: {', '.join(lacking)}"
        elif excess:
            yield f"binding {id} can be called there, but not here: {', '.join(excess)}"


def _find_unequal(ours: Mapping[str, object], theirs: Mapping[str, object]) -> list[str]:
    """Return the names whose values differ."""
    return sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
