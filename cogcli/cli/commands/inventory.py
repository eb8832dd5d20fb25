"""`skills`, `capabilities`, `bindings` and `services`: `ls`, `search`, `show` and `explain`."""

from __future__ import annotations

from typing import Annotated, Any, Final

from cogcli.app.inventory.explain import explain_spec
from cogcli.app.inventory.kinds import KINDS, count_specs, list_specs, read_source, search_specs, spec_details
from cogcli.cli.context import CommandContext
from cogcli.cli.inventory_screen import explanation_lines, spec_lines
from cogcli.cli.listing import Column, Wanted, note_none
from cogcli.cli.listing import show as show_list
from cogcli.cli.options import (
    Examples,
    ListFlags,
    SearchLimit,
    SearchWords,
    Source,
    SpecFilter,
    SpecId,
    argument,
    command,
)
from cogcli.core.errors import OK
from cogcli.core.terminal_text import visible, visible_block
from cogcli.report.styled_text import style_of

_COLUMNS: Final = {
    "skills": ("id", "version", "description"),
    "capabilities": ("id", "version", "binding", "description"),
    "bindings": ("id", "capability", "service", "protocol", "layer", "channel", "conformance"),
    "services": ("id", "kind", "address", "layer", "channel", "description"),
}
_CAPABILITY: Final = "text.content.summarize"
_EXAMPLES: Final = {
    "skills": ("summary", "text.summarize", "text.summarize"),
    "capabilities": ("summary", _CAPABILITY, _CAPABILITY),
    "bindings": ("summarize", "python_text_content_summarize_lead", _CAPABILITY),
    "services": ("csv", "official_text", "official_text"),
}
"""A word to search for, an id to show, and one to explain."""


def _examples_of(name: str) -> tuple[str, str, str]:
    return _EXAMPLES[name.split()[0]]


def _ls_examples(name: str) -> Examples:
    return (
        (f"cogcli {name} --domain text --usable", "some"),
        (f"cogcli {name} --tag document", "by a tag"),
        (f"cogcli {name} --format jsonl", "for scripts"),
    )


@command(examples=_ls_examples, exits=(0, 2, 3))
def ls(context: CommandContext, *, wanted: SpecFilter, flags: ListFlags) -> int:
    """List the specs of a kind that fit."""
    rows = list_specs(context.settings, context.kind, **vars(wanted))
    return _answer(context, rows, flags, [(f"--{name}", value) for name, value in vars(wanted).items()])


def _search_examples(name: str) -> Examples:
    word, _, _ = _examples_of(name)
    return (
        (f"cogcli {name} {word}", "by a word"),
        (f"cogcli {name} text {word} --limit 3", "by several"),
        (f"cogcli {name} {word} --format jsonl", "for scripts"),
    )


@command(examples=_search_examples, exits=(0, 2, 3), most=100)
def search(context: CommandContext, words: SearchWords, *, limit: SearchLimit = 10, flags: ListFlags) -> int:
    """Find specs of a kind by words, the best first."""
    found = search_specs(context.settings, context.kind, words, limit)
    code = _answer(context, found.rows, flags, [("", " ".join(words))])
    if not found.rows:
        context.own["near"] = list(found.near)
        if found.near:
            context.note(visible(f"near: {', '.join(found.near)}"))
    return code


def _answer(context: CommandContext, rows: list[dict[str, Any]], flags: ListFlags, wanted: Wanted) -> int:
    kind = context.kind
    context.own[kind] = rows
    if not context.json:
        show_list(context, _columns(context, flags), rows, flags)
    if not rows:
        note_none(context, KINDS[kind].singular, wanted, lambda: count_specs(context.settings, kind))
    return OK


def _columns(context: CommandContext, flags: ListFlags) -> list[Column]:
    """The columns of a kind; whether a spec can be used is a sign in front on a terminal, else the last column."""
    columns = [Column(name, prose=name == "description") for name in _COLUMNS[context.kind]]
    out = context.screen.out
    if out.width is None or flags.format not in (None, "text"):
        return [*columns, Column("usable")]
    words = {True: "done", False: "failed"}
    sign = Column("usable", " ", lambda can: out.glyphs.sign(words[can]), lambda can: style_of(words[can]))
    return [sign, *columns]


def _show_examples(name: str) -> Examples:
    line = f"cogcli {name} {_examples_of(name)[1]}"
    if name.startswith("skills "):
        words = ("what it takes", "its YAML", ".spec.inputs")
    else:
        words = ("what it says", "its file", ".spec")
    return (
        (line, words[0]),
        (f"{line} --source", words[1]),
        (f"{line} --json | jq {words[2]}", "for scripts"),
    )


@command(examples=_show_examples, exits=(0, 2, 3))
def show(context: CommandContext, id: SpecId, *, source: Source = False) -> int:
    """Show the spec, or its file."""
    kind = context.kind
    if source and not context.json:
        context.screen.answer(visible_block(read_source(context.settings, kind, id)))
        return OK
    spec = spec_details(context.settings, kind, id)
    context.own["spec"] = spec
    if source:
        context.own["source"] = read_source(context.settings, kind, id)
    if spec.get("run"):
        spec["run"] += context.again
    context.answer(spec_lines(kind, spec, context.screen.out))
    return OK


def _explain_examples(name: str) -> Examples:
    line = f"cogcli {name} {_examples_of(name)[2]}"
    return (
        (line, "in words"),
        (f"{line} --json | jq .explanation", "for scripts"),
        (f"{line} -C ../other", "as another project has it"),
    )


@command(examples=_explain_examples, exits=(0, 2, 3, 4))
def explain(context: CommandContext, id: SpecId) -> int:
    """Write the explanation; where nothing can be called, the reason becomes the error of the command."""
    return _explain(context, id)


@command(examples=_explain_examples, exits=(0, 2, 3, 4))
def explain_capability(
    context: CommandContext, capability: Annotated[str, argument("CAP", "capabilities")]
) -> int:
    """As `explain`, for a capability, whatever the kind."""
    return _explain(context, capability)


def _explain(context: CommandContext, id: str) -> int:
    found = explain_spec(context.settings, context.kind, id)
    context.own["explanation"] = found.body
    context.answer(explanation_lines(context.kind, found.body, context.screen.out.width))
    if found.error:
        raise found.error
    return OK
