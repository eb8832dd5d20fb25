"""`explain` of `bindings`, `capabilities`, `services` and `skills`: what is chosen, what is not, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from cogcli.cli.command import Examples, command
from cogcli.cli.context import CommandContext
from cogcli.cli.options import SpecId, argument
from cogcli.core.errors import OK
from cogcli.core.terminal_text import cells, pad, truncate, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cogcli.app.inventory.explain import ChoiceExplanation
    from cogcli.report.styled_text import StyledLine

_STYLES: Final = {"chosen": "green", "unusable": "red"}
_STATE: Final = len("not named")


_SAMPLES: Final = {"skills": "text.summarize", "services": "official_text"}


def _examples(name: str) -> Examples:
    line = f"cogcli {name} {_SAMPLES.get(name.split()[0], 'text.content.summarize')}"
    return (
        (line, "in words"),
        (f"{line} --json | jq .explanation", "for scripts"),
        (f"{line} -C ../other", "as another project has it"),
    )


@command(examples=_examples, exits=(0, 2, 3, 4))
def explain(context: CommandContext, id: SpecId) -> int:
    """Write the explanation; where nothing can be called, the reason becomes the error of the command."""
    return _explain(context, id)


@command(examples=_examples, exits=(0, 2, 3, 4))
def explain_capability(
    context: CommandContext, capability: Annotated[str, argument("CAP", "capabilities")]
) -> int:
    """As `explain`, for a capability, whatever the kind."""
    return _explain(context, capability)


def _explain(context: CommandContext, id: str) -> int:
    from cogcli.app.inventory import explain as binding_choices

    explain: dict[
        str, tuple[Callable[..., ChoiceExplanation], Callable[[dict[str, Any]], Iterator[StyledLine]]]
    ] = {
        "skills": (binding_choices.choose_for_skill, _skill),
        "services": (binding_choices.explain_service, _service),
    }
    ask, lines = explain.get(context.kind, (binding_choices.choose_for_capability, _capability))
    told = ask(context.settings, id)
    context.own["explanation"] = told.body
    if not context.json:
        width = context.screen.out.width
        context.screen.answer_lines([_fit_line(line, width) for line in lines(told.body)])
    if told.error:
        raise told.error
    return OK


def _fit_line(line: StyledLine, width: int | None) -> StyledLine:
    """A line that ends where the terminal does."""
    if width is None:
        return line
    kept: StyledLine = []
    for text, style in line:
        if width <= 0:
            break
        kept.append((truncate(text, width), style))
        width -= cells(text)
    return kept


def _capability(body: dict[str, Any]) -> Iterator[StyledLine]:
    yield _head(body)
    yield _row("conformance", f"at least {body['required_conformance_profile']}")
    yield _row("from", f"{body['layer']}  {body['file']}")
    yield from _hidden_lines(body["shadows"])
    yield [("rules", "bold")]
    yield from _rules(body["considered"])
    yield [("bindings", "bold")]
    yield from _bindings(body["bindings"])


def _head(body: dict[str, Any]) -> StyledLine:
    """The capability and what is called for it."""
    chosen = [row["binding_id"] for row in body["bindings"] if row["state"] == "chosen"]
    if not chosen:
        return [(visible(body["capability_id"]), "bold"), (" → ", "dim"), ("nothing", "red")]
    source = body["selection_source"]
    return [
        (visible(body["capability_id"]), "bold"),
        (" → ", "dim"),
        (visible(chosen[0]), "green"),
        (f"  by rule `{source}`", ""),
    ]


def _row(name: str, text: str) -> StyledLine:
    return [(f"{name:<11}  ", "dim"), (visible(text), "")]


def _hidden_lines(shadows: list[dict[str, str]], indent: str = "") -> Iterator[StyledLine]:
    for shadow in shadows:
        yield [(f"{indent}{'replaces':<11}  ", "dim"), (visible(f"{shadow['layer']}  {shadow['file']}"), "")]


def _rules(considered: list[dict[str, Any]]) -> Iterator[StyledLine]:
    from cogcli.specs.selection import RULES

    asked = {row["rule"]: row for row in considered}
    size = max([0, *(cells(row["binding_id"]) for row in considered if row["binding_id"])])
    for rule in RULES:
        row = asked.get(rule, {"binding_id": None, "reason": "not asked", "chosen": False})
        text = f"{pad(row['binding_id'] or '', size)}  {row['reason']}"
        yield [(f"  {rule:<9}  ", ""), (visible(text).rstrip(), "" if row["chosen"] else "dim")]


def _bindings(rows: list[dict[str, Any]]) -> Iterator[StyledLine]:
    size = max([0, *(cells(row["binding_id"]) for row in rows)])
    indent = " " * (2 + _STATE + 2)
    for row in rows:
        yield [
            (f"  {row['state']:<{_STATE}}  ", _STYLES.get(row["state"], "dim")),
            (visible(f"{pad(row['binding_id'], size)}  {row['reason']}"), ""),
        ]
        if "layer" not in row:
            yield from [[(indent, ""), (visible(row["file"]), "dim")]] if row["file"] else []
            continue
        where = f"{row['protocol']}:{row['service_id']}  {row['conformance_profile']}"
        yield [(indent, ""), (visible(f"{where}  {row['layer']}  {row['file']}"), "dim")]
        yield from _hidden_lines(row["shadows"], indent)
        yield from _hidden_lines(row["service_shadows"], f"{indent}service ")


def _skill(body: dict[str, Any]) -> Iterator[StyledLine]:
    yield [(visible(body["skill_id"]), "bold")]
    if body["file"]:
        yield _row("from", f"{body['layer'] or 'broken'}  {body['file']}")
    yield from _hidden_lines(body["shadows"])
    for choice in body["capabilities"]:
        yield _head(choice)
        yield from _bindings([row for row in choice["bindings"] if row["state"] != "not named"])


def _service(body: dict[str, Any]) -> Iterator[StyledLine]:
    yield [(visible(body["service_id"]), "bold"), ("" if body["trusted"] else "  not trusted", "red")]
    yield _row("from", f"{body['layer']}  {body['file']}")
    yield from _hidden_lines(body["shadows"])
    if not body["bindings"]:
        yield _row("bindings", "none: nothing can call it")
    for row in body["bindings"]:
        yield [(visible(row["capability_id"]), "bold")]
        yield from _bindings([{**row, "service_shadows": []}])
