"""`[approvers]` in the user's settings: people, their roles, and the SSH keys with which they sign answers
(docs/reference/execution.md#signed).

1. Only the user's own file counts, and only if no other user can change it: neither the file, nor a folder on the way
   to it. A link is followed to the real file.
2. A name stands for one person and a key for one person. Names that look alike are refused.
3. What cannot be checked does not count."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from cogcli.app.settings import Settings
from cogcli.app.settings.config import APPROVERS
from cogcli.base.comparable_names import comparable_name
from cogcli.base.errors import CogcliError, UnusableEnvironment
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.ssh_signatures import fingerprint_of, fingerprint_of_key, is_intact, verify
from cogcli.base.terminal_text import is_plain_name
from cogcli.declarations.approver_table import ApproverTable
from cogcli.declarations.reading import read_record
from cogcli.episode.verify.trusted import SignatureVerdict
from cogcli.policy.approvals import NAMESPACE, SignedAnswer


class Approvers(NamedTuple):
    """The people whose signatures count, by name, and all keys that no longer do."""

    people: Mapping[str, ApproverTable]
    revoked: tuple[str, ...]


class ApproverKeys:
    """The approvers' keys in the settings, read when the first signature is checked."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @cached_property
    def _loaded_approvers(self) -> Approvers:
        return read_approvers(self._settings)

    def find_rejection_reason(self, answer: SignedAnswer, at: str) -> str:
        """Return why the signature of an answer does not count at a time; empty if it counts."""
        try:
            return self._explain_signature(answer, at)
        except CogcliError as error:
            return f"it cannot be checked: {error.message}"

    def judge(self, answer: SignedAnswer, at: str) -> SignatureVerdict:
        """Return whether a signature in a log is valid, and whose it is, or that its owner is
        unknown.
        """
        by, key = answer.statement.by, fingerprint_of(answer.signature)
        word = "approved" if answer.statement.granted else "rejected"
        data, environ = answer.statement.to_bytes(), self._settings.environ
        try:
            if not is_intact(data, answer.signature, NAMESPACE, environ):
                message = f"`{by}` did not sign this: the signature does not fit what was {word}"
                return SignatureVerdict("approval.forged", "error", message)
            if by not in self._loaded_approvers.people:
                message = f"{word} and signed with {key}; {self._explain_unknown(by)}"
                return SignatureVerdict("approval.unknown", "warning", message)
            refusal = self._explain_signature(answer, at)
        except CogcliError as error:
            message = f"the signature of `{by}` was not checked: {error.message}"
            return SignatureVerdict("approval.unknown", "warning", message)
        if refusal:
            message = f"the signature of `{by}` with {key} does not count: {refusal}"
            return SignatureVerdict("approval.forged", "error", message)
        return SignatureVerdict("approval.signed", "info", f"{word} by `{by}`, signed with {key}")

    def _explain_signature(self, answer: SignedAnswer, at: str) -> str:
        statement = answer.statement
        person = self._loaded_approvers.people.get(statement.by)
        if person is None:
            return self._explain_unknown(statement.by)
        if statement.role and statement.role not in person.roles:
            return f"[approvers] gives `{statement.by}` no role `{statement.role}`"
        found = verify(
            statement.to_bytes(),
            answer.signature,
            NAMESPACE,
            allowed=person.keys,
            revoked=self._loaded_approvers.revoked,
            at=at,
            environ=self._settings.environ,
        )
        return found.refusal

    def _explain_unknown(self, name: str) -> str:
        plain = comparable_name(name)
        alike = next(
            (each for each in self._loaded_approvers.people if comparable_name(each) == plain), ""
        )
        other = f"; `{alike}` is written otherwise" if alike else ""
        return f"[approvers] of your settings names no `{name}`{other}"


def read_approvers(settings: Settings) -> Approvers:
    """Return the approvers in the settings.

    Raise UnusableEnvironment `config.key` for an entry without a person or a key, and for a name or a key of two
    people. Raise it also for a file that other users can change.
    """
    tables = settings.value(APPROVERS)
    file = settings.find_file(APPROVERS)
    if file is None:
        return Approvers({}, ())
    people = {name: read_record(ApproverTable, table) for name, table in tables.items()}
    fault = explain_change_by_others(file.path) or _find_fault(people)
    if fault:
        raise UnusableEnvironment(
            "config.key", f"`{APPROVERS}`: {fault}", file=file.shown, line=file.lines[APPROVERS]
        )
    revoked = tuple(key for person in people.values() for key in person.revoked)
    return Approvers(people, revoked)


def _find_fault(people: Mapping[str, ApproverTable]) -> str:
    """Return why these approvers are invalid, or an empty text."""
    names: dict[str, str] = {}
    owners: dict[str, str] = {}
    for name, person in people.items():
        if not is_plain_name(name) or ":" in name:
            return (
                f"`{name:.60}` is not a name: it has no `:`, no space around it, nothing invisible"
            )
        other = names.setdefault(comparable_name(name), name)
        if other != name:
            return f"`{other}` and `{name}` look alike"
        for key in (*person.keys, *person.revoked):
            fingerprint = fingerprint_of_key(key)
            if not fingerprint:
                return f"a key of `{name}` is not a line like `ssh-ed25519 AAAA...`: {key[:40]!r}"
            if owners.setdefault(fingerprint, name) != name:
                return f"`{owners[fingerprint]}` and `{name}` have the same key {fingerprint}"
    return ""


def explain_change_by_others(path: str) -> str:
    """Return why other users can change a file: by itself, or by a folder on the way to it. Empty if none can."""
    if not hasattr(os, "geteuid"):  # Windows does not express permissions as a mode
        return ""
    real = Path(os.path.realpath(path))
    for place in (real, *real.parents):
        try:
            found = os.stat(place)
        except OSError as error:
            return f"`{place}` cannot be looked at: {error.strerror}"
        if found.st_uid not in (0, os.geteuid()):
            return f"`{place}` belongs to another user, who could name approvers"
        is_sticky = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not is_sticky:
            return f"other users can write to `{place}`, and could name approvers: chmod go-w it"
    return ""
