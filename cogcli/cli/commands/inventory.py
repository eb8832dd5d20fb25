"""`skills`, `capabilities`, `bindings` and `services`: `ls`, `search`, `show` and `explain`."""

from __future__ import annotations

from typing import Annotated, Final

from cogcli.app.inventory.explain import explain_spec
from cogcli.app.inventory.kinds import (
    KINDS,
    InventoryView,
    count_specs,
    list_specs,
    read_source,
    search_specs,
    spec_details,
    unreadable_files,
    whole_view,
)
from cogcli.base.errors import OK, UnusableEnvironment
from cogcli.base.terminal_text import visible, visible_block
from cogcli.cli.context import CommandContext
from cogcli.cli.inventory_screen import ShownSpec, explanation_lines, spec_lines
from cogcli.cli.listing import Column, Wanted, report_empty_list
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
    switch,
)
from cogcli.declarations.reading import read_record
from cogcli.declarations.value_types import Json
from cogcli.report.styled_text import style_of
from cogcli.specs.layers import BUILT_IN

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
        (f"cogcli {name} --domain text --usable", "a part of them"),
        (f"cogcli {name} --tag document", "by a tag"),
        (f"cogcli {name} --format jsonl", "for scripts"),
    )


@command(examples=_ls_examples, exits=(0, 2, 3))
def ls(
    context: CommandContext,
    *,
    wanted: SpecFilter,
    all: Annotated[bool, switch("--all", help="show all on a terminal, not only 100")] = False,
    flags: ListFlags,
) -> int:
    """List the specs of a kind that match the flags."""
    view = whole_view(context.settings)
    _warn_of_unreadable(context, view)
    rows = list_specs(view, context.kind, **vars(wanted))
    given = [(f"--{name}", value) for name, value in vars(wanted).items()]
    return _answer_list(context, rows, flags, given, all_rows=all)


def _search_examples(name: str) -> Examples:
    word, _, _ = _examples_of(name)
    return (
        (f"cogcli {name} {word}", "by a word"),
        (f"cogcli {name} text {word} --limit 3", "by several words"),
        (f"cogcli {name} {word} --format jsonl", "for scripts"),
    )


@command(examples=_search_examples, exits=(0, 2, 3), maximum=100)
def search(
    context: CommandContext, words: SearchWords, *, limit: SearchLimit = 10, flags: ListFlags
) -> int:
    """Find specs of a kind by words, best match first."""
    view = whole_view(context.settings)
    _warn_of_unreadable(context, view)
    found = search_specs(view, context.kind, words, limit)
    code = _answer_list(context, found.rows, flags, [("", " ".join(words))])
    if not found.rows:
        context.own["near"] = list(found.near)
        if found.near:
            context.note(visible(f"near: {', '.join(found.near)}"))
    return code


_MAX_NAMED_FILES: Final = 5
"""Unreadable files that are named; more are counted."""


def _warn_of_unreadable(context: CommandContext, view: InventoryView) -> None:
    """Warn of each file that the list omits because it could not be read as a spec."""
    found = unreadable_files(view)
    for problem in found[:_MAX_NAMED_FILES]:
        place = f"{problem.file}:{problem.line}" if problem.line else problem.file
        warning = UnusableEnvironment(
            "specs.invalid", visible(f"{place} is left out: {problem.message}")
        )
        is_last = problem is found[:_MAX_NAMED_FILES][-1]
        if is_last and len(found) > _MAX_NAMED_FILES:
            warning.message += f" (and {len(found) - _MAX_NAMED_FILES} more files)"
        warning.next = ("cogcli validate",) if is_last and context.settings.project else ()
        context.warn(warning)


def _answer_list(
    context: CommandContext,
    rows: list[Json],
    flags: ListFlags,
    filters: Wanted,
    *,
    all_rows: bool = True,
) -> int:
    """Write the list of specs, and a note if it is empty."""
    kind = context.kind
    context.own[kind] = rows
    if not context.json:
        columns = _spec_columns(context, flags, rows)
        show_list(
            context, columns, rows, flags, section=_section_heading, whole=all_rows, for_all="--all"
        )
    if not rows:
        report_empty_list(
            context, KINDS[kind].singular, filters, lambda: count_specs(context.settings, kind)
        )
    return OK


def _section_heading(row: Json) -> str:
    """Return the heading above a spec in a list; empty for a spec of the user."""
    return "shipped" if row["layer"] == BUILT_IN else ""


def _spec_columns(context: CommandContext, flags: ListFlags, rows: list[Json]) -> list[Column]:
    """Return the columns of a kind of spec.

    On a terminal, the first column is a sign for whether a spec can be used. The last one is the reason if any spec
    cannot. Elsewhere both are the last columns.
    """
    columns = [Column(name, prose=name == "description") for name in _COLUMNS[context.kind]]
    out = context.screen.out
    if out.width is None or flags.format not in (None, "text"):
        return [*columns, Column("usable"), Column("why_not")]
    words = {True: "done", False: "failed"}
    sign = Column(
        "usable", " ", lambda can: out.glyphs.sign(words[can]), lambda can: style_of(words[can])
    )
    whys = [Column("why_not", "why not", prose=True)] if any(row["why_not"] for row in rows) else []
    return [sign, *columns, *whys]


def _show_examples(name: str) -> Examples:
    line = f"cogcli {name} {_examples_of(name)[1]}"
    if name.startswith("skills "):
        words = ("its inputs and outputs", "its YAML", ".spec.inputs")
    else:
        words = ("its fields", "its file", ".spec")
    return (
        (line, words[0]),
        (f"{line} --source", words[1]),
        (f"{line} --json | jq {words[2]}", "for scripts"),
    )


@command(examples=_show_examples, exits=(0, 2, 3))
def show(context: CommandContext, id: SpecId, *, source: Source = False) -> int:
    """Display a spec, or the text of its file."""
    kind = context.kind
    if source and not context.json:
        context.screen.answer(visible_block(read_source(context.settings, kind, id)))
        return OK
    spec = spec_details(context.settings, kind, id)
    context.own["spec"] = spec
    if source:
        context.own["source"] = read_source(context.settings, kind, id)
    if read_record(ShownSpec, spec).run:
        spec["run"] += context.again
    context.answer(spec_lines(kind, spec, context.screen.out))
    return OK


def _explain_examples(name: str) -> Examples:
    line = f"cogcli {name} {_examples_of(name)[2]}"
    return (
        (line, "as text"),
        (f"{line} --json | jq .explanation", "for scripts"),
        (f"{line} -C ../other", "in another project"),
    )


@command(examples=_explain_examples, exits=(0, 2, 3, 4))
def explain(context: CommandContext, id: SpecId) -> int:
    """Display the explanation. Raise its error if the spec cannot be called."""
    return _explain_spec(context, id)


@command(examples=_explain_examples, exits=(0, 2, 3, 4))
def explain_capability(
    context: CommandContext, capability: Annotated[str, argument("CAP", "capabilities")]
) -> int:
    """Explain a capability, regardless of the kind in the name of the command's group."""
    return _explain_spec(context, capability)


def _explain_spec(context: CommandContext, id: str) -> int:
    found = explain_spec(context.settings, context.kind, id)
    for warning in found.warnings:
        context.warn(warning)
    context.own["explanation"] = found.body
    context.answer(explanation_lines(context.kind, found.body, context.screen.out.width))
    if found.error:
        raise found.error
    return OK
