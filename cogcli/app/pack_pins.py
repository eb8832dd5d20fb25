"""`pack pin`: the version of a pack that a bare id selects, by environment
(docs/reference/pack.md#pins)."""

from __future__ import annotations

from cogcli.app.settings import Settings
from cogcli.app.settings.pins import parse_environment_name, write_pin
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.pack_spec import Pack


class Promotion(NamedTuple):
    """The result of a change of a pin.

    `reference` is the new reference and `before` the old one, each None for no pin. `environment`
    is empty for the default one. `undo` is the command that reverts the change."""

    pack_id: str
    environment: str
    reference: str | None
    before: str | None
    file: str
    written: bool
    undo: str


def promote(settings: Settings, pack: Pack, environment: str | None) -> Promotion:
    """Pin exactly this version of a pack, in an environment or by default.

    Raise UsageError and the errors of `write_pin`."""
    return _write_version(settings, pack.pack_id, environment, pack.ref)


def unpin(settings: Settings, pack_id: str, environment: str | None) -> Promotion:
    """Remove the pin of a pack. Raise the errors of `promote`."""
    return _write_version(settings, pack_id, environment, None)


def _write_version(
    settings: Settings, id: str, environment: str | None, reference: str | None
) -> Promotion:
    """Write the pin and return the change. A `reference` of None removes the pin."""
    name = "" if environment is None else parse_environment_name(environment, "`--env`")
    version = reference.partition("@")[2] if reference else None
    done = write_pin(settings, id, version, name)
    what = done.before or f"{id} --remove"
    undo = f"cogcli pack pin {what}{f' --env {name}' if name else ''}"
    return Promotion(id, name, reference, done.before, done.file, done.written, undo)
