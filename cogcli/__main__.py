"""The entry point. `--version` is answered here, before anything else is imported
(docs/reference/command-line.md#start-up).

Until a run takes its signals over, Ctrl-C, SIGTERM and SIGHUP end the process at once, without its temporary files:
nothing has begun that would have to be finished, and an exception out of the middle of an import can crash extension
modules.
The garbage collector rests until a command is known (`cli/main.py`): what importing makes stays.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` wraps it in enums: slower than all of `--version`
import gc
import os
import sys

from cogcli import __version__

_ENDING = ("SIGINT", "SIGBREAK", "SIGTERM", "SIGHUP")


def start() -> int:
    """Run the command in `sys.argv`, then exit with `os._exit`.

    Return the exit code instead if the interpreter must shut down normally.
    """
    gc.disable()
    if sys.getfilesystemencoding() == "ascii":
        # In the C locale Python starts again in UTF-8 mode: arguments, file names and streams are UTF-8.
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606
    if sys.path and sys.path[0] == os.path.dirname(sys.argv[0]):
        del sys.path[0]  # the script's directory: every import would search it first
    return _end_process(main())


def _end_process(code: int) -> int:
    """End the process after the exit functions and a flush, without the cleanup of memory that the
    system does anyway.

    Return the code instead if other threads run or a stream cannot be flushed: then the interpreter
    ends the process.
    """
    import atexit

    threads = sys.modules.get("threading")
    if threads is not None and threads.active_count() > 1:
        return code
    try:
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return code
    os._exit(code)


def main() -> int:
    """Run the command line of this process, and return the exit code."""
    argv = sys.argv[1:]
    for number in (getattr(_signal, name) for name in _ENDING if hasattr(_signal, name)):
        if _signal.getsignal(number) in (_signal.SIG_DFL, _signal.default_int_handler):
            _signal.signal(number, _exit_on_signal)
    if argv == ["--version"]:
        return _print_version(__version__)
    if "PYTHONPATH" in os.environ:
        from cogcli.base.search_path import drop_relative_entries

        drop_relative_entries()
    if argv[:2] == ["gateway", "hook"] and "--help" not in argv and "-h" not in argv:
        # A host starts this for each call of a tool: the command line would take ten times as long.
        from cogcli.gateway.hook_client import run_hook

        return run_hook(argv[2:])
    try:
        from cogcli.cli.main import run

        return run(argv)
    except (MemoryError, SystemError):  # the import system raises the second where it has no memory
        # Formatting an error needs memory, too: these lines are ready.
        os.write(2, _OUT_OF_MEMORY)
        return _BUG


_BUG = 70
_OUT_OF_MEMORY = b"""error[internal]: out of memory
  help  raise the limit of memory (ulimit -v)
"""


def _exit_on_signal(number: int, frame: object) -> None:
    """Handle a signal before a run: remove temporary folders, and exit with the code of the signal."""
    scratch = sys.modules.get("cogcli.base.scratch")
    if scratch is not None:
        scratch.remove_scratch_folders()
    hung_up = number in (_signal.SIGTERM, getattr(_signal, "SIGHUP", None))
    os._exit(128 + (_signal.SIGTERM if hung_up else _signal.SIGINT))  # Ctrl-Break is Ctrl-C


def _print_version(version: str) -> int:
    """Write the version to stdout without importing a module, and return exit code 0."""
    try:
        os.write(1, f"cogcli {version}\n".encode())
    except OSError:  # the reader is gone, or there is none
        return 0
    return 0


if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]  # `python -m` puts the working directory there: nothing is imported from it
    sys.exit(start())
