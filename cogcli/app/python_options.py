"""The options and inputs that Python code passes, as plain JSON (docs/reference/api.md#project)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from cogcli.app.settings import Settings
from cogcli.base.errors import UsageError
from cogcli.base.jsonvalue import NotJson, preview, to_plain_json
from cogcli.base.problems import suggestion
from cogcli.declarations.api_options import Options
from cogcli.declarations.options import OPTIONS
from cogcli.declarations.value_types import Json


def read_options(make_settings: Callable[..., Settings], options: Options) -> tuple[Settings, Json]:
    """Return the settings of a run and its options as JSON. `make_settings` returns settings with these flags.

    Raise UsageError for invalid options.
    """
    _require_valid(options)
    settings = make_settings(
        **{name: value for name, value in options.items() if OPTIONS[name].setting}
    )
    return settings, {**options, "frame": to_plain_input("frame", options.get("frame", {}))}


def _require_valid(options: Mapping[str, object]) -> None:
    """Raise UsageError `usage.flag` for an unknown option, `usage.value` for a value that the
    option does not accept.
    """
    for name, value in options.items():
        option = OPTIONS.get(name)
        if option is None:
            hint = suggestion(name, sorted(OPTIONS))
            raise UsageError("usage.flag", f"no option `{name}`", hint=hint)
        if not option.type.accepts(value):
            found = f"`{name}`: found {preview(value)}"
            raise UsageError("usage.value", found, expected=option.type.expected)


def to_plain_input(name: str, value: Mapping[str, object], folder: str = "") -> Json:
    """Return an input as plain JSON, as a copy that shares nothing with the original.

    With a folder, a `Path` among its members, or in a list there, becomes a text, and a relative one
    starts there. Raise UsageError `input.json`.
    """
    try:
        members = {key: _path_text(member, folder) for key, member in dict(value).items()}
        plain: Json = to_plain_json(members)
    except (NotJson, TypeError, ValueError) as error:
        reason = (
            str(error)
            if isinstance(error, NotJson)
            else f"found {preview(value)}, expected a mapping"
        )
        raise UsageError("input.json", f"`{name}`: {reason}", hint="give JSON values") from error
    return plain


def _path_text(value: object, folder: str) -> object:
    """Return the text of a `Path`, or a list with the texts of its paths; any other value unchanged."""
    if folder and isinstance(value, list | tuple):
        return [_path_text(each, folder) if isinstance(each, Path) else each for each in value]
    return os.path.join(folder, value) if folder and isinstance(value, Path) else value
