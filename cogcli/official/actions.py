"""What minutes and notes leave to do: actions with who and when, decisions, open questions. The cues are English."""

from __future__ import annotations

import re

from cogcli.official.sentences import require_size, split_sentences

_MAX_TEXT = 1_000_000
_MAX_LINE = 2_000
_TITLE = r"(?:(?:Mr|Mrs|Ms|Dr|Prof)\.? )?(?:[A-Z]\. ){0,2}"
_NAME = rf"(?-i:{_TITLE}[A-Z][\w'’-]{{1,30}}(?: (?:[A-Z][\w'’-]{{1,30}}|[A-Z]\.)){{0,2}})"
_DAY = (
    r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|tomorrow|today|tonight|noon|eod|end of (?:the )?(?:day|week|month)"
    r"|next (?:week|month|(?:mon|tues|wednes|thurs|fri|satur|sun)day)|\d{4}-\d\d-\d\d"
    r"|\d{1,2}(?:st|nd|rd|th)?(?: of)? (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}(?: \d{4})?"
    r"|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6} \d{1,2}(?:st|nd|rd|th)?(?:,? \d{4})?"
    r"|\d{1,2}[./]\d{1,2}(?:[./]\d{2,4})?)"
)
_DUE = re.compile(
    rf"\b(?:by|before|until|till|due(?: on)?:?|on|not later than)\s+({_DAY})\b|\b(tomorrow|eod)\b",
    re.I,
)
_LABELLED = re.compile(
    r"(?:\*\*)?(?P<label>action(?: items?| points?)?|to-?do|task|next steps?|ai|ap|decision|decided|agreed|resolution"
    r"|open (?:question|point|issue)|question)(?:\*\*)?\s*[:–-](?:\*\*)?\s*(?P<rest>.*)",
    re.I | re.S,
)
_KINDS = {"d": "decisions", "r": "decisions", "o": "questions", "q": "questions"}
_BOX = re.compile(r"\[(?P<done>[ xX])\]\s+")
_OWNED = re.compile(rf"(?P<who>@[\w.-]{{2,40}}|{_NAME})\s*(?::|–|—)\s+(?P<rest>\S.*)", re.S)
_WILL = re.compile(
    rf"(?P<who>@[\w.-]{{2,40}}|{_NAME}|I|we)\s+"
    r"(?:will|shall|is going to|are going to|is to|are to|needs? to|must|to|agreed to|promised to|has to|have to)\s+"
    r"(?P<rest>(?!not\b|be\b|have been\b)[a-z].*)",
    re.I | re.S,
)
_HAPPENS = "is was has does says thinks wants needs arrives leaves starts begins ends opens closes comes goes expires"
_PRESENT = re.compile(
    rf"(?P<who>@[\w.-]{{2,40}}|{_NAME})\s+(?!(?:{'|'.join(_HAPPENS.split())})\b)(?P<verb>[a-z]{{2,20}}s)"
    r"(?P<rest>\s+\S.*)",
    re.S,
)
_TERM = re.compile(
    rf"\b(?:by|before|until|till|due(?: on)?:?|not later than)\s+{_DAY}\b|\b(?:tomorrow|eod)\b",
    re.I,
)
_ASKED = re.compile(
    rf"(?:please\s+)?(?P<who>{_NAME}),?\s+(?:please|could you|can you)\s+(?P<rest>[a-z].*)", re.S
)
# What stands behind `please` and asks for nothing to be done.
_POLITE = "note find see refer accept excuse be feel don't do disregard ignore bear keep contact"
_PLEASE = re.compile(
    rf"(?:(?:and|also|so|then),? )?please,? (?P<rest>(?!(?:{'|'.join(_POLITE.split())})\b)[a-z].*)",
    re.I | re.S,
)
_BEHIND = re.compile(rf"\(\s*(?:owner:?\s*)?(?P<who>@[\w.-]{{2,40}}|{_NAME})\s*(?:[,;)])")
_DECIDED = re.compile(
    r"\b(?:(?:we|they|the (?:team|board|group|committee|council)|it was|all|everybody) (?:have |has )?(?:unanimously )?"
    r"(?:decided|agreed|resolved|approved)|(?:was|were) (?:approved|rejected|adopted|decided|agreed))\b",
    re.I,
)
_NO_ONE = frozenset(
    "the this that there it what who when where why how if but and or so then".split()
)
_HEADINGS = re.compile(r"#{1,6}\s+(.{1,200})|(?:\*\*)?([A-Z][\w ]{2,40}):?(?:\*\*)?:?$")
_OF_HEADING = (
    ("actions", re.compile(r"\b(?:actions?|to-?dos?|tasks|next steps)\b", re.I)),
    ("decisions", re.compile(r"\b(?:decisions?|decided|resolutions?)\b", re.I)),
    ("questions", re.compile(r"\b(?:open (?:questions?|points|issues)|questions)\b", re.I)),
)


