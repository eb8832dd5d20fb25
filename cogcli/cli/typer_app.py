"""The command line on typer: argv parsed into a Call, typer's errors as ours (docs/reference/command-line.md#flags).

1. A command's module is imported when its name was read.
2. Global flags stand before a command and after it: each level of the command line has the parameters of the root.
3. A value flag takes the next word, whatever it is, unless that word is a flag known there.
4. Nothing is guessed: a near miss is an error that names what may have been meant.

Only this module touches what typer does not document: `UsageError`, which it does not export (its BadParameter is one),
and the methods of its commands that parse.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from inspect import Parameter, Signature, signature
from shlex import join
from typing import Any, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from cogcli.base.errors import UsageError
from cogcli.base.problems import did_you_mean, meant_hint, suggestion
from cogcli.base.redact import names_secret
from cogcli.base.system_text import require_argument
from cogcli.cli.app import COMMANDS, first_words, verbs
from cogcli.cli.foreign_words import FLAGS, MEANS, VERBS, ours, rewritten
from cogcli.cli.habits import FLAGS as HABITS
from cogcli.cli.habits import meant
from cogcli.cli.options import (
    Call,
    Command,
    Completes,
    Flags,
    GlobalFlags,
    absent,
    unwrap,
    wrong_flag,
)

_TEXTS = {"help", "version"}
"""The global flags that are answered with a text."""
_PAIR = re.compile(r"\w[\w-]*:?=.*", re.DOTALL)
"""`text=hi`: an input, where its flag was left out."""
_Refused = cast("type[Exception]", typer.BadParameter.__base__)


def parse(argv: list[str]) -> Call:
    """What argv asks for. Raises UsageError."""
    return Parser(argv).parse()


class Parser:
    """Parses one argv; after an error `command` is the command or group, as far as it was read."""

    def __init__(self, argv: list[str]) -> None:
        self.argv = argv
        self.command = ""
        self.words_only = False
        """Whether `--` stood before the command."""
        self.flags: dict[str, Any] = {}
        self.given: dict[str, Any] = {}

    def parse(self) -> Call:
        """The Call. Raises UsageError."""
        command = root()
        answer = command.invoke(command.make_context("cogcli", list(self.argv), obj=self))
        asked = None if _TEXTS & self.flags.keys() else answer
        return Call(
            self.argv, self.command, GlobalFlags(self.flags), {**self.flags, **self.given}, asked
        )


class _Level:
    """What the root, a group and a command have in common: the global flags, and errors as ours."""

    words = ""
    """The words up to here: `state show`."""
    declared: Command

    def get_params(self, ctx: Any) -> list[Any]:
        """Own parameters, then the global flags."""
        top = ctx.find_root().command
        own: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        return [*own, *top.params] if self.words else own

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words of this level; the rest is for the next. Raises UsageError."""
        if ctx.resilient_parsing:  # completion
            rest: list[str] = super().parse_args(ctx, args)  # type: ignore[misc]
            return rest
        parser: Parser = ctx.obj
        parser.command = self.words
        typed, mistake = self._scan(ctx, args)
        if isinstance(self, TyperCommand) and _TEXTS & (typed | parser.flags.keys()):
            parser.flags.update(dict.fromkeys(_TEXTS & typed, True))
            return []  # whatever else is typed: help is there for those who do not know yet
        if mistake:
            raise mistake
        try:
            rest = super().parse_args(ctx, list(args))  # type: ignore[misc]
        except _Refused as error:
            raise self._refusal(error) from error
        self._keep(ctx, parser, typed)
        parser.given = {name: ctx.params[name] for name in typed if name in ctx.params}
        return rest

    def _scan(self, ctx: Any, args: list[str]) -> tuple[set[str], UsageError | None]:
        """The names of the flags typed at this level, and the first that is wrong with them; after it only the names
        of flags that are answered with a text are looked for.

        Raises UsageError for a word that is not UTF-8.
        """
        parser: Parser = ctx.obj
        before, flags = len(parser.argv) - len(args), self.flags_of(ctx)
        is_group = isinstance(self, TyperGroup)
        typed: set[str] = set()
        mistake: UsageError | None = None
        number = 0
        while number < len(args):
            word = args[number]
            require_argument(parser.argv, before + number)
            number += 1
            if word == "--":
                parser.words_only = is_group
                break
            if word == "-" or not word.startswith("-"):
                if is_group:
                    return typed, mistake
                continue
            found, more = _flags_in(word, flags), args[number : number + 1]
            if mistake:
                typed |= _TEXTS & {flag.name for flag in found if flag}
                continue
            mistake = self._mistake(ctx, word, found, more) or self._twice(found, typed)
            if mistake:
                continue
            typed.update(flag.name for flag in found)
            if _takes_next(word, found):
                require_argument(parser.argv, before + number)
                number += 1
        for left in range(number, min(number + 1, len(args)) if is_group else len(args)):
            require_argument(parser.argv, before + left)
        return typed, mistake

    def _mistake(self, ctx: Any, word: str, found: list[Any], more: list[str]) -> UsageError | None:
        """What is wrong with the flags in a word, `more` being the word after it."""
        if not word.startswith("--"):
            name, sign, value = f"-{word[len(found) :]}", "", ""
        else:
            name, sign, value = word.partition("=")
        if found[-1] is None:
            return self._no_flag(ctx, name)
        if found[-1].is_flag:
            return (
                UsageError("usage.value", f"`{name}` takes no value", found=value) if sign else None
            )
        if _takes_next(word, found) and (
            not more or more[0].partition("=")[0] in self.flags_of(ctx)
        ):
            what = f"`{found[-1].opts[0]}` needs a value"
            given = f"`{more[0]}`" if more else "nothing"
            return UsageError("usage.value", what, expected=found[-1].metavar, found=given)
        return None

    def _twice(self, found: list[Any], typed: set[str]) -> UsageError | None:
        """What is wrong where a flag of this level was typed before."""
        own = self.params if self.words else ()  # type: ignore[attr-defined]
        for flag in found:
            if flag.name in typed and flag in own and not flag.multiple:
                return wrong_flag(f"`{flag.opts[0]}` is given twice", "keep one of them")
        return None

    def flags_of(self, ctx: Any) -> dict[str, Any]:
        """The flags that are known at this level, by spelling."""
        return {
            name: param
            for param in self.get_params(ctx)
            if param.param_type_name == "option"
            for name in param.opts
        }

    def _keep(self, ctx: Any, parser: Parser, typed: set[str]) -> None:
        """Hand the global flags of this level to the parser; the later one wins, a repeatable one gets longer."""
        for param in ctx.find_root().command.params:
            value = ctx.params.pop(param.name)
            if param.name in typed:
                before = parser.flags.get(param.name, ()) if param.multiple else ()
                parser.flags[param.name] = [*before, *value] if param.multiple else value

    def _refusal(self, error: Any) -> UsageError:
        """An error of typer as one of ours."""
        if getattr(error, "param", None) is not None:
            arguments = usage(self)
            look = (
                "cogcli skills ls"
                if arguments in ("SKILL", "ID")
                else f"cogcli {self.words} --help"
            )
            return UsageError("usage.value", f"`{self.words}` needs {arguments}", next=(look,))
        return UsageError("usage.value", str(error))

    def _no_flag(self, ctx: Any, name: str) -> UsageError:
        if isinstance(self, TyperGroup):
            owners = (
                words for words in COMMANDS if any(name in p.opts for p in load(words).params)
            )
            if owner := next(owners, ""):
                return wrong_flag(
                    f"`{name}` belongs after its command", f"as in `cogcli {owner} {name}`"
                )
        if name in FLAGS and not ctx.resilient_parsing:
            what, meant = f"there is no flag `{name}`", FLAGS[name]
            hint = f"here it is `{meant}`, {MEANS[meant]}"
            return UsageError(
                "usage.flag", what, hint=hint, next=_first_that_parses(rewritten(ctx.obj.argv))
            )
        if not ctx.resilient_parsing and (refusal := self._flag_of_habit(ctx, name)):
            return refusal
        where = "there is" if isinstance(self, TyperGroup) else f"`{self.words}` has"
        own = "cogcli --help" if isinstance(self, TyperGroup) else f"cogcli {self.words} --help"
        hint = meant_hint(_near_flags(name, self.flags_of(ctx)))
        return UsageError("usage.flag", f"{where} no flag `{name}`", hint=hint, next=(own,))

    def _flag_of_habit(self, ctx: Any, name: str) -> UsageError | None:
        """The error for a flag that other tools have, or an input written as a flag, with our command line; None for
        any other flag."""
        known, argv = self.flags_of(ctx), ctx.obj.argv
        what = f"`{self.words}` has no flag `{name}`"
        meant_flag = HABITS.get(name, "")
        if meant_flag in known:
            proposed = _first_that_parses([[meant_flag if word == name else word for word in argv]])
            return UsageError("usage.flag", what, hint=f"here it is `{meant_flag}`", next=proposed)
        if "-p" not in known or not name.startswith("--") or _near_flags(name, known):
            return None
        proposed = _first_that_parses(_as_inputs(argv, known))
        hint = f"an input is given as -p {name[2:].replace('-', '_')}=VALUE"
        return UsageError("usage.flag", what, hint=hint, next=proposed) if proposed else None


