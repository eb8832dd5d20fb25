"""`report`: one HTML page of episodes, with their verification and explanations."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from cogcli import __version__
from cogcli.app.episodes import read_status
from cogcli.app.explain import pages
from cogcli.app.policy_explanation import explain_episode
from cogcli.app.settings import Settings
from cogcli.app.state_document import iterate_shown_events
from cogcli.app.verify_episodes import verify_episode
from cogcli.base.errors import CogcliError
from cogcli.base.files import UnreadableFile
from cogcli.base.strict_json import InvalidJson
from cogcli.declarations.documents import Manifest
from cogcli.declarations.envelope import Event
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.run_start import RecordedStart
from cogcli.declarations.value_types import Json
from cogcli.episode.blobs import BlobFolder, parse
from cogcli.episode.foreign_log import for_reports
from cogcli.episode.history import History, history_of
from cogcli.episode.layout import MANIFEST, Finding
from cogcli.episode.listing.episode_row import EpisodeRow
from cogcli.episode.log_reader import Warn
from cogcli.episode.manifest import manifest_files
from cogcli.episode.refusals import open_episode
from cogcli.episode.verify.check import LEVELS, VOUCHED
from cogcli.report.compare import read_side
from cogcli.report.html import html_page
from cogcli.report.lineage import declared_places
from cogcli.report.page import PageSource, page_of
from cogcli.report.page_comparison import compare_all
from cogcli.report.thinned_log import left_out_warning, thin_log
from cogcli.report.unfinished_runs import unfinished_state

_SOUND = ("unfinished", "consistent", *VOUCHED)
"""Levels of verification at which decisions are explained. An altered episode is shown without
explanations."""
_LARGEST_MANIFEST = 64 * 1024 * 1024


def read_source(settings: Settings, directory: Path, warn: Warn) -> PageSource:
    """Return the data of an episode for a page. The errors of unreadable parts are passed to
    `warn`.

    Raise UnusableEnvironment if no part is readable."""
    warnings: list[str] = []

    def note(error: CogcliError) -> None:
        warnings.append(error.message)
        warn(error)

    thinned = thin_log(iterate_shown_events(directory, note))
    if thinned.note:
        note(left_out_warning(thinned))
    log = for_reports(thinned.events)
    events = tuple(log.events)
    folded = history_of(events)
    folded.actions = log.actions
    row = read_status(settings, directory, warn)
    unfinished = unfinished_state(folded, row.status)
    specs = _read_specs(directory, events)
    skill = folded.root.skill if folded.root else ""
    manifest = _read_manifest(directory)
    findings, level = _verify_episode(directory, note)
    fault, fault_status = _describe_fault(row, level, findings)
    explained = _explain_decisions(directory, note) if folded.chained and level in _SOUND else []
    return PageSource(
        name=directory.name, status=row.status, events=events, fold=folded, unfinished=unfinished,
        declared=declared_places({"specs": specs}, skill), specs=specs, findings=findings, level=level,
        proves=LEVELS.get(level, "it could not be verified"), files=tuple(manifest_files(manifest.json).files.values()),
        head=manifest.chain.head, explained=explained,
        meaning=_find_error_meaning(folded), warnings=warnings, next=(),
        sealed=row.sealed or not folded.chained, fault=fault, fault_status=fault_status,
    )  # fmt: skip


def _describe_fault(row: EpisodeRow, level: str, findings: Sequence[Finding]) -> tuple[str, str]:
    """Return the fault of an episode and the status to display for it. Both are empty if it has no
    fault."""
    status = row.shown_status if row.fault else ""
    if level != "altered" or status == "unsealed":
        return row.fault, status
    first = next(each for each in findings if each.severity == "error")
    return row.fault or f"{first.file} {first.message}", "altered"


def report_page(sources: Sequence[PageSource]) -> bytes:
    """Return the HTML page of one or more episodes."""
    return html_page(
        lambda limit: [
            page_of(source, limit, prefix=f"e{n}-" if len(sources) > 1 else "")
            for n, source in enumerate(sources, start=1)
        ],
        version=__version__,
        events=sum(len(source.events) for source in sources),
        comparison=compare_all(
            [
                read_side(each.name, each.fault_status or each.status, each.events)
                for each in sources
            ]
        ),
    )


def _verify_episode(directory: Path, note: Warn) -> tuple[Sequence[Finding], str]:
    """Return the findings of a verification, and the level that the episode reaches."""
    try:
        found = verify_episode(directory)
    except CogcliError as error:
        note(error)
        return [], "unreadable"
    return found.findings, found.level


def _explain_decisions(directory: Path, note: Warn) -> list[Json]:
    """Return the reasons of the episode's governed decisions; empty if they cannot be computed."""
    try:
        return list(explain_episode(directory))
    except CogcliError as error:
        note(error)
        return []


def _find_error_meaning(history: History) -> str:
    """Return the meaning of the run's error code; empty if the run has no error."""
    code = history.root.error.code if history.root and history.root.error else ""
    return pages().get(code, ("", "", ""))[0] if code else ""


class SpecsDocument(Record):
    """The specs that are stored in an episode, by kind and id."""

    specs: Json


def _read_specs(directory: Path, events: Sequence[Event]) -> Json:
    """Return the specs that are stored in an episode."""
    start = read_record(RecordedStart, events[0].payload if events else None)
    digest = start.pins.specs_blob
    if not digest:
        return {}
    try:
        with open_episode(directory) as folder, closing(BlobFolder(folder)) as kept:
            data = kept.get(digest)
        return read_record(SpecsDocument, parse(data)).specs if data else {}
    except (UnreadableFile, InvalidJson):
        return {}


def _read_manifest(directory: Path) -> Manifest:
    """Return the manifest of an episode; an empty one if it cannot be read."""
    try:
        with open_episode(directory) as folder:
            return read_record(Manifest, parse(folder.read(MANIFEST, limit=_LARGEST_MANIFEST)))
    except (UnreadableFile, InvalidJson):
        return read_record(Manifest, {})
