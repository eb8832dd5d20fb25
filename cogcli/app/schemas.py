"""Every JSON Schema there is: spec files, artifacts, configuration, the envelope."""

from __future__ import annotations

from typing import Any, Final

from cogcli.core.errors import UsageError

SPECS: Final = ("skill", "capability", "binding", "service", "policy", "services", "active", "overrides")
ARTIFACTS: Final = ("events", "learn", "state", "state-written", "summary", "manifest")
OWN: Final = ("config", "result")
NAMES: Final = (*SPECS, *ARTIFACTS, *OWN)


def schema(name: str) -> dict[str, Any]:
    """One schema. Raises UsageError with what may have been meant."""
    if name in SPECS:
        from cogcli.specs.json_schema import schema_of

        return schema_of(name)
    if name in ARTIFACTS:
        from cogcli.episode.schemas import SCHEMAS

        return SCHEMAS[name]()
    if name in OWN:
        from cogcli.app.cli_schemas import config_schema, envelope_schema

        return config_schema() if name == "config" else envelope_schema()
    from cogcli.core.problems import suggestion

    hint = suggestion(name, NAMES) or f"there is {', '.join(NAMES)}"
    raise UsageError("usage.value", f"there is no schema `{name[:60]}`", hint=hint, next=("cogcli schema",))
