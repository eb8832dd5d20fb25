"""Has anything in an episode been altered? (docs/reference/episode.md#verify)

Pure over the bytes read; nothing is written. Without a signature it can say that an episode is consistent, not that it
is authentic: whoever may write every file may write all of them anew. It says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from cogcli.core.files import FileRefused
from cogcli.episode.findings import Finding, error_finding
from cogcli.episode.folder import Folder
from cogcli.episode.layout import EVENTS, is_renamed
from cogcli.episode.refusals import nothing_began_error, open_episode, unreadable
from cogcli.episode.verify.authenticity import NO_TRUST, Trusted, head_finding, signature_finding
from cogcli.episode.verify.documents import DocumentCheck
from cogcli.episode.verify.files import EpisodeFiles, ForeignFiles
from cogcli.episode.verify.foreign import foreign_findings, is_foreign
from cogcli.episode.verify.log_reading import LogReading

MOST: Final = 100
"""Findings of one code that are listed one by one."""


def verify(directory: Path, trusted: Trusted = NO_TRUST) -> list[Finding]:
    """All findings in an episode: files first, the log in order, the documents, then what vouches for them.

    Raises EnvironmentRefusal `episode.unreadable` where there is no log to open.
    """
    with open_episode(directory) as folder:
        try:
            return _capped(_verified(folder, trusted))
        except FileRefused as error:
            name = Path(error.path).name
            if name == EVENTS and (began_nothing := nothing_began_error(folder)):
                raise began_nothing from error
            refusal = unreadable(directory, error.message, file=name)
            refusal.next = ()  # that would be to verify it
            if error.reason == "not-regular":
                refusal.hint = "an episode holds regular files only: put the file itself there"
            raise refusal from error


def is_clean(findings: Iterable[Finding]) -> bool:
    """Whether nothing was altered."""
    return all(finding.severity != "error" for finding in findings)


def _verified(folder: Folder, trusted: Trusted) -> Iterator[Finding]:
    foreign = is_foreign(folder)
    inventory: EpisodeFiles | ForeignFiles = ForeignFiles(folder) if foreign else EpisodeFiles(folder)
    yield from inventory.findings
    log = LogReading(folder, set(inventory.blobs()), trusted.head)
    yield from log.findings()
    lines = log.lines
    if is_renamed(folder.path.name, lines.episode):
        message = f"the folder is named `{folder.path.name}`, its log is that of `{lines.episode:.80}`"
        yield error_finding("episode.renamed", EVENTS, 1, message)
    if isinstance(inventory, ForeignFiles):
        yield from foreign_findings(folder, inventory, lines.episode, log.evidence)
    else:
        yield from DocumentCheck(folder, inventory.files, log).check()
    yield signature_finding(folder, trusted.key, foreign=foreign)
    if trusted.head is not None:
        yield head_finding(trusted.head, log.head_at, lines.count, lines.head)


def _capped(findings: Iterator[Finding]) -> list[Finding]:
    """The findings, the many of one code cut short."""
    seen: Counter[str] = Counter()
    listed: list[Finding] = []
    for finding in findings:
        seen[finding.code] += 1
        if seen[finding.code] <= MOST:
            listed.append(finding)
    for code, count in seen.items():
        if count > MOST:
            last = next(finding for finding in reversed(listed) if finding.code == code)
            listed.append(last._replace(message=f"and {count - MOST:,} more of this kind", line=0))
    return listed
