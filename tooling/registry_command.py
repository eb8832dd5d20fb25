"""What the scripts of the registry's checks share: each is a command of cogcli (docs/reference/tooling.md).

They check this repository with its own code, also where another cogcli is installed: what is shipped are then the files
of this repository, and they are trusted like the script itself.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from cogcli.__main__ import main
from cogcli.base.extras import SHIPPED

ROOT = Path(__file__).resolve().parent.parent


def run(*words: str) -> int:
    """Run a command of cogcli in this repository, the script's own arguments behind it; returns its exit code.

    `--report-file PATH` is `--report json:PATH`, the folder of PATH made where it is not there; `--without-extras` runs
    it as if no optional extra were installed.
    """
    arguments: list[str] = []
    given = iter(sys.argv[1:])
    for word in given:
        flag, equals, path = word.partition("=")
        if flag == "--report-file":
            file = Path(path if equals else next(given, "")).absolute()
            file.parent.mkdir(parents=True, exist_ok=True)
            arguments += ["--report", f"json:{file}"]
        elif word == "--without-extras":
            hide_extras()
        else:
            arguments.append(word)
    folder = [] if "-C" in arguments else ["-C", str(ROOT)]
    sys.argv[1:] = [*words, *folder, *map(_absolute, arguments)]
    return main()


def _absolute(word: str) -> str:
    """The path of `junit:PATH` seen from where the script was started."""
    kind, colon, path = word.partition(":")
    return f"{kind}:{Path(path).absolute()}" if kind in ("junit", "json", "md") and colon else word


def hide_extras() -> None:
    """Make the modules of all extras of the registry look as if they were not installed."""
    for modules in SHIPPED.values():
        for module in modules:
            sys.modules[module] = None  # type: ignore[assignment]
