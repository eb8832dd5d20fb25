"""Episodes that are kept whatever is cleared away: a file per pin in `.pins/` of the runs directory.

Outside the episode, which is sealed. What cannot be read as pins is an error: who cannot know the pins removes nothing.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from cogcli.episode.folder import Folder, disk_refusal
from cogcli.episode.layout import is_episode_id

FOLDER: Final = ".pins"


def read_pins(runs_dir: Path) -> frozenset[str]:
    """The ids of all pinned episodes, those that are gone among them. Raises EnvironmentRefusal `env.disk`."""
    try:
        with Folder.open(runs_dir.resolve()) as runs, runs.sub(FOLDER) as pins:
            return frozenset(filter(is_episode_id, os.listdir(pins.fd)))
    except FileNotFoundError:
        return frozenset()
    except OSError as error:
        raise disk_refusal(runs_dir / FOLDER, error) from error


def pin(runs_dir: Path, episode_id: str) -> None:
    """Pin an episode; once or more often is the same. Raises EnvironmentRefusal `env.disk`."""
    try:
        with Folder.open(runs_dir.resolve()) as runs:
            with suppress(FileExistsError):
                runs.make(FOLDER).close()
            with runs.sub(FOLDER) as pins, suppress(FileExistsError):
                os.close(pins.create(episode_id, os.O_WRONLY))
    except OSError as error:
        raise disk_refusal(runs_dir / FOLDER / episode_id, error) from error


def unpin(runs_dir: Path, episode_id: str) -> None:
    """Take a pin away, if there is one. Raises EnvironmentRefusal `env.disk`."""
    try:
        with Folder.open(runs_dir.resolve()) as runs, runs.sub(FOLDER) as pins:
            os.unlink(episode_id, dir_fd=pins.fd)
    except FileNotFoundError:
        return
    except OSError as error:
        raise disk_refusal(runs_dir / FOLDER / episode_id, error) from error
