"""The history of a Git repository, read from its objects alone: no program, no hook, no configuration."""

from __future__ import annotations

import os
import re
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from cogcli.official.confined import confined
from cogcli.official.files import OPENED_AS as OPENED_AS
from cogcli.official.files import checked_folder, name_of
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
    """Return the commits that `end` (HEAD by default) reaches and `start` does not, the newest first: `id`, `parents`,
    `author`, `email`, `date`, `subject` and `body`.

    Both are names of branches or tags, or ids of at least four digits. `truncated` tells that there are more than
    `limit`. Raise Refused for a folder that is no repository, for one whose objects lie elsewhere, and for a name or
    object that is not there.
    """
    if not 1 <= limit <= _MAX_COMMITS:
        raise Refused("bad-data", f"`limit` is {limit}, expected 1 to {_MAX_COMMITS:,}")
    folder = checked_folder(path)
    inner = os.path.join(folder, ".git")
    if os.path.lexists(inner):
        folder = checked_folder(inner) if os.path.isdir(inner) and not os.path.islink(inner) else ""
    if not folder or not os.path.isdir(os.path.join(folder, "objects")):
        hint = "name the folder that holds `.git`, of the main working tree"
        raise Refused("bad-data", f"{name_of(path)}: no Git repository", hint)
    elsewhere = [name for name in _PLACES if os.path.islink(os.path.join(folder, name))]
    if elsewhere or os.path.lexists(os.path.join(folder, "objects", "info", "alternates")):
        raise Refused("unsupported", f"{name_of(path)}: its objects lie elsewhere")
    return confined(
        "git:commits", folder=folder, start=start, end=end or "HEAD", limit=limit, read=[folder]
    )


def commits(folder: str, start: str | None, end: str, limit: int) -> dict[str, object]:
    """Return the commits of a repository's folder, in a process that may break."""
    from dulwich.errors import MissingCommitError, NotCommitError
    from dulwich.object_store import DiskObjectStore
    from dulwich.refs import DiskRefsContainer
    from dulwich.walk import Walker

    store, refs = DiskObjectStore(os.path.join(folder, "objects")), DiskRefsContainer(folder)
    shallow = _shallow(folder)
    try:
        without = [_resolved(start, store, refs)] if start else []
        walker = Walker(
            store,
            [_resolved(end, store, refs)],
            exclude=without,
            max_entries=limit + 1,
            get_parents=lambda commit: [] if commit.id in shallow else commit.parents,
        )
        found = [_commit_entry(entry.commit) for entry in walker]
    except (MissingCommitError, NotCommitError, KeyError) as error:
        raise Refused("bad-data", f"an object is missing: {error!s:.80}") from None
    return {"commits": found[:limit], "truncated": len(found) > limit}


def _resolved(name: str, store: DiskObjectStore, refs: DiskRefsContainer) -> Any:
    """Return the id of the commit that a name stands for."""
    given = name.encode()
    for candidate in (
        given,
        b"refs/tags/" + given,
        b"refs/heads/" + given,
        b"refs/remotes/" + given,
    ):
        try:
            number = refs[candidate]  # type: ignore[index]
        except (KeyError, ValueError):
            continue  # no such name, or none that may be
        return _commit(number, store)
    if _ID.fullmatch(given):
        ids = set(store.iter_prefix(given))
        if len(ids) == 1:
            return _commit(ids.pop(), store)
        if ids:
            raise Refused("bad-data", f"{name!r:.60} begins the ids of {len(ids)} objects")
    if name == "HEAD":
        raise Refused("no-evidence", "there are no commits yet")
    raise Refused(
        "bad-data", f"no branch, tag or commit {name!r:.60}", "name one as it is, without ~ or ^"
    )


def _commit(number: Any, store: DiskObjectStore) -> Any:
    """Return the commit that an id stands for, behind tags."""
    found: Any = store[number]
    for _ in range(10):
        if found.type_name != b"tag":
            break
        found = store[found.object[1]]
    if found.type_name != b"commit":
        raise Refused("bad-data", f"{number.decode()[:12]} is not a commit")
    return found.id


def _shallow(folder: str) -> set[bytes]:
    """Return the commits whose parents were not fetched."""
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
