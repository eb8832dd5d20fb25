"""Execution of one command line: parsing, dispatch, and the only conversion of errors to output and
exit codes.
"""

from __future__ import annotations

import gc
import os
import sys

from cogcli.base.errors import (
    ABORTED,
    BUG,
    OK,
    CogcliError,
    UnusableEnvironment,
    UsageError,
    out_of_memory,
)
from cogcli.base.terminal_text import visible_block
from cogcli.cli.streams import Screen, silence_stdout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cogcli.base.problems import Problem
    from cogcli.cli.context import CommandContext
    from cogcli.cli.options import Call
    from cogcli.declarations.value_types import Json

_OBJECTS_BEFORE_COLLECTION = 100_000
"""A small run imports and makes some 30,000 objects after its command is known, 60,000 if its specs are not compiled
yet, and no cycles of them."""


def run(argv: list[str]) -> int:
    """Execute a command line, and return its exit code."""
    try:
        code = _run_command_line(argv)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        silence_stdout()
        return OK
    except KeyboardInterrupt:
        silence_stdout()
        return ABORTED["SIGINT"]
    except CogcliError as error:  # writing the answer itself failed
        return report_error(Screen(os.environ), "", error, argv=argv)


def _run_command_line(argv: list[str]) -> int:
    """Parse a command line and execute it."""
    flags = argv[: argv.index("--")] if "--" in argv else argv
    json = "--json" in flags
    if os.environ.get("_COGCLI_COMPLETE"):
        from cogcli.cli.completion import write_completions

        return write_completions()
    if not argv or argv in (["--help"], ["-h"]):
        from cogcli.cli.home import HOME

        Screen(os.environ).answer(HOME)
        return OK
    from cogcli.cli.typer_app import Parser

    parser = Parser(argv)
    try:
        call = parser.parse()
    except CogcliError as error:
        screen = Screen(os.environ, json=json)
        return report_error(screen, parser.command, error, argv=argv, debug="--debug" in flags)
    except Exception as error:  # raised by the import of a command
        screen = Screen(os.environ, json=json)
        if refusal := _resource_error(error):
            return report_error(screen, parser.command, refusal, argv=argv)
        return _report_crash(screen, parser.command, error, debug="--debug" in flags, context=None)
    screen = Screen(os.environ, color=call.flags.color or "", json=json, quiet=call.flags.quiet)
    if call.action is None:
        _write_text(call, screen)
        return OK
    try:
        return _execute_call(call, call.action, screen)
    finally:
        screen.close()


def _write_text(call: Call, screen: Screen) -> None:
    """Write the text for a command line that runs nothing: help, or the version."""
    from cogcli.cli.command_help import render_text

    text = render_text(call)
    if screen.json:
        from cogcli.cli.envelope import envelope

        text = envelope("help", OK, own={"explanation": text})
    screen.answer(text)


def _execute_call(call: Call, action: Callable[[CommandContext], int], screen: Screen) -> int:
    """Run the action of a command, and return its exit code. Report each error."""
    from cogcli.cli.context import CommandContext

    name, debug = call.command, call.flags.debug
    context = CommandContext(call, screen, os.environ)
    if not gc.isenabled():
        gc.freeze()
        gc.set_threshold(_OBJECTS_BEFORE_COLLECTION)
        gc.enable()
    try:
        _change_directory(call.flags.directory)
        _require_registries(call.flags.registry)
        code = action(context)
    except CogcliError as error:
        return report_error(screen, name, error, argv=call.argv, debug=debug, context=context)
    except (KeyboardInterrupt, BrokenPipeError, SystemExit):
        raise
    except BaseException as error:
        if refusal := _resource_error(error):
            return report_error(screen, name, refusal, argv=call.argv, debug=debug, context=context)
        return _report_crash(screen, name, error, debug=debug, context=context)
    if screen.json:
        _write_envelope(screen, code, _envelope_texts(context, name, code))
    if context.afterwards:
        _run_deferred_work(context)
    return code


def _run_deferred_work(context: CommandContext) -> None:
    """Do the work that a command deferred until after its answer. Ctrl-C ends it without changing
    the exit code.
    """
    try:
        for work in context.afterwards:
            work()
    except KeyboardInterrupt:
        pass


def _resource_error(error: BaseException) -> CogcliError | None:
    """Return the error for an exception that reports exhausted memory or threads; None for any
    other.
    """
    # The dynamic linker has no exception of its own: it reports that it could not map a library.
    is_unmapped = isinstance(error, ImportError) and "failed to map segment" in str(error)
    if isinstance(error, MemoryError) or is_unmapped:
        return out_of_memory()
    from cogcli.base import threads

    if not threads.is_thread_shortage(error):
        return None
    hint = "end other programs of yours, or allow more processes (ulimit -u) or memory (ulimit -v)"
    return UnusableEnvironment("env.threads", "the system gave no thread", hint=hint)


