"""Signatures of manifests: ed25519 over the canonical JSON of the manifest without its signature.

1. `key_id` is the public key itself, so that a signature can always be checked against the manifest. Only a key that
   is kept elsewhere proves whose key that is: `verify --key`.
2. Keys are PEM files of `openssl genpkey -algorithm ed25519`. Only its owner may read the private one.
3. The cryptography library is imported only to read a key or to check a signature.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from shlex import quote
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from cogcli.base.canonical import canonical
from cogcli.base.errors import ServiceResolutionError, UnusableEnvironment
from cogcli.base.files import UnreadableFile, read_regular
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.value_types import Json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

ALGORITHM: Final = "ed25519"
_LIMIT: Final = 16 * 1024
_KEY = re.compile(r"[0-9a-f]{64}")
_VALUE = re.compile(r"[0-9a-f]{128}")

Sign = Callable[[Json], dict[str, str]]
"""Returns the `signature` of a manifest."""


def signer(path: str) -> Sign:
    """Return a function that signs with the private key of a file. Raise UnusableEnvironment `signing.key`,
    `env.extra`.
    """
    key = _load_key(path, _read_key_file(path, _TO_SIGN), _TO_SIGN)
    _require_private(path)
    key_id = _name_of(key.public_key())

    def sign(manifest: Json) -> dict[str, str]:
        return {
            "alg": ALGORITHM,
            "key_id": key_id,
            "value": key.sign(_signed_bytes(manifest)).hex(),
        }

    return sign


def public_key(path: str) -> str:
    """Return the `key_id` of the key in a file, public or private. Raise UnusableEnvironment `signing.key`,
    `env.extra`.
    """
    data = _read_key_file(path, _TO_CHECK)
    if b"PRIVATE KEY" in data:
        return _name_of(_load_key(path, data, _TO_CHECK).public_key())
    return _name_of(_load_key(path, data, _TO_CHECK, private=False))


def is_signature(value: object) -> TypeGuard[Json]:
    """Return whether a value has the shape of a signature."""
    return (
        type(value) is dict
        and list(value) == ["alg", "key_id", "value"]
        and value["alg"] == ALGORITHM
        and type(value["key_id"]) is str
        and type(value["value"]) is str
        and _KEY.fullmatch(value["key_id"]) is not None
        and _VALUE.fullmatch(value["value"]) is not None
    )


_PRIME: Final = 2**255 - 19
_WEAK: Final = frozenset((
    0, 1, _PRIME - 1,
    0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826,
    0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7,
))  # fmt: skip
"""The y coordinates of the points whose order divides 8. Such a key has no secret: a signature of zeros is valid for
at least every eighth text, and the library accepts it."""


def is_valid_signature(manifest: Json) -> bool:
    """Return whether the signature of a manifest is valid for the key in the manifest. Raise `env.extra`."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError as error:
        raise _missing_extra() from error
    signature = manifest["signature"]
    key_id = bytes.fromhex(signature["key_id"])
    if (int.from_bytes(key_id, "little") & (2**255 - 1)) % _PRIME in _WEAK:
        return False
    try:
        key = Ed25519PublicKey.from_public_bytes(key_id)
        key.verify(bytes.fromhex(signature["value"]), _signed_bytes(manifest))
    except (InvalidSignature, ValueError):
        return False
    return True


def _signed_bytes(manifest: Json) -> bytes:
    return canonical({name: value for name, value in manifest.items() if name != "signature"})


def _name_of(key: Ed25519PublicKey) -> str:
    return key.public_bytes_raw().hex()


def _load_key(path: str, data: bytes, use: _Use, *, private: bool = True) -> Any:
    """Return the ed25519 key of a PEM file. Raise UnusableEnvironment `signing.key`, ServiceResolutionError
    `env.extra`.
    """
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise _missing_extra() from error
    try:
        if private:
            key: object = serialization.load_pem_private_key(data, password=None)
        else:
            key = serialization.load_pem_public_key(data)
    except Exception as error:
        raise _unusable_key(
            path, "holds no key that can be read", use, found=_describe_unusable_key(data)
        ) from error
    if not isinstance(key, ed25519.Ed25519PrivateKey if private else ed25519.Ed25519PublicKey):
        kind = type(key).__name__.strip("_").removesuffix("PrivateKey").removesuffix("PublicKey")
        raise _unusable_key(path, "is of another kind", use, found=f"{kind} key")
    return key


class _Use(NamedTuple):
    """The purpose of a key, its required kind, and a hint how to make one."""

    what: str
    expected: str
    hint: str


_TO_SIGN: Final = _Use(
    "the key to sign with",
    "an ed25519 private key as PEM, without a passphrase",
    "COGCLI_SIGNING_KEY names it; make one with: openssl genpkey -algorithm ed25519 -out FILE && chmod 600 FILE",
)
_TO_CHECK: Final = _Use(
    "the key to check with",
    "the ed25519 key of whoever signed, public or private, as PEM",
    "they make the public one with: openssl pkey -in KEY -pubout -out FILE",
)


def _describe_unusable_key(data: bytes) -> str:
    """Return the kind of the file without a usable key, without any of its bytes."""
    if not data.strip():
        return "an empty file"
    if b"ENCRYPTED" in data:
        return "a private key with a passphrase"
    if b"PUBLIC KEY" in data:
        return "a public key"
    if b"-----BEGIN" in data:
        return "PEM of something else, or damaged"
    return "no PEM file"


def _require_private(path: str) -> None:
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)
    except (OSError, ValueError) as error:
        raise _unusable_key(
            path, getattr(error, "strerror", None) or "cannot be read", _TO_SIGN
        ) from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise UnusableEnvironment(
            "signing.key",
            f"{_TO_SIGN.what} may be used by others than its owner",
            expected="mode 0600 or stricter",
            found=f"mode {mode:04o}",
            hint=f"chmod 600 {quote(path)}",
            file=path,
        )


def _read_key_file(path: str, use: _Use) -> bytes:
    try:
        return read_regular(path, limit=_LIMIT)
    except UnreadableFile as error:
        raise _unusable_key(path, error.message, use) from error


def _unusable_key(path: str, why: str, use: _Use, *, found: str = "") -> UnusableEnvironment:
    return UnusableEnvironment(
        "signing.key",
        f"{use.what} {why}",
        expected=use.expected,
        found=found,
        hint=use.hint,
        file=path,
    )


def _missing_extra() -> ServiceResolutionError:
    return ServiceResolutionError(
        "env.extra",
        "signatures need `cryptography`, which is not installed",
        hint="pip install 'cogcli[sign]'",
    )