def _near_flags(name: str, known: dict[str, Any]) -> list[str]:
    """The flags that may be meant. If the command takes inputs, only near misses: any other word may be an input."""
    if "-p" not in known or not name.startswith("--"):
        return did_you_mean(name, list(known))
    from difflib import get_close_matches

    words = [flag[2:] for flag in known if flag.startswith("--")]
    return [f"--{word}" for word in get_close_matches(name[2:], words, n=3, cutoff=0.7)]


def _as_inputs(argv: list[str], known: dict[str, Any]) -> Iterator[list[str]]:
    """The command line with each unknown `--name value` as `-p name=value`; none where a flag has no value."""
    words: list[str] = []
    rest = iter(argv)
    for word in rest:
        name, sign, value = word.partition("=")
        if not name.startswith("--") or name == "--" or name in known:
            words.append(word)
            if not sign and name in known and not known[name].is_flag:
                words.append(next(rest, ""))
            continue
        value = value if sign else next(rest, "-")
        if not sign and value.startswith("-"):
            return
        words += ["-p", f"{name[2:].replace('-', '_')}={value}"]
    yield words


def _flags_in(word: str, flags: dict[str, Any]) -> list[Any]:
    """The flags in a word (`-qv` has two), None for one that is not known; what follows that is not a flag."""
    if word.startswith("--"):
        return [flags.get(word.partition("=")[0])]
    found: list[Any] = []
    for sign in word[1:]:
        found.append(flags.get(f"-{sign}"))
        if found[-1] is None or not found[-1].is_flag:
            break
    return found


