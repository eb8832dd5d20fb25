"""The command line on typer: argv parsed into a Call, typer's errors as ours
(docs/reference/command-line.md#flags).

1. A command's module is imported when its name was read.
2. Global flags may come before or after a command: each level of the command line has the
   parameters of the root.
3. A value flag takes the next word, whatever it is, unless that word is a flag known there.
4. Nothing is guessed: a near miss is an error with suggestions.

Only this module and `typer_core` touch what typer does not document: `UsageError`, and the methods
of its commands that parse. Parameters are made of what `options` declares, for the named command."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, cast, get_origin

from cogcli.base.errors import UsageError
from cogcli.base.lazy_pattern import lazy_pattern
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.system_text import require_argument
from cogcli.cli.app import COMMANDS, first_words, verbs
from cogcli.cli.flag_words import FlagWord, is_value, read_flag_words
from cogcli.cli.options import (
    Call,
    Command,
    Completes,
    Declared,
    Flags,
    GlobalFlags,
    ParameterDeclaration,
    untyped_value,
    unwrap,
    wrong_flag,
)
from cogcli.cli.typer_core import (
    TyperArgument,
    TyperCommand,
    TyperGroup,
    TyperOption,
)
from cogcli.cli.typer_core import UsageError as TyperUsageError
from cogcli.declarations.value_types import Json

if TYPE_CHECKING:
    from typer._click import Command as ClickCommand
    from typer._click.core import Context
    from typer._click.core import Parameter as ClickParameter

    from cogcli.cli.wrong_words import CommandLine

_TYPED = "cogcli.typed"
"""The key of the names of the typed flags, in what typer keeps for a command line."""
_TEXTS = {"help", "version"}
"""The global flags that are answered with a text."""
_PAIR = lazy_pattern(r"\w[\w-]*:?=.*", re.DOTALL)
"""`text=hi`: an input, where its flag was left out."""


def parse(argv: list[str]) -> Call:
    """Return the parsed command line. Raise UsageError."""
    return Parser(argv).parse()


class Parser:
    """A parser of one command line. After an error `command` is the command or group, as far as it
    was read.
    """

    def __init__(self, argv: list[str]) -> None:
        self.argv = argv
        self.command = ""
        self.words_only = False
        """Whether `--` stood before the command."""
        self.flags: Json = {}
        self.given: Json = {}

    def parse(self) -> Call:
        """Return the parsed command line. Raise UsageError."""
        command = root()
        answer = command.invoke(command.make_context("cogcli", list(self.argv), obj=self))
        action = None if _TEXTS & self.flags.keys() else answer
        return Call(
            self.argv, self.command, GlobalFlags(self.flags), {**self.flags, **self.given}, action
        )


class _Level:
    """The common part of root, groups and commands: the global flags, and the conversion of errors."""

    words = ""
    """The words up to here: `state show`."""
    declared: Command
    params: list[ClickParameter]

    def _known_params(self, ctx: Context) -> list[ClickParameter]:
        """Return the parameters of this level, then the global flags."""
        top = ctx.find_root().command
        own: list[ClickParameter] = super().get_params(ctx)  # type: ignore[misc]
        return [*own, *top.params] if self.words else own

    def get_params(self, ctx: Context) -> list[ClickParameter]:
        """Return the parameters of this level. While typer parses, it gets no flag that was not typed: it would take
        its time for each.
        """
        known, typed = self._known_params(ctx), ctx.meta.get(_TYPED)
        if typed is None:
            return known
        return [each for each in known if each.param_type_name == "argument" or each.name in typed]

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Parse the words of this level, and return the others for the next level. Raise
        UsageError.
        """
        if ctx.resilient_parsing:  # completion
            rest: list[str] = super().parse_args(ctx, args)  # type: ignore[misc]
            return rest
        parser: Parser = ctx.obj
        parser.command = self.words
        is_group = isinstance(self, TyperGroup)
        read = read_flag_words(args, self.flags_of(ctx), up_to_word=is_group)
        parser.words_only = parser.words_only or (is_group and read.ended)
        _require_texts(parser.argv, args, read.read + 1 if is_group else len(args))
        typed, mistake = self._check_flags(ctx, read.found)
        if not is_group and _TEXTS & (typed | parser.flags.keys()):
            parser.flags.update(dict.fromkeys(_TEXTS & typed, True))
            return []  # help wins over any other mistake
        if mistake:
            raise mistake
        ctx.meta[_TYPED] = typed
        try:
            rest = super().parse_args(ctx, list(args))  # type: ignore[misc]
        except TyperUsageError as error:
            raise self._convert_error(error) from error
        finally:
            del ctx.meta[_TYPED]
        self._store_global_flags(ctx, parser, typed)
        parser.given = {name: ctx.params[name] for name in typed if name in ctx.params}
        return rest

    def _check_flags(
        self, ctx: Context, flag_words: list[FlagWord]
    ) -> tuple[set[str], UsageError | None]:
        """Return the names of the typed flags, and the first error.

        After an error only flags that print a string are included.
        """
        typed: set[str] = set()
        mistake: UsageError | None = None
        for each in flag_words:
            names = {flag.name or "" for flag in each.flags if flag is not None}
            if mistake is not None:
                typed |= _TEXTS & names
                continue
            mistake = self._flag_error(ctx, each) or self._repeated_flag_error(each, typed)
            if mistake is None:
                typed |= names
        return typed, mistake

    def _flag_error(self, ctx: Context, flag_word: FlagWord) -> UsageError | None:
        """Return the error about the flags in a word; None if they are valid."""
        flag = flag_word.flags[-1]
        if flag is None:
            return self._unknown_flag_error(ctx, flag_word.name)
        if flag.is_flag:
            _, sign, value = flag_word.word.partition("=")
            what = f"`{flag_word.name}` takes no value"
            is_long = flag_word.word.startswith("--")
            return UsageError("usage.value", what, found=value) if sign and is_long else None
        if flag_word.needs_next and not is_value(flag_word.next_word, self.flags_of(ctx)):
            given = "nothing" if flag_word.next_word is None else f"`{flag_word.next_word}`"
            what = f"`{flag.opts[0]}` needs a value"
            return UsageError("usage.value", what, expected=flag.metavar or "", found=given)
        return None

    def _repeated_flag_error(self, flag_word: FlagWord, typed_names: set[str]) -> UsageError | None:
        """Return the error if a flag of this level was already typed."""
        own = self.params if self.words else ()
        for flag in flag_word.flags:
            if flag is not None and flag.name in typed_names and flag in own and not flag.multiple:
                return wrong_flag(f"`{flag.opts[0]}` is given twice", "keep one of them")
        return None

    def flags_of(self, ctx: Context) -> dict[str, TyperOption]:
        """Return the known flags at this level, by spelling."""
        flags = (param for param in self._known_params(ctx) if isinstance(param, TyperOption))
        return {name: flag for flag in flags for name in flag.opts}

    def _store_global_flags(self, ctx: Context, parser: Parser, typed: set[str]) -> None:
        """Store the global flags of this level in the parser. A later value replaces an earlier
        one; a repeatable flag collects all.
        """
        for param in ctx.find_root().command.params:
            name = param.name or ""
            if name in typed:
                value = ctx.params.pop(name)
                before = parser.flags.get(name, ()) if param.multiple else ()
                parser.flags[name] = [*before, *value] if param.multiple else value

    def _convert_error(self, error: Exception) -> UsageError:
        """Return the error for an error of typer."""
        if getattr(error, "param", None) is None:
            return UsageError("usage.value", str(error))
        arguments = usage(cast("ClickCommand", self))
        is_id = arguments in ("SKILL", "ID")
        look = "cogcli skills ls" if is_id else f"cogcli {self.words} --help"
        return UsageError("usage.value", f"`{self.words}` needs {arguments}", next=(look,))

    def _unknown_flag_error(self, ctx: Context, name: str) -> UsageError:
        """Return the error for an unknown flag."""
        from cogcli.cli import wrong_words  # for faulty command lines alone

        is_group = isinstance(self, TyperGroup)
        error = wrong_words.flag_before_command(name, _flag_spellings) if is_group else None
        return error or wrong_words.unknown_flag(self._command_line(ctx), name, at_group=is_group)

    def _unknown_command_error(self, ctx: Context, args: list[str]) -> UsageError:
        """Return the error for an unknown command."""
        from cogcli.cli import wrong_words  # for faulty command lines alone

        return wrong_words.unknown_command(self._command_line(ctx), args)

    def _command_line(self, ctx: Context) -> CommandLine:
        """Return the command line and its known flags, for suggesting a correction."""
        from cogcli.cli.wrong_words import CommandLine  # for faulty command lines alone

        parser: Parser = ctx.obj
        known = self.flags_of(ctx)
        return CommandLine(parser.argv, self.words, parser.words_only, known, parse)


