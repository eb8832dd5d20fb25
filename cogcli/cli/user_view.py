"""Lines that display the stored data of a user (docs/reference/user-memory.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cogcli.base.terminal_text import LONGEST_SHOWN, truncate_bytes, visible
from cogcli.cli.envelope import dumps
from cogcli.declarations.value_types import Json
from cogcli.report.humanize import count_of

_SHOWN: Final = 3
"""The number of episodes displayed for an entry."""


def profile_lines(profile: Json) -> Iterator[str]:
    """Yield the lines of a profile: the counts, then a line for each entry."""
    count = profile["interaction_count"]
    if count:
        times = f"from {profile['created_at']} to {profile['last_updated']}"
        yield visible(
            f"{profile['user_id']} in {profile['tenant_id']}: {count_of(count, 'interaction')} {times}"
        )
    for entry in profile["entries"]:
        name = f"{entry['field']}.{entry['name']}" if entry["name"] else entry["field"]
        value, more = truncate_bytes(dumps(entry["value"]), LONGEST_SHOWN)
        episodes = entry["episodes"]
        named = ", ".join(episodes[-_SHOWN:]) + (
            f" and {len(episodes) - _SHOWN} more" if len(episodes) > _SHOWN else ""
        )
        yield visible(f"{name} = {value}{more}  ({entry['decided_by']}, from {named})")


def session_lines(session: Json) -> Iterator[str]:
    """Yield the lines of a session: its goal, then its messages."""
    failed = ", its last run failed" if session["last_run_failed"] else ""
    yield visible(
        f"{session['session_id']} of {session['user_id']}: mode {session['mode'] or 'none'}{failed}"
    )
    if goal := session["reasoning"]["goal"]:
        yield visible(f"goal: {goal}")
    for message in session["messages"]:
        text, more = truncate_bytes(str(message.get("content", "")), LONGEST_SHOWN)
        yield visible(
            f"{message.get('timestamp', '')} {message.get('role', '')} ({message['episode_id']}): {text}{more}"
        )


def deletion_line(deletion: Json) -> str:
    """Return the line that reports the deleted data."""
    deleted = {name: count for name, count in deletion["deleted"].items() if count}
    what = ", ".join(count_of(count, name) for name, count in deleted.items()) or "nothing was held"
    return visible(f"forgot {deletion['user_id']} in {deletion['tenant_id']}: {what}")


def export_lines(export: Json) -> Iterator[str]:
    """Yield all stored data as Markdown: a heading for each table, a JSON block for each row."""
    yield visible(f"# What is held of {export['user_id']} in {export['tenant_id']}")
    for name, rows in {"profile": [export["profile"]], **export["tables"]}.items():
        yield from ("", f"## {name}")
        for row in rows:
            yield from ("", *(f"    {line}" for line in dumps(row, indent=True).splitlines()))
