"""Declarations of commands, flags and arguments, and the flags that several commands share
(docs/reference/command-line.md#flags).

The annotations are read, so they are values here and no text: this file has no `from __future__
import annotations`."""

from collections.abc import Callable, Mapping
from functools import cache
from inspect import get_annotations
from typing import Annotated, Any, ClassVar, get_args, get_origin

from cogcli.base.errors import UsageError
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import suggestion
from cogcli.declarations import options as run_options
from cogcli.declarations.option_types import EnumOption, IntegerOption, OptionType, PositiveNumber
from cogcli.declarations.value_types import Json

INPUT, EXECUTION, SAFETY = run_options.INPUT, run_options.EXECUTION, run_options.SAFETY
OUTPUT, OPTIONS = run_options.OUTPUT, "Options"
PANELS = (INPUT, EXECUTION, SAFETY, OUTPUT, OPTIONS)
"""The groups of flags in help, in this order."""

LIST_FORMATS = ("text", "jsonl", "tsv", "csv", "md")

Completes = str | tuple[str, ...]
"""The completions of a value: these words, or the name of a function in `cli/completion_values.py`.
"""


class ParameterDeclaration(NamedTuple):
    """The declaration of an argument or a flag. For the command that runs, it becomes a parameter of typer."""

    names: tuple[str, ...] = ()
    """The spellings of a flag; none for an argument."""
    metavar: str | None = None
    help: str = ""
    panel: str = ""
    is_switch: bool = False
    is_required: bool = False
    default: str = ""
    """The default as a text in help."""
    completes: Completes = ()
    parse: Callable[[object], object] | None = None


FlagDeclaration = Any
"""A ParameterDeclaration. It is the default of a parameter of any type."""


def argument(metavar: str, completes: Completes = ()) -> FlagDeclaration:
    """Declare a positional argument.

    `metavar` is its text in help: in brackets if it is optional, empty for the second of two in one
    text.
    """
    is_required = bool(metavar) and not metavar.startswith("[")
    return ParameterDeclaration(metavar=metavar, is_required=is_required, completes=completes)


def switch(*names: str, help: str, panel: str = OPTIONS) -> FlagDeclaration:
    """Declare a flag without a value."""
    return ParameterDeclaration(names, help=help, panel=panel, is_switch=True)


def text(
    name: str, metavar: str, help: str, panel: str = OPTIONS, *, default: str = "", completes: Completes = (),
    parse: Callable[[object], object] | None = None,
) -> FlagDeclaration:  # fmt: skip
    """Declare a flag with a string, or with the result of `parse`; with `list[str]` a repeatable one.

    `default` is the text in help."""
    return ParameterDeclaration(
        (name,), metavar, help, panel, default=default, completes=completes, parse=parse
    )


def wrong_flag(message: str, hint: str = "") -> UsageError:
    """Return the error for a flag that does not fit its command or the other flags."""
    return UsageError("usage.flag", message, hint=hint)


def wrong_value(message: str, hint: str = "", expected: str = "") -> UsageError:
    """Return the error for a value that a flag or argument does not accept."""
    return UsageError("usage.value", message, hint=hint, expected=expected)


def typed(
    name: str,
    metavar: str,
    type: OptionType,
    help: str,
    panel: str = OPTIONS,
    *,
    default: str = "",
    completes: Completes = (),
) -> FlagDeclaration:
    """Declare a flag with a value of this type."""

    def parse(raw: object) -> object:
        """Return the value of a typed text. Raise UsageError if the type does not accept it."""
        if not isinstance(raw, str):  # the default
            return raw
        value = type.parse(raw)
        if value is None:
            what = f"`{name}`: found `{raw[:_MAX_DISPLAYED]}`, expected {type.expected}"
            raise wrong_value(what, suggestion(raw, type.words) if type.words else "")
        return value

    completes = completes or type.words
    return text(name, metavar, help, panel, default=default, completes=completes, parse=parse)


_MAX_DISPLAYED = 60


def choice(
    name: str,
    metavar: str,
    words: tuple[str, ...],
    help: str = "",
    panel: str = OPTIONS,
    *,
    default: str = "",
) -> FlagDeclaration:
    """Declare a flag whose value is one of these words."""
    return typed(
        name, metavar, EnumOption(*words), help or ", ".join(words), panel, default=default
    )


def integer(
    name: str,
    help: str,
    panel: str = OPTIONS,
    *,
    minimum: int,
    maximum: int,
    metavar: str = "N",
    default: str = "",
) -> FlagDeclaration:
    """Declare a flag with a whole number from `minimum` to `maximum`."""
    return typed(name, metavar, IntegerOption(minimum, maximum), help, panel, default=default)


def seconds(name: str, help: str, panel: str = OPTIONS, *, default: str = "") -> FlagDeclaration:
    """Declare a flag with a number of seconds, above zero and at most a year."""
    return typed(name, "S", PositiveNumber(), help, panel, default=default)


Declared = tuple[str, object, FlagDeclaration]
"""Name, type and declaration of a parameter."""