def _require_texts(argv: list[str], args: list[str], count: int) -> None:
    """Raise UsageError if one of the first `count` words of `args`, the end of `argv`, is not
    UTF-8.
    """
    before = len(argv) - len(args)
    for number in range(before, min(before + count, len(argv))):
        require_argument(argv, number)


def _flag_spellings(words: str) -> list[str]:
    """Return the spellings of the flags of a command."""
    return [name for param in load(words).params for name in param.opts]


class LazyCommand(_Level, TyperCommand):
    """A command whose module is imported only after its name has been parsed."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Parse flags and words. Raise UsageError."""
        rest = super().parse_args(ctx, args)
        if ctx.resilient_parsing:
            return rest
        lists = [ctx.params.get(param.name or "") or () for param in self.params if param.nargs < 0]
        extra = [*rest, *(word for words in lists for word in words[self.declared.maximum :])]
        if extra:
            raise self._unexpected_argument(ctx, extra[0])
        return rest

    def _unexpected_argument(self, ctx: Context, word: str) -> UsageError:
        """Return the error for an unexpected argument."""
        error = UsageError("usage.value", f"unexpected argument `{word}`")
        error.expected = usage(self) or "no further words"
        if "-p" in self.flags_of(ctx) and _PAIR.fullmatch(word):
            error.hint = f"did you mean `-p {word}`?"
        else:
            error.next = (f"cogcli {self.words} --help",)
        return error


