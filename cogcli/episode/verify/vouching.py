"""The check of the checkpoints and the signature of an episode (docs/reference/episode.md#checkpoint)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from typing import Final

from cogcli.base.canonical import digest
from cogcli.base.errors import ServiceResolutionError
from cogcli.base.files import UnreadableFile
from cogcli.declarations.documents import Signature
from cogcli.declarations.reading import read_record
from cogcli.episode import signing
from cogcli.episode.checkpoint import (
    Checkpoint,
    EventRange,
    TrustedEvents,
    compare,
    is_own,
    places_of,
    read_checkpoints,
)
from cogcli.episode.document_bytes import read_object
from cogcli.episode.folder import Folder
from cogcli.episode.layout import CHECKPOINT, EVENTS, MANIFEST, Finding, error_finding
from cogcli.episode.manifest import StoredManifest, unsigned_ranges
from cogcli.episode.verify.log_reading import LogReading
from cogcli.episode.verify.trusted import TrustAnchors

_MAX_SHOWN: Final = 5
_LIMIT: Final = 1 << 30


class KnownRecordCheck:
    """Compares the known records of one episode with its log after the log was read."""

    def __init__(self, folder: Folder, trusted: TrustAnchors) -> None:
        self._folder = folder
        self._trusted = trusted
        records = read_checkpoints(folder)
        self._own = [record for record in records if is_own(record, trusted.owner)]
        keys = {trusted.key} if trusted.key else trusted.own_keys
        self._signed = []
        if keys:
            with suppress(ServiceResolutionError):  # the finding about the manifest reports it
                self._signed = [record for record in records if _is_signed_by(record, keys)]
        self.places = places_of([*self._own, *self._signed])
        """The numbers of events after which the hash of the chain is wanted."""

    def findings(self, log: LogReading, *, foreign: bool) -> Iterator[Finding]:
        """Yield findings about checkpoints, then about the signature; `foreign`: of another tool's log."""
        if not foreign:
            yield from self._check_own(log)
        found = self._check_signature(log, foreign=foreign)
        yield found
        if (
            self._trusted.signature
            and found.code != "signature.valid"
            and found.severity != "error"
        ):
            message = "no key that is trusted here signed all of it: name the key with `--key FILE`"
            yield error_finding("signature.missing", found.file, 0, message)

    def _check_own(self, log: LogReading) -> Iterator[Finding]:
        if not self._own:
            return
        vouched = compare(self._own, log.lines.episode, log.heads)
        sealed, count = self._manifest_digest(), log.lines.count
        if vouched.differs:
            message = f"it was cut or altered: {vouched.differs}"
            yield error_finding("checkpoint.differs", EVENTS, count, message)
        elif sealed and vouched.manifest and sealed != vouched.manifest:
            message = "it is not the manifest that your key vouches for"
            yield error_finding("checkpoint.differs", MANIFEST, 0, message)
        elif vouched.ranges:
            yield from _check_coverage(vouched, count, sealed=bool(sealed))

    def _manifest_digest(self) -> str:
        """Return the hash of the manifest; empty without a manifest."""
        try:
            return digest(self._folder.read(MANIFEST, limit=_LIMIT))
        except UnreadableFile:
            return ""

    def _check_signature(self, log: LogReading, *, foreign: bool) -> Finding:
        """Return the finding about the signature of the manifest, or of the checkpoint of a run that has not ended."""
        trusted = self._trusted.key
        manifest = read_object(self._folder, MANIFEST)
        signature = read_record(StoredManifest, manifest).signature
        if signature is None:
            return self._check_unsigned(log)
        if not signing.is_signature(signature):
            if foreign and not trusted:
                message = "its signature has another tool's form: it was not checked"
                return _info_finding("signature.unchecked", MANIFEST, message)
            return error_finding("signature.invalid", MANIFEST, 0, "its signature is none")
        try:
            fits = signing.is_valid_signature(manifest)
        except ServiceResolutionError as error:
            if trusted:
                raise
            return _info_finding("signature.unchecked", MANIFEST, f"{error.message}: {error.hint}")
        if not fits:
            return error_finding(
                "signature.invalid", MANIFEST, 0, "was altered after it was signed"
            )
        return self._check_signer(signature["key_id"], unsigned_ranges(manifest))

    def _check_unsigned(self, log: LogReading) -> Finding:
        """Return the finding for an episode whose manifest is missing or not signed."""
        if self._signed and not self._folder.holds(MANIFEST):
            return self._check_signed_checkpoint(log)
        if self._trusted.key:
            return error_finding("signature.missing", MANIFEST, 0, "is not signed")
        return _info_finding(
            "signature.none", MANIFEST, "not signed: no other user can check who wrote it"
        )

    def _check_signer(self, key: str, unsigned: list[list[int]] | None) -> Finding:
        """Return the finding for a manifest with an intact signature of this key."""
        trusted = self._trusted.key
        if trusted is not None and trusted != key:
            message = f"was signed by {key}, not by the key given"
            return error_finding("signature.other", MANIFEST, 0, message)
        if trusted is None and key not in self._trusted.own_keys:
            message = f"signed by {key}: `--key FILE` says whose key that has to be"
            return _info_finding("signature.unknown", MANIFEST, message)
        if unsigned:
            ranges = [(first, last) for first, last in unsigned]
            message = f"signed by {key}, except {_ranges_text(ranges)}"
            return _info_finding("signature.partial", MANIFEST, message)
        whose = "the key given" if trusted else "your key"
        return _info_finding("signature.valid", MANIFEST, f"signed by {whose}, {key}")

    def _check_signed_checkpoint(self, log: LogReading) -> Finding:
        """Return the finding about the signed checkpoint of a run that has not ended."""
        vouched = compare(self._signed, log.lines.episode, log.heads)
        key = read_record(Signature, self._signed[-1].signature).key_id
        if vouched.differs:
            message = f"it was cut or altered: {vouched.differs}"
            return error_finding("checkpoint.differs", EVENTS, log.lines.count, message)
        if missing := vouched.missing(log.lines.count):
            message = f"signed by {key}, except {_ranges_text(missing)}"
            return _info_finding("signature.partial", CHECKPOINT, message)
        return _info_finding("signature.valid", CHECKPOINT, f"signed by {key}")