class Flags:
    """A set of flags, passed to a command as one value. A flag that was not typed is None, False or
    [].
    """

    left_out: ClassVar[frozenset[str]] = frozenset()
    """Inherited flags that this class does not have."""

    def __init__(self, values: Mapping[str, object] | None = None) -> None:
        self.__dict__.update({name: untyped_value(kind) for name, kind, _ in self.all_flags()})
        self.__dict__.update(values or {})

    @classmethod
    def declared(cls) -> list[Declared]:
        """Return each flag of the command line, in the order of help."""
        return [flag for flag in cls.all_flags() if flag[0] not in cls.left_out]

    @classmethod
    @cache
    def all_flags(cls) -> tuple[Declared, ...]:
        """Return each flag, inherited ones first. A redeclared flag is listed at the place of the redeclaring class's
        flags.
        """
        flags: dict[str, Declared] = {}
        for base in reversed(cls.__mro__):
            annotations: dict[str, object] = get_annotations(base, eval_str=True)
            for name, kind in annotations.items():
                if get_origin(kind) is not ClassVar:
                    flags.pop(name, None)
                    flags[name] = (name, *unwrap(kind, base.__dict__.get(name)))
        return tuple(flags.values())


def unwrap(kind: object, default: object = None) -> tuple[object, FlagDeclaration]:
    """Return type and declaration of a parameter: `Annotated[TYPE, DECLARATION]`, or `name: TYPE =
    DECLARATION`.
    """
    if get_origin(kind) is Annotated:
        type, declaration, *_ = get_args(kind)
        return type, declaration
    return kind, default


def untyped_value(kind: object) -> object:
    """Return the value of an untyped flag of this type."""
    if kind is bool:
        return False
    return [] if get_origin(kind) is list else None


class GlobalFlags(Flags):
    """The flags of every command, before its name or after it."""

    directory: str | None = text("-C", "DIR", "run as if started in DIR", default=".")
    registry: list[str] = text(
        "--registry", "DIR", "an additional registry root (repeatable, later ones win)"
    )
    runs_dir: str | None = text("--runs-dir", "DIR", "the directory of episodes")
    json: bool = switch("--json", help="print exactly one JSON envelope on stdout, also on failure")
    color: str | None = choice("--color", "WHEN", ("auto", "always", "never"), default="auto")
    quiet: bool = switch("-q", "--quiet", help="print only errors on stderr")
    verbose: bool = switch("-v", "--verbose", help="print every event and every cause on stderr")
    debug: bool = switch("--debug", help="print tracebacks, without values")
    help: bool = switch("-h", "--help", help="print this help")
    version: bool = switch("--version", help="print the version")


Skill = Annotated[str, argument("SKILL", "skills")]
Episode = Annotated[str, argument("EP", "episodes")]
NewestEpisode = Annotated[str | None, argument("[EP]", "episodes")]
"""An episode; None means the newest."""
Progress = Annotated[
    str | None, choice("--progress", "WORD", run_options.PROGRESS, panel=OUTPUT, default="auto")
]
AllowHost = Annotated[
    list[str],
    text(
        "--allow-host",
        "HOST",
        "a public host that an untrusted skill may call (repeatable)",
        SAFETY,
    ),
]
SpecId = Annotated[str, argument("ID", "specs")]
Source = Annotated[bool, switch("--source", help="print the spec file")]
SearchWords = Annotated[list[str], argument("TEXT")]
SearchLimit = Annotated[
    int, integer("--limit", "show at most N", minimum=1, maximum=10**9, default="10")
]
Protocol = Annotated[
    str | None, choice("--protocol", "WORD", ("openapi", "openrpc", "mcp"), default="openapi")
]
Reports = Annotated[
    list[str],
    text(
        "--report",
        "KIND:PATH",
        "also write junit, json, md; github: annotations on stderr (repeatable)",
        OUTPUT,
        completes=("junit:", "json:", "md:", "github"),
    ),
]


Header = Annotated[
    bool, switch("--header", help="begin piped tables with a header line", panel=OUTPUT)
]


class ListFlags(Flags):
    """The flags for the format of a list."""

    format: str | None = choice("--format", "WORD", LIST_FORMATS, panel=OUTPUT, default="text")
    header: Header


class SpecFilter(Flags):
    """The flags that filter a list of specs."""

    domain: str | None = text("--domain", "WORD", "only this domain")
    channel: str | None = text("--channel", "WORD", "only this channel")
    tag: str | None = text("--tag", "WORD", "only with this tag")
    usable: bool = switch("--usable", help="only specs that can be used here")


Examples = tuple[tuple[str, str], ...]
"""Command lines with their purposes."""


class Call(NamedTuple):
    """A parsed command line: an action that takes a CommandContext. The action is None if a string is printed instead.
    `given` contains the typed flags, by the names of parameters and settings.
    """

    argv: list[str]
    command: str = ""
    flags: GlobalFlags = GlobalFlags()
    given: Json = {}  # noqa: RUF012 - it is never written to
    action: Callable[[Any], int] | None = None


class Command(NamedTuple):
    """A command. Its function takes a CommandContext and the parsed values, and returns the exit
    code.

    `examples` may depend on the name of the command. `maximum` limits the values of a repeated
    argument.
    """

    function: Callable[..., int]
    examples: Examples | Callable[[str], Examples]
    exits: tuple[int, ...]
    maximum: int

    def examples_of(self, name: str) -> Examples:
        """Return the examples of the command under a name."""
        return self.examples(name) if callable(self.examples) else self.examples


def command(
    *,
    examples: Examples | Callable[[str], Examples],
    exits: tuple[int, ...] = (0, 2),
    maximum: int = 100_000,
) -> Callable[[Callable[..., int]], Command]:
    """Return a decorator that declares a function as a command.

    The annotated parameters of the function are its arguments and flags.
    """

    def declare(function: Callable[..., int]) -> Command:
        """Return the function as a command."""
        return Command(function, examples, exits, maximum)

    return declare
