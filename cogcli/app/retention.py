"""How long an episode is kept: as its pack says for the class of its data (docs/reference/pack.md#retention)."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any, Final

from cogcli.base.errors import EnvironmentRefusal
from cogcli.base.files import FileRefused
from cogcli.base.jsonvalue import object_of, text_of
from cogcli.base.strict_json import JsonRefused
from cogcli.declarations.pack_spec import DATA_CLASSES
from cogcli.episode.blobs import BlobFolder, parse
from cogcli.episode.document_bytes import read_object
from cogcli.episode.layout import SUMMARY
from cogcli.episode.listing.episode_row import EpisodeRow
from cogcli.episode.log_reader import EventLog
from cogcli.episode.refusals import open_episode
from cogcli.report.humanize import seconds_of

_DAY: Final = 86_400


def is_expired(row: EpisodeRow, now: str) -> bool:
    """Whether a sealed episode is older, since its end, than the pack that it ran under keeps it. One that cannot be
    read, and one without a pack or without a time for its class, is not."""
    if not row.sealed:
        return False
    try:
        ended_at, days = _end_and_days(row.directory)
    except (EnvironmentRefusal, FileRefused, JsonRefused):
        return False
    ended, until = seconds_of(ended_at), seconds_of(now)
    return None not in (ended, until, days) and until - ended > days * _DAY  # type: ignore[operator]


def _end_and_days(directory: Path) -> tuple[str, float | None]:
    """When the episode ended, and for how many days it is kept."""
    with open_episode(directory) as folder, closing(BlobFolder(folder)) as blobs:
        _, started = next(iter(EventLog(folder)), (0, None))
        pins = object_of(object_of(started.payload if started else None).get("pins"))
        data = blobs.get(str(pins.get("specs_blob")))
        specs = object_of(object_of(parse(data) if data else None).get("specs"))
        days = _days_of(
            {name: object_of(object_of(entry).get("spec")) for name, entry in specs.items()}, pins
        )
        return str(read_object(folder, SUMMARY).get("ended_at")), days


def _days_of(specs: dict[str, dict[str, Any]], pins: dict[str, Any]) -> float | None:
    """The days for the highest class of the pack and of the capabilities, else for that of the pack; None without."""
    pack = specs.get(f"pack:{str(pins.get('policy')).partition('#')[0]}", {})
    meta = object_of(pack.get("pack_meta"))
    days, own = (
        object_of(meta.get("retention_days")),
        text_of(meta.get("data_classification")) or "internal",
    )
    capabilities = [spec for name, spec in specs.items() if name.startswith("capability:")]
    classes = [
        own,
        *(object_of(spec.get("safety")).get("data_classification") for spec in capabilities),
    ]
    highest = max(
        (each for each in classes if each in DATA_CLASSES), key=DATA_CLASSES.index, default=own
    )
    found = days.get(highest, days.get(own))
    return found if isinstance(found, int | float) and not isinstance(found, bool) else None
