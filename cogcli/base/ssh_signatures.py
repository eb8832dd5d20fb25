"""Signatures of SSH keys, made and checked by `ssh-keygen -Y` (the format SSHSIG).

1. The program makes every decision about keys, times and signatures. So keys in an agent, behind a passphrase and on
   hardware work, and so does a forwarded agent.
2. What cannot be checked is not valid: no program, a failure of it, an answer without the key.
3. The program is found in absolute folders of `PATH` alone, so that no project offers one.
4. What starts programs is imported when one is started: most answers are not signed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final

from cogcli.base.errors import UnusableEnvironment
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.search_path import absolute_entries
from cogcli.base.terminal_text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess

PROGRAM: Final = "ssh-keygen"
_BEGIN: Final = "-----BEGIN SSH SIGNATURE-----"
_END: Final = "-----END SSH SIGNATURE-----"
_MAGIC: Final = b"SSHSIG"
_LONGEST: Final = 32 * 1024
"""Characters of a signature that is looked at; one of a certificate has some thousand."""
_SECONDS_TO_CHECK: Final = 20.0
_SECONDS_TO_SIGN: Final = 120.0
"""A person may have to type a passphrase, or to touch a key."""
_PRINCIPAL: Final = "approver"
"""The only principal of the file of allowed keys: the caller has chosen the keys of one person."""
_KEY: Final = re.compile(
    r'(?:(?:valid-after|valid-before|namespaces)="[\w,.:@*?!-]*"(?:,|(?= )))*\s?'
    r"(?P<kind>(?:sk-)?(?:ssh|ecdsa)-[\w@.-]+) (?P<key>[\w+/]+={0,2})(?: [^\x00-\x1f\x7f]*)?"
)
"""Options, kind, key and comment. Authorities that certify keys are left out: they would name persons, too."""
_GOOD: Final = re.compile(r'Good "[^"\n]*" signature for approver with \S+ key (SHA256:[\w+/]{43})')


class KeyCheck(NamedTuple):
    """The result of a check: the fingerprint of the key, or why the signature is not valid."""

    fingerprint: str
    refusal: str = ""


def fingerprint_of(armored: str) -> str:
    """Return the fingerprint of the key that a signature names, `SHA256:...`; empty if it names none.

    Nothing is checked."""
    blob = _read_key(armored)
    return _key_fingerprint(blob) if blob else ""


def fingerprint_of_key(line: str) -> str:
    """Return the fingerprint of a public key, a line of `allowed_signers` without its principals; empty for any
    other text."""
    found = _KEY.fullmatch(line)
    if found is None:
        return ""
    try:
        blob = base64.b64decode(found["key"], validate=True)
    except (binascii.Error, ValueError):
        return ""
    kind = found["kind"].encode()
    is_whole = blob.startswith(len(kind).to_bytes(4, "big") + kind)
    return _key_fingerprint(blob) if is_whole else ""


def _key_fingerprint(blob: bytes) -> str:
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def _read_key(armored: str) -> bytes:
    """Return the public key in a signature: magic, version, then the key with its length before it."""
    text = armored.strip()
    if len(text) > _LONGEST or not (text.startswith(_BEGIN) and text.endswith(_END)):
        return b""
    try:
        data = base64.b64decode("".join(text[len(_BEGIN) : -len(_END)].split()), validate=True)
    except (binascii.Error, ValueError):
        return b""
    size = int.from_bytes(data[10:14], "big")
    is_whole = data.startswith(_MAGIC) and 0 < size <= len(data) - 14
    return data[14 : 14 + size] if is_whole else b""


def sign(data: bytes, key: str, namespace: str, environ: Mapping[str, str]) -> str:
    """Return the armored signature of `data` by the key in a file: private, or public with its other half in an agent.

    Raise UnusableEnvironment `signing.ssh`, and KeyboardInterrupt if the person stops it."""
    import subprocess

    if not os.path.isfile(key):
        raise _signing_error(
            f"the key `{visible(key)}` is not a file",
            hint="--sign FILE, for example ~/.ssh/id_ed25519",
        )
    try:
        done = subprocess.run(  # noqa: S603
            (_find_program(environ), "-Y", "sign", "-n", namespace, "-f", key),
            input=data, capture_output=True, env=_program_variables(environ), timeout=_SECONDS_TO_SIGN,
            check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        raise _signing_error(
            f"nothing was signed with `{visible(key)}`: {_failure_reason(error)}"
        ) from error
    armored = done.stdout.decode("utf-8", "replace").strip()
    if done.returncode or not fingerprint_of(armored):
        reason = _last_line(done.stderr) or f"{PROGRAM} ended with {done.returncode}"
        raise _signing_error(f"nothing was signed with `{visible(key)}`: {reason}")
    return armored


def verify(
    data: bytes,
    armored: str,
    namespace: str,
    *,
    allowed: Sequence[str],
    revoked: Sequence[str],
    at: str,
    environ: Mapping[str, str],
) -> KeyCheck:
    """Check that one of the `allowed` keys signed `data`, was valid `at` that time (RFC 3339), and is not `revoked`.

    Allowed keys are lines of `allowed_signers` without their principals, revoked ones are public keys. Raise
    UnusableEnvironment `signing.ssh` if nothing can be checked."""
    lines = [f"{_PRINCIPAL} {line}" for line in allowed]
    named = fingerprint_of(armored)
    if not named:
        return KeyCheck("", "it is not a signature")
    if named in {
        fingerprint_of_key(line) for line in revoked
    }:  # the program does not name this reason
        return KeyCheck(named, "its key is revoked")
    with _signature_files(lines, revoked, armored) as (signers, revocations, signature):
        words = (
            "-Y", "verify", "-n", namespace, "-f", signers, "-I", _PRINCIPAL, "-s", signature,
            "-r", revocations, f"-Overify-time={_local_time(at)}",
        )  # fmt: skip
        done = _run_check(words, data, environ)
    good = _GOOD.search(done.stdout.decode("utf-8", "replace"))
    if done.returncode == 0 and good is not None and good[1] == named:
        return KeyCheck(named)
    return KeyCheck(named, _explain_output(done.stdout + b"\n" + done.stderr))


def is_intact(data: bytes, armored: str, namespace: str, environ: Mapping[str, str]) -> bool:
    """Return whether the key in a signature has signed `data`. The owner of the key is not checked. Raise
    UnusableEnvironment `signing.ssh` if the check is impossible.
    """
    if not fingerprint_of(armored):
        return False
    with _signature_files((), (), armored) as (_, _, signature):
        words = ("-Y", "check-novalidate", "-n", namespace, "-s", signature)
        return _run_check(words, data, environ).returncode == 0


def _run_check(
    command: Sequence[str], data: bytes, environ: Mapping[str, str]
) -> subprocess.CompletedProcess[bytes]:
    import subprocess

    try:
        return subprocess.run(  # noqa: S603
            (_find_program(environ), *command), input=data, capture_output=True,
            env=_program_variables(environ), timeout=_SECONDS_TO_CHECK, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        raise _signing_error(f"no signature can be checked: {_failure_reason(error)}") from error


@contextmanager
def _signature_files(
    allowed_keys: Sequence[str], revoked_keys: Sequence[str], armored: str
) -> Iterator[tuple[str, str, str]]:
    """Write the files of a check to a folder of this process, and return their paths."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="cogcli-signature-") as folder:
        paths = []
        for name, lines in (
            ("allowed", allowed_keys),
            ("revoked", revoked_keys),
            ("signature", (armored,)),
        ):
            path = Path(folder, name)
            path.write_bytes("".join(f"{line}\n" for line in lines).encode())
            paths.append(str(path))
        yield paths[0], paths[1], paths[2]


