"""What vouches for an episode besides itself: a signature, and a head hash that was kept elsewhere.

1. Consistent: log and files fit one another. Whoever may write them all could have written them all anew.
2. Signed: the manifest was signed with the key that the caller trusts. Nobody without it wrote it anew.
3. Anchored: the log ends as a hash says that was kept elsewhere. Not even who has the key wrote it anew since.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from cogcli.core.errors import ServiceResolutionError
from cogcli.episode import signing
from cogcli.episode.document_bytes import read_object
from cogcli.episode.findings import Finding
from cogcli.episode.folder import Folder
from cogcli.episode.layout import EVENTS, MANIFEST

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


def signature_finding(folder: Folder, trusted: str | None, *, foreign: bool = False) -> Finding:
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


def head_finding(head: str, found_at: int, lines: int, last: str) -> Finding:
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
