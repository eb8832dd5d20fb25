"""Secrets of a call (docs/reference/service.md#secrets).

They are resolved on demand, passed to the redactor first, and stored nowhere else."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from cogcli.base.errors import RuntimeErrorBase, ServiceResolutionError
from cogcli.base.redact import Redactor
from cogcli.base.resolved_secrets import resolved_secrets
from cogcli.base.system_text import bad_byte, shell_word
from cogcli.specs.id_grammar import PLACEHOLDER

_Value = TypeVar("_Value")
_Result = TypeVar("_Result")
_FILE: Final = "file:"
_KEYRING: Final = "keyring:"
_ENV: Final = "env:"
MAX_FILE: Final = 64 * 1024
_READ: Final = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class Secrets:
    """Resolves references of trusted layers. `learn` receives every value before it is returned."""

    def __init__(self, environ: Mapping[str, str], learn: Callable[[str], None]) -> None:
        self._environ = environ
        self._report = learn
        self._known = Redactor()

    def mask_text(self, text: str) -> str:
        """Return the text with the secrets resolved so far masked. Mask before truncating, because a partial secret is
        not recognized.
        """
        return self._known.mask_text(text)

    def cut_text(self, text: str, maximum: int) -> str:
        """Return the masked text, cut to `maximum` characters after masking; an ellipsis ends a string
        that was cut."""
        masked = self._known.mask_text(text)
        return masked if len(masked) <= maximum else f"{masked[: maximum - 1]}…"

    def mask_bytes(self, data: bytes) -> bytes:
        """Return the bytes with the secrets resolved so far masked, unchanged if none occurs. They need not be text."""
        text = data.decode("latin-1")
        masked = self._known.mask_text(text)
        return data if masked is text else masked.encode("latin-1")

    def mask_value(self, value: _Value) -> _Value:
        """Return a JSON value with the secrets resolved so far masked, and also every value whose key denotes a
        secret.
        """
        masked: _Value = self._known.mask(value)
        return masked

    def mask_known(self, value: _Value) -> _Value:
        """Return a JSON value with the secrets resolved so far masked, under any keys."""
        masked: _Value = self._known.mask_known(value)
        return masked

    def check_quietly(self, check: Callable[[_Value], _Result], value: _Value) -> _Result:
        """Return the result of a check of a foreign value. Raise the errors of the check, which quote the value. If the
        check fails and the value contains a secret, the masked value is checked instead.
        """
        try:
            return check(value)
        except RuntimeErrorBase:
            masked = self.mask_known(value)
            if masked is value:
                raise
        return check(masked)

    def resolve(self, ref: str) -> str:
        """Return the value of an `auth_ref`. Raise ServiceResolutionError `env.missing` or
        `env.extra`."""
        value = self.read(ref)
        self.add_secret(value)
        return value

    def read(self, ref: str) -> str:
        """Return the value of a reference that may be public, such as a user name. Raise the errors of `resolve`."""
        if ref.startswith(_FILE):
            return _read_file(ref[len(_FILE) :])
        if ref.startswith(_KEYRING):
            return _read_keyring(ref[len(_KEYRING) :])
        return self._read_variable(ref.removeprefix(_ENV))

    def has(self, ref: str) -> bool:
        """Return whether a reference may have a value: a variable that is set, or any file or keyring."""
        is_elsewhere = ref.startswith((_FILE, _KEYRING))
        return is_elsewhere or bool(self._environ.get(ref.removeprefix(_ENV)))

    def add_secret(self, value: str) -> None:
        """Mask a value from now on, in the log and everywhere else."""
        self._known.add(value)
        resolved_secrets().add(value)
        self._report(value)

    def expand(self, text: str) -> str:
        """Return a header or environment value with each `${NAME}` replaced once. Raise
        ServiceResolutionError `env.missing`."""
        return PLACEHOLDER.sub(lambda match: self.resolve(_ENV + match[1]), text)

    def _read_variable(self, name: str) -> str:
        value = self._environ.get(name, "")
        if not value:
            state = "empty" if name in self._environ else "not set"
            raise _missing_error(f"environment variable `{name}` is {state}", f"export {name}=…")
        if bad_byte(value):  # naming the byte would reveal part of the secret
            raise _missing_error(f"environment variable `{name}` is not UTF-8", f"export {name}=…")
        return value


def _read_file(path: str) -> str:
    try:
        descriptor = os.open(path, _READ)
    except OSError as error:
        raise _missing_error(
            f"secret file `{path}`: {error.strerror}", "name a file of your own"
        ) from error
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_mode & 0o077:
            text = f"secret file `{path}` is not a regular file of its owner alone"
            raise _missing_error(text, f"chmod 600 {shell_word(path)}")
        data = os.read(descriptor, MAX_FILE + 1)
    finally:
        os.close(descriptor)
    if len(data) > MAX_FILE:
        raise _missing_error(
            f"secret file `{path}` has more than {MAX_FILE:,} bytes", "name a smaller one"
        )
    try:
        value = data.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise _missing_error(
            f"secret file `{path}` is not UTF-8 text", "save it as UTF-8"
        ) from error
    if not value:
        raise _missing_error(f"secret file `{path}` is empty", "put the secret there")
    return value


def _read_keyring(name: str) -> str:
    service, _, user = name.partition("/")
    try:
        import keyring
    except ImportError as error:
        raise _keyring_error("this needs `keyring`, which is not installed") from error
    try:
        value: str | None = keyring.get_password(service, user)
    except Exception as error:  # backends raise any exception
        raise _keyring_error(f"no usable keyring: {type(error).__name__}") from error
    if not value:
        raise _missing_error(
            f"the keyring holds nothing for `{name}`", f"keyring set {service} {user}"
        )
    return value


def _missing_error(message: str, hint: str) -> ServiceResolutionError:
    return ServiceResolutionError("env.missing", message, hint=hint, left=False)


def _keyring_error(message: str) -> ServiceResolutionError:
    return ServiceResolutionError(
        "env.extra", message, hint="pip install 'cogcli[keyring]'", left=False
    )
