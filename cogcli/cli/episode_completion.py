"""The completions of episodes and of their steps (docs/reference/command-line.md#completion)."""

from __future__ import annotations

from cogcli.app.episodes import find, list_episodes
from cogcli.app.settings import Settings
from cogcli.app.state_document import parse_state, read_stored_state
from cogcli.episode.listing.episode_row import EpisodeFilter


def newest_episodes(settings: Settings, count: int) -> list[tuple[str, str]]:
    """Return at most `count` episodes, the newest first, and the names for the last ones."""
    rows = list_episodes(settings, EpisodeFilter(), count)
    named = [("@last", "the newest"), ("@failed", "the newest that is not ok")] if rows else []
    return [*named, *((row.id, f"{row.skill} {row.shown_status}") for row in rows)]


def steps_of_episode(settings: Settings, episode: str | None) -> list[tuple[str, str]]:
    """Return the steps of an episode, or of the newest if `episode` is None."""
    directory = find(settings, episode)
    data = read_stored_state(directory)
    steps = parse_state(data, directory)["plan"]["steps"] if data else []
    return [
        (step["id"], f"{step['status']} {step.get('description') or ''}".rstrip()) for step in steps
    ]
