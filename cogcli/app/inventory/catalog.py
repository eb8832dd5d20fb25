"""`registry catalog`: all specs of all layers in one object. Each has its row of `ls` and its
details of `show`."""

from __future__ import annotations

from cogcli.app.inventory.kinds import KINDS, details_of, whole_view
from cogcli.app.settings import Settings
from cogcli.declarations.value_types import Json


def whole_catalog(settings: Settings) -> dict[str, list[Json]]:
    """Return the specs of each kind, sorted by id. Skills and capabilities have their missing
    needs.

    Values under secret names are masked."""
    view = whole_view(settings)
    found: dict[str, list[Json]] = {}
    for name in KINDS:
        specs = sorted(getattr(view.catalog, name).items())
        found[name] = [details_of(view, spec, name) for _, spec in specs]
    for name, needs_of in (("skills", view.needs.skill), ("capabilities", view.needs.capability)):
        for entry in found[name]:
            entry["needs"] = [need.to_payload() for need in needs_of(entry["id"])]
    return found
