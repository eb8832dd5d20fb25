"""The pictures of README and tutorial, drawn from what the commands really print: `python tooling/pictures.py`.

Times and ids are those of the fake clock, so that the same screens give the same files; `tests/docs/test_pictures.py`
draws them again. Where a browser is installed, a page of `report` is photographed, too.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple, Protocol

from cogcli.base.terminal_text import cells

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs/pictures"
TUTORIAL = ROOT / "docs/tutorial.md"
HARBOUR = (
    "The harbour opens at six. Ships wait in the bay. Tugs bring them in. The pilot boards first.\n"
)
FAKES = {
    "COGCLI_FAKE_CLOCK": "1795000000", "COGCLI_FAKE_IDS": "7", "COGCLI_FORCE_TTY": "88", "FORCE_COLOR": "1",
    "COGCLI_MAX_WORKERS": "1", "COGCLI_TRUST_PROJECT": "1", "TZ": "UTC", "LANG": "C.UTF-8",
}  # fmt: skip
"""One call at a time: how threads share a clock is no matter of the picture."""
_FILE = re.compile(
    r"`([\w./-]+\.(?:py|yaml))`[^`]*?\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL
)
_SGR = re.compile(r"\x1b\[([0-9;]*)m")
_WIDE, _HIGH, _PAD = 8.43, 20, 18
_COLOURS: Final = {
    "31": "#ff8a80", "32": "#6fcf97", "33": "#f2c66d", "36": "#7cc4f5", "2": "#8d98aa", "": "#e6e9ef"
}  # fmt: skip


class Printed(Protocol):
    """What a command printed."""

    out: str
    err: str


class Place(Protocol):
    """A directory in which commands run."""

    root: Path

    def run(self, *arguments: str, env: dict[str, str]) -> Printed:
        """Run `cogcli` with these arguments."""
        ...


def pictures(place: Place) -> dict[str, str]:
    """Each picture as SVG by its name: a run, its trace, and a failure of the tutorial's skill."""
    (place.root / "cogcli.toml").touch()
    (place.root / "harbour.md").write_text(HARBOUR)
    ran = place.run("run", "doc.digest", "-p", "path=harbour.md", env=FAKES)
    summary = json.loads(_SGR.sub("", ran.out))["summary"]
    traced = place.run("trace", "@last", env=FAKES | {"COGCLI_FAKE_IDS": "900"})
    failed = failing_run(place)
    return {
        "run.svg": screen(
            "cogcli run doc.digest -p path=harbour.md | jq -r .summary", ran.err + summary
        ),
        "trace.svg": screen("cogcli trace @last", traced.out),
        "failure.svg": screen("cogcli run demo.loud -p text=morning", failed.err),
    }


def failing_run(place: Place) -> Printed:
    """The skill of the tutorial, after somebody misspelt what its binding reads."""
    for name, text in _FILE.findall(TUTORIAL.read_text(encoding="utf-8")):
        path = place.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            text.replace("{text: response.text}", "{text: response.txt}"), encoding="utf-8"
        )
    return place.run(
        "run", "demo.loud", "-p", "text=morning", env=FAKES | {"COGCLI_FAKE_IDS": "2000"}
    )


def screen(command: str, printed: str) -> str:
    """Lines of a terminal as SVG, the command before them."""
    lines = [f"\x1b[2m$\x1b[0m \x1b[1m{command}\x1b[0m", *printed.rstrip("\n").split("\n")]
    wide = max(cells(_SGR.sub("", line)) for line in lines)
    width, height = round(wide * _WIDE + 2 * _PAD), len(lines) * _HIGH + 2 * _PAD
    label = escape(f"Terminal: {command}")
    rows = "\n".join(_row(line, _PAD + 15 + number * _HIGH) for number, line in enumerate(lines))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{label}" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">\n<rect width="{width}" height="{height}" rx="8" fill="#171b23"/>\n'
        '<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="14">'
        f"\n{rows}\n</g>\n</svg>\n"
    )


def _row(line: str, y: int) -> str:
    """A text per span; each is as wide as its columns, whatever font there is."""
    spans, style, column = [], "", 0
    for number, part in enumerate(_SGR.split(line)):
        if number % 2:
            style = "" if part in ("", "0") else part
        elif part:
            if part.strip():
                spans.append(_span(part, style, column, y))
            column += cells(part)
    return "".join(spans)


def _span(text: str, style: str, column: int, y: int) -> str:
    words = style.split(";")
    colour = next((_COLOURS[word] for word in words if word in _COLOURS), _COLOURS[""])
    bold = ' font-weight="700"' if "1" in words else ""
    lead = len(text) - len(text.lstrip())
    text = text.strip().replace(" ", "\u00a0")  # a space that no reader folds
    x, wide = _PAD + (column + lead) * _WIDE, cells(text) * _WIDE
    return f'<text x="{x:.1f}" y="{y}" textLength="{wide:.1f}" fill="{colour}"{bold}>{escape(text)}</text>'


# -- the script itself -------------------------------------------------------------------------------------------------


class _Run(NamedTuple):
    out: str
    err: str


class _Directory:
    """Commands as they are installed, in a directory with a home of their own."""

    def __init__(self, root: Path) -> None:
        self.root = root / "project"
        self.root.mkdir()
        self._home = root

    def run(self, *arguments: str, env: dict[str, str]) -> _Run:
        """Run `cogcli` with these arguments."""
        whole = {"PATH": os.environ["PATH"], "HOME": str(self._home), "TERM": "xterm", **env}
        command = [str(Path(sys.executable).parent / "cogcli"), *arguments]
        done = subprocess.run(
            command, cwd=self.root, env=whole, capture_output=True, text=True, check=False
        )
        return _Run(done.stdout, done.stderr)


def photograph(place: Place, target: Path) -> str:
    """A page of `report` as PNG; why there is none where there is no browser."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return "playwright is not installed"
    browser = (
        os.environ.get("COGCLI_CHROMIUM")
        or shutil.which("chromium")
        or shutil.which("google-chrome")
    )
    if browser is None:
        return "no browser is installed"
    place.run("report", "@last", "-o", "page.html", env=FAKES)
    with sync_playwright() as started:
        opened = started.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = opened.new_page(viewport={"width": 1000, "height": 960})
        page.goto((place.root / "page.html").as_uri())
        page.screenshot(path=target)
        opened.close()
    return ""


def main(arguments: list[str]) -> int:
    """Draw all pictures; with `--check` 1 where one of the drawings is not what lies there."""
    with TemporaryDirectory() as folder:
        place: Any = _Directory(Path(folder))
        drawn = pictures(place)
        stale = [name for name, text in drawn.items() if _stored(name) != text]
        if "--check" in arguments:
            print(*(f"stale: {name}" for name in stale), sep="\n")
            return int(bool(stale))
        for name in stale:
            (PICTURES / name).write_text(drawn[name], encoding="utf-8")
            print(PICTURES / name)
        why = photograph(place, PICTURES / "page.png")
        print(f"no page.png: {why}" if why else PICTURES / "page.png")
    return 0


def _stored(name: str) -> str:
    path = PICTURES / name
    return path.read_text(encoding="utf-8") if path.is_file() else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
