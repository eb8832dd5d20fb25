"""Install this checkout with its packages into the interpreter that runs this, and show how far it is.

`python tooling/install.py EXTRA` is `pip install --editable .[EXTRA]` with a line that counts packages instead of pip's
own output, which is printed if pip fails.
"""

from __future__ import annotations

import subprocess
import sys

_SHOWN = ("Collecting ", "Obtaining ", "Downloading ", "Using cached ", "Building ", "Installing ")
_WIDTH = 72


def main() -> int:
    """Run pip; returns its exit code."""
    extra = sys.argv[1]
    print(f"installing cogcli[{extra}] and its packages into {sys.prefix}", flush=True)
    # `-I`: a file `pip.py` or a folder `pip` of the working directory is not pip.
    command = [
        sys.executable,
        "-I",
        "-m",
        "pip",
        "install",
        "--disable-pip-version-check",
        "--no-compile",  # of 8,000 modules a tenth are imported, and each is compiled then
        "--editable",
        f".[{extra}]",
    ]
    pip = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines: list[str] = []
    count = 0
    for line in pip.stdout or ():
        lines.append(line)
        text = line.strip()
        count += text.startswith("Collecting ")
        if text.startswith(_SHOWN):
            _show(f"  {count} packages  {text}")
    code = pip.wait()
    _show(f"  {count} packages", last=True)
    if code:
        sys.stdout.write("".join(lines))
    return code


def _show(text: str, *, last: bool = False) -> None:
    """Show a line: over the one before on a terminal, elsewhere only the last one."""
    if sys.stdout.isatty():
        print(f"\r{text[:_WIDTH]:<{_WIDTH}}", end="\n" if last else "", flush=True)
    elif last:
        print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
