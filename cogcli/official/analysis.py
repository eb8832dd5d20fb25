"""Parts, risks, assumptions and failures that the text of a problem names. Every entry is a quote."""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING

from cogcli.official.passages import Passage, blocks, passages, stems, strings_in
from cogcli.official.sentences import content_words
from cogcli.sdk import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ALIKE = 0.4
_MAX_PARTS = 200
# Blanks are bounded, since a run of them would cost quadratic time.
_CLAUSE = re.compile(r";|,?\s{1,5}(?:and then|and also|and|then|as well as|but)\s", re.IGNORECASE)
_OPEN = re.compile(
    r"\?\s*$|\b(?:TBD|TBC|TODO|FIXME|unknown|unclear|undecided|undefined|open question|open issue"
    r"|(?:not|nobody|no one) (?:yet )?(?:known|knows|decided|clear|defined|agreed)|to be (?:decided|determined|defined"
    r"|confirmed|agreed)|needs? clarification|remains open)\b",
    re.IGNORECASE,
)
_MAY = "fail|break|lose|leak|delay|slip|cost|cause|lead|harm|be (?:lost|late|delayed|missed|stolen|exceeded|unable)"
_CUES = {
    "risks": r"risk(?:s|y|ier)?|threat(?:s|en|ens|ened)?|danger(?:s|ous)?|hazard(?:s|ous)?|vulnerab(?:le|ility|ilities)"
    r"|exposed to|exposure|single point of failure|depends on (?:a single|one)|jeopardi[sz]e[sd]?|at stake|worst case"
    rf"|penalt(?:y|ies)|overruns?|breach(?:es|ed)?|(?:may|might|could)(?= (?:not )?(?:{_MAY}))",
    "assumptions": r"assum(?:e|es|ed|ing|ption|ptions)|presum(?:e|es|ed|ably)|suppos(?:e|es|ed|ing)|provided that"
    r"|expect(?:s|ed)? (?:to|that)|(?:we|i) believe|as long as|taken for granted|hope(?:s|fully)?|rel(?:y|ies) on",
    "failure_modes": r"fail(?:s|ed|ing|ure|ures)?|crash(?:es|ed)?|outages?|breaks?|breakdowns?|broken|goes down|go down"
    r"|times? out|timed out|corrupt(?:s|ed|ion)?|data loss|los(?:e|es|t)|stop(?:s|ped)? working|runs? out of|deadlocks?"
    r"|leak(?:s|ed)?|unavailable|miss(?:es|ed)? (?:the |its |a )?deadlines?",
    "mitigation_ideas": r"mitigat(?:e|es|ed|ing|ion|ions)|contingency|fall ?backs?|back ?ups?|work ?arounds?"
    r"|safeguards?|to (?:avoid|prevent|reduce|limit) |redundan(?:t|cy)|insurance|countermeasures?|roll(?:ed)? ?back"
    r"|rehears(?:e|ed|al)|plan b",
}
_CUE = re.compile(
    "|".join(rf"(?P<{name}>\b(?:{words})\b)" for name, words in _CUES.items()), re.IGNORECASE
)
_DENIED = re.compile(
    r"\b(?:no|not|never|without|zero|free of|cannot|n't)(?: (?:any|a|the|known))?[ -]$",
    re.IGNORECASE,
)
_GRADE = r"(critical|severe|serious|major|high|medium|moderate|low|minor)"
_GRADED = "risk|impact|severity|probability|likelihood"
_SEVERITY = re.compile(
    rf"\b{_GRADE}[ -](?:{_GRADED})\b|\b(?:{_GRADED})(?: is |: ?| ?= ?){_GRADE}\b", re.IGNORECASE
)
_GRADES = {"medium": "medium", "moderate": "medium", "low": "low", "minor": "low"}


def split_problem(
    problem: str, strategy: str, context: str | None = None, max_components: float = 12
) -> dict[str, object]:
    """Return the parts that the problem's own text has, each a quote with its place.

    `strategy` is headings, list, questions, sentences, clauses, or auto: the first of these that
    gives two parts. `gaps` quotes sentences that call something open, in text and context;
    `overlaps` are pairs of parts with mostly the same words. Raise Refused `needs-model` for
    another strategy or fewer than two parts, `no-evidence` for an empty text.
    """
    strategies = ", ".join([*_PARTS, "auto"])
    if strategy not in (*_PARTS, "auto"):
        message = f"splitting by {strategy!r:.60} asks for judgement; by rules a text is split by: {strategies}"
        raise Refused(
            "needs-model", message, "choose one of these, or a binding of a language model"
        )
    if not problem.strip():
        raise Refused("no-evidence", "the problem is empty")
    tried = _PARTS if strategy == "auto" else {strategy: _PARTS[strategy]}
    part_kind, parts = next(
        ((name, found) for name, find in tried.items() if len(found := find(problem)) > 1), ("", [])
    )
    if not parts:
        raise Refused(
            "needs-model", f"the text has no two parts by {strategy}", f"other ways: {strategies}"
        )
    chosen = parts[: min(_MAX_PARTS, max(2, int(max_components)))]
    components = [
        part.quote(id=f"c{number}", part=part_kind) for number, part in enumerate(chosen, 1)
    ]
    return {
        "components": components,
        "gaps": [*_open_questions(problem, "problem"), *_open_questions(context or "", "context")],
        "overlaps": list(_find_overlaps(chosen)),
        "decomposition_notes": f"{len(chosen)} of {len(parts)} parts by {part_kind}",
        "strategy_used": part_kind,
        "method": "rules:structure",
    }


