"""The errors of episodes that cannot be read, resumed or run again."""

from __future__ import annotations

import os
import stat
from contextlib import closing
from typing import TYPE_CHECKING, Final

from cogcli.base.errors import UnusableEnvironment
from cogcli.base.files import UnreadableFile
from cogcli.base.jsonvalue import object_of
from cogcli.base.lazy_pattern import lazy_pattern
from cogcli.base.system import owner_of
from cogcli.base.system_text import shell_word
from cogcli.declarations.envelope import Event
from cogcli.episode.folder import TEMPORARY, Folder
from cogcli.episode.layout import BALLAST, BLOBS, EVENTS, LEARN

if TYPE_CHECKING:
    from pathlib import Path

_FIRST_FILES: Final = (EVENTS, BLOBS, BALLAST)
_SKILL: Final = lazy_pattern(rb'"skill":\{"id":"([a-z0-9_]+(?:\.[a-z0-9_]+)+)"')


def open_episode(path: Path | str) -> Folder:
    """Return an episode's directory, or the archived episode that has this path.

    Raise UnusableEnvironment `episode.unreadable` or `archive.unreadable`.
    """
    try:
        return Folder.open(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        from pathlib import Path

        from cogcli.episode.archive.access import open_archived_episode

        if (archived := open_archived_episode(Path(path))) is not None:
            return archived
        raise unreadable(path, error.strerror or "cannot be opened") from error
    except PermissionError as error:
        raise forbidden_error(path) from error
    except OSError as error:
        raise unreadable(path, error.strerror or "cannot be opened") from error


ASK_OWNER: Final = 'ask them: with `mode = "group"` under [episodes] in their settings the group may read new episodes'


def forbidden_error(path: Path | str) -> UnusableEnvironment:
    """Return the error for an episode, or one of its files, that this user may not read or write."""
    # The folder on the way that is closed hides the owner of what lies in it.
    place = os.fspath(path)
    while not os.path.lexists(place) and (above := os.path.dirname(place) or ".") != place:
        place = above
    error = unreadable(path, f"you may not use it: it belongs to `{owner_of(place).text}`")
    error.found, error.hint = _describe_mode(place), ASK_OWNER
    return error


def _describe_mode(place: str) -> str:
    """Return the permissions of a file or directory as text, such as `mode 0700`."""
    try:
        return f"mode {stat.S_IMODE(os.lstat(place).st_mode):04o}"
    except OSError:
        return ""


def unreadable(path: Path | str, why: str, *, file: str = "", line: int = 0) -> UnusableEnvironment:
    """Return the error for an unreadable episode, because of its `file`, at `line` if that is known."""
    if not file:
        return UnusableEnvironment("episode.unreadable", f"`{path}`: {why}", next=("cogcli ls",))
    return UnusableEnvironment(
        "episode.unreadable",
        f"`{os.path.basename(path)}`: {file}{f':{line}' if line else ''}: {why}",
        file=os.path.join(path, file),
        line=line,
        next=(f"cogcli verify {shell_word(path)}",),
    )


def no_log_error(folder: Folder, refused: UnreadableFile) -> UnusableEnvironment:
    """Return the error for a log that cannot be opened."""
    if refused.reason == "missing" and (began_nothing := nothing_began_error(folder)):
        return began_nothing
    if isinstance(refused.__cause__, PermissionError):
        return forbidden_error(folder.place_of(EVENTS))
    return unreadable(folder.place, refused.message, file=EVENTS)


def nothing_began_error(folder: Folder, *, held: bool = False) -> UnusableEnvironment | None:
    """Return the error for a run that stopped before its first event. None if it has an event or is alive. `held`: the
    caller holds the lock of the log.
    """
    if not _has_only_first_files(folder) or (not held and folder.is_locked(EVENTS)):
        return None
    begun = _first_bytes(folder)
    if begun is None or b"\n" in begun:
        return None
    skill = _SKILL.search(begun)
    again = f"run {skill[1].decode()}" if skill else "skills ls"
    return UnusableEnvironment(
        "episode.unreadable",
        f"`{os.path.basename(folder.place)}`: nothing began before the run was stopped: run it again",
        hint="no step was begun, no service was called",
        next=(f"cogcli {again}",),
    )


def _has_only_first_files(folder: Folder) -> bool:
    """Return whether the directory contains only the files that exist before the first event."""
    for name, found in folder.entries().items():
        is_empty_learn = name == LEARN and not found.st_size
        if name not in _FIRST_FILES and not name.startswith(TEMPORARY) and not is_empty_learn:
            return False
    return True


def _first_bytes(folder: Folder) -> bytes | None:
    """Return the first bytes of the log, none if it does not exist, or None if it cannot be read."""
    try:
        with closing(folder.chunks(EVENTS)) as chunks:
            return next(chunks, b"")
    except UnreadableFile as error:
        return b"" if error.reason == "missing" else None


_START_MEMBERS: Final = {
    "skill": "the skill", "inputs": "its inputs", "options": "the options", "selection": "the bindings chosen",
    "pins": "the pinned specs",
}  # fmt: skip
"""The members of our start event that a resumed log needs, in words."""


def another_tools(path: Path | str, first: Event) -> UnusableEnvironment:
    """Return the error for resuming another tool's episode, or running it again."""
    payload = object_of(first.payload)
    lacking = [
        words for name, words in _START_MEMBERS.items() if type(payload.get(name)) is not dict
    ]
    return UnusableEnvironment(
        "episode.foreign",
        f"`{os.path.basename(path)}` is another tool's, without a chain: it can be looked at, not run",
        expected=f"a log that tells {', '.join(_START_MEMBERS.values())}, each line naming the one before it",
        found=f"no `seq` and `prev`; nothing of {', '.join(lacking)}"
        if lacking
        else "no `seq` and `prev`",
        hint="run a skill of your own with what it was asked",
        file=os.path.join(path, EVENTS),
        line=1,
        next=(f"cogcli trace {shell_word(path)}",),
    )


def altered_error(path: Path | str, fault: str) -> UnusableEnvironment:
    """Return the warning about an episode whose files do not agree; `fault` names the first one, and how."""
    return UnusableEnvironment(
        "episode.altered",
        f"`{os.path.basename(path)}`: {fault}",
        hint="its status cannot be relied on",
        next=(f"cogcli verify {shell_word(path)}",),
    )


def renamed_folder_error(path: Path | str, episode_id: str) -> UnusableEnvironment:
    """Return the error for a folder with the id of another episode."""
    return UnusableEnvironment(
        "episode.renamed",
        f"the folder is named `{os.path.basename(path)}`, what it holds is `{episode_id:.80}`",
        hint="give each episode its own name back",
        next=(f"cogcli verify {shell_word(path)}",),
    )


def no_beginning_error(
    path: Path | str, first: Event | None, *, held: bool = False
) -> UnusableEnvironment:
    """Return the error for a log without the start of a run: `first` is another event, or None without any."""
    if first is None:
        empty = unreadable(path, "no event was committed", file=EVENTS)
        with open_episode(path) as folder:
            return nothing_began_error(folder, held=held) or empty
    kind = first.event_type or first.phase or "no event"
    why = "the log does not begin with the start of a run: its first lines are missing"
    error = unreadable(path, why, file=EVENTS, line=1)
    error.expected, error.found = (
        "run.started",
        kind if first.seq is None else f"{kind}, seq {first.seq}",
    )
    return error
