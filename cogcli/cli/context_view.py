"""Lines about the context of a turn, and about the difference of two
(docs/reference/pack.md#placements).
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from cogcli.agent.context.difference import ContextDiff
from cogcli.agent.context.placements import CUT, IN, OUT
from cogcli.base.terminal_text import visible
from cogcli.cli.listing import plain
from cogcli.declarations.layer_records import BudgetReport
from cogcli.declarations.value_types import Json
from cogcli.report.humanize import count_of
from cogcli.report.styled_text import StyledLine, fit

_STYLES: Final = {OUT: "red", CUT: "yellow"}
_SHOWN_HASH: Final = 12
_OWN: Final = (
    "kind",
    "name",
    "status",
    "stage",
    "reason",
    "block_id",
    "tokens",
    "of_tokens",
    "priority",
    "hops",
)
"""Members of a placement that its line shows in another form, or not at all."""


def explanation_lines(explanation: Json, *, width: int | None) -> list[StyledLine]:
    """Return the lines for the origin of a context, its stages with the parts that each removed,
    and each part with its reason.
    """
    turn = f"turn {explanation['turn']} of {explanation['turns']}"
    head = f"{explanation['episode_id']}  {turn}  {explanation['intent'] or 'no intent'}"
    lines: list[StyledLine] = [[(fit(visible(head), width), "bold")]]
    rows = [
        ("context", explanation["context_hash"]),
        ("pack", explanation["pack_ref"]),
        ("snapshot", explanation["snapshot_ref"]),
    ]
    rows += [("refused", explanation["refused"])] if explanation["refused"] else []
    lines += [_named_line(name, text, width) for name, text in rows]
    lines += [[("stages", "bold")], *_stage_lines(explanation, width)]
    for status, title in ((IN, "in"), (CUT, "cut short"), (OUT, "out")):
        placed = [each for each in explanation["placements"] if each["status"] == status]
        if placed:
            lines.append([(title, "bold")])
            lines += [line for each in placed for line in placement_lines(each, width)]
    return lines


def _stage_lines(explanation: Json, width: int | None) -> list[StyledLine]:
    """Return a line per stage with the parts that it removed."""
    out = Counter(each["stage"] for each in explanation["placements"] if each["status"] == OUT)
    cut = Counter(each["stage"] for each in explanation["placements"] if each["status"] == CUT)
    lines = []
    for name, digest in explanation["stage_hashes"].items():
        counts = [f"{out[name]} out"] if out[name] else []
        counts += [f"{cut[name]} cut"] if cut[name] else []
        lines.append(_named_line(name, "  ".join([_shorten_hash(digest), *counts]), width))
    report = explanation["budget_report"]
    used, maximum = sum(report["used"].values()), sum(report["allocations"].values())
    text = f"{used} of {maximum} allotted"
    if reserved := BudgetReport.of(report).reserved:
        text += f", {reserved} reserved for the prompt"
    return [*lines, _named_line("tokens", text, width), *_over_size_lines(explanation, width)]


def _over_size_lines(explanation: Json, width: int | None) -> list[StyledLine]:
    """Return a line per bucket that exceeded its size by using room that other buckets did not need."""
    used = explanation["budget_report"]["used"]
    return [
        _named_line(name, f"{used[name]} tokens, above its size of {size}: room was left", width)
        for name, size in explanation["bucket_sizes"].items()
        if used[name] > size
    ]


def placement_lines(placement: Json, width: int | None) -> list[StyledLine]:
    """Return the lines for a placement: kind, result, stage, reason, and its other members."""
    size = f"{placement['tokens']} tokens" if "tokens" in placement else ""
    size += f" of {placement['of_tokens']}" if "of_tokens" in placement else ""
    decided = "" if placement["status"] == IN else f"{placement['stage']}: "
    words = [f"{placement['kind']:<10}", placement["name"], f"{decided}{placement['reason']}", size]
    text = visible("  ".join(word for word in words if word))
    lines: list[StyledLine] = [
        [("  ", ""), (fit(text, width, 2), _STYLES.get(placement["status"], ""))]
    ]
    more = {
        name: value
        for name, value in placement.items()
        if name not in _OWN and value not in ("", [], None)
    }
    if more:
        lines.append([("    ", ""), (fit(visible(plain(more)), width, 4), "dim")])
    return lines


def answer_lines(explanation: Json, width: int | None) -> list[StyledLine]:
    """Return a line for each match of a word: in, cut or out, and why."""
    lines: list[StyledLine] = []
    for placed in explanation["placements"]:
        first, *rest = placement_lines(placed, width)
        status = placed["status"]
        lines += [[(f"{status:<4}", _STYLES.get(status, "green")), *first[1:]], *rest]
    return lines


def difference_lines(
    difference: ContextDiff, sides: tuple[str, str], *, width: int | None
) -> list[StyledLine]:
    """Return a line for each differing block with the reason, then the differing ledger members."""
    lines: list[StyledLine] = [[(fit(visible("  ".join(sides)), width), "bold")]]
    for each in difference.blocks:
        was, now = ("" if size is None else f"{size}" for size in each.tokens)
        sizes = f"{was} to {now} tokens" if was and now else f"{was or now} tokens"
        words = [
            f"{each.change:<8}",
            f"{each.kind:<10}",
            each.name,
            f"{each.stage}: {each.reason}",
            sizes,
        ]
        lines.append([("  ", ""), (fit(visible("  ".join(words)), width, 2), "")])
    for change in difference.ledger:
        text = f"{change.member:<24}  {_shorten_hash(change.before)}  {_shorten_hash(change.after)}"
        lines.append([("  ", ""), (fit(visible(text), width, 2), "dim")])
    if difference.is_identical:
        return [*lines, [("  nothing differs", "dim")]]
    return [
        *lines,
        [(f"  {count_of(len(difference.blocks), 'block differs', 'blocks differ')}", "dim")],
    ]


def _shorten_hash(value: str) -> str:
    """Return the first characters of a hash. A reference that ends with a hash keeps the part
    before it.
    """
    before, mark, digest = value.partition("sha256:")
    return f"{before}{digest[:_SHOWN_HASH]}" if mark else value


def _named_line(name: str, text: str, width: int | None) -> StyledLine:
    """Return a line with a name and a text."""
    return [(f"  {name:<10} ", "dim"), (fit(visible(text), width, 13), "")]
