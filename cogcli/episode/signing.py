"""Signatures of manifests: ed25519 over the canonical JSON of the manifest without its signature.

1. `key_id` is the public key itself, so that a signature can always be checked against the manifest. Whose key that is
   only a key kept elsewhere tells: `verify --key`.
2. Keys are PEM files as `openssl genpkey -algorithm ed25519` writes them. The private one is its owner's alone.
3. The cryptography library is imported where a key is read or a signature checked, nowhere else.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from cogcli.core.canonical import canonical
from cogcli.core.errors import EnvironmentRefusal, ServiceResolutionError
from cogcli.core.files import FileRefused, read_regular

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

ALGORITHM: Final = "ed25519"
_LIMIT: Final = 16 * 1024
_KEY = re.compile(r"[0-9a-f]{64}")
_VALUE = re.compile(r"[0-9a-f]{128}")

Sign = Callable[[dict[str, Any]], dict[str, str]]
"""Gives the `signature` of a manifest."""


def signer(path: str) -> Sign:
    """What signs with the private key of a file. Raises EnvironmentRefusal `signing.key`, `env.extra`."""
    _require_private(path)
    key = _private_key(path, _read(path))
    key_id = _name_of(key.public_key())

    def sign(manifest: dict[str, Any]) -> dict[str, str]:
        return {"alg": ALGORITHM, "key_id": key_id, "value": key.sign(_signed(manifest)).hex()}

    return sign


def public_key(path: str) -> str:
    """The `key_id` of the key in a file, public or private. Raises EnvironmentRefusal `signing.key`, `env.extra`."""
    data = _read(path)
    if b"PRIVATE KEY" in data:
        return _name_of(_private_key(path, data).public_key())
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
    except ImportError as error:
        raise _missing() from error
    try:
        key = load_pem_public_key(data)
    except Exception as error:
        raise _unusable(path, "is no PEM file of a public key") from error
    if not isinstance(key, Ed25519PublicKey):
        raise _unusable(path, "is a key of another kind than ed25519")
    return _name_of(key)


def is_signature(value: Any) -> bool:
    """Whether a value has the shape of a signature."""
    return (
        type(value) is dict
        and list(value) == ["alg", "key_id", "value"]
        and value["alg"] == ALGORITHM
        and type(value["key_id"]) is str
        and type(value["value"]) is str
        and _KEY.fullmatch(value["key_id"]) is not None
        and _VALUE.fullmatch(value["value"]) is not None
    )


def fits(manifest: dict[str, Any]) -> bool:
    """Whether a manifest's signature was made over it with the key that it names. Raises `env.extra`."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError as error:
        raise _missing() from error
    signature = manifest["signature"]
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature["key_id"]))
        key.verify(bytes.fromhex(signature["value"]), _signed(manifest))
    except (InvalidSignature, ValueError):
        return False
    return True


def _signed(manifest: dict[str, Any]) -> bytes:
    return canonical({name: value for name, value in manifest.items() if name != "signature"})


def _name_of(key: Ed25519PublicKey) -> str:
    return key.public_bytes_raw().hex()


def _private_key(path: str, data: bytes) -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError as error:
        raise _missing() from error
    try:
        key = load_pem_private_key(data, password=None)
    except Exception as error:
        raise _unusable(path, "is no PEM file of a private key without a passphrase") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise _unusable(path, "is a key of another kind than ed25519")
    return key


def _require_private(path: str) -> None:
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError) as error:
        raise _unusable(path, getattr(error, "strerror", None) or "cannot be read") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise _unusable(path, "may be used by others than its owner", hint=f"chmod 600 {path}")


def _read(path: str) -> bytes:
    try:
        return read_regular(path, limit=_LIMIT)
    except FileRefused as error:
        raise _unusable(path, error.message) from error


def _unusable(path: str, why: str, *, hint: str = "") -> EnvironmentRefusal:
    hint = hint or "make one with: openssl genpkey -algorithm ed25519 -out FILE"
    return EnvironmentRefusal("signing.key", f"key `{path}` {why}", hint=hint)


def _missing() -> ServiceResolutionError:
    return ServiceResolutionError(
        "env.extra",
        "signatures need `cryptography`, which is not installed",
        hint="pip install 'cogcli[sign]'",
    )