def _takes_next(word: str, found: list[Any]) -> bool:
    """Whether the value of the last flag in a word is the next word."""
    joined = "=" in word if word.startswith("--") else len(word) > len(found) + 1
    return not found[-1].is_flag and not joined


class LazyCommand(_Level, TyperCommand):
    """A command, built when its name was read."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse flags and words. Raises UsageError."""
        rest = super().parse_args(ctx, args)
        if ctx.resilient_parsing:
            return rest
        lists = [ctx.params.get(param.name) or () for param in self.params if param.nargs < 0]
        if extra := [*rest, *(word for words in lists for word in words[self.declared.most :])]:
            what, look = f"unexpected argument `{extra[0]}`", f"cogcli {self.words} --help"
            takes_inputs = "-p" in self.flags_of(ctx) and _PAIR.fullmatch(extra[0])
            hint, next = (f"did you mean `-p {extra[0]}`?", ()) if takes_inputs else ("", (look,))
            raise UsageError(
                "usage.value",
                what,
                expected=usage(self) or "no further words",
                hint=hint,
                next=next,
            )
        return rest


class LazyGroup(_Level, TyperGroup):
    """The root, or a group of commands; what is in it is imported when it is named."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names that may come next."""
        return verbs(self.words) if self.words else first_words()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command or group by name, to be listed: no module is imported. None for no such name."""
        words = f"{self.words} {cmd_name}".strip()
        if words in COMMANDS:
            return TyperCommand(name=cmd_name, short_help=COMMANDS[words][1])
        below = verbs(words)
        return TyperCommand(name=cmd_name, short_help=", ".join(below)) if below else None

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str, Any, list[str]]:
        """The next command with the words left to it. Raises UsageError where there is none."""
        words = f"{self.words} {args[0]}" if self.words else args[0]
        rest = args[1:] if ctx.resilient_parsing or not ctx.obj.words_only else ["--", *args[1:]]
        if words in COMMANDS:
            return args[0], load(words, ctx.obj if ctx.resilient_parsing else None), rest
        if verbs(words):
            return args[0], group(words), rest
        if not ctx.resilient_parsing and (
            refusal := self._word_of_another_tool(ctx.obj.argv, args)
        ):
            raise refusal
        if (
            not ctx.resilient_parsing
            and not self.words
            and (refusal := self._word_of_habit(ctx.obj, args))
        ):
            raise refusal
        raise self._no_command(args[0], self.list_commands(ctx))

    def invoke(self, ctx: Any) -> Any:
        """The action of the command that was named; None for a bare group."""
        action = super().invoke(ctx)
        return action if ctx.invoked_subcommand else None

    def _word_of_another_tool(self, argv: list[str], args: list[str]) -> UsageError | None:
        """The error for a word of agent-skills, with our command; None for any other word."""
        word = args[0]
        own = f"{self.words} {VERBS.get(word, '')}" if self.words else ours(args)
        if own not in COMMANDS:
            return None
        proposed = _first_that_parses(rewritten(argv, word, own))
        return UsageError(
            "usage.command", self._without(word), hint=f"here it is `cogcli {own}`", next=proposed
        )

    def _word_of_habit(self, parser: Parser, args: list[str]) -> UsageError | None:
        """The error for a word that other tools have, with our command; None for any other word."""
        if parser.words_only:
            return None
        before = parser.argv[: len(parser.argv) - len(args)]
        proposed = _first_that_parses([*before, *words] for words in meant(args))
        if not proposed:
            return None
        return UsageError(
            "usage.command",
            self._without(args[0]),
            hint=f"here it is `{proposed[0]}`",
            next=proposed,
        )

    def _without(self, word: str) -> str:
        return (
            f"`{self.words}` has no command `{word}`"
            if self.words
            else f"there is no command `{word}`"
        )

    def _no_command(self, word: str, known: list[str]) -> UsageError:
        what = self._without(word)
        hint, next = (
            suggestion(word, known),
            f"cogcli {self.words} --help" if self.words else "cogcli help commands",
        )
        if not self.words and "." in word:
            hint, next = hint or f"to run a skill: cogcli run {word}", "cogcli skills ls"
        hint = hint or (f"there is {', '.join(known)}" if self.words else "")
        return UsageError("usage.command", what, hint=hint, next=(next,))


def _first_that_parses(lines: Iterable[list[str]]) -> tuple[str, ...]:
    """The first of these command lines that parses and shows no secret again, as text; none without one."""
    for words in lines:
        if any(names_secret(word.partition("=")[0].rstrip(":")) for word in words if "=" in word):
            continue
        with suppress(UsageError):
            parse(words)
            return (join(["cogcli", *words]),)
    return ()


def usage(command: Any) -> str:
    """The positional words of a command as help shows them: `CAP BINDING`."""
    return " ".join(
        p.metavar for p in command.params if p.param_type_name == "argument" and p.metavar
    )


Completer = Callable[[Completes, Any, str], list[tuple[str, str]]]
"""Offers words for a value: what the parameter completes with, typer's context, the beginning of the word."""


