"""`replay EP`: run again from the log and report the first difference; `--at SEQ` displays the
state after that event.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

from cogcli.app import episodes
from cogcli.app.registry import open_registry
from cogcli.app.run_skill import agent_of
from cogcli.base.errors import OK, UsageError
from cogcli.base.terminal_text import truncate, visible
from cogcli.cli.context import CommandContext
from cogcli.cli.envelope import dumps
from cogcli.cli.options import NewestEpisode, command, integer
from cogcli.episode.document_bytes import to_bytes
from cogcli.episode.log_reader import iterate_events
from cogcli.episode.projection import project
from cogcli.report.styled_text import StyledLine
from cogcli.run import replay as runs


@command(
    examples=(
        ("cogcli replay @last", "the newest episode"),
        ("cogcli replay @last --at 3", "the state after event 3"),
        ("cogcli replay ./mailed/ep_01M7XJNZDYM9", "a copy outside of any project"),
    ),
    exits=(0, 1, 2, 3),
)
def replay(
    context: CommandContext,
    episode: NewestEpisode = None,
    *,
    at: Annotated[
        int | None,
        integer(
            "--at", "print the state after this event", minimum=0, maximum=10**9, metavar="SEQ"
        ),
    ] = None,
) -> int:
    """Replay an episode, or with `--at` write its state after one event."""
    directory = episodes.find(context.settings, episode)
    context.own["episode_id"] = directory.name
    if at is not None:
        return _show_state_at(context, directory, at)

    result = runs.replay(
        directory, partial(open_registry, context.settings), partial(agent_of, None)
    )
    context.own["replay"] = {
        "equal": result.difference is None,
        "events": result.events,
        "difference": result.difference.to_payload() if result.difference else None,
        "changed_specs": list(result.changed_specs),
    }
    context.answer(_result_lines(context, result))
    if result.difference is None:
        return OK
    what, step = result.difference.what, result.difference.step_id
    return context.fail({"code": "replay.differs", "message": what, "step": step})


def _show_state_at(context: CommandContext, directory: Path, seq: int) -> int:
    """Write the state after the event with this `seq`."""
    events = list(iterate_events(directory))
    if not 0 <= seq < len(events):
        raise UsageError(
            "usage.value", f"`--at {seq}`: no such event", expected=f"0 to {len(events) - 1}"
        )
    document = project(events[: seq + 1])
    if context.json:
        context.own["state"] = document
    else:
        context.screen.answer(to_bytes(document).decode("utf-8", "backslashreplace"))
    return OK


def _result_lines(context: CommandContext, result: runs.ReplayResult) -> list[StyledLine]:
    glyphs = context.screen.out.glyphs
    difference = result.difference
    if difference is None:
        text = f"{result.episode_id}  replays to the same {result.events} events"
        return [[(f"{glyphs.sign('done')} ", "green"), (text, "")]]
    at = f"events.jsonl:{difference.seq + 1}: " if difference.seq is not None else ""
    lines: list[StyledLine] = [
        [(f"{glyphs.sign('failed')} ", "red"), (f"{result.episode_id}  differs", "")],
        [("  ", ""), (visible(f"{at}{difference.what}"), "")],
    ]
    if difference.step_id:
        lines.append([("  step      ", ""), (visible(difference.step_id), "")])
    lines.append([("  recorded  ", ""), (_value_preview(difference.recorded), "")])
    lines.append([("  replayed  ", ""), (_value_preview(difference.replayed), "")])
    return lines


def _value_preview(value: object) -> str:
    return truncate(visible("nothing" if value is None else dumps(value)), 200)
