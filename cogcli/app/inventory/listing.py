"""`ls`, `search` and `show` of every kind of spec."""

from __future__ import annotations

from cogcli.app.inventory.kinds import KINDS, InventoryRow, find_spec, shadows_of, whole_view
from cogcli.app.registry import text_of
from cogcli.app.settings import Settings
from cogcli.core.redact import Redactor


def list_specs(
    settings: Settings,
    name: str,
    *,
    domain: str | None = None,
    channel: str | None = None,
    usable: bool = False,
) -> list[InventoryRow]:
    """One row for each spec of the kind of this name, by id."""
    view, kind = whole_view(settings), KINDS[name]
    return [
        kind.row(view, spec)
        for _, spec in sorted(getattr(view.catalog, name).items())
        if (domain is None or domain in kind.domains(view.catalog, spec))
        and (channel is None or channel in kind.channels(view.catalog, spec))
        and (not usable or kind.usable(view, spec))
    ]


def search_specs(settings: Settings, name: str, words: list[str], limit: int) -> list[InventoryRow]:
    """The rows that contain every word; hits in the nearer members come first, then the spec of that very id."""
    view, kind = whole_view(settings), KINDS[name]
    parts = [part for word in words for part in word.lower().split()]
    hits = []
    for id, spec in sorted(getattr(view.catalog, name).items()):
        row = kind.row(view, spec)
        text = kind.text(row, spec).lower()
        if all(part in text for part in parts):
            near = " ".join(row[member] for member in kind.near).lower()
            hits.append((sum(part not in near for part in parts), id not in parts, row))
    return [row for *_, row in sorted(hits, key=lambda hit: hit[:2])][:limit]


def spec_details(settings: Settings, name: str, id: str) -> InventoryRow:
    """All of a spec, with its layer and the specs that it hides; values under secret names are masked.

    Raises as `find_spec`.
    """
    view, spec = find_spec(settings, name, id)
    kind = KINDS[name]
    whole = {**kind.row(view, spec), **kind.details(view, spec)}
    if not kind.secret_keys:
        return whole
    masked: InventoryRow = Redactor().mask(
        {**whole, "shadows": shadows_of(view.catalog, kind.singular, spec.id)}
    )
    return masked


def read_source(settings: Settings, name: str, id: str) -> str:
    """The text of the file that declares a spec. Raises as `find_spec`, and EnvironmentRefusal `specs.invalid`."""
    return text_of(settings, find_spec(settings, name, id)[1].file)
