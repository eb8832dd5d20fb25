"""Flags and arguments: how one is declared, and those that several commands have, each declared once
(docs/reference/command-line.md#flags).

typer reads the annotations, so they are values here and no text: this file has no `from __future__ import annotations`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import get_annotations
from typing import Annotated, Any, ClassVar

import typer

from cogcli.core.errors import UsageError
from cogcli.core.problems import suggestion

INPUT, EXECUTION, SAFETY, OUTPUT, OPTIONS = "Input", "Execution", "Safety", "Output", "Options"
PANELS = (INPUT, EXECUTION, SAFETY, OUTPUT, OPTIONS)
"""The groups of flags in help, in this order."""

LEVELS = ("sandbox", "standard", "elevated", "privileged")
PROFILES = ("experimental", "standard", "strict")
DURABILITIES = ("process", "power", "none")
PROGRESS = ("auto", "live", "lines", "json", "none")
VIEWS = ("tree", "timeline", "table", "lineage", "events")
LIST_FORMATS = ("text", "jsonl", "tsv", "csv", "md")
TRACE_FORMATS = (*LIST_FORMATS, "mermaid", "dot", "otlp", "chrome")

Completes = str | tuple[str, ...]
"""What completion offers for a value: these words, or what `cli/completion.py` finds under that name."""


def argument(metavar: str, completes: Completes = ()) -> Any:
    """A positional word; `metavar` as help shows it."""
    info = typer.Argument(metavar=metavar)
    info.completes = completes
    return info


def switch(*names: str, help: str, panel: str = OPTIONS) -> Any:
    """A flag without a value."""
    return typer.Option(*names, help=help, rich_help_panel=panel, show_default=False)


def text(
    name: str, metavar: str, help: str, panel: str = OPTIONS, *, default: str = "", completes: Completes = ()
) -> Any:
    """A flag with a text; with `list[str]` a repeatable one. `default` is what help shows."""
    return _option(name, metavar, help, panel, default, None, completes)


def choice(
    name: str,
    metavar: str,
    words: tuple[str, ...],
    help: str = "",
    panel: str = OPTIONS,
    *,
    default: str = "",
) -> Any:
    """A flag with one of these words."""

    def parse(raw: str) -> str:
        if raw not in words:
            expected = f"expected one of {', '.join(words)}"
            raise UsageError(
                "usage.value", f"`{name}`: found `{raw}`, {expected}", hint=suggestion(raw, words)
            )
        return raw

    return _option(name, metavar, help or ", ".join(words), panel, default, parse, words)


def integer(
    name: str,
    help: str,
    panel: str = OPTIONS,
    *,
    least: int,
    most: int,
    metavar: str = "N",
    default: str = "",
) -> Any:
    """A flag with a whole number from `least` to `most`."""

    def parse(raw: str | int) -> int:
        if isinstance(raw, int):  # the default
            return raw
        expected = f"a whole number from {least:,} to {most:,}"
        value = _number(name, raw, int, expected)
        if not least <= value <= most:
            raise _no_number(name, raw, expected)
        return int(value)

    return _option(name, metavar, help, panel, default, parse)


def seconds(name: str, help: str, panel: str = OPTIONS, *, default: str = "") -> Any:
    """A flag with a number of seconds, more than none and at most a year."""

    def parse(raw: str) -> float:
        expected = f"a number above 0 to {_YEAR:,}"
        value = _number(name, raw, float, expected)
        if not 0 < value <= _YEAR:
            raise _no_number(name, raw, expected)
        return float(value)

    return _option(name, "S", help, panel, default, parse)


_YEAR = 31_536_000


def _number(name: str, raw: str, read: Callable[[str], float], expected: str) -> float:
    if raw.isascii() and "_" not in raw and len(raw) <= 40:
        try:
            return read(raw)
        except ValueError:
            pass
    raise _no_number(name, raw, expected)


def _no_number(name: str, raw: str, expected: str) -> UsageError:
    return UsageError("usage.value", f"`{name}`: found `{raw[:40]}`, expected {expected}")


def _option(
    name: str, metavar: str, help: str, panel: str, default: str,
    parse: Callable[[Any], Any] | None, completes: Completes = (),
) -> Any:  # fmt: skip
    info = typer.Option(
        name, metavar=metavar, help=help, rich_help_panel=panel, show_default=default or False, parser=parse
    )
    info.completes = completes
    return info


class Flags:
    """Flags that are declared together and handed on as one value; a flag that was not given is None, False or []."""

    only: ClassVar[frozenset[str]] = frozenset()
    """Of the declared flags those that the command line has; all where it is empty."""

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        for name, annotation in self._all():
            self.__dict__[name] = absent(annotation)
        self.__dict__.update(values or {})

    @classmethod
    def declared(cls) -> Iterable[tuple[str, Any]]:
        """Name and annotation of each flag that the command line has, in the order of help."""
        return [(name, flag) for name, flag in cls._all() if not cls.only or name in cls.only]

    @classmethod
    def _all(cls) -> Iterator[tuple[str, Any]]:
        for base in reversed(cls.__mro__):
            for name, annotation in get_annotations(base, eval_str=True).items():
                if hasattr(annotation, "__metadata__"):
                    yield name, annotation


def absent(annotation: Any) -> Any:
    """The value of a flag that was not given."""
    base = annotation.__origin__
    return False if base is bool else [] if getattr(base, "__origin__", None) is list else None


class GlobalFlags(Flags):
    """What every command takes, before its name or after it."""

    directory: Annotated[str | None, text("-C", "DIR", "start as if in DIR", default=".")]
    registry: Annotated[
        list[str], text("--registry", "DIR", "one more registry root (repeatable, later wins)")
    ]
    runs_dir: Annotated[str | None, text("--runs-dir", "DIR", "where episodes live")]
    json: Annotated[bool, switch("--json", help="stdout is exactly one JSON envelope, on failure too")]
    color: Annotated[str | None, choice("--color", "WHEN", ("auto", "always", "never"), default="auto")]
    quiet: Annotated[bool, switch("-q", "--quiet", help="stderr: errors only")]
    verbose: Annotated[bool, switch("-v", "--verbose", help="stderr: every event and every cause")]
    debug: Annotated[bool, switch("--debug", help="tracebacks, never with values")]
    help: Annotated[bool, switch("-h", "--help", help="this help")]
    version: Annotated[bool, switch("--version", help="the version")]


Skill = Annotated[str, argument("SKILL", "skills")]
Episode = Annotated[str, argument("EP", "episodes")]
NewestEpisode = Annotated[str | None, argument("[EP]", "episodes")]
"""An episode; None stands for the newest."""
TraceId = Annotated[str | None, text("--trace-id", "ID", "correlate runs", INPUT, default="32 hex")]
Tags = Annotated[list[str], text("--tag", "k=v", "a tag of the episode (repeatable)", INPUT)]
Progress = Annotated[str | None, choice("--progress", "WORD", PROGRESS, panel=OUTPUT, default="auto")]
SpecId = Annotated[str, argument("ID", "specs")]
Source = Annotated[bool, switch("--source", help="the file itself")]
SearchWords = Annotated[list[str], argument("TEXT")]
SearchLimit = Annotated[int, integer("--limit", "at most so many", least=1, most=10**9, default="10")]
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
    ),
]


class RunFlags(Flags):
    """What a run takes beside its skill."""

    input: Annotated[
        str | None,
        text("--input", "JSON|@FILE|-", "inputs as JSON, from a file, from stdin", INPUT, default="{}"),
    ]
    input_file: Annotated[
        str | None, text("--input-file", "FILE", "inputs from a file (.json, .yaml)", INPUT)
    ]
    p: Annotated[
        list[str], text("-p", "k=v", "one input: k=text, k=@FILE, k:=JSON (repeatable, wins)", INPUT)
    ]
    trace_id: TraceId
    goal: Annotated[str | None, text("--goal", "TEXT", "the frame's goal", INPUT)]
    frame_file: Annotated[
        str | None, text("--frame-file", "FILE", "all six fields of the frame (.json, .yaml)", INPUT)
    ]
    tag: Tags
    seed: Annotated[
        int | None, integer("--seed", "recorded seed", INPUT, least=0, most=2**53 - 1, default="0")
    ]
    plan: Annotated[
        bool, switch("--plan", help="check all, show the plan; run and write nothing", panel=EXECUTION)
    ]
    keep_going: Annotated[
        bool,
        switch("--keep-going", help="after a failure run the steps that do not need it", panel=EXECUTION),
    ]
    max_workers: Annotated[
        int | None, integer("--max-workers", "calls at a time", EXECUTION, least=1, most=256, default="8")
    ]
    timeout: Annotated[float | None, seconds("--timeout", "seconds for the run", EXECUTION, default="none")]
    step_timeout: Annotated[
        float | None, seconds("--step-timeout", "seconds for a step", EXECUTION, default="60")
    ]
    bind: Annotated[
        list[str],
        text("--bind", "CAP=BINDING", "use this binding (repeatable)", EXECUTION, completes="choices"),
    ]
    conformance: Annotated[
        str | None, choice("--conformance", "WORD", PROFILES, "least profile of bindings", EXECUTION)
    ]
    trust_level: Annotated[
        str | None,
        choice("--trust-level", "LEVEL", LEVELS, "sandbox, standard (default), elevated, privileged", SAFETY),
    ]
    confirm: Annotated[
        list[str],
        text(
            "--confirm",
            "CAP",
            "confirm a capability in advance (repeatable)",
            SAFETY,
            completes="capabilities",
        ),
    ]
    durability: Annotated[
        str | None,
        choice(
            "--durability",
            "WORD",
            DURABILITIES,
            "what survives what: process, power, none",
            OUTPUT,
            default="process",
        ),
    ]
    progress: Progress


class ServeFlags(RunFlags):
    """Those of a run that also make sense for many runs of one server."""

    only = frozenset(
        (
            "trust_level", "confirm", "bind", "keep_going", "max_workers", "timeout", "step_timeout",
            "conformance", "tag", "durability",
        )
    )  # fmt: skip


class RerunFlags(RunFlags):
    """Those of a run that also make sense for a run that is repeated."""

    only = ServeFlags.only | {"progress", "plan"}


Header = Annotated[bool, switch("--header", help="piped tables begin with a header line", panel=OUTPUT)]


class ListFlags(Flags):
    """How a list is written."""

    format: Annotated[str | None, choice("--format", "WORD", LIST_FORMATS, panel=OUTPUT, default="text")]
    header: Header


class SpecFilter(Flags):
    """Which specs a list has."""

    domain: Annotated[str | None, text("--domain", "WORD", "only of this domain")]
    channel: Annotated[str | None, text("--channel", "WORD", "only of this channel")]
    usable: Annotated[bool, switch("--usable", help="only what can be called or run here")]


class TraceFlags(Flags):
    """What of an episode is shown, and how."""

    view: Annotated[str | None, choice("--view", "WORD", VIEWS, panel=OUTPUT, default="tree")]
    step: Annotated[
        str | None,
        text("--step", "ID", "only this step and what is inside it", OUTPUT, completes="steps"),
    ]
    io: Annotated[bool, switch("--io", help="what the steps were given and gave", panel=OUTPUT)]
    why: Annotated[
        str | None,
        text("--why", "REF", "what made a value what it is, or kept it away: outputs.report", OUTPUT),
    ]
    full: Annotated[bool, switch("--full", help="with --view events: a section per event", panel=OUTPUT)]
    o: Annotated[str | None, text("-o", "FILE", "into a new file, long values whole", OUTPUT)]
    follow: Annotated[
        bool,
        switch("--follow", help="of a run that goes on: events as they come, until it ends", panel=OUTPUT),
    ]
    format: Annotated[str | None, choice("--format", "WORD", TRACE_FORMATS, panel=OUTPUT, default="text")]
    header: Header
