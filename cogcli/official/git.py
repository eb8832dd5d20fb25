"""The history of a Git repository, read from its objects alone: no program, no hook, no configuration."""

from __future__ import annotations

import os
import re
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from cogcli.official.confined import run_confined_function
from cogcli.official.files import OPENED_AS as OPENED_AS
from cogcli.official.files import name_of, resolve_folder
from cogcli.sdk import Refused

if TYPE_CHECKING:
    from dulwich.object_store import DiskObjectStore
    from dulwich.objects import Commit
    from dulwich.refs import DiskRefsContainer

_MAX_COMMITS = 10_000
_MAX_TEXT = 10_000
_ID = re.compile(rb"[0-9a-f]{4,64}")
_PLACES = ("objects", "refs", "HEAD", "packed-refs", "objects/pack", "objects/info")


def read_log(
    path: str, start: str | None = None, end: str | None = None, limit: int = 100
) -> dict[str, object]:
    """Return the commits that `end` (default HEAD) reaches and `start` does not, newest first.

    Each has `id`, `parents`, `author`, `email`, `date`, `subject` and `body`. Start and end are
    names of branches or tags, or ids of at least four digits. `truncated` is true if there are more
    than `limit`. Raise Refused for a folder without a repository, for objects stored elsewhere, and
    for an unknown name or object.
    """
    if not 1 <= limit <= _MAX_COMMITS:
        raise Refused("bad-data", f"`limit` is {limit}, expected 1 to {_MAX_COMMITS:,}")
    folder = resolve_folder(path)
    inner = os.path.join(folder, ".git")
    if os.path.lexists(inner):
        folder = resolve_folder(inner) if os.path.isdir(inner) and not os.path.islink(inner) else ""
    if not folder or not os.path.isdir(os.path.join(folder, "objects")):
        hint = "name the folder that holds `.git`, of the main working tree"
        raise Refused("bad-data", f"{name_of(path)}: no Git repository", hint)
    linked = [name for name in _PLACES if os.path.islink(os.path.join(folder, name))]
    if linked or os.path.lexists(os.path.join(folder, "objects", "info", "alternates")):
        raise Refused("unsupported", f"{name_of(path)}: its objects lie elsewhere")
    return run_confined_function(
        "git:commits", folder=folder, start=start, end=end or "HEAD", limit=limit, read=[folder]
    )


def commits(folder: str, start: str | None, end: str, limit: int) -> dict[str, object]:
    """Return the commits of a repository's folder. Runs in a confined process."""
    from dulwich.errors import MissingCommitError, NotCommitError
    from dulwich.object_store import DiskObjectStore
    from dulwich.refs import DiskRefsContainer
    from dulwich.walk import Walker

    store, refs = DiskObjectStore(os.path.join(folder, "objects")), DiskRefsContainer(folder)
    shallow = _shallow_commits(folder)
    try:
        excluded = [_resolve_name(start, store, refs)] if start else []
        walker = Walker(
            store,
            [_resolve_name(end, store, refs)],
            exclude=excluded,
            max_entries=limit + 1,
            get_parents=lambda commit: [] if commit.id in shallow else commit.parents,
        )
        entries = [_commit_entry(entry.commit) for entry in walker]
    except (MissingCommitError, NotCommitError, KeyError) as error:
        raise Refused("bad-data", f"an object is missing: {error!s:.80}") from None
    return {"commits": entries[:limit], "truncated": len(entries) > limit}


def _resolve_name(name: str, store: DiskObjectStore, refs: DiskRefsContainer) -> Any:
    """Return the id of the commit that a name refers to. Raise Refused."""
    name_bytes = name.encode()
    for candidate in (
        name_bytes,
        b"refs/tags/" + name_bytes,
        b"refs/heads/" + name_bytes,
        b"refs/remotes/" + name_bytes,
    ):
        try:
            object_id = refs[candidate]  # type: ignore[index]
        except (KeyError, ValueError):
            continue  # no such name, or none that may be
        return _peel_to_commit(object_id, store)
    if _ID.fullmatch(name_bytes):
        ids = set(store.iter_prefix(name_bytes))
        if len(ids) == 1:
            return _peel_to_commit(ids.pop(), store)
        if ids:
            raise Refused("bad-data", f"{name!r:.60} begins the ids of {len(ids)} objects")
    if name == "HEAD":
        raise Refused("no-evidence", "there are no commits yet")
    raise Refused(
        "bad-data", f"no branch, tag or commit {name!r:.60}", "name one as it is, without ~ or ^"
    )


def _peel_to_commit(object_id: Any, store: DiskObjectStore) -> Any:
    """Return the id of the commit that an id refers to, directly or through tags. Raise Refused."""
    git_object: Any = store[object_id]
    for _ in range(10):
        if git_object.type_name != b"tag":
            break
        git_object = store[git_object.object[1]]
    if git_object.type_name != b"commit":
        raise Refused("bad-data", f"{object_id.decode()[:12]} is not a commit")
    return git_object.id


def _shallow_commits(folder: str) -> set[bytes]:
    """Return the ids of the commits whose parents were not fetched."""
    path = os.path.join(folder, "shallow")
    if os.path.islink(path) or not os.path.isfile(path):
        return set()
    with open(path, "rb") as file:
        return set(file.read(1_000_000).split())


def _commit_entry(commit: Commit) -> dict[str, object]:
    message = commit.message.decode("utf-8", "replace")[:_MAX_TEXT].strip()
    subject, _, body = message.partition("\n")
    author, _, email = commit.author.decode("utf-8", "replace").partition(" <")
    zone = timezone(timedelta(seconds=commit.author_timezone))
    try:
        moment = datetime.fromtimestamp(commit.author_time, zone).isoformat()
    except (ValueError, OverflowError, OSError):
        moment = ""
    return {
        "id": commit.id.decode(),
        "parents": [parent.decode() for parent in commit.parents],
        "author": author,
        "email": email.rstrip(">"),
        "date": moment,
        "subject": subject.strip(),
        "body": body.strip(),
    }
