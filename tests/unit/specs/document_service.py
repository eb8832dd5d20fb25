"""Services with a document, for tests: written below a layer as an author would."""

from __future__ import annotations

from pathlib import Path

from cogcli.declarations.service_spec import Service


def service_with(
    root: Path, text: str, *, kind: str = "openapi", name: str = "api.yaml"
) -> Service:
    """A service whose document is `text`, in `docs/` of the layer at `root`."""
    file = root / "docs" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return Service(
        id="s", kind=kind, settings={"spec_ref": f"docs/{name}"}, root=str(root), trusted=True
    )
