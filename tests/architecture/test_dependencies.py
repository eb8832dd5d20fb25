"""Every library that the package imports is named in pyproject.toml: nothing is leant on through others."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from support.sources import modules, said

ROOT = Path(__file__).parents[2]


def named() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    lines = [
        *project["dependencies"],
        *(line for name in extras if name != "dev" for line in extras[name]),
    ]
    return {re.split(r"[\[<>=~!; ]", line)[0].lower() for line in lines}


def installed_by(library: str) -> set[str]:
    """The top-level modules of a library; none where it is not installed here."""
    try:
        files = distribution(library).files or []
    except PackageNotFoundError:
        return set()
    return {file.parts[0].partition(".")[0] for file in files}


def test_every_imported_library_is_named() -> None:
    known = {*sys.stdlib_module_names, "cogcli", "", *named()}
    known |= {top for library in named() for top in installed_by(library)}
    imported = {name.partition(".")[0] for module in modules() for name in said(module).modules}
    assert imported - known == set()
