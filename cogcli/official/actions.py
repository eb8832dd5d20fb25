"""Actions with owner and date, decisions, and open questions in minutes and notes. The cues are
English.
"""

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
    """Return the actions, decisions and questions of minutes, each with its line number.

    An action has `what`, `who` and `due` in the words of the text, null if the text lacks one.
    Sources are the lines under a matching heading, lines with a label or a check box, list items
    such as `Ana sends the draft by Friday`, and sentences that promise, decide or ask.
    """
    require_size(text, _MAX_TEXT)
    entries: dict[str, list[dict[str, object]]] = {"actions": [], "decisions": [], "questions": []}
    section = ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()[:_MAX_LINE]
        heading = _HEADINGS.fullmatch(line)
        if heading:
            title = heading[1] or heading[2]
            section = next((kind for kind, pattern in _OF_HEADING if pattern.search(title)), "")
        elif line.strip("-=*_| "):
            _add_entries_of_line(line, number, section, entries)
    return dict(entries)


def _add_entries_of_line(
    line: str, number: int, section: str, entries: dict[str, list[dict[str, object]]]
) -> None:
    """Add the entries of one line of minutes to `entries`, by their kind."""
    item = re.sub(r"^(?:[-*+•]|\d{1,3}[.)])\s+", "", line)
    is_list_item = item != line
    box = _BOX.match(item)
    if box:
        if box["done"] == " ":
            entries["actions"].append(_action_entry(item[box.end() :], number))
        return
    labelled = _LABELLED.match(item)
    if labelled:
        kind = _KINDS.get(labelled["label"][0].lower(), "actions")
        kind = "decisions" if labelled["label"].lower() == "agreed" else kind
        if labelled["rest"].strip():
            _add_entry(entries, kind, labelled["rest"].strip(), number)
    elif section and is_list_item:
        _add_entry(entries, section, item, number)
    elif is_list_item and _match_promise(item):
        entries["actions"].append(_action_entry(item, number))
    else:
        for sentence in split_sentences(item):
            _add_entry_of_sentence(sentence.text, number, entries)


def _add_entry_of_sentence(
    sentence: str, number: int, entries: dict[str, list[dict[str, object]]]
) -> None:
    """Add a sentence to `entries` if it asks, decides, or promises an action."""
    if sentence.rstrip("\"'”’)* ").endswith(("?", "？")):
        entries["questions"].append({"text": sentence, "line": number})
    elif _DECIDED.search(sentence):
        entries["decisions"].append({"text": sentence, "line": number})
    else:
        owned = _WILL.match(sentence) or _ASKED.match(sentence)
        if (owned and _is_name(owned["who"])) or _PLEASE.match(sentence):
            entries["actions"].append(_action_entry(sentence, number))


def _add_entry(
    entries: dict[str, list[dict[str, object]]], kind: str, text: str, number: int
) -> None:
    entries[kind].append(
        _action_entry(text, number) if kind == "actions" else {"text": text, "line": number}
    )


def _action_entry(text: str, number: int) -> dict[str, object]:
    """Return the entry of an action: what, who, due and line."""
    owned = _OWNED.match(text) or _WILL.match(text) or _ASKED.match(text)
    who = owned["who"] if owned and _is_name(owned["who"]) else None
    request = None if who else _PLEASE.match(text)
    what = owned["rest"] if owned and who else request["rest"] if request else text
    promise = None if who or request else _match_promise(text)
    if promise:
        who, what = promise["who"], f"{_infinitive_of(promise['verb'])}{promise['rest']}"
    owner_note = None if who else _BEHIND.search(text)
    if owner_note:
        who = owner_note["who"]
    due = _DUE.search(text)
    return {
        "what": what.strip(),
        "who": who,
        "due": (due[1] or due[2]) if due else None,
        "line": number,
    }


def _match_promise(item: str) -> re.Match[str] | None:
    """Return the match of an item such as `Ana writes the notes by Friday`, with a name, a verb and a term; otherwise
    None.
    """
    match = _PRESENT.match(item)
    return match if match and _is_name(match["who"]) and _TERM.search(match["rest"]) else None


def _infinitive_of(verb: str) -> str:
    """Return the verb without the ending of the third person: `write` for `writes`, `try` for
    `tries`.
    """
    if verb.endswith("ies"):
        return f"{verb[:-3]}y"
    return verb[:-2] if verb.endswith(("ches", "shes", "sses", "xes", "zzes", "oes")) else verb[:-1]


def _is_name(who: str) -> bool:
    """Return whether a match for a name may be one: its first word is no pronoun or article."""
    return who.split()[0].lower() not in _NO_ONE
