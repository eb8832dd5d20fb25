"""Pins: the version of a pack that a bare id selects, by environment (docs/reference/pack.md#pins)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

from cogcli.app.settings import Settings
from cogcli.app.settings.config import PINS, PROJECT_FILE, ConfigFile
from cogcli.app.settings.own_writes import keep_trust
from cogcli.app.settings.pin_file import InvalidPin, with_pin
from cogcli.base import system_text
from cogcli.base.errors import UnusableEnvironment, UsageError
from cogcli.base.files import FolderLock, UnreadableFile, hint_for_write, read_regular, write_atomic
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record

VARIABLE: Final = "COGCLI_ENV"
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LIMIT: Final = 256 * 1024


class Pin(NamedTuple):
    """The pinned reference of a bare id, and the file and line of the pin."""

    reference: str
    """`id@version`, possibly with `#sha256:...`."""
    origin: str


class PinChange(NamedTuple):
    """The change of a pin: its file, the earlier reference, and whether the file was written."""

    file: str
    before: str | None
    written: bool


def parse_environment_name(name: str, source: str) -> str:
    """Return the name of an environment. Raise UsageError for an invalid name."""
    if not _NAME.fullmatch(name):
        expected = "up to 64 letters, digits, `-` and `_`"
        raise UsageError("usage.value", f"{source}: found `{name[:60]}`, expected {expected}")
    return name


def active_environment(environ: Mapping[str, str]) -> str:
    """Return the environment whose pins are used; empty for the default one. Raise UsageError."""
    name = system_text.variable(environ, VARIABLE)
    return parse_environment_name(name, VARIABLE) if name else ""


def active_pins(settings: Settings) -> dict[str, Pin]:
    """Return the pins of the active environment by id. The pins of a trusted project override the
    user's.

    Raise UsageError."""
    found: dict[str, Pin] = {}
    environment = active_environment(settings.environ)
    for file in reversed(settings.files):
        if PINS in file.values and (settings.trust or not file.project):
            origin = f"{file.shown}:{file.lines[PINS]}"
            found |= {id: Pin(each, origin) for id, each in _pins_in(file, environment).items()}
    return found


def has_untrusted_pin(settings: Settings, id: str) -> bool:
    """Return whether the project pins a pack but is not trusted. Then the pin is ignored."""
    if settings.trust:
        return False
    environment = active_environment(settings.environ)
    return any(file.project and id in _pins_in(file, environment) for file in settings.files)


class FilePinTables(Record):
    """The checked tables of pins in a configuration file."""

    pins: dict[str, str]
    env: dict[str, dict[str, str]]
    """The table of each environment."""


def _pins_in(file: ConfigFile, environment: str) -> dict[str, str]:
    """Return the pinned references of packs in a file for an environment, by id."""
    tables = read_record(FilePinTables, file.values.get(PINS))
    table = tables.env.get(environment, {}) if environment else tables.pins
    return {id: f"{id}@{version}" for id, version in table.items()}


def write_pin(settings: Settings, id: str, version: str | None, environment: str) -> PinChange:
    """Write a pin to the project's file, or remove it if `version` is None.

    Raise UnusableEnvironment `project.none` or `env.disk`, and `config.key` if the pins in the file
    have a form that cannot be edited."""
    if settings.project is None:
        raise UnusableEnvironment(
            "project.none",
            "there is no project here",
            expected="cogcli.toml, skills/ or capabilities/ in this directory or above it",
            hint="start in a project with -C DIR",
        )
    path = os.path.join(settings.project, PROJECT_FILE)
    shown = settings.display_path(path)
    settings.require_inside(path)
    try:
        with keep_trust(settings) as written, FolderLock(settings.project):
            text, mode = _read_text(path, shown)
            own = ConfigFile(path, shown, project=True)
            for problem in own.problems:
                raise problem
            changed = with_pin(text, environment, id, version)
            if changed != text:
                write_atomic(path, changed.encode(), mode=mode, bound=settings.bound)
                written(path, changed.encode())
    except InvalidPin as error:
        table = f"[packs.env.{environment}]" if environment else "[packs.pins]"
        hint = f"write `{id}` into {table} yourself, as a line of its own"
        message = "holds its pins in a form that is not edited here"
        raise UnusableEnvironment("config.key", message, file=shown, hint=hint) from error
    except OSError as error:
        raise UnusableEnvironment(
            "env.disk", f"{shown} cannot be written: {error.strerror}", hint=hint_for_write(error)
        ) from error
    return PinChange(shown, _pins_in(own, environment).get(id), changed != text)


def _read_text(path: str, display_path: str) -> tuple[str, int]:
    """Return the text of the file and its mode. The text includes a byte order mark."""
    try:
        return read_regular(path, limit=_LIMIT).decode("utf-8"), os.stat(path).st_mode & 0o777
    except UnreadableFile as refused:
        if refused.reason == "missing":
            return "", 0o644
        raise UnusableEnvironment("env.disk", f"{display_path} {refused.message}") from refused
    except UnicodeDecodeError as error:
        raise InvalidPin from error
