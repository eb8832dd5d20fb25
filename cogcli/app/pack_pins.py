"""`pack pin`: which version of a pack a bare id stands for, by environment (docs/reference/pack.md#pins)."""

from __future__ import annotations

from typing import NamedTuple

from cogcli.app.settings import Settings
from cogcli.app.settings.pins import environment_named, write_pin
from cogcli.declarations.pack_spec import Pack


class Promotion(NamedTuple):
    """A changed pin: what the id stands for now, and stood for before, None for nothing; `environment` is empty for
    the default one. `undo` is the command that takes it back."""

    pack_id: str
    environment: str
    reference: str | None
    before: str | None
    file: str
    written: bool
    undo: str


def promote(settings: Settings, pack: Pack, environment: str | None) -> Promotion:
    """Pin exactly this pack, in an environment or by default. Raises UsageError, and as `write_pin`."""
    return _written(settings, pack.pack_id, environment, pack.ref)


def unpin(settings: Settings, pack_id: str, environment: str | None) -> Promotion:
    """Take the pin of a pack away. Raises as `promote`."""
    return _written(settings, pack_id, environment, None)


def _written(
    settings: Settings, id: str, environment: str | None, reference: str | None
) -> Promotion:
    name = "" if environment is None else environment_named(environment, "`--env`")
    version = reference.partition("@")[2] if reference else None
    done = write_pin(settings, id, version, name)
    what = done.before or f"{id} --remove"
    undo = f"cogcli pack pin {what}{f' --env {name}' if name else ''}"
    return Promotion(id, name, reference, done.before, done.file, done.written, undo)