def extract_actions(text: str) -> dict[str, object]:
    """Return the actions, decisions and questions of minutes, each with the line it stands in.

    An action has `what`, `who` and `due` as the text states them, null for what it does not state. Found are lines
    under such a heading, with such a label or a check box, list items of who does what by when, and sentences of who
    will do what, what was decided, what is asked.
    """
    require_size(text, _MAX_TEXT)
    found: dict[str, list[dict[str, object]]] = {"actions": [], "decisions": [], "questions": []}
    section = ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()[:_MAX_LINE]
        heading = _HEADINGS.fullmatch(line)
        if heading:
            title = heading[1] or heading[2]
            section = next((kind for kind, pattern in _OF_HEADING if pattern.search(title)), "")
        elif line.strip("-=*_| "):
            _read_line(line, number, section, found)
    return dict(found)


def _read_line(
    line: str, number: int, section: str, found: dict[str, list[dict[str, object]]]
) -> None:
    item = re.sub(r"^(?:[-*+•]|\d{1,3}[.)])\s+", "", line)
    listed = item != line
    box = _BOX.match(item)
    if box:
        if box["done"] == " ":
            found["actions"].append(_action(item[box.end() :], number))
        return
    labelled = _LABELLED.match(item)
    if labelled:
        kind = _KINDS.get(labelled["label"][0].lower(), "actions")
        kind = "decisions" if labelled["label"].lower() == "agreed" else kind
        if labelled["rest"].strip():
            _add(found, kind, labelled["rest"].strip(), number)
    elif section and listed:
        _add(found, section, item, number)
    elif listed and _promised(item):
        found["actions"].append(_action(item, number))
    else:
        for sentence in split_sentences(item):
            _read_sentence(sentence.text, number, found)


def _read_sentence(sentence: str, number: int, found: dict[str, list[dict[str, object]]]) -> None:
    if sentence.rstrip("\"'”’)* ").endswith(("?", "？")):
        found["questions"].append({"text": sentence, "line": number})
    elif _DECIDED.search(sentence):
        found["decisions"].append({"text": sentence, "line": number})
    else:
        owned = _WILL.match(sentence) or _ASKED.match(sentence)
        if (owned and _named(owned["who"])) or _PLEASE.match(sentence):
            found["actions"].append(_action(sentence, number))


def _add(found: dict[str, list[dict[str, object]]], kind: str, text: str, number: int) -> None:
    found[kind].append(
        _action(text, number) if kind == "actions" else {"text": text, "line": number}
    )


def _action(text: str, number: int) -> dict[str, object]:
    owned = _OWNED.match(text) or _WILL.match(text) or _ASKED.match(text)
    who = owned["who"] if owned and _named(owned["who"]) else None
    asked = None if who else _PLEASE.match(text)
    what = owned["rest"] if owned and who else asked["rest"] if asked else text
    promised = None if who or asked else _promised(text)
    if promised:
        who, what = promised["who"], f"{_infinitive(promised['verb'])}{promised['rest']}"
    behind = None if who else _BEHIND.search(text)
    if behind:
        who = behind["who"]
    due = _DUE.search(text)
    return {
        "what": what.strip(),
        "who": who,
        "due": (due[1] or due[2]) if due else None,
        "line": number,
    }


def _promised(item: str) -> re.Match[str] | None:
    """Return the parts of `Ana writes the notes by Friday`: somebody does something, and a term is set."""
    found = _PRESENT.match(item)
    return found if found and _named(found["who"]) and _TERM.search(found["rest"]) else None


def _infinitive(verb: str) -> str:
    """`write` of `writes`, `fix` of `fixes`, `try` of `tries`."""
    if verb.endswith("ies"):
        return f"{verb[:-3]}y"
    return verb[:-2] if verb.endswith(("ches", "shes", "sses", "xes", "zzes", "oes")) else verb[:-1]


def _named(who: str) -> bool:
    return who.split()[0].lower() not in _NO_ONE