def root(completer: Completer | None = None) -> Any:
    """The whole command line as a command of typer."""
    return group("", completer)


@cache  # several command lines in one process: help, tests
def group(words: str, completer: Completer | None = None) -> Any:
    """The root (no words), or a group."""
    app = typer.Typer(**_PLAIN)
    app.callback(cls=LazyGroup, invoke_without_command=True, add_help_option=False)(
        _callback(_group if words else _root, completer)
    )
    built = get_command(app)
    built.words = words  # type: ignore[attr-defined]
    return built


@cache
def load(words: str, completer: Completer | None = None) -> Any:
    """A command of `COMMANDS` by its words; its module is imported."""
    target, summary = COMMANDS[words]
    module, _, name = target.partition(":")
    declared: Command = getattr(import_module(f"cogcli.cli.commands.{module}"), name)
    app = typer.Typer(**_PLAIN)
    app.command(
        words.split()[-1], cls=LazyCommand, help=summary, add_help_option=False,
        context_settings={"allow_extra_args": True},
    )(_callback(declared.function, completer))  # fmt: skip
    built = get_command(app)
    built.words, built.declared = words, declared  # type: ignore[attr-defined]
    return built


_PLAIN: dict[str, Any] = {
    "add_completion": False,
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
}


def _root(context: object, flags: GlobalFlags) -> int:
    """Declares the global flags; never called."""
    return 0


def _group(context: object) -> int:
    """Declares a group, which has no flags of its own; never called."""
    return 0


def _callback(function: Callable[..., int], completer: Completer | None) -> Callable[..., Any]:
    """What typer calls with the parsed values: it returns the function bound to them, without its context.

    Typer sees a parameter per flag, also of each Flags. A value that was not given is the default of the function's
    parameter, else None, False or [].
    """
    groups: dict[str, type[Flags]] = {}
    declared: list[tuple[str, Any, Any]] = []
    defaults: dict[str, Any] = {}
    for name, given in list(signature(function, eval_str=True).parameters.items())[1:]:
        kind = given.annotation
        if isinstance(kind, type) and issubclass(kind, Flags):
            groups[name] = kind
            declared += kind.declared()
            continue
        declared.append((name, *unwrap(kind)))
        defaults[name] = (
            absent(declared[-1][1]) if given.default is Parameter.empty else given.default
        )

    def bind(**values: Any) -> Callable[[Any], int]:
        typed = {name: value for name, value in values.items() if value is not None}
        bound = {name: typed.get(name, default) for name, default in defaults.items()}
        for name, kind in groups.items():
            bound[name] = kind(
                {flag: typed[flag] for flag, _, _ in kind.declared() if flag in typed}
            )
        return partial(function, **bound)

    parameters = [
        Parameter(
            name, Parameter.KEYWORD_ONLY, default=_completing(info, completer), annotation=kind
        )
        for name, kind, info in declared
    ]
    bind.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    bind.__annotations__ = {}
    return bind


def _completing(info: Any, completer: Completer | None) -> Any:
    """The declaration; where words are asked for, with what offers them."""
    if completer is not None and info.completes:
        info.autocompletion = lambda ctx, args, incomplete: completer(
            info.completes, ctx, incomplete
        )
    return info