def _is_signed_by(record: Checkpoint, keys: Collection[str]) -> bool:
    """Return whether one of these public keys signed a record. Raise ServiceResolutionError `env.extra`."""
    signature = record.signature
    if signature is None or not signing.is_signature(signature) or signature["key_id"] not in keys:
        return False
    return signing.is_valid_signature({**record.to_payload(), "signature": signature})


def _check_coverage(vouched: TrustedEvents, count: int, *, sealed: bool) -> Iterator[Finding]:
    missing = vouched.missing(count)
    unvouched = _ranges_text(missing) if missing else ""
    if sealed and not vouched.manifest:
        unvouched = unvouched or "its manifest"
    if unvouched:
        yield _info_finding(
            "checkpoint.partial", CHECKPOINT, f"your key does not vouch for {unvouched}"
        )
    elif count:
        yield _info_finding(
            "checkpoint.own", CHECKPOINT, f"your key vouches for all {count} events"
        )


def _ranges_text(ranges: Sequence[EventRange]) -> str:
    """Return text such as `events 5 to 9 and event 12`, by `seq`."""
    words = [
        f"event {first}" if first == last else f"events {first} to {last}"
        for first, last in ranges[:_MAX_SHOWN]
    ]
    if len(ranges) > _MAX_SHOWN:
        words.append(f"{len(ranges) - _MAX_SHOWN} more ranges")
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _info_finding(code: str, file: str, message: str) -> Finding:
    return Finding(code, "info", file, 0, message)
