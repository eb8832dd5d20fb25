"""The flags of a run and of `trace`. Those of options are derived from `declarations/options.py`.

The annotations are read, so they are values here and no text: this file has no `from __future__ import annotations`.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

from cogcli.base.terminal_text import LONGEST_SHOWN
from cogcli.cli.options import (
    EXECUTION,
    INPUT,
    LIST_FORMATS,
    OUTPUT,
    Declared,
    FlagDeclaration,
    Flags,
    Header,
    Progress,
    choice,
    switch,
    text,
    typed,
)
from cogcli.declarations.option_types import (
    PositiveNumber,
)
from cogcli.declarations.options import AGENT, BY_HELP, OPTIONS, RERUN, SERVE, Option
from cogcli.declarations.value_types import Json

LISTED, DRAWN, EXPORTED = ("tsv", "csv", "md"), ("mermaid", "dot"), ("otlp", "chrome")
TRACE_FORMATS = (*LIST_FORMATS, *DRAWN, *EXPORTED)
VIEWS = ("tree", "timeline", "table", "lineage", "events", "layers")


def flag_for_option(option: Option) -> tuple[object, FlagDeclaration]:
    """Return type and declaration of the flag for an option of a run."""
    kind = option.type
    if kind.is_switch:
        return bool, switch(option.flag, help=option.help, panel=option.group)
    shown: Json = {"default": option.shown_default, "completes": option.completes}
    if kind.is_read_at_once:
        flag = typed(option.flag, option.metavar, kind, option.help, option.group, **shown)
    else:
        flag = text(option.flag, option.metavar, option.help, option.group, **shown)
    return (list[str] if kind.many else str | None), flag


OPTIONS_HERE: Any = object()
"""The place in a class of flags where help lists the options."""


def _is_typed(value: object) -> bool:
    """Return whether a flag has a typed value."""
    return value is not None and value is not False and value != ()


class OptionFlags(Flags):
    """The flags of a command that accepts options of a run (`declarations/options.py`)."""

    command: ClassVar[str] = ""
    """The command; empty for one that accepts all options."""
    options: Json = OPTIONS_HERE
    """The options that were typed, by name: their text is not read yet, unless it is a number or a word."""

    def __init__(self, values: Mapping[str, object] | None = None) -> None:
        given = values or {}
        super().__init__({name: given[name] for name in given if name not in OPTIONS})
        self.options = {name: given[name] for name in OPTIONS if _is_typed(given.get(name))}

    @classmethod
    @cache
    def all_flags(cls) -> tuple[Declared, ...]:
        """Return the flags of the class, including the flags of its options."""
        options = [
            (option.name, *flag_for_option(option))
            for option in BY_HELP
            if not cls.command or cls.command in option.also
        ]
        flags: list[Declared] = []
        for flag in super().all_flags():
            flags += options if flag[2] is OPTIONS_HERE else [flag]
        return tuple(flags)


class RunFlags(OptionFlags):
    """The flags of a run, without the skill."""

    input: str | None = text(
        "--input", "JSON|@FILE|-", "inputs as JSON, from a file or from stdin", INPUT, default="{}"
    )
    input_file: str | None = text(
        "--input-file", "FILE", "inputs from a file (.json, .yaml)", INPUT
    )
    p: list[str] = text(
        "-p",
        "k=v",
        "one input: k=text, k=@FILE, k:=JSON (repeatable, wins)",
        INPUT,
        completes="inputs",
    )
    plan: bool = switch(
        "--plan",
        help="check everything, show the plan; run nothing, write nothing",
        panel=EXECUTION,
    )
    options: Json = OPTIONS_HERE
    on_conflict: str | None = choice(
        "--on-conflict",
        "WORD",
        ("wait", "skip", "fail"),
        "if another run holds the name of --exclusive: wait, skip (exit 0) or fail",
        EXECUTION,
        default="fail",
    )
    wait_timeout: float | None = typed(
        "--wait-timeout",
        "S",
        PositiveNumber(),
        "with --on-conflict wait: fail after this many seconds",
        EXECUTION,
        default="none",
    )
    progress: Progress

    @property
    def has_name_conflict(self) -> bool:
        """Whether a flag about a conflict of exclusive names was given."""
        return self.on_conflict is not None or self.wait_timeout is not None


class ServeFlags(OptionFlags):
    """The flags of a run that apply to each run of a server."""

    command = SERVE


class RerunFlags(RunFlags):
    """The flags of a run that apply to a rerun."""

    command = RERUN
    left_out = frozenset(("input", "input_file"))


class AgentFlags(OptionFlags):
    """The flags of an agent's run and of its request."""

    command = AGENT
    progress: Progress
    message: str | None = text("--message", "TEXT", "the request as text, without a file", INPUT)
    param: list[str] = text("--param", "k=v", "a parameter: k=text, k:=JSON (repeatable)", INPUT)
    session: str | None = text("--session", "ID", "the conversation to continue", INPUT)
    model: str | None = text(
        "--model",
        "ADAPTER[:NAME]",
        "the model that plans: scripted:FILE, openai:NAME, anthropic:NAME",
        EXECUTION,
    )
    mode: str | None = choice("--mode", "WORD", ("fast", "deep", "adapt"), panel=EXECUTION)
    no_memory: bool = switch(
        "--no-memory", help="recall nothing, remember nothing", panel=EXECUTION
    )
    dry_run: bool = switch(
        "--dry-run", help="show context and plan; call nothing, write nothing", panel=EXECUTION
    )


class ChatFlags(AgentFlags):
    """The flags of a conversation."""

    left_out = frozenset(("message", "dry_run", "no_memory", "trace_id", "progress"))


class TraceFlags(Flags):
    """The flags that select the view of an episode and its format."""

    view: str | None = choice("--view", "WORD", VIEWS, panel=OUTPUT, default="tree")
    step: str | None = text(
        "--step", "ID", "only this step and the steps inside it", OUTPUT, completes="steps"
    )
    io: bool = switch("--io", help="show the inputs and outputs of steps", panel=OUTPUT)
    why: str | None = text(
        "--why", "REF", "explain a value, or why it is absent: outputs.report", OUTPUT
    )
    full: bool = switch(
        "--full", help="all items of loops; with --view events a section per event", panel=OUTPUT
    )
    o: str | None = text("-o", "FILE", "write to a new file, with long values in full", OUTPUT)
    follow: bool = switch(
        "--follow", help="print the events of a running run until it ends", panel=OUTPUT
    )
    format: str | None = choice("--format", "WORD", TRACE_FORMATS, panel=OUTPUT, default="text")
    push: str | None = text(
        "--push",
        "URL",
        "send the trace over OTLP/HTTP; `env`: to the collector of OTEL_*",
        OUTPUT,
    )
    header: Header

    @property
    def max_bytes(self) -> int | None:
        """The maximum number of bytes written of one value; None, no limit, for a file."""
        return None if self.o is not None else LONGEST_SHOWN
