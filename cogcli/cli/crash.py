"""The report of an unexpected exception: one line on stderr, a file without inputs or secrets, exit
code 70.
"""

from __future__ import annotations

import os
import platform
from os.path import relpath
from traceback import walk_tb

from cogcli import __version__
from cogcli.app.settings.user_dirs import state_home
from cogcli.base.errors import BUG, CogcliError
from cogcli.base.files import write_atomic
from cogcli.base.resolved_secrets import resolved_secrets
from cogcli.cli.context import CommandContext
from cogcli.cli.envelope import envelope
from cogcli.cli.streams import Screen

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def report_bug(
    screen: Screen, command: str, error: BaseException, context: CommandContext | None
) -> int:
    """Report an unexpected exception, and return exit code 70.

    The file contains only types and code locations: messages and values may contain inputs or
    secrets.
    """
    ours = [
        f"{relpath(f, _PACKAGE)}:{line}"
        for f, line, _ in _traceback_frames(error)
        if f.startswith(_PACKAGE + os.sep)
    ]
    what = f"{type(error).__name__} in {ours[-1].replace(os.sep, '/') if ours else 'startup'}"
    screen.notify_line([("bug[internal]", "error"), (f": {what}", "bold")])
    saved = ""
    try:
        saved = _save_report(command, error)
        screen.notify_line([("saved: ", "dim"), (f"{saved} (inputs and secrets removed)", "")])
    except (OSError, CogcliError) as failure:
        screen.notify_line(
            [("not saved: ", "dim"), (getattr(failure, "strerror", None) or str(failure), "")]
        )
    screen.notify_line([("please send it with an issue; --debug shows the traceback", "dim")])
    if screen.json:
        body = {"code": "internal", "message": what, "retryable": False, "hint": "", "next": []}
        own = (
            {name: value for name, value in context.own.items() if name != "status"}
            if context
            else {}
        )
        screen.answer(envelope(command, BUG, error=body, own={**own, "file": saved}))
    return BUG


def _traceback_frames(error: BaseException) -> list[tuple[str, int, str]]:
    """Return file, line and function of each frame, the innermost last."""
    return [
        (frame.f_code.co_filename, line, frame.f_code.co_name)
        for frame, line in walk_tb(error.__traceback__)
    ]


def _report_text(command: str, error: BaseException) -> str:
    """Return the text of the report."""
    lines = [
        f"cogcli {__version__}, Python {platform.python_version()}, {platform.platform()}",
        f"command: {command}",
    ]
    seen: BaseException | None = error
    while seen is not None:
        lines.append(f"{type(seen).__module__}.{type(seen).__qualname__}")
        lines += [
            f"  {os.path.basename(f)}:{line} {name}" for f, line, name in _traceback_frames(seen)
        ]
        seen = seen.__cause__ or seen.__context__
    return resolved_secrets().mask_text("\n".join(lines)) + "\n"


def _save_report(command: str, error: BaseException) -> str:
    """Write the report and return its path. Raise OSError."""
    folder = os.path.join(state_home(os.environ), "crashes")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = os.path.join(folder, f"crash-{os.getpid()}-{os.urandom(3).hex()}.txt")
    write_atomic(path, _report_text(command, error).encode("utf-8", "backslashreplace"))
    return path
