"""The check whether an episode was altered (docs/reference/episode.md#verify).

It follows from the bytes read; nothing is written. Matching hashes prove that the files are consistent, not who wrote
them: any user who can write to the folder can rewrite all of it. A checkpoint with the user's MAC, or a signature,
proves more. A hash of the log's end that is kept elsewhere proves most: not even the holder of a key rewrote the log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from cogcli.base.files import UnreadableFile
from cogcli.episode.folder import Folder
from cogcli.episode.layout import EVENTS, Finding, error_finding, is_renamed
from cogcli.episode.refusals import nothing_began_error, open_episode, unreadable
from cogcli.episode.verify.documents import DocumentCheck
from cogcli.episode.verify.files import EpisodeFiles, ForeignFiles
from cogcli.episode.verify.foreign import foreign_findings, is_foreign
from cogcli.episode.verify.log_reading import LogReading
from cogcli.episode.verify.trusted import NO_TRUST, TrustAnchors
from cogcli.episode.verify.vouching import KnownRecordCheck

MAX_PER_CODE: Final = 100
"""Findings of one code that are listed one by one."""

LEVELS: Final = {
    "altered": "something does not fit",
    "alarm": "all hashes may match, but a call ran that no decision had allowed",
    "missing": "the anchor names it, and it does not exist",
    "unvouched": "what can be compared fits; nothing vouches for the content of every file",
    "unfinished": "all hashes match; nothing vouches for its last lines",
    "consistent": "all hashes match, but anyone who can write to the folder could have rewritten it",
    "own": "nothing altered: your key vouches for every event",
    "signed": "nothing altered: only a holder of this key can have written it",
    "anchored": "nothing altered since its hash was recorded elsewhere",
}
"""The meaning of each level, from the weakest on."""
_ALARM: Final = "call.witnessed"
"""The finding about an action of the agent, not about the files of its episode."""
VOUCHED: Final = ("own", "signed", "anchored")
"""Levels at which a MAC, a signature or an anchor was checked for all of an episode."""


def verify(directory: Path, trusted: TrustAnchors = NO_TRUST) -> list[Finding]:
    """Return all findings in an episode: about its files, the log in order, the documents, then checkpoints and
    signature. Raise UnusableEnvironment `episode.unreadable` without a log.
    """
    with open_episode(directory) as folder:
        try:
            return _limit_per_code(_find_all(folder, trusted))
        except UnreadableFile as error:
            name = Path(error.path).name
            if name == EVENTS and (began_nothing := nothing_began_error(folder)):
                raise began_nothing from error
            refusal = unreadable(directory, error.message, file=name)
            refusal.next = ()  # the usual next command is `verify`
            if error.reason == "not-regular":
                refusal.hint = "an episode holds regular files only: put the file itself there"
            raise refusal from error


def level_of(findings: Iterable[Finding]) -> str:
    """Return the level of an episode by its findings, a key of `LEVELS`."""
    codes, has_alarm = set(), False
    for finding in findings:
        if finding.code == _ALARM:
            has_alarm = True
        elif finding.severity == "error":
            return "altered"
        codes.add(finding.code)
    if has_alarm:
        return "alarm"
    if "head.same" in codes:
        return "anchored"
    if "manifest.unhashed" in codes or {"chain.unchained", "episode.unsealed"} <= codes:
        return "unvouched"
    if "signature.valid" in codes:
        return "signed"
    if "checkpoint.own" in codes:
        return "own"
    return "unfinished" if {"episode.unsealed", "log.empty"} & codes else "consistent"


def _find_all(folder: Folder, trusted: TrustAnchors) -> Iterator[Finding]:
    if folder.archive is not None:
        yield _archive_finding(folder.archive)
    foreign = ForeignFiles(folder) if is_foreign(folder) else None
    inventory = EpisodeFiles(folder) if foreign is None else foreign
    yield from inventory.findings
    vouching = KnownRecordCheck(folder, trusted)
    log = LogReading(folder, set(inventory.blobs()), trusted.head, vouching.places)
    yield from log.findings()
    lines = log.lines
    if is_renamed(folder.path.name, lines.episode):
        message = (
            f"the folder is named `{folder.path.name}`, its log is that of `{lines.episode:.80}`"
        )
        yield error_finding("episode.renamed", EVENTS, 1, message)
    if foreign is None:
        yield from DocumentCheck(folder, inventory.files, log).check()
    else:
        yield from foreign_findings(folder, foreign, lines.episode, log.evidence)
    yield from vouching.findings(log, foreign=foreign is not None)
    if trusted.judge_answer is not None and foreign is None:
        yield from log.answers.findings(trusted.judge_answer)
    if trusted.head is not None:
        yield _head_finding(trusted.head, log.head_at, lines.count, lines.head)


def _archive_finding(archive: Path) -> Finding:
    """Return the finding that the files come from an archive, which cannot contain links or second names of files."""
    message = (
        f"its files were read from the archive `{archive.name}`: the SHA-256 of their record fits"
    )
    return Finding("archive.record", "info", "", 0, message)


def _limit_per_code(findings: Iterator[Finding]) -> list[Finding]:
    """Return the findings, at most `MAX_PER_CODE` of one code."""
    seen: Counter[str] = Counter()
    listed: list[Finding] = []
    for finding in findings:
        seen[finding.code] += 1
        if seen[finding.code] <= MAX_PER_CODE:
            listed.append(finding)
    for code, count in seen.items():
        if count > MAX_PER_CODE:
            last = next(finding for finding in reversed(listed) if finding.code == code)
            listed.append(
                last._replace(message=f"and {count - MAX_PER_CODE:,} more of this kind", line=0)
            )
    return listed


# -- a hash kept elsewhere ---------------------------------------------------------------------------------------------


def _head_finding(head: str, find_at: int, lines: int, last: str) -> Finding:
    """Return the finding about a hash kept elsewhere, which line `found_at` has; 0 for no line."""
    if not find_at:
        return Finding(
            "head.other", "error", EVENTS, lines, f"the log ends with {last}, never was it {head}"
        )
    if find_at < lines:
        message = f"up to here the log is as it was; {lines - find_at} more lines have come since"
        return Finding("head.earlier", "info", EVENTS, find_at, message)
    return Finding(
        "head.same", "info", EVENTS, find_at, "the log ends as the hash kept elsewhere says"
    )