def _find_program(environ: Mapping[str, str]) -> str:
    """Return the path of the program. Raise UnusableEnvironment `signing.ssh`."""
    import shutil

    found = shutil.which(PROGRAM, path=absolute_entries(environ.get("PATH", "")))
    if found is None:
        raise _signing_error(
            f"signatures need `{PROGRAM}`, which is not on PATH",
            hint="install OpenSSH 8.9 or later (Debian: apt-get install openssh-client)",
        )
    return found


_WANTED: Final = (
    "PATH", "HOME", "USER", "LOGNAME", "TZ", "TMPDIR", "DISPLAY", "WAYLAND_DISPLAY", "SYSTEMROOT",
    "SSH_AUTH_SOCK", "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE", "SSH_SK_PROVIDER", "SSH_SK_HELPER",
)  # fmt: skip


def _program_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the program: without variables that change its language, and without secrets of
    services.
    """
    return {name: environ[name] for name in _WANTED if name in environ}


def _local_time(at: str) -> str:
    """Return a time as the program reads it, in the time zone of this process."""
    moment = datetime.fromisoformat(at).timestamp()
    return time.strftime("%Y%m%d%H%M%S", time.localtime(moment))


_REASONS: Final = (
    ("has expired", "its key was not valid then, or no longer"),
    ("not yet valid", "its key was not valid then, or no longer"),
    ("namespace", "it was made for another purpose"),
    ("incorrect signature", "it does not fit what was answered"),
    ("signature verification failed", "it does not fit what was answered"),
    ("could not verify", "its key is not one of theirs"),
)
"""Words in the program's output and their meaning, the more exact ones first."""


def _explain_output(output: bytes) -> str:
    text = output.decode("utf-8", "replace").lower()
    known = next((meaning for words, meaning in _REASONS if words in text), "")
    return known or f"it is not valid: {_last_line(output) or 'no reason was given'}"


def _last_line(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return visible(lines[-1])[:200] if lines else ""


def _failure_reason(error: OSError | subprocess.SubprocessError) -> str:
    import subprocess

    if isinstance(error, subprocess.TimeoutExpired):
        return f"{PROGRAM} did not answer in time"
    return visible(str(error))[:200]


def _signing_error(message: str, *, hint: str = "") -> UnusableEnvironment:
    return UnusableEnvironment("signing.ssh", message, hint=hint)
