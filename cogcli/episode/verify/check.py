"""Has anything in an episode been altered? (docs/reference/episode.md#verify)

Pure over the bytes read; nothing is written. Without a signature it can say that an episode is consistent, not that it
is authentic: whoever may write every file may write all of them anew. A hash of the log's end that was kept elsewhere
proves more than a signature: not even who has the key wrote it anew since.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from cogcli.core.errors import ServiceResolutionError
from cogcli.core.files import FileRefused
from cogcli.episode import signing
from cogcli.episode.document_bytes import read_object
from cogcli.episode.folder import Folder
from cogcli.episode.layout import EVENTS, MANIFEST, Finding, error_finding, is_renamed
from cogcli.episode.refusals import nothing_began_error, open_episode, unreadable
from cogcli.episode.verify.documents import DocumentCheck
from cogcli.episode.verify.files import EpisodeFiles, ForeignFiles
from cogcli.episode.verify.foreign import foreign_findings, is_foreign
from cogcli.episode.verify.log_reading import LogReading

MOST: Final = 100
"""Findings of one code that are listed one by one."""

LEVELS: Final = {
    "altered": "something does not fit",
    "unvouched": "what can be compared fits; nothing vouches for the content of every file",
    "unfinished": "what is there fits; nothing vouches for its last lines",
    "consistent": "all fits together; who may write every file could have written all anew",
    "signed": "all fits together; nobody without this key wrote it",
    "anchored": "all fits together; nobody changed it since the hash was kept elsewhere",
}
"""What each level proves, from the weakest on."""


class Trusted(NamedTuple):
    """What the caller knows for sure: the `key_id` that must have signed, the hash of the log's last line."""

    key: str | None = None
    head: str | None = None


NO_TRUST: Final = Trusted()


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


def level_of(findings: Iterable[Finding]) -> str:
    """What an episode's findings add up to, a key of `LEVELS`."""
    codes = set()
    for finding in findings:
        if finding.severity == "error":
            return "altered"
        codes.add(finding.code)
    if "head.same" in codes:
        return "anchored"
    if "manifest.unhashed" in codes or {"chain.unchained", "episode.unsealed"} <= codes:
        return "unvouched"
    if "episode.unsealed" in codes or "log.empty" in codes:
        return "unfinished"
    return "signed" if "signature.valid" in codes else "consistent"


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
    yield _signature_finding(folder, trusted.key, foreign=foreign)
    if trusted.head is not None:
        yield _head_finding(trusted.head, log.head_at, lines.count, lines.head)


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


# -- what vouches for it -----------------------------------------------------------------------------------------------


def _signature_finding(folder: Folder, trusted: str | None, *, foreign: bool = False) -> Finding:
    """What the manifest's signature is worth; another tool's may have a form of its own."""
    manifest = read_object(folder, MANIFEST)
    signature = manifest.get("signature")
    if signature is None:
        if trusted:
            return _error("signature.missing", "is not signed")
        return _info("signature.none", "unsigned: consistent at best, not authentic")
    if not signing.is_signature(signature):
        if foreign and not trusted:
            return _info("signature.unchecked", "its signature has another tool's form: it was not checked")
        return _error("signature.invalid", "its signature is none")
    try:
        fits = signing.fits(manifest)
    except ServiceResolutionError as error:
        if trusted:
            raise
        return _info("signature.unchecked", f"{error.message}: {error.hint}")
    key = signature["key_id"]
    if not fits:
        return _error("signature.invalid", "was altered after it was signed")
    if trusted is None:
        return _info("signature.unknown", f"signed by {key}: `--key FILE` says whose key that has to be")
    if trusted != key:
        return _error("signature.other", f"was signed by {key}, not by the key given")
    return _info("signature.valid", f"signed by the key given, {key}")


def _head_finding(head: str, found_at: int, lines: int, last: str) -> Finding:
    """Whether the log ends with a hash kept elsewhere, which is that of line `found_at`, 0 for none."""
    if not found_at:
        return Finding("head.other", "error", EVENTS, lines, f"the log ends with {last}, never was it {head}")
    if found_at < lines:
        message = f"up to here the log is as it was; {lines - found_at} more lines have come since"
        return Finding("head.earlier", "info", EVENTS, found_at, message)
    return Finding("head.same", "info", EVENTS, found_at, "the log ends as the hash kept elsewhere says")


def _error(code: str, message: str) -> Finding:
    return Finding(code, "error", MANIFEST, 0, message)


def _info(code: str, message: str) -> Finding:
    return Finding(code, "info", MANIFEST, 0, message)
