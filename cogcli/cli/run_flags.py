"""The flags of a run and of `trace`, each declared once: `rerun` and `serve mcp` take a part of those of a run.

typer reads the annotations, so they are values here and no text: this file has no `from __future__ import annotations`.
"""

from cogcli.cli.options import (
    EXECUTION,
    INPUT,
    LIST_FORMATS,
    OUTPUT,
    SAFETY,
    AllowHost,
    Flags,
    Header,
    Progress,
    choice,
    integer,
    seconds,
    switch,
    text,
)  # fmt: skip
from cogcli.core.terminal_text import LONGEST_SHOWN

DURABILITIES = ("process", "power", "none")
PROFILES = ("experimental", "standard", "strict")
LEVELS = ("sandbox", "standard", "elevated", "privileged")
MODES = ("read_only", "local_write", "network", "delegated", "destructive")
LISTED, DRAWN, EXPORTED = ("tsv", "csv", "md"), ("mermaid", "dot"), ("otlp", "chrome")
TRACE_FORMATS = (*LIST_FORMATS, *DRAWN, *EXPORTED)
VIEWS = ("tree", "timeline", "table", "lineage", "events", "layers")


class RunFlags(Flags):
    """What a run takes beside its skill."""

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
    trace_id: str | None = text(
        "--trace-id", "ID", "a trace id for related runs", INPUT, default="32 hex"
    )
    goal: str | None = text("--goal", "TEXT", "the frame's goal", INPUT)
    frame_file: str | None = text(
        "--frame-file", "FILE", "all six fields of the frame, from a file (.json, .yaml)", INPUT
    )
    tag: list[str] = text("--tag", "k=v", "a tag of the episode (repeatable)", INPUT)
    seed: int | None = integer(
        "--seed", "a seed to record", INPUT, least=0, most=2**53 - 1, default="0"
    )
    plan: bool = switch(
        "--plan",
        help="check everything, show the plan; run nothing, write nothing",
        panel=EXECUTION,
    )
    keep_going: bool = switch(
        "--keep-going", help="after a failure, run the steps that do not need it", panel=EXECUTION
    )
    max_workers: int | None = integer(
        "--max-workers", "number of calls at a time", EXECUTION, least=1, most=256, default="8"
    )
    timeout: float | None = seconds(
        "--timeout", "limit of the run in seconds", EXECUTION, default="none"
    )
    step_timeout: float | None = seconds(
        "--step-timeout", "limit of a step in seconds", EXECUTION, default="60, or a call's own"
    )
    bind: list[str] = text(
        "--bind", "CAP=BINDING", "use this binding (repeatable)", EXECUTION, completes="choices"
    )
    prefer: list[str] = text(
        "--prefer",
        "SERVICE",
        "prefer the bindings of this service if they can be called (repeatable)",
        EXECUTION,
        completes="services",
    )
    no_fallback: bool = switch(
        "--no-fallback", help="fail instead of calling a fallback binding", panel=EXECUTION
    )
    conformance: str | None = choice(
        "--conformance", "WORD", PROFILES, "minimum conformance of bindings", EXECUTION
    )
    trust_level: str | None = choice(
        "--trust-level",
        "LEVEL",
        LEVELS,
        "sandbox, standard (default), elevated, privileged",
        SAFETY,
    )
    confirm: list[str] = text(
        "--confirm",
        "CAP",
        "confirm a capability in advance (repeatable)",
        SAFETY,
        completes="capabilities",
    )
    allow_host: AllowHost
    pack: str | None = text(
        "--pack", "ID[@VERSION]", "govern the calls by a pack", SAFETY, completes="packs"
    )
    intent: str | None = text("--intent", "ID", "an intent of the pack", SAFETY)
    user: str | None = text(
        "--user", "ID", "the user who makes the request, for the pack's rules", SAFETY
    )
    safety_mode: str | None = choice(
        "--safety-mode", "MODE", MODES, "the highest mode that a call may have", SAFETY
    )
    budget: list[str] = text("--budget", "k=N", "lower a budget of the pack (repeatable)", SAFETY)
    durability: str | None = choice(
        "--durability",
        "WORD",
        DURABILITIES,
        "which crashes the log survives: process, power, none",
        OUTPUT,
        default="process",
    )
    progress: Progress


class ServeFlags(RunFlags):
    """Those of a run that also make sense for many runs of one server."""

    only = frozenset(
        (
            "trust_level", "confirm", "bind", "prefer", "no_fallback", "keep_going", "max_workers", "timeout",
            "step_timeout", "conformance", "tag", "durability", "allow_host",
        )
    )  # fmt: skip


class RerunFlags(RunFlags):
    """Those of a run that also make sense for a run that is repeated."""

    only = ServeFlags.only | {"progress", "plan", "p"}


class AgentFlags(RunFlags):
    """Those of a run that an agent's run has, and what is asked of the agent."""

    only = frozenset(
        (
            "trust_level", "confirm", "bind", "no_fallback", "timeout", "tag", "durability", "progress", "pack",
            "intent", "user", "safety_mode", "budget", "trace_id", "allow_host", "message", "param", "session", "model",
            "mode", "dry_run", "no_memory",
        )
    )  # fmt: skip
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
    """Those of a conversation."""

    only = AgentFlags.only - {"message", "dry_run", "no_memory", "trace_id", "progress"}


class TraceFlags(Flags):
    """What of an episode is shown, and how."""

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
    push: str | None = text("--push", "URL", "send the trace to a collector over OTLP/HTTP", OUTPUT)
    header: Header

    @property
    def most_bytes(self) -> int | None:
        """How many bytes of one value are written; None (all) in a file."""
        return None if self.o is not None else LONGEST_SHOWN
