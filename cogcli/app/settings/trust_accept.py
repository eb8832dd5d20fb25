"""Acceptance of a project, of its folder, or of files that a command of the user writes
(docs/reference/service.md#trust)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress

from cogcli.app.settings.trust import (
    TrustEntry,
    change_store,
    changes_between,
    key_of,
    layers_of,
    read_store,
    roots_of,
    settings_of,
    trust_cache_path,
)
from cogcli.app.settings.trust_copies import AcceptedCopies
from cogcli.app.settings.trust_digests import DecidingFiles, compute_digests, digest_of_bytes
from cogcli.app.settings.trust_needs import (
    ServiceRequirements,
    find_files,
    find_hook_needs,
    find_model_needs,
    find_programs,
    find_service_files,
    find_service_needs,
)
from cogcli.declarations.reading import read_record
from cogcli.declarations.value_types import Json


class ProjectSnapshot:
    """The state of a project at one moment.

    It has the digest of each deciding file, the needs of its services, and the contents of the files without an
    accepted copy. `before` has the accepted digests; None if the project was never accepted.
    """

    def __init__(
        self,
        project: str,
        digests: dict[str, str],
        needs: ServiceRequirements,
        contents: dict[str, bytes],
        before: dict[str, str] | None,
    ) -> None:
        self.project = project
        self.digests = digests
        self.needs = needs
        self.contents = contents
        self.before = before

    @property
    def changes(self) -> list[tuple[str, str]]:
        """The changes since the project was accepted; empty if it was never accepted."""
        return [] if self.before is None else changes_between(self.before, self.digests)

    @property
    def outside_links(self) -> dict[str, str]:
        """Return the target of each link that leaves the project, by the name of the link."""
        targets = ((name, digest.partition("link to ")[2]) for name, digest in self.digests.items())
        return {name: target for name, target in targets if os.path.isabs(target.strip("'"))}


def take_project_snapshot(project: str, environ: Mapping[str, str]) -> ProjectSnapshot:
    """Return the current state of a project. Raise UnusableEnvironment `trust.size`."""
    root = os.path.abspath(project)
    settings = settings_of(root)
    layers = layers_of(root, settings)
    needs = find_service_needs(root, layers).merge(find_model_needs(settings))
    needs = needs.merge(find_hook_needs(settings))
    found = find_files(root, roots_of(root, settings), needs)
    found.add_all(find_programs(root, needs, environ))
    before = _read_accepted_digests(project, environ)
    copies = AcceptedCopies(root, environ)
    contents: dict[str, bytes] = {}

    def keep(digest: str, data: bytes) -> None:
        if not copies.has_copy(digest):
            contents[digest] = data

    return ProjectSnapshot(root, compute_digests(found, keep), needs, contents, before)


def _read_accepted_digests(project: str, environ: Mapping[str, str]) -> dict[str, str] | None:
    """Return the accepted digests; None if the project was never accepted."""
    entry = read_record(TrustEntry, read_store(environ).get(key_of(project)))
    if entry.accepted is None:
        return None
    return {str(name): str(digest) for name, digest in entry.accepted.items()}


def accept(look: ProjectSnapshot, environ: Mapping[str, str]) -> None:
    """Trust a project in the state of a snapshot. A file that has changed since the snapshot is a
    change of the project.

    Raise UnusableEnvironment `env.disk`."""
    copies = AcceptedCopies(look.project, environ)
    copies.store(look.contents)
    entry = {"accepted": look.digests, **look.needs._asdict()}
    change_store(environ, lambda projects: {**projects, key_of(look.project): entry})
    copies.remove_unaccepted_copies(look.digests)


def accept_written_files(
    project: str, environ: Mapping[str, str], content_by_path: Mapping[str, bytes]
) -> None:
    """Accept files with the content that a command of the user has written. Accept no other
    changes.

    A project that is not accepted by digests is unchanged. Raise UnusableEnvironment `env.disk` or
    `trust.size`."""
    root = os.path.abspath(project)
    layers = layers_of(root)
    located = {_resolve_folders(path): data for path, data in content_by_path.items()}
    services = {
        os.path.abspath(path)
        for path in find_service_files(layers)
        if _resolve_folders(path) in located
    }
    more = find_service_needs(root, layers, services)
    copies = AcceptedCopies(root, environ)
    copies.store({digest_of_bytes(data): data for data in located.values()})
    kept: dict[str, str] = {}

    def update(projects: Json) -> Json:
        entry = read_record(TrustEntry, projects.get(key_of(project)))
        if entry.accepted is None:
            return projects
        needs = ServiceRequirements.from_entry(entry.json).merge(more)
        found = find_files(root, roots_of(root), needs)
        found.add_all(find_programs(root, needs, environ))
        kept.update({**entry.accepted, **_digest_written_files(found, located)})
        return {**projects, key_of(project): {"accepted": dict(kept), **needs._asdict()}}

    try:
        change_store(environ, update)
    except (KeyError, TypeError, ValueError):
        return  # a damaged entry trusts nothing
    copies.remove_unaccepted_copies(kept)


def _digest_written_files(
    deciding_files: DecidingFiles, content_by_path: Mapping[str, bytes]
) -> dict[str, str]:
    """Return the digests of the written files that are deciding files, by name. `content_by_path` contains
    the contents by path."""
    # To find the place of a file takes calls of the system, so only files of these names are looked at.
    names = {os.path.basename(path) for path in content_by_path}
    files = deciding_files.files.items()
    places = {
        name: _resolve_folders(path) for name, path in files if os.path.basename(path) in names
    }
    return {
        name: digest_of_bytes(content_by_path[at])
        for name, at in places.items()
        if at in content_by_path
    }


def _resolve_folders(path: str) -> str:
    """Return a path in which links to folders are resolved. Its last part may still be a link."""
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def accept_folder(project: str, environ: Mapping[str, str]) -> None:
    """Trust a project with any content. Raise UnusableEnvironment `env.disk`."""
    change_store(environ, lambda projects: {**projects, key_of(project): {"folder": True}})
    _forget_cached(project, environ)


def revoke(project: str, environ: Mapping[str, str]) -> bool:
    """End the trust and remove the accepted copies. Return False if the project was not trusted.

    Raise UnusableEnvironment `env.disk`."""
    before = change_store(
        environ,
        lambda projects: {
            path: entry for path, entry in projects.items() if path != key_of(project)
        },
    )
    _forget_cached(project, environ)
    return key_of(project) in before


def _forget_cached(project: str, environ: Mapping[str, str]) -> None:
    """Remove the project's file from the cache."""
    AcceptedCopies(project, environ).remove()
    with suppress(OSError):
        os.unlink(trust_cache_path(project, environ))
