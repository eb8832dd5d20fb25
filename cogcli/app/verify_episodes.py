"""`verify` for several episodes. Each is checked by itself; then copies among them are reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from cogcli.app.anchors import Head
from cogcli.app.settings import Settings
from cogcli.app.settings.approvers import ApproverKeys
from cogcli.app.settings.owner_key import find_key
from cogcli.app.settings.runs_dir import SIGNING_KEY, signer_of
from cogcli.base.errors import CogcliError
from cogcli.base.files import UnreadableFile
from cogcli.base.jsonvalue import paused_collection
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.redact import Redactor
from cogcli.base.system_text import variable
from cogcli.base.terminal_text import visible
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.episode.damage import find_damage
from cogcli.episode.layout import (
    BLOBS,
    EVENTS,
    MANIFEST,
    STATE,
    Finding,
    FindingSeverity,
    error_finding,
)
from cogcli.episode.log_fold import fold_log
from cogcli.episode.log_reader import EventLog
from cogcli.episode.manifest import read_seal
from cogcli.episode.refusals import open_episode
from cogcli.episode.seal import persist_pending, seal
from cogcli.episode.signing import public_key
from cogcli.episode.store import Store
from cogcli.episode.verify.check import LEVELS, level_of, verify
from cogcli.episode.verify.trusted import NO_TRUST, SignatureVerdict, TrustAnchors
from cogcli.policy.approvals import SignedAnswer
from cogcli.report.check_report import CaseFailure, CheckReport, MarkdownTable, ReportCase


class VerifiedEpisode(NamedTuple):
    """The findings of `verify`, and the level that they prove."""

    findings: list[Finding]
    level: str


def trusted_of(
    settings: Settings, *, key: str | None = None, signature: bool = False
) -> TrustAnchors:
    """Return the keys that the user trusts: the keys for the user's episodes and signatures, and `key`. Raise
    UnusableEnvironment `signing.key` for an unusable signing key, or `env.extra`.
    """
    own = variable(settings.environ, SIGNING_KEY)
    own_keys = frozenset((public_key(own),)) if own else frozenset[str]()
    judge = partial(judge_answer, settings)
    return TrustAnchors(key, None, find_key(settings.environ), own_keys, signature, judge)


def judge_answer(settings: Settings, answer: SignedAnswer, at: str) -> SignatureVerdict:
    """Return the result of checking a signed answer with the keys in the settings."""
    return ApproverKeys(settings).judge(answer, at)


def verify_episode(directory: Path, anchors: TrustAnchors = NO_TRUST) -> VerifiedEpisode:
    """Verify an episode. Raise UnusableEnvironment if it has no log."""
    with paused_collection():
        findings = verify(directory, anchors)
    return VerifiedEpisode(findings, level_of(findings))


class VerifyResult(NamedTuple):
    """The result for one episode.

    `findings` are objects of the envelope. `level` is empty for an unreadable episode."""

    name: str
    findings: tuple[Json, ...]
    level: str = ""
    repaired: bool = False
    directory: Path | None = None
    """None for an episode that does not exist."""
    next: tuple[str, ...] = ()
    """The commands that finish a run that is not sealed."""

    @property
    def proves(self) -> str:
        """The guarantee that the level gives, as text."""
        return LEVELS.get(self.level, "")

    @property
    def is_unsealed(self) -> bool:
        """Whether the run has not ended."""
        return any(finding["code"] == "episode.unsealed" for finding in self.findings)

    @property
    def errors(self) -> list[Json]:
        """Return the findings of severity error: the episode is altered or unreadable."""
        return [finding for finding in self.findings if finding["severity"] == "error"]


class _FindingPlace(Record):
    """The place of a finding; 0 for a whole file."""

    file: str = ""
    line: int = 0


def place_of(finding: Json) -> str:
    """Return `FILE:LINE: ` for a finding; empty if it has no file."""
    place = read_record(_FindingPlace, finding)
    if not place.file:
        return ""
    return f"{place.file}:{place.line}: " if place.line else f"{place.file}: "


class EpisodeVerifier(NamedTuple):
    """Verifies several episodes.

    `anchor` contains the heads that were recorded elsewhere, by episode. With `repair`, each
    episode is repaired first. `warn` receives the reason why a repair is impossible."""

    settings: Settings
    trusted: TrustAnchors
    anchor: Mapping[str, Head]
    repair: bool
    warn: Callable[[CogcliError], None]

    def verify(self, directories: list[Path]) -> Iterator[VerifyResult]:
        """Yield the result for each episode.

        An episode that cannot be read has a finding. If only one directory is given, raise CogcliError instead."""
        seals: dict[str, tuple[Path, str]] = {}
        for directory in directories:
            try:
                repaired = self.repair and self._repair_episode(directory)
                found = verify_episode(directory, self._find_trusted_keys(directory.name))
                findings = _findings_to_payload(directory.name, found.findings)
                result = VerifyResult(directory.name, findings, found.level, repaired, directory)
            except CogcliError as error:
                if len(directories) == 1:
                    raise
                finding = {"code": error.code, "severity": "error", "message": error.message}
                result = VerifyResult(directory.name, ({"episode": directory.name, **finding},))
            yield _add_duplicate(result, directory, seals) if len(directories) > 1 else result
        present = {directory.name for directory in directories}
        for name in sorted(self.anchor.keys() - present):
            message = (
                f"the anchor names it with {self.anchor[name].events} events, and it does not exist"
            )
            missing = error_finding("anchor.missing", EVENTS, 0, message)
            yield VerifyResult(name, _findings_to_payload(name, [missing]), "missing")

    def _find_trusted_keys(self, name: str) -> TrustAnchors:
        """Return the trusted keys, and the recorded head of this episode."""
        anchored = self.anchor.get(name)
        return self.trusted._replace(head=anchored.head) if anchored else self.trusted

    def _repair_episode(self, directory: Path) -> bool:
        """Repair the episode. Return False if it needs no repair or cannot be repaired."""
        try:
            return repair(self.settings, directory)
        except CogcliError as error:
            if error.code != "episode.unreadable":
                raise
            self.warn(error)
            return False


def _findings_to_payload(name: str, findings: Iterable[Finding]) -> tuple[Json, ...]:
    """Return findings as objects of the envelope."""
    return tuple({"episode": name, **finding.to_payload()} for finding in findings)


def _add_duplicate(
    one: VerifyResult, directory: Path, seals: dict[str, tuple[Path, str]]
) -> VerifyResult:
    """Return the result, with the finding `episode.twice` if an earlier episode has the same sealed
    id.

    `seals` contains the directory and digest of each earlier episode, by id, and is updated."""
    seal = read_seal(directory)
    if seal is None:
        return one
    episode_id, digest = seal
    place, first = seals.setdefault(episode_id, (directory, digest))
    if place == directory:
        return one
    same = digest == first
    what = "a copy of" if same else "another episode than"
    severity: FindingSeverity = "info" if same else "error"
    message = f"{what} the one in `{place}`, both sealed as `{episode_id:.80}`"
    found = _findings_to_payload(
        one.name, [Finding("episode.twice", severity, MANIFEST, 0, message)]
    )
    return one._replace(findings=(*one.findings, *found), level=one.level if same else "altered")


def repair(settings: Settings, directory: Path) -> bool:
    """Repair an unsealed episode; return False if it needs no repair. Damage that does not prevent
    sealing remains.

    Raise UnusableEnvironment `episode.busy` or `env.disk`, and `episode.unreadable` for damage that
    cannot be repaired."""
    damaged = _is_damaged(directory)
    if not damaged and not _is_only_unsealed(directory):
        return False
    store = Store(settings.runs_dir, sign=signer_of(settings), owner=find_key(settings.environ))
    journal = store.reopen(
        directory, clock=settings.clock, ids=settings.ids, redactor=Redactor(), mend=damaged
    ).journal
    try:
        if fold_log(journal.events()).projection.terminated is not None:
            seal(journal)
        elif any(
            found.file == STATE and found.severity == "error" for found in verify(journal.directory)
        ):
            persist_pending(journal)
    finally:
        journal.close()
    return True


def is_repairable(directory: Path) -> bool:
    """Return whether `--repair` can repair the last line of an unsealed log."""
    with open_episode(directory) as folder:
        try:
            damage = None if MANIFEST in folder.entries() else find_damage(folder)
        except UnreadableFile:
            return False
        return damage is not None and damage.can_be_mended


def _is_damaged(directory: Path) -> bool:
    """Return whether a line of an unsealed log was altered."""
    with open_episode(directory) as folder:
        try:
            return MANIFEST not in folder.entries() and find_damage(folder) is not None
        except UnreadableFile:
            return False  # `verify` reports the reason


def _is_only_unsealed(directory: Path) -> bool:
    """Return whether the run has ended without a manifest, and its log and blobs are unaltered.

    False for the log of another tool."""
    with open_episode(directory) as folder:
        if folder.holds(MANIFEST):
            return False
    if fold_log(EventLog(directory)).projection.terminated is None:
        return False
    findings = verify(directory)
    if any(finding.code == "chain.unchained" for finding in findings):
        return False
    wrong = {finding.file for finding in findings if finding.severity == "error"}
    return not any(name == EVENTS or name.startswith(BLOBS) for name in wrong)


def _report_case(result: VerifyResult) -> ReportCase:
    """Return the case of one episode: its errors are failures, its other findings are notes."""
    failures: list[CaseFailure] = []
    notes: list[str] = []
    for finding in result.findings:
        code, message = finding["code"], finding["message"]
        text = f"{place_of(finding)}{message}"
        if finding["severity"] == "error":
            failures.append(CaseFailure(code, message, text))
        else:
            notes.append(f"{code}: {text}")
    return ReportCase("verify", result.name, tuple(failures), tuple(notes))


def episodes_report(results: Sequence[VerifyResult], seconds: float) -> CheckReport:
    """Return the report of `verify`: one case per episode. Warnings and information are notes."""
    rows = [
        f"| {_escape_cell(one.name)} | {one.level or 'unreadable'} | {len(one.errors)} |"
        for one in results
    ]
    found = [
        f"| {_escape_cell(one.name)} | {_escape_cell(place_of(f).rstrip(': '))} "
        f"| {f['code']} | {_escape_cell(f['message'])} |"
        for one in results
        for f in one.findings
    ]
    tables = [MarkdownTable(("| episode | level | errors |", "|---|---|---|"), tuple(rows))]
    if found:
        header = ("| episode | place | code | message |", "|---|---|---|---|")
        tables.append(MarkdownTable(header, tuple(found)))
    return CheckReport("verify", seconds, tuple(map(_report_case, results)), tables=tuple(tables))


def _escape_cell(text: str) -> str:
    """Return a string for a cell of a Markdown table, with markup escaped."""
    for mark in "\\`*_[]<>|":
        text = text.replace(mark, f"\\{mark}")
    return visible(text)
