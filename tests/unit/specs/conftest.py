from __future__ import annotations

from pathlib import Path

import pytest
from small_registry import FILES, Write


@pytest.fixture
def root(tmp_path: Path) -> Write:
    """Writes files below a new directory of a name, the small registry unless told otherwise; gives its path."""

    def write(
        name: str = "project", files: dict[str, str] | None = None, *, bare: bool = False
    ) -> str:
        folder = tmp_path / name
        for path, text in {**({} if bare else FILES), **(files or {})}.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text.lstrip("\n"))
        folder.mkdir(exist_ok=True)
        return str(folder)

    return write
