"""One command from argv to exit code: parse, dispatch, and the one place that turns errors into codes and output."""

from __future__ import annotations

import os
import sys

from cogcli.cli.parse import Arguments, Parser
from cogcli.cli.streams import Screen, silence_stdout
from cogcli.core.errors import ABORTED, BUG, OK, CogcliError, EnvironmentRefusal, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cogcli.cli.context import CommandContext

MODULES = {
    "run": "cogcli.cli.commands.run",
    "trace": "cogcli.cli.commands.trace",
    "state show": "cogcli.cli.commands.state",
    "ls": "cogcli.cli.commands.ls",
    "diff": "cogcli.cli.commands.diff",
    "graph": "cogcli.cli.commands.graph",
    "gc": "cogcli.cli.commands.gc",
    "verify": "cogcli.cli.commands.verify",
    "rerun": "cogcli.cli.commands.rerun",
    "replay": "cogcli.cli.commands.replay",
    "resume": "cogcli.cli.commands.resume",
    "validate": "cogcli.cli.commands.validate",
    "doctor": "cogcli.cli.commands.doctor",
    "openapi verify-bindings": "cogcli.cli.commands.openapi",
    "openapi verify-invoker": "cogcli.cli.commands.openapi_self",
    "openapi verify-errors": "cogcli.cli.commands.openapi_self",
    "skills ls": "cogcli.cli.commands.skills_ls",
    "skills show": "cogcli.cli.commands.skills_show",
    "skills search": "cogcli.cli.commands.skills_ls",
    "services refresh": "cogcli.cli.commands.services",
    "skills explain": "cogcli.cli.commands.inventory_explain",
    "capabilities ls": "cogcli.cli.commands.inventory_ls",
    "capabilities show": "cogcli.cli.commands.inventory_show",
    "capabilities search": "cogcli.cli.commands.inventory_ls",
    "capabilities explain": "cogcli.cli.commands.inventory_explain",
    "bindings ls": "cogcli.cli.commands.inventory_ls",
    "bindings show": "cogcli.cli.commands.inventory_show",
    "bindings search": "cogcli.cli.commands.inventory_ls",
    "bindings explain": "cogcli.cli.commands.inventory_explain",
    "bindings activate": "cogcli.cli.commands.bindings_activate",
    "services ls": "cogcli.cli.commands.inventory_ls",
    "services show": "cogcli.cli.commands.inventory_show",
    "services search": "cogcli.cli.commands.inventory_ls",
    "services explain": "cogcli.cli.commands.inventory_explain",
    "skills export": "cogcli.cli.commands.skills_exchange",
    "skills import": "cogcli.cli.commands.skills_exchange",
    "schema": "cogcli.cli.commands.schema",
    "serve mcp": "cogcli.cli.commands.serve",
    "config show": "cogcli.cli.commands.config_show",
    "config trust": "cogcli.cli.commands.config_trust",
    "help": "cogcli.cli.commands.help",
    "explain": "cogcli.cli.commands.explain",
}
"""Command to module; a module is imported only for its own command."""


def run(argv: list[str]) -> int:
    """The exit code of a command line."""
    try:
        code = _run(argv)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        silence_stdout()
        return OK
    except KeyboardInterrupt:
        silence_stdout()
        return ABORTED["SIGINT"]
    except CogcliError as error:  # the answer itself could not be written
        return _fail(Screen(os.environ), "", error, argv=argv)


def _run(argv: list[str]) -> int:
    flags = argv[: argv.index("--")] if "--" in argv else argv
    json = "--json" in flags
    parser = Parser(argv)
    try:
        arguments = parser.parse()
    except CogcliError as error:
        screen = Screen(os.environ, json=json)
        return _fail(screen, parser.command, error, argv=argv, debug="--debug" in flags)
    color = arguments.text("--color") or ""
    screen = Screen(os.environ, color=color, json=json, quiet=arguments.on("--quiet"))
    if text := _static_text(arguments):
        screen.answer(_help_envelope(text) if json else text)
        return OK
    try:
        return _execute(arguments, screen)
    finally:
        screen.close()