def _heading_parts(text: str) -> list[Passage]:
    starts = [block.start for block in blocks(text) if block.kind == "heading"]
    ends = [text.rfind("\n", 0, start) for start in starts[1:]] + [len(text)]
    return [_strip_passage(text, start, end) for start, end in zip(starts, ends, strict=False)]


def _strip_passage(text: str, start: int, end: int) -> Passage:
    """Return the passage from `start` to `end` without white space at both ends."""
    content = text[start:end].rstrip()
    lead = len(content) - len(content.lstrip())
    return Passage(content[lead:], start + lead, start + len(content))


def _list_items(text: str) -> list[Passage]:
    return [
        Passage(text[b.start : b.end], b.start, b.end) for b in blocks(text) if b.kind == "item"
    ]


def _find_questions(text: str) -> list[Passage]:
    if text.count("?") + text.count("？") < 2:
        return []
    return [passage for passage in passages(text) if passage.text.endswith(("?", "？"))]


def clauses(text: str) -> list[Passage]:
    """Return the sentences of a text, cut at semicolons, `and`, `then`, `but`."""
    found: list[Passage] = []
    for passage in passages(text):
        start = passage.start
        for match in _CLAUSE.finditer(text, passage.start, passage.end):
            found.append(_strip_passage(text, start, match.start()))
            start = match.end()
        found.append(_strip_passage(text, start, passage.end))
    return [clause for clause in found if any(map(str.isalnum, clause.text))]


_PARTS: dict[str, Callable[[str], list[Passage]]] = {
    "headings": _heading_parts,
    "list": _list_items,
    "questions": _find_questions,
    "sentences": passages,
    "clauses": clauses,
}


def _open_questions(text: str, source: str) -> list[dict[str, object]]:
    return [
        passage.quote(source=source) for passage in passages(text) if _OPEN.search(passage.text)
    ]


def _find_overlaps(parts: list[Passage]) -> Iterator[dict[str, object]]:
    words_by_part = [dict.fromkeys(content_words(part.text)) for part in parts]
    for one, another in combinations(range(len(parts)), 2):
        shared = [word for word in words_by_part[one] if word in words_by_part[another]]
        if len(shared) > 1 and len(shared) >= _ALIKE * min(
            len(words_by_part[one]), len(words_by_part[another])
        ):
            yield {"a": f"c{one + 1}", "b": f"c{another + 1}", "shared": shared}


def extract_risks(
    target: object, context: str | None = None, risk_scope: str | None = None
) -> dict[str, object]:
    """Return the sentences of any JSON value that name a risk, an assumption, a failure or a
    mitigation.

    Each has `text`, its place (`path`, `start`, `end`), the `cue`, and `severity` if the sentence
    grades it. Denied risks are left out. A string under a key such as `risks` counts by its key.
    With `risk_scope` a sentence must share a word with it; the notes count the sentences that do
    not. `unknowns` quotes sentences that call something open. Raise Refused `no-evidence` for a
    target without text.
    """
    texts = [*strings_in(target), *([("context", context)] if context else [])]
    if not any(any(map(str.isalpha, text)) for _, text in texts):
        raise Refused("no-evidence", "the target holds no text")
    scope = set(stems(risk_scope or ""))
    entries_by_list: dict[str, list[dict[str, object]]] = {
        name: [] for name in (*_CUES, "unknowns")
    }
    sentence_count = out_of_scope = 0
    for path, text in texts:
        for passage in passages(text):
            sentence_count += 1
            cue_by_list = _find_cues(passage.text, path)
            if cue_by_list and scope and not scope & set(stems(f"{passage.text} {path}")):
                out_of_scope += 1
                continue
            for name, cue in cue_by_list.items():
                entries_by_list[name].append(
                    passage.quote(path=path, cue=cue) | _severity_entry(passage.text)
                )
    counts = ", ".join(
        f"{len(entries)} {name.replace('_', ' ')}" for name, entries in entries_by_list.items()
    )
    scope_note = f"; {out_of_scope} outside of the scope" if scope else ""
    text = "\n\n".join(text for _, text in texts)
    notes = f"{sentence_count} sentences read: {counts}{scope_note}"
    return {**entries_by_list, "extraction_notes": notes, "text": text, "method": "rules:cues"}


def _find_cues(sentence: str, path: str) -> dict[str, str]:
    """Return the word that puts a sentence into a list, by the list's name."""
    keys = [
        key
        for key in path.split("/")
        if key in (*_CUES, "risk", "assumption", "mitigations", "mitigation")
    ]
    cue_by_list = {_KEYS.get(key, key): key for key in keys[-1:]}
    for match in _CUE.finditer(sentence):
        if not _DENIED.search(sentence, max(0, match.start() - 20), match.start()):
            cue_by_list.setdefault(str(match.lastgroup), match[0])
    if unknown := _OPEN.search(sentence):
        cue_by_list["unknowns"] = unknown[0].strip()
    return cue_by_list


_KEYS = {"risk": "risks", "assumption": "assumptions"} | dict.fromkeys(
    ["mitigation", "mitigations"], "mitigation_ideas"
)


def _severity_entry(sentence: str) -> dict[str, object]:
    match = _SEVERITY.search(sentence)
    return {"severity": _GRADES.get((match[1] or match[2]).lower(), "high")} if match else {}