class LazyGroup(_Level, TyperGroup):
    """The root or a group of commands. A member is imported when it is named."""

    def list_commands(self, ctx: Context) -> list[str]:
        """Return the possible next words."""
        return verbs(self.words) if self.words else first_words()

    def get_command(self, ctx: Context, cmd_name: str) -> ClickCommand | None:
        """Return a command or group for a list, without importing its module; None for an unknown
        name.
        """
        words = f"{self.words} {cmd_name}".strip()
        if words in COMMANDS:
            return TyperCommand(name=cmd_name, short_help=COMMANDS[words][1])
        below = verbs(words)
        return TyperCommand(name=cmd_name, short_help=", ".join(below)) if below else None

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str, ClickCommand, list[str]]:
        """Return the next command with the remaining words. Raise UsageError for an unknown
        command.
        """
        words = f"{self.words} {args[0]}" if self.words else args[0]
        completes = ctx.resilient_parsing
        rest = ["--", *args[1:]] if not completes and ctx.obj.words_only else args[1:]
        if words in COMMANDS:
            return args[0], load(words, ctx.obj if completes else None), rest
        if verbs(words):
            return args[0], group(words), rest
        if completes:
            raise UsageError("usage.command", "")
        raise self._unknown_command_error(ctx, args)

    def invoke(self, ctx: Context) -> Callable[[Any], int] | None:
        """Return the action of the named command; None for a bare group."""
        action = super().invoke(ctx)
        return action if ctx.invoked_subcommand else None


def usage(command: ClickCommand) -> str:
    """Return the positional arguments of a command as in help, such as `CAP BINDING`."""
    return " ".join(
        p.metavar for p in command.params if p.param_type_name == "argument" and p.metavar
    )