def _change_directory(directory: str | None) -> None:
    """Change to the directory of `-C`, before any relative path is resolved. Raise UsageError."""
    if directory is None:
        return
    try:
        os.chdir(directory)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no such name"
        raise UsageError(
            "usage.value", f"`-C {directory}`: {reason}", expected="a directory"
        ) from None


def _require_registries(roots: list[str]) -> None:
    """Raise UsageError for a `--registry` that is not a directory."""
    for root in roots:
        if not os.path.isdir(root):
            what = "is not a directory" if os.path.lexists(root) else "does not exist"
            hint = "give a directory that holds specs"
            raise UsageError("registry.missing", f"registry `{root}` {what}", hint=hint)


def _envelope_texts(context: CommandContext, command: str, code: int) -> Iterable[str]:
    """Return the envelope of a command that ended, in parts if it has a list that is streamed."""
    from cogcli.cli.envelope import envelope, envelope_parts

    error, warnings, own = context.error, context.warnings, context.own
    streamed = context.streamed
    if streamed is None:
        return (envelope(command, code, error=error, warnings=warnings, own=own),)
    return envelope_parts(command, code, error=error, warnings=warnings, own=own, streamed=streamed)


def _write_envelope(screen: Screen, code: int, texts: Iterable[str]) -> None:
    """Write the envelope. A closed pipe does not change the exit code of a command that failed."""
    try:
        for text in texts:
            screen.answer(text)
    except BrokenPipeError:
        silence_stdout()
        if code == OK:
            raise


def report_error(
    screen: Screen, command: str, error: CogcliError, *, argv: list[str], debug: bool = False,
    context: CommandContext | None = None,
) -> int:  # fmt: skip
    """Write an expected error to stderr, with `--json` also the envelope to stdout. Return its exit
    code.
    """
    from cogcli.cli.envelope import envelope, error_object
    from cogcli.cli.render_error import (
        error_lines,
        next_lines,
        next_steps,
        problems_lines,
        redirect_hint,
    )

    if debug:
        _print_traceback(screen, error)
    again = context.again if context else ""
    error.next = tuple(next_steps(error, command, argv, again))
    problems: list[Problem] = [
        redirect_hint(problem, again) for problem in getattr(error, "problems", ())
    ]
    base, width = context.base if context else "", screen.err.width
    first = error_object(error)
    lines = error_lines(first, base=base, width=width, typed=error.typed) + next_lines(error.next)
    if problems:
        lines = problems_lines(problems, error.next, base, width, error.typed)
    for line in lines:
        screen.notify_line(line)
    if screen.json:
        own = _members_set_so_far(context)
        if problems:
            own["problems"] = [problem.to_payload() for problem in problems]
            first |= _members_from_first_problem(problems[0])
        warnings = context.warnings if context else []
        text = envelope(command, error.exit_code, error=first, warnings=warnings, own=own)
        _write_error_envelope(screen, text)
    return error.exit_code


def _members_from_first_problem(problem: Problem) -> Json:
    """Return the members of the envelope's error that come from the first problem."""
    members = {
        name: getattr(problem, name) for name in ("code", "message", "file", "line", "column")
    }
    given = {name: value for name, value in members.items() if value}
    return {**given, "hint": problem.hint}


def _members_set_so_far(context: CommandContext | None) -> Json:
    """Return the members of the envelope that a command set before its error."""
    # The status of a finished run is not that of the error.
    own = context.own if context else {}
    return {name: value for name, value in own.items() if name != "status"}


def _write_error_envelope(screen: Screen, text: str) -> None:
    """Write the envelope of an error. If the disk is full, only stderr has the error."""
    try:
        screen.answer(text)
    except BrokenPipeError:
        silence_stdout()
    except CogcliError:
        pass


def _report_crash(
    screen: Screen,
    command: str,
    error: BaseException,
    *,
    debug: bool,
    context: CommandContext | None,
) -> int:
    """Report an unexpected exception, and return exit code 70."""
    from cogcli.cli.crash import report_bug

    if debug:
        _print_traceback(screen, error)
    return report_bug(screen, command, error, context) or BUG


def _print_traceback(screen: Screen, error: BaseException) -> None:
    """Write the traceback to stderr: frames and masked messages, without the values of variables."""
    import traceback

    from cogcli.base.resolved_secrets import resolved_secrets

    text = "".join(traceback.format_exception(error))
    screen.notify(visible_block(resolved_secrets().mask_text(text)))
