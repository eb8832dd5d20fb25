"""What a text itself says of a problem: its parts, risks, assumptions, failures. Every entry is a quote.

The cues are lists of English words: an entry says where to look, and a text without cues gives empty lists.
"""

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

    `strategy` is headings, list, questions, sentences, clauses, or auto: the first of these that gives two parts.
    `gaps` quotes what the text, or the context, calls open; `overlaps` are pairs of parts with mostly the same words.
    Refused: another strategy (`needs-model`), no text (`no-evidence`), fewer than two parts (`needs-model`).
    """
    known = ", ".join([*_PARTS, "auto"])
    if strategy not in (*_PARTS, "auto"):
        message = f"splitting by {strategy!r:.60} asks for judgement; by rules a text is split by: {known}"
        raise Refused(
            "needs-model", message, "choose one of these, or a binding of a language model"
        )
    if not problem.strip():
        raise Refused("no-evidence", "the problem is empty")
    tried = _PARTS if strategy == "auto" else {strategy: _PARTS[strategy]}
    used, parts = next(
        ((name, found) for name, find in tried.items() if len(found := find(problem)) > 1), ("", [])
    )
    if not parts:
        raise Refused(
            "needs-model", f"the text has no two parts by {strategy}", f"other ways: {known}"
        )
    kept = parts[: min(_MAX_PARTS, max(2, int(max_components)))]
    components = [part.quote(id=f"c{number}", part=used) for number, part in enumerate(kept, 1)]
    return {
        "components": components,
        "gaps": [*_gaps(problem, "problem"), *_gaps(context or "", "context")],
        "overlaps": list(_overlaps(kept)),
        "decomposition_notes": f"{len(kept)} of {len(parts)} parts by {used}",
        "strategy_used": used,
        "method": "rules:structure",
    }


def _headings(text: str) -> list[Passage]:
    starts = [block.start for block in blocks(text) if block.kind == "heading"]
    ends = [text.rfind("\n", 0, start) for start in starts[1:]] + [len(text)]
    return [_cut(text, start, end) for start, end in zip(starts, ends, strict=False)]


def _cut(text: str, start: int, end: int) -> Passage:
    kept = text[start:end].rstrip()
    lead = len(kept) - len(kept.lstrip())
    return Passage(kept[lead:], start + lead, start + len(kept))


def _list(text: str) -> list[Passage]:
    return [
        Passage(text[b.start : b.end], b.start, b.end) for b in blocks(text) if b.kind == "item"
    ]


def _questions(text: str) -> list[Passage]:
    if text.count("?") + text.count("？") < 2:
        return []
    return [passage for passage in passages(text) if passage.text.endswith(("?", "？"))]


def clauses(text: str) -> list[Passage]:
    """Return the sentences of a text, cut at semicolons, `and`, `then`, `but`."""
    found: list[Passage] = []
    for passage in passages(text):
        start = passage.start
        for match in _CLAUSE.finditer(text, passage.start, passage.end):
            found.append(_cut(text, start, match.start()))
            start = match.end()
        found.append(_cut(text, start, passage.end))
    return [clause for clause in found if any(map(str.isalnum, clause.text))]


_PARTS: dict[str, Callable[[str], list[Passage]]] = {
    "headings": _headings,
    "list": _list,
    "questions": _questions,
    "sentences": passages,
    "clauses": clauses,
}


def _gaps(text: str, source: str) -> list[dict[str, object]]:
    return [
        passage.quote(source=source) for passage in passages(text) if _OPEN.search(passage.text)
    ]


def _overlaps(parts: list[Passage]) -> Iterator[dict[str, object]]:
    words = [dict.fromkeys(content_words(part.text)) for part in parts]
    for one, other in combinations(range(len(parts)), 2):
        shared = [word for word in words[one] if word in words[other]]
        if len(shared) > 1 and len(shared) >= _ALIKE * min(len(words[one]), len(words[other])):
            yield {"a": f"c{one + 1}", "b": f"c{other + 1}", "shared": shared}


def extract_risks(
    target: object, context: str | None = None, risk_scope: str | None = None
) -> dict[str, object]:
    """Return the sentences of any JSON value that name a risk, an assumption, a failure or what is done against one.

    Each has `text`, its place (`path`, `start`, `end`), the `cue`, and `severity` where the sentence grades it. A
    denied risk is none. A string under a key such as `risks` counts by its key. With `risk_scope` a sentence must
    share a word with it; the notes say how many did not. `unknowns` quotes what the text calls open.
    Refused: a target without any text (`no-evidence`).
    """
    texts = [*strings_in(target), *([("context", context)] if context else [])]
    if not any(any(map(str.isalpha, text)) for _, text in texts):
        raise Refused("no-evidence", "the target holds no text")
    scope = set(stems(risk_scope or ""))
    found: dict[str, list[dict[str, object]]] = {name: [] for name in (*_CUES, "unknowns")}
    read = outside = 0
    for path, text in texts:
        for passage in passages(text):
            read += 1
            named = _cues(passage.text, path)
            if named and scope and not scope & set(stems(f"{passage.text} {path}")):
                outside += 1
                continue
            for name, cue in named.items():
                found[name].append(passage.quote(path=path, cue=cue) | _severity(passage.text))
    counts = ", ".join(
        f"{len(entries)} {name.replace('_', ' ')}" for name, entries in found.items()
    )
    beyond = f"; {outside} outside of the scope" if scope else ""
    text = "\n\n".join(text for _, text in texts)
    notes = f"{read} sentences read: {counts}{beyond}"
    return {**found, "extraction_notes": notes, "text": text, "method": "rules:cues"}


def _cues(sentence: str, path: str) -> dict[str, str]:
    """Return the list that a sentence belongs to, and the word that says so."""
    keys = [
        key
        for key in path.split("/")
        if key in (*_CUES, "risk", "assumption", "mitigations", "mitigation")
    ]
    found = {_KEYS.get(key, key): key for key in keys[-1:]}
    for match in _CUE.finditer(sentence):
        if not _DENIED.search(sentence, max(0, match.start() - 20), match.start()):
            found.setdefault(str(match.lastgroup), match[0])
    if unknown := _OPEN.search(sentence):
        found["unknowns"] = unknown[0].strip()
    return found


_KEYS = {"risk": "risks", "assumption": "assumptions"} | dict.fromkeys(
    ["mitigation", "mitigations"], "mitigation_ideas"
)


def _severity(sentence: str) -> dict[str, object]:
    match = _SEVERITY.search(sentence)
    return {"severity": _GRADES.get((match[1] or match[2]).lower(), "high")} if match else {}