Completer = Callable[[Completes, "Context", str], list[tuple[str, str]]]
"""Returns completions, given the kind of values, typer's context, and the beginning of the word."""


def root(completer: Completer | None = None) -> LazyGroup:
    """Return the whole command line as a command of typer."""
    return group("", completer)


@cache  # several command lines in one process: help, tests
def group(name: str, completer: Completer | None = None) -> LazyGroup:
    """Return a group, or the root, which has the global flags, if `name` is empty."""
    declared = [] if name else GlobalFlags.declared()
    built = LazyGroup(
        params=[_typer_parameter(*each, completer) for each in declared],
        invoke_without_command=True,
        add_help_option=False,
        rich_markup_mode=None,
    )
    built.words = name
    return built


@cache
def load(words: str, completer: Completer | None = None) -> LazyCommand:
    """Return a command of `COMMANDS` after importing its module."""
    target, summary = COMMANDS[words]
    module, _, name = target.partition(":")
    declared: Command = getattr(import_module(f"cogcli.cli.commands.{module}"), name)
    parameters = _parameters_of(declared.function)

    def bind(**values: object) -> Callable[[Any], int]:
        """Return the action of the command with these values.

        An untyped value is the default of the function's parameter, else None, False or [].
        """
        return partial(declared.function, **parameters.bind(values))

    built = LazyCommand(
        words.split()[-1],
        params=[_typer_parameter(*each, completer) for each in parameters.declared],
        callback=bind,
        help=summary,
        context_settings={"allow_extra_args": True},
        add_help_option=False,
        rich_markup_mode=None,
    )
    built.words, built.declared = words, declared
    return built


class _Parameters(NamedTuple):
    """The parameters of a command's function."""

    declared: list[Declared]
    """A parameter per flag and word."""
    defaults: Json
    """By name, of those that are no Flags."""
    groups: dict[str, type[Flags]]
    """By name, of those that are Flags."""

    def bind(self, values: Json) -> Json:
        """Return the arguments of the function for the values that typer parsed."""
        typed = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
            if value is not None and value != ()
        }
        bound = {name: typed.get(name, default) for name, default in self.defaults.items()}
        for name, kind in self.groups.items():
            own = (flag for flag, _, _ in kind.declared())
            bound[name] = kind({flag: typed[flag] for flag in own if flag in typed})
        return bound


def _parameters_of(function: Callable[..., int]) -> _Parameters:
    """Return the parameters of a command's function."""
    found = _Parameters([], {}, {})
    for name, given in list(signature(function, eval_str=True).parameters.items())[1:]:
        kind = given.annotation
        if isinstance(kind, type) and issubclass(kind, Flags):
            found.groups[name] = kind
            found.declared.extend(kind.declared())
        else:
            value, declaration = unwrap(kind)
            found.declared.append((name, value, declaration))
            is_required = given.default is Parameter.empty
            found.defaults[name] = untyped_value(value) if is_required else given.default
    return found


def _typer_parameter(
    name: str, kind: object, declared: ParameterDeclaration, completer: Completer | None
) -> TyperOption | TyperArgument:
    """Return a parameter as typer parses it, with the function that completes its value."""
    complete = None
    if completer is not None and declared.completes:
        complete = partial(_completion_values, completer, declared.completes)
    is_list = get_origin(kind) is list
    if not declared.names:
        return TyperArgument(
            param_decls=[name],
            metavar=declared.metavar,
            required=declared.is_required,
            nargs=-1 if is_list else None,
            autocompletion=complete,
        )
    return TyperOption(
        param_decls=[name, *declared.names],
        metavar=declared.metavar,
        help=declared.help,
        rich_help_panel=declared.panel,
        show_default=declared.default or False,
        default=False if declared.is_switch else None,
        is_flag=declared.is_switch or None,
        multiple=is_list,
        type=declared.parse,
        autocompletion=complete,
    )


def _completion_values(
    completer: Completer, kind: Completes, context: Context, args: list[str], incomplete: str
) -> list[tuple[str, str]]:
    """Return the values that complete a parameter, called as typer calls it."""
    return completer(kind, context, incomplete)
