"""The logins of a user: a file for each, and its secrets in the keyring (docs/reference/mcp.md#store).

1. A login is found by the URL of the server, the id of the service and the folder of its file. A service with another
   one of them finds no login.
2. Files are the user's alone (0600, in a folder with 0700), in the user's state directory, never in a project.
3. Secrets are in the keyring if it takes them, else in the file. Each is masked when it is read.
4. A login is changed under a lock of its own, which other processes respect.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import Final, Protocol

from cogcli.base import file_lock
from cogcli.base.canonical import canonical, compact
from cogcli.base.errors import CallTimeoutError, ServiceResolutionError
from cogcli.base.files import UnreadableFile, hint_for_write, read_regular, write_atomic
from cogcli.base.strict_json import InvalidJson, loads
from cogcli.declarations.login_record import LOGIN_SCHEMA, LoginRecord, LoginSecrets
from cogcli.declarations.reading import read_record
from cogcli.declarations.service_spec import Service
from cogcli.protocols.secrets import Secrets

_LIMIT: Final = 256 * 1024
_KEYRING_SERVICE: Final = "cogcli login"
_WAIT_SECONDS: Final = 0.02


def login_error(service: Service, why: str, *, left: bool = False) -> ServiceResolutionError:
    """Return the error `service.login` of a service, with the command that cures it."""
    text = f"service `{service.id}`: {why}"
    hint = f"cogcli services login {service.id}"
    return ServiceResolutionError("service.login", text, hint=hint, left=left)


class LoginStore:
    """The stored login of one service. With an empty `state_dir`, no login is stored."""

    def __init__(self, state_dir: str, service: Service) -> None:
        self._service = service
        self._folder = os.path.join(state_dir, "logins") if state_dir else ""
        identity = {
            "server": service.keys.address,
            "service": service.id,
            "layer": os.path.realpath(service.root),
        }
        self.layer = identity["layer"]
        self._key = sha256(canonical(identity)).hexdigest()[:32]

    @property
    def path(self) -> str:
        """The file of the login; it may not exist."""
        return os.path.join(self._folder, f"{self._key}.json")

    def describe(self) -> LoginRecord | None:
        """Return the login without its secrets, None without one. The keyring is not opened. Raise
        ServiceResolutionError `service.login` for a file that cannot be used."""
        found = self._read_record()
        return None if found is None else found.replace(secrets=None)

    def read(self, secrets: Secrets) -> LoginRecord | None:
        """Return the login with its secrets, which `secrets` learns first; None without one. Raise
        ServiceResolutionError `service.login` if they cannot be read."""
        found = self._read_record()
        if found is None or found.ended is not None:
            return found
        if found.keyring:
            found = found.replace(secrets=self._from_keyring())
        if found.secrets is None or not found.secrets.access_token:
            raise self._damaged_error(f"{self.path} holds no token")
        for value in (
            found.secrets.access_token,
            found.secrets.refresh_token,
            found.secrets.client_secret,
        ):
            if value:
                secrets.add_secret(value)
        return found

    def write(self, login: LoginRecord) -> LoginRecord:
        """Replace the stored login, and return the new one. Its secrets are stored in the keyring if `login.keyring` is
        true and the keyring accepts them. The caller holds the lock. Raise ServiceResolutionError `service.login` if it
        cannot be written.
        """
        secrets = login.secrets
        in_keyring = login.keyring and secrets is not None and _store_in_keyring(self._key, secrets)
        kept = login.replace(keyring=in_keyring, secrets=None if in_keyring else secrets)
        try:
            write_atomic(self.path, canonical(kept.json) + b"\n", mode=0o600)
        except OSError as error:
            raise self._unwritable_error(error) from error
        return login.replace(keyring=in_keyring)

    def remove(self) -> None:
        """Remove the login and its secrets. The caller holds the lock."""
        with suppress(FileNotFoundError):
            os.unlink(self.path)
        _forget_in_keyring(self._key)

    @contextmanager
    def locked(self, deadline: float) -> Iterator[None]:
        """Hold the lock of this login, which other processes respect, too.

        Raise CallTimeoutError at the monotonic time `deadline`, and ServiceResolutionError
        `service.login` if the folder cannot be written."""
        if not self._folder:
            raise login_error(self._service, "this command keeps no logins")
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            handle = os.open(
                os.path.join(self._folder, f"{self._key}.lock"), os.O_RDWR | os.O_CREAT, 0o600
            )
        except OSError as error:
            raise self._unwritable_error(error) from error
        try:
            _wait_for_lock(handle, deadline)
            yield
        finally:
            os.close(handle)

    def _read_record(self) -> LoginRecord | None:
        if not self._folder:
            return None
        try:
            _require_private(self.path)
            document = loads(read_regular(self.path, limit=_LIMIT), max_bytes=_LIMIT)
            found = read_record(LoginRecord, document, whole=True)
        except UnreadableFile as error:
            if error.reason == "missing":
                return None
            raise self._damaged_error(str(error)) from error
        except (InvalidJson, ValueError) as error:
            raise self._damaged_error(f"{self.path} is not a login") from error
        wanted = (LOGIN_SCHEMA, self._service.id, self._service.keys.address, self.layer)
        if (found.schema, found.service, found.server, found.layer) != wanted:
            raise self._damaged_error(f"{self.path} is the login of another service")
        return found

    def _from_keyring(self) -> LoginSecrets:
        text = _use_keyring(lambda ring: ring.get_password(_KEYRING_SERVICE, self._key)) or ""
        try:
            return read_record(LoginSecrets, loads(text), whole=True)
        except (InvalidJson, ValueError):
            raise login_error(self._service, "the keyring does not give its token") from None

    def _damaged_error(self, why: str) -> ServiceResolutionError:
        failed = login_error(self._service, f"its login cannot be read: {why}")
        failed.hint = f"cogcli services logout {self._service.id} --forget"
        return failed

    def _unwritable_error(self, error: OSError) -> ServiceResolutionError:
        failed = login_error(
            self._service, f"its login cannot be kept: {self.path}: {error.strerror}"
        )
        failed.hint = hint_for_write(error)
        return failed


def _store_in_keyring(key: str, secrets: LoginSecrets) -> bool:
    """Store the secrets in the keyring. Return whether they can be read back."""
    text = compact(secrets.json).decode()
    _use_keyring(lambda ring: ring.set_password(_KEYRING_SERVICE, key, text))
    return _use_keyring(lambda ring: ring.get_password(_KEYRING_SERVICE, key)) == text


def _forget_in_keyring(key: str) -> None:
    _use_keyring(lambda ring: ring.delete_password(_KEYRING_SERVICE, key))


class _Keyring(Protocol):
    """The used part of the keyring library."""

    def get_password(self, service_name: str, username: str) -> str | None: ...

    def set_password(self, service_name: str, username: str, password: str) -> None: ...

    def delete_password(self, service_name: str, username: str) -> None: ...


def _use_keyring(use: Callable[[_Keyring], str | None]) -> str | None:
    """Return the result of a keyring operation. None if the keyring is not installed, is locked, has no backend or no
    such entry, or rejects a text of this length.
    """
    try:
        import keyring

        return use(keyring)
    except Exception:  # backends raise any exception
        return None


def _require_private(path: str) -> None:
    """Raise UnreadableFile for a file that other users may read or write, or that another user
    owns."""
    try:
        found = os.lstat(path)
    except OSError:
        return  # reading it says why
    if not stat.S_ISREG(found.st_mode):
        raise UnreadableFile(path, "not-regular", "is not a regular file")
    if hasattr(os, "getuid") and (found.st_uid != os.getuid() or found.st_mode & 0o077):
        raise UnreadableFile(path, "unreadable", "is not a file of its owner alone")


def _wait_for_lock(handle: int, deadline: float) -> None:
    """Acquire the lock of an open file. Raise CallTimeoutError at `deadline`."""
    while True:
        try:
            return file_lock.lock(handle, wait=False)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                text = "another process keeps the login busy"
                raise CallTimeoutError("call.timeout", text, left=False) from None
        time.sleep(_WAIT_SECONDS)
