"""`replay EP`: run again from the log and name the first difference; `--at SEQ` shows the state after that event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cogcli.app import episodes
from cogcli.core.errors import NO, OK, UsageError
from cogcli.core.terminal_text import truncate, visible

if TYPE_CHECKING:
    from pathlib import Path

    from cogcli.app.replay import Replayed
    from cogcli.app.replay_adapters import ReplayDifference
    from cogcli.cli.context import CommandContext
    from cogcli.report.styled_text import StyledLine


def execute(context: CommandContext) -> int:
    """Replay, or show a moment of, one episode."""
    given = context.arguments
    directory = episodes.find(context.settings, given.words[0] if given.words else None)
    context.own["episode_id"] = directory.name
    if given.given("--at"):
        return _moment(context, directory, int(str(given.values["--at"])))
    from cogcli.app.replay import replay

    replayed = replay(context.settings, directory)
    context.own["replay"] = {
        "equal": replayed.difference is None,
        "events": replayed.events,
        "difference": replayed.difference.as_dict() if replayed.difference else None,
        "changed_specs": list(replayed.changed_specs),
    }
    if not context.json:
        context.screen.answer_lines(_lines(context, replayed))
    if replayed.difference is None:
        return OK
    context.error = _error(replayed.difference)
    return NO


def _moment(context: CommandContext, directory: Path, seq: int) -> int:
    from cogcli.app.logs import events_of
    from cogcli.episode.document_bytes import to_bytes
    from cogcli.episode.project import project

    events = events_of(directory)
    if not 0 <= seq < len(events):
        raise UsageError("usage.value", f"`--at {seq}`: no such event", expected=f"0 to {len(events) - 1}")
    document = project(events[: seq + 1])
    if context.json:
        context.own["state"] = document
    else:
        context.screen.answer(to_bytes(document).decode("utf-8", "backslashreplace"))
    return OK


def _lines(context: CommandContext, replayed: Replayed) -> list[StyledLine]:
    glyphs = context.screen.out.glyphs
    difference = replayed.difference
    if difference is None:
        said = f"{replayed.episode_id}  replays to the same {replayed.events} events"
        return [[(f"{glyphs.sign('done')} ", "green"), (said, "")]]
    at = f"events.jsonl:{difference.seq + 1}: " if difference.seq is not None else ""
    lines: list[StyledLine] = [
        [(f"{glyphs.sign('failed')} ", "red"), (f"{replayed.episode_id}  differs", "")],
        [("  ", ""), (visible(f"{at}{difference.what}"), "")],
    ]
    if difference.step_id:
        lines.append([("  step      ", ""), (visible(difference.step_id), "")])
    lines.append([("  recorded  ", ""), (_shown(difference.recorded), "")])
    lines.append([("  replayed  ", ""), (_shown(difference.replayed), "")])
    return lines


def _shown(value: Any) -> str:
    from cogcli.cli.envelope import dumps

    return truncate(visible("nothing" if value is None else dumps(value)), 200)


def _error(difference: ReplayDifference) -> dict[str, Any]:
    return {
        "code": "replay.differs",
        "message": difference.what,
        "step": difference.step_id,
        "retryable": False,
        "hint": "",
        "next": ["cogcli explain replay.differs"],
    }
