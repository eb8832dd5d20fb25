"""The retention periods of episodes. A pack sets them by the class of its data
(docs/reference/pack.md#retention)."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Final

from cogcli.base.errors import UnusableEnvironment
from cogcli.base.files import UnreadableFile
from cogcli.base.strict_json import InvalidJson
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.pack_spec import DATA_CLASSES, Pack
from cogcli.declarations.reading import read_record
from cogcli.declarations.run_start import RunPins, start_of
from cogcli.declarations.summary_document import Summary
from cogcli.episode.blobs import BlobFolder, parse
from cogcli.episode.document_bytes import read_object
from cogcli.episode.layout import SUMMARY
from cogcli.episode.listing.episode_row import EpisodeRow
from cogcli.episode.log_reader import EventLog
from cogcli.episode.refusals import open_episode
from cogcli.protocols import PROTOCOLS
from cogcli.report.humanize import seconds_of
from cogcli.specs.spec_snapshot import catalog_of

_DAY: Final = 86_400


_UNREADABLE: Final = (
    UnusableEnvironment,
    UnreadableFile,
    InvalidJson,
    # The specs were altered.
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
)


def is_expired(row: EpisodeRow, now: str) -> bool:
    """Return whether the retention period of a sealed episode has ended.

    An episode never expires if it is unreadable, has no pack, or has a pack without a retention
    period for its class."""
    if not row.sealed:
        return False
    try:
        ended_at, days = _read_end_and_days(row.directory)
        ended, until = seconds_of(ended_at), seconds_of(now)
        return None not in (ended, until, days) and until - ended > days * _DAY  # type: ignore[operator]
    except _UNREADABLE:
        return False


def _read_end_and_days(directory: Path) -> tuple[str, float | None]:
    """Return the end time of the episode, and its retention period in days; None without a retention period."""
    with open_episode(directory) as folder, closing(BlobFolder(folder)) as blobs:
        ended_at = read_record(Summary, read_object(folder, SUMMARY)).ended_at
        _, started = next(iter(EventLog(folder)), (0, None))
        pins = start_of(started).pins if started else RunPins()
        data = blobs.get(pins.specs_blob)
        if data is None:
            return ended_at, None
        catalog = catalog_of(parse(data), PROTOCOLS)
        pack = catalog.packs.get((pins.policy or "").partition("#")[0])
        return ended_at, _find_retention_days(pack, catalog.capabilities.values()) if pack else None


def _find_retention_days(pack: Pack, capabilities: Iterable[Capability]) -> float | None:
    """Return the retention period for the highest data class of the pack and the capabilities,
    otherwise for the pack's class.

    It is in days; None if the pack has no period for either class."""
    own, days = pack.meta.data_classification, pack.meta.retention_days
    called = [each.safety.data_classification for each in capabilities if each.safety]
    highest = max((own, *filter(None, called)), key=DATA_CLASSES.index)
    return days.get(highest, days.get(own))
