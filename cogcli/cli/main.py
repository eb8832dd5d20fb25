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
"""Command to module: only the module of the command asked for is imported."""


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
    asked = argv[: argv.index("--")] if "--" in argv else argv
    json = "--json" in asked
    parser = Parser(argv)
    try:
        arguments = parser.parse()
    except CogcliError as error:
        screen = Screen(os.environ, json=json)
        return _fail(screen, parser.command, error, argv=argv, debug="--debug" in asked)
    color = arguments.text("--color") or ""
    screen = Screen(os.environ, color=color, json=json, quiet=arguments.on("--quiet"))
    if text := _static(arguments):
        screen.answer(_help_envelope(text) if json else text)
        return OK
    try:
        return _execute(arguments, screen)
    finally:
        screen.close()


def _static(arguments: Arguments) -> str:
    """What needs no command: home, help, version, the verbs of a bare group."""
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
        _enter(arguments.text("-C"))
        _require_registries(arguments.many("--registry"))
        code: int = import_module(MODULES[name]).execute(context)
    except CogcliError as error:
        return _fail(screen, name, error, argv=arguments.argv, debug=debug, context=context)
    except (KeyboardInterrupt, BrokenPipeError, SystemExit):
        raise
    except BaseException as error:
        if lacking := _lacking(error):
            return _fail(screen, name, lacking, argv=arguments.argv, debug=debug, context=context)
        return _bug(screen, name, error, debug=debug, context=context)
    if screen.json:
        from cogcli.cli.envelope import envelope

        _answer_last(
            screen,
            code,
            envelope(name, code, error=context.error, warnings=context.warnings, own=context.own),
        )
    return code


def _lacking(error: BaseException) -> CogcliError | None:
    """What an unexpected exception says that the machine has too little of; None for a bug."""
    from cogcli.core import threads

    if not threads.is_lacking(error):
        return None
    return EnvironmentRefusal(
        "env.threads",
        "the system gave no thread",
        hint="end other programs of yours, or allow more processes (ulimit -u)",
    )


def _enter(directory: str | None) -> None:
    """Start as if in the directory of -C; nothing else of the process has been used yet."""
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


def _answer_last(screen: Screen, code: int, text: str) -> None:
    """The envelope of a run whose reader has gone still ends with the run's own code."""
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
    """Tell an expected error on stderr, and on stdout as the envelope when that was asked for."""
    from cogcli.cli.error_output import tell
    from cogcli.cli.next_step import next_steps

    if debug:
        _print_traceback(screen, error)
    error.next = tuple(next_steps(error, command, argv, context.again if context else ""))
    return tell(screen, command, error, context)


def _bug(
    screen: Screen, command: str, error: BaseException, *, debug: bool, context: CommandContext | None
) -> int:
    from cogcli.cli.crash import report

    if debug:
        _print_traceback(screen, error)
    return report(screen, command, error, context) or BUG


def _print_traceback(screen: Screen, error: BaseException) -> None:
    """Frames only, never the values of variables."""
    import traceback

    from cogcli.core.terminal_text import visible_block

    screen.tell(visible_block("".join(traceback.format_exception(error))))
