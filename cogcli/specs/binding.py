"""Bindings: how a service fulfils a capability (docs/reference/binding.md#keys)."""

from __future__ import annotations

from typing import Any, NamedTuple

from cogcli.base.jsonvalue import NOTHING
from cogcli.specs.fields import value_from


class Binding(NamedTuple):
    """A binding as its file declares it. `channel` follows from its place, `layer` from its root."""

    id: str
    capability: str
    service: str
    protocol: str
    operation: str
    request: dict[str, Any] = NOTHING
    response: dict[str, Any] = NOTHING
    metadata: dict[str, Any] = NOTHING
    channel: str = "local"
    layer: str = ""
    file: str = ""
    trusted: bool = False
    """Whether its layer may read the environment (docs/reference/service.md#trust)."""
    distrust: str = ""
    """Why its layer is not trusted, empty where there is no reason beside that."""
    checks: tuple[dict[str, Any], ...] = ()
    """`{path, op, value}`: what the outputs have to hold beside the capability's contract."""

    @property
    def conformance(self) -> str:
        """The conformance profile this binding promises."""
        return str(self.metadata.get("conformance_profile") or "standard")

    @property
    def fallback(self) -> str | None:
        """The binding to try next, if one is named."""
        return self.metadata.get("fallback_binding_id")


def binding_from(raw: dict[str, Any], file: str = "", **place: Any) -> Binding:
    """A binding from its checked mapping; `place` has the members that follow from where it was found."""
    return value_from(Binding, raw, checks=tuple(raw.get("checks") or ()), file=file, **place)
