"""Source code: differences, formatting and measures."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import Counter
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from cogcli.official.confined import RUFF, run_confined_function
from cogcli.official.data import parse_json
from cogcli.sdk import Refused, run_behind_wall

if TYPE_CHECKING:
    from collections.abc import Iterator

    Change = tuple[str, int, int, int, int]

_MAX_TEXT = 8 * 1024 * 1024
_MAX_CODE = 1024 * 1024
_TIME = 5_000_000  # comparisons of lines
_SHORT = 200_000
_CONTEXT = 3
_MAX_NAMES = 20
_NAMED = re.compile(
    r"^[ \t]{0,40}(?:(?:export|public|private|protected|static|async|pub|default|abstract|final) ){0,4}"
    r"(?:def|class|function|func|fn|interface|struct|enum|trait)\s{1,9}\*?([A-Za-z_$][\w$]{0,99})"
)

_CLOSERS = (")", "]", "}", "{")  # lines that end a head or a body without ending what it is of


def extract_diff(code_a: str, code_b: str) -> dict[str, object]:
    """Return the unified difference that makes B of A, which `patch` applies; empty if they are
    equal.

    If only comparing all lines with all others would help, a stretch is replaced as a whole.
    `stats` counts lines `added`, `removed` and `unchanged`, and `hunks`; `names` lists the
    functions and classes that are `changed`, `new` and `gone`, and `sentence` sums it up. Raise
    Refused for more than 8 MiB.
    """
    if len(code_a) + len(code_b) > _MAX_TEXT:
        raise Refused("too-large", f"more than {_MAX_TEXT // 1024 // 1024} MiB of text")
    a, b = _split_lines(code_a), _split_lines(code_b)
    changes = list(_iterate_changes(a, b))
    removed = sum(high - low for _, low, high, _, _ in changes)
    added = sum(high - low for _, _, _, low, high in changes)
    hunks = list(_group_hunks(changes, len(a), len(b)))
    diff = "".join(part for hunk in hunks for part in _hunk_text(hunk, a, b))
    names = _compare_names(
        _find_definitions(a, [(low, high) for _, low, high, _, _ in changes]),
        _find_definitions(b, [(low, high) for _, _, _, low, high in changes]),
    )
    stats = {"added": added, "removed": removed, "unchanged": len(a) - removed, "hunks": len(hunks)}
    sentence = _summary_sentence(added, removed, len(hunks), names)
    header = "--- a\n+++ b\n" if hunks else ""
    return {"diff": header + diff, "stats": stats | {"names": names, "sentence": sentence}}


def _split_lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _iterate_changes(a: list[str], b: list[str]) -> Iterator[Change]:
    """Yield the opcodes that make B of A, in order.

    The texts are cut at lines that both have exactly once, until the stretches are short enough for
    `difflib`. A stretch without such a line is replaced as a whole when the time is used up.
    """
    time = _TIME
    waiting = [(0, len(a), 0, len(b))]
    while waiting:
        a_low, a_high, b_low, b_high = _trim_common_ends(a, b, *waiting.pop())
        lines_a, lines_b = a[a_low:a_high], b[b_low:b_high]
        cost, common = _estimate_cost(lines_a, lines_b)
        if not common:
            yield from [("replace", a_low, a_high, b_low, b_high)] if lines_a or lines_b else []
        elif cost <= min(time, _SHORT):
            time -= cost
            for tag, i1, i2, j1, j2 in SequenceMatcher(
                None, lines_a, lines_b, autojunk=False
            ).get_opcodes():
                if tag != "equal":
                    yield tag, a_low + i1, a_low + i2, b_low + j1, b_low + j2
        elif anchors := _find_anchors(lines_a, lines_b):
            time -= len(lines_a) + len(lines_b)
            ends = [(a_low + i, b_low + j) for i, j in anchors] + [(a_high, b_high)]
            starts = [(a_low, b_low)] + [(i + 1, j + 1) for i, j in ends[:-1]]
            parts = [(i, k, j, m) for (i, j), (k, m) in zip(starts, ends, strict=True)]
            waiting += reversed(parts)
        else:
            yield "replace", a_low, a_high, b_low, b_high


def _estimate_cost(a: list[str], b: list[str]) -> tuple[int, int]:
    """Return an upper bound for the comparisons of `difflib`, and the number of pairs of equal
    lines.
    """
    counts_a, counts_b = Counter(a), Counter(b)
    pairs = sum(count * counts_b[line] for line, count in counts_a.items())
    return (pairs + len(a) + len(b)) * min(len(a), len(b)), pairs


def _trim_common_ends(
    a: list[str], b: list[str], a_low: int, a_high: int, b_low: int, b_high: int
) -> tuple[int, int, int, int]:
    """Return the bounds of the stretch without the equal lines at its beginning and end."""
    while a_low < a_high and b_low < b_high and a[a_low] == b[b_low]:
        a_low, b_low = a_low + 1, b_low + 1
    while a_low < a_high and b_low < b_high and a[a_high - 1] == b[b_high - 1]:
        a_high, b_high = a_high - 1, b_high - 1
    return a_low, a_high, b_low, b_high


def _find_anchors(a: list[str], b: list[str]) -> list[tuple[int, int]]:
    """Return the longest common sequence of lines that each text has exactly once, as pairs of
    indices.
    """
    index_a, index_b = _index_of_unique_lines(a), _index_of_unique_lines(b)
    pairs = [(place, index_b[line]) for line, place in index_a.items() if line in index_b]
    ends: list[int] = []
    chain: list[int] = []
    predecessor: list[int] = []
    for number, (_, place) in enumerate(pairs):
        rank = bisect_left(ends, place)
        ends[rank : rank + 1] = [place]
        predecessor.append(chain[rank - 1] if rank else -1)
        chain[rank : rank + 1] = [number]
    anchors, number = [], chain[-1] if chain else -1
    while number >= 0:
        anchors.append(pairs[number])
        number = predecessor[number]
    return anchors[::-1]


def _index_of_unique_lines(lines: list[str]) -> dict[str, int]:
    """Return the index of each line that occurs exactly once."""
    indices: dict[str, int] = {}
    repeated = set()
    for place, line in enumerate(lines):
        if line in indices:
            repeated.add(line)
        indices[line] = place
    return {line: place for line, place in indices.items() if line not in repeated}


def _group_hunks(changes: list[Change], size_a: int, size_b: int) -> Iterator[list[Change]]:
    """Yield groups of changes whose context overlaps, with that context as equal stretches."""
    done_a = done_b = 0
    opcodes: list[Change] = []
    for change in [*changes, ("end", size_a, size_a, size_b, size_b)]:
        opcodes += [("equal", done_a, change[1], done_b, change[3]), change]
        _, _, done_a, _, done_b = change
    matcher: Any = SequenceMatcher()
    matcher.opcodes = [
        change for change in opcodes[:-1] if change[0] != "equal" or change[1] < change[2]
    ]
    yield from matcher.get_grouped_opcodes(_CONTEXT) if changes else ()


def _hunk_text(hunk: list[Change], a: list[str], b: list[str]) -> Iterator[str]:
    _, a_low, _, b_low, _ = hunk[0]
    _, _, a_high, _, b_high = hunk[-1]
    yield f"@@ -{_range_text(a_low, a_high)} +{_range_text(b_low, b_high)} @@\n"
    for tag, i1, i2, j1, j2 in hunk:
        marked_lines = [(" ", a[i1:i2])] if tag == "equal" else [("-", a[i1:i2]), ("+", b[j1:j2])]
        for mark, lines in marked_lines:
            for line in lines:
                yield f"{mark}{line}" + (
                    "" if line[-1] == "\n" else "\n\\ No newline at end of file\n"
                )


def _range_text(low: int, high: int) -> str:
    size = high - low
    return f"{low + 1}" if size == 1 else f"{low + 1 if size else low},{size}"


def _find_definitions(
    lines: list[str], stretches: list[tuple[int, int]]
) -> tuple[set[str], set[str]]:
    """Return the names of all functions and classes, and of the innermost ones around the
    stretches.

    Which one is innermost follows from the indentation of the lines.
    """
    names: set[str] = set()
    changed: set[str] = set()
    enclosing: list[tuple[int, str]] = []
    stretches_ahead = iter([*stretches, (len(lines), len(lines))])
    low, high = next(stretches_ahead)
    for number, line in enumerate(lines):
        while number >= high and high < len(lines):
            low, high = next(stretches_ahead)
        content = line.lstrip(" \t")
        if not content.strip():
            continue
        indent = len(line) - len(content)
        while enclosing and enclosing[-1][0] >= indent and not content.startswith(_CLOSERS):
            enclosing.pop()
        if match := _NAMED.match(line):
            enclosing.append((indent, match[1]))
            names.add(match[1])
        if enclosing and low <= number < high:
            changed.add(enclosing[-1][1])
    return names, changed


def _compare_names(
    before: tuple[set[str], set[str]], after: tuple[set[str], set[str]]
) -> dict[str, list[str]]:
    """Return the sorted names that are `changed`, `new` and `gone`. `before` and `after` each contain all names of a
    text, and the names whose lines changed.
    """
    (old, changed_old), (new, changed_new) = before, after
    return {
        "changed": sorted((changed_old | changed_new) & old & new),
        "new": sorted(changed_new - old),
        "gone": sorted(changed_old - new),
    }


def _summary_sentence(added: int, removed: int, hunks: int, names: dict[str, list[str]]) -> str:
    if not hunks:
        return "The two are equal."
    changes_by_kind = "; ".join(
        f"{word}: {_join_names(listed)}" for word, listed in names.items() if listed
    )
    places = f"{hunks} place{'s' * (hunks != 1)}"
    lines = f"{added} line{'s' * (added != 1)} added, {removed} removed, in {places}"
    return f"{lines}{'; ' if changes_by_kind else ''}{changes_by_kind}."


def _join_names(names: list[str]) -> str:
    more = len(names) - _MAX_NAMES
    return ", ".join(names[:_MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


def format_source(code: str, language: str) -> dict[str, object]:
    """Return the code in its usual form: Python as ruff formats it, JSON with two spaces.

    Formatting the result again changes nothing. Raise Refused for another language, and for code
    with a syntax error, with its line.
    """
    name = _normalize_language(language)
    if len(code) > _MAX_CODE:
        raise Refused("too-large", f"more than {_MAX_CODE // 1024 // 1024} MiB of code")
    if name == "json":
        text = json.dumps(parse_json(code)["data"], indent=2, ensure_ascii=False)
        return {"formatted_code": f"{text}\n"}
    if name == "python":
        return {"formatted_code": _format_with_ruff(code)}
    raise Refused("unsupported", f"{language!r:.40} is not formatted", "there are python and json")


def _normalize_language(language: str) -> str:
    name = language.strip().lower()
    return {"py": "python", "python3": "python"}.get(name, name)


def _format_with_ruff(code: str) -> str:
    from ruff import find_ruff_bin  # type: ignore[import-untyped,unused-ignore]

    program = find_ruff_bin()
    command = [program, "format", "--isolated", "--no-cache", "--stdin-filename", "code.py", "-"]
    try:
        content = code.encode()
    except UnicodeEncodeError as error:
        raise Refused("bad-data", f"ruff does not format it: {error!s:.80}") from None
    end = run_behind_wall(command, RUFF, content=content, read=[program], required=False)
    if end.timed_out:
        raise Refused(
            "too-large", f"ruff does not format it: not done after {RUFF.seconds} seconds"
        )
    if end.code:
        errors = end.stderr.decode(errors="replace").replace("error: ", "").strip()
        place = re.search(r"code\.py:(\d+):(\d+): ([^\n]{1,200})", errors)
        message = f"line {place[1]}, column {place[2]}: {place[3]}" if place else errors[:200]
        raise Refused("bad-data", f"syntax error: {message}" if message else "ruff cannot read it")
    return end.stdout.decode()


def analyze_source(code: str, language: str) -> dict[str, object]:
    """Return measures of the code.

    `metrics` counts lines, functions, classes and branches, `warnings` names places to look at,
    with their line, and `summary` is one sentence. Python is read by its own parser, other
    languages by lizard. Raise Refused for a language that neither knows, for a syntax error with
    its line, and for more than 1 MiB.
    """
    if len(code) > _MAX_CODE:
        raise Refused("too-large", f"more than {_MAX_CODE // 1024 // 1024} MiB of code")
    return run_confined_function(
        "code_measures:measure", code=code, language=_normalize_language(language)
    )
