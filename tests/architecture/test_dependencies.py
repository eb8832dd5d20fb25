"""Every library that the package imports is named in pyproject.toml: nothing is leant on through others."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

from test_layers import imports, modules

ROOT = Path(__file__).parents[2]


def named() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *(line for name in extras if name != "dev" for line in extras[name])]
    return {re.split(r"[\[<>=~!; ]", line)[0].lower() for line in lines}


def test_every_imported_library_is_named() -> None:
    distributions = packages_distributions()
    unnamed = {
        top
        for module in modules()
        for name in imports(module)
        if (top := name.partition(".")[0]) not in {*sys.stdlib_module_names, "cogcli", ""}
        and not {each.lower().replace("_", "-") for each in distributions.get(top, [top])} & named()
    }
    assert unnamed == set()
