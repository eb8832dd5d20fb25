"""The end or the pause of an episode: its log becomes documents, in an order that any crash may interrupt
(docs/reference/episode.md#sealing). Evidence that is already the last line is not appended again. The disk reserve is
freed before the end is written, so that a run on a full disk ends in that space.
"""

from __future__ import annotations

from cogcli.base.errors import InternalError
from cogcli.base.files import UnreadableFile
from cogcli.declarations.envelope import Event, draft_of
from cogcli.declarations.events import StateDigest, StateProjected
from cogcli.episode.document_bytes import to_bytes
from cogcli.episode.journal import Journal
from cogcli.episode.layout import EVENTS, LEARN, MANIFEST, STATE, SUMMARY, WAYPOINT
from cogcli.episode.learn import learn_lines
from cogcli.episode.log_fold import LogFold, decision_files, fold_log
from cogcli.episode.manifest import build_manifest, list_files, read_chain
from cogcli.episode.projection import evidence_outcomes, state_text
from cogcli.episode.refusals import altered_error, unreadable
from cogcli.episode.summary import summary_of


def seal(journal: Journal) -> None:
    """Finish an episode whose run has terminated. Raise UnusableEnvironment `env.disk`, `episode.altered`."""
    journal.free_reserve()
    journal.sync()
    fold = _fold_whole(journal)
    if fold.projection.terminated is None:
        raise InternalError("internal", "an episode is sealed after its run has terminated")
    journal.replace(LEARN, learn_lines(fold))
    journal.replace(SUMMARY, to_bytes(summary_of(fold, journal.put_large)))
    evidence = _write_documents(journal, fold)
    journal.remove(WAYPOINT)
    try:
        files, chain = list_files(journal.folder), read_chain(journal.folder, journal.episode_id)
    except UnreadableFile as error:
        raise unreadable(journal.directory, error.message) from error
    if chain != journal.chain:
        raise altered_error(journal.directory, f"{EVENTS} changed while the episode was sealed")
    manifest = build_manifest(
        episode_id=journal.episode_id,
        created_at=evidence.timestamp,
        files=files,
        chain=chain,
        pins=fold.pins,
        unsigned=journal.unvouched if journal.sign is not None and journal.has_vouched else (),
    )
    if journal.sign is not None and journal.has_vouched:
        manifest["signature"] = journal.sign(manifest)
    data = to_bytes(manifest)
    journal.vouch(data)
    journal.replace(MANIFEST, data)


def persist_pending(journal: Journal) -> None:
    """Write evidence and `state.json` of a run that waits. Raise UnusableEnvironment `env.disk`, `episode.altered`."""
    _write_documents(journal, _fold_whole(journal))
    journal.vouch()


def _fold_whole(journal: Journal) -> LogFold:
    """Fold the whole log. Raise UnusableEnvironment `episode.unreadable`, `episode.altered` for a truncated log, or one
    that another process changed.
    """
    journal.require_unchanged()
    log = journal.events()
    fold = fold_log(log)
    if log.stopped or log.torn or log.unresolved:
        why = log.stopped.message if log.stopped else "its last line or a blob cannot be read"
        raise unreadable(journal.directory, why)
    return fold


def _write_documents(journal: Journal, fold: LogFold) -> Event:
    """Append the projection evidence, then replace `state.json` and the documents of an agent's run."""
    document = fold.projection.result(journal.put_large)
    evidence = fold.evidence
    data = state_text(document, fold.projection.rules)
    if evidence is None:
        outcomes, links = evidence_outcomes(document["outcomes"]), document["links"]
        payload = StateProjected(
            status=outcomes["status"],
            outcomes=outcomes,
            links=links,
            state=StateDigest(sha256=data.sha256, size_bytes=data.size),
        )
        evidence = journal.append_derived(draft_of(payload, fold.projection.root or ""))
    for name, text in decision_files(fold).items():
        journal.replace(name, text)
    journal.replace(STATE, data.chunks())
    return evidence