def _static_text(arguments: Arguments) -> str:
    """The text of `--version`, home, `--help` and a bare group; empty for a command."""
    if arguments.on("--version"):
        from cogcli import __version__

        return f"cogcli {__version__}\n"
    command = arguments.command
    if command and not arguments.on("--help"):
        return ""
    if not command and not arguments.group:
        from cogcli.cli.home import HOME

        return HOME
    from cogcli.cli.help import command_help, group_help

    return command_help(command) if command else group_help(arguments.group)


def _help_envelope(text: str) -> str:
    from cogcli.cli.envelope import envelope

    return envelope("help", OK, own={"explanation": text})


def _execute(arguments: Arguments, screen: Screen) -> int:
    from importlib import import_module

    from cogcli.cli.context import CommandContext

    name, debug = arguments.command.name if arguments.command else "", arguments.on("--debug")
    context = CommandContext(arguments, screen, os.environ)
    try:
        _change_directory(arguments.text("-C"))
        _require_registries(arguments.many("--registry"))
        code: int = import_module(MODULES[name]).execute(context)
    except CogcliError as error:
        return _fail(screen, name, error, argv=arguments.argv, debug=debug, context=context)
    except (KeyboardInterrupt, BrokenPipeError, SystemExit):
        raise
    except BaseException as error:
        if refusal := _resource_error(error):
            return _fail(screen, name, refusal, argv=arguments.argv, debug=debug, context=context)
        return _report_crash(screen, name, error, debug=debug, context=context)
    if screen.json:
        from cogcli.cli.envelope import envelope

        _write_envelope(
            screen,
            code,
            envelope(name, code, error=context.error, warnings=context.warnings, own=context.own),
        )
    return code


def _resource_error(error: BaseException) -> CogcliError | None:
    """The EnvironmentRefusal for an exception that says that the system has no thread left; None for a bug."""
    from cogcli.core import threads

    if not threads.is_lacking(error):
        return None
    return EnvironmentRefusal(
        "env.threads",
        "the system gave no thread",
        hint="end other programs of yours, or allow more processes (ulimit -u)",
    )


def _change_directory(directory: str | None) -> None:
    """Change to the directory of `-C`, before any relative path is resolved. Raises UsageError."""
    if directory is None:
        return
    try:
        os.chdir(directory)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no such name"
        raise UsageError("usage.value", f"`-C {directory}`: {reason}", expected="a directory") from None


def _require_registries(roots: list[str]) -> None:
    for root in roots:
        if not os.path.isdir(root):
            what = "is not a directory" if os.path.lexists(root) else "does not exist"
            raise UsageError(
                "registry.missing", f"registry `{root}` {what}", hint="give a directory that holds specs"
            )


def _write_envelope(screen: Screen, code: int, text: str) -> None:
    """Write the envelope. A closed pipe does not change the exit code of a command that failed."""
    try:
        screen.answer(text)
    except BrokenPipeError:
        silence_stdout()
        if code == OK:
            raise


def _fail(
    screen: Screen, command: str, error: CogcliError, *, argv: list[str], debug: bool = False,
    context: CommandContext | None = None,
) -> int:  # fmt: skip
    """Write an expected error to stderr, with `--json` also the envelope to stdout; returns its exit code."""
    from cogcli.cli.error_output import report_error
    from cogcli.cli.next_step import next_steps

    if debug:
        _print_traceback(screen, error)
    error.next = tuple(next_steps(error, command, argv, context.again if context else ""))
    return report_error(screen, command, error, context)


def _report_crash(
    screen: Screen, command: str, error: BaseException, *, debug: bool, context: CommandContext | None
) -> int:
    from cogcli.cli.crash import report_bug

    if debug:
        _print_traceback(screen, error)
    return report_bug(screen, command, error, context) or BUG


def _print_traceback(screen: Screen, error: BaseException) -> None:
    """Write the traceback to stderr: frames and messages, without values of variables."""
    import traceback

    from cogcli.core.terminal_text import visible_block

    screen.notify(visible_block("".join(traceback.format_exception(error))))
