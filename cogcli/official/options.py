"""Options compared by the numbers they give: what stands out, what breaks a constraint, and a weighted score.

Nothing is estimated: an option without a number for a criterion is `unscored`, and says which one is missing.
"""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

from cogcli.official.values import is_number, kind_of
from cogcli.sdk import Refused

_MAX_OPTIONS = 500
_MAX_TRADEOFFS = 10
_NAMES = ("id", "name", "label", "option", "title")
_NESTED = ("attributes", "values", "metrics", "scores", "properties", "facts")
_PAIR = re.compile(r"([A-Za-z][\w -]{0,40}?) ?[:=] ?([-+]?[0-9]{1,15}(?:\.[0-9]{1,9})?)(?![\w.])")
_LOWER = frozenset(
    "price cost costs fee fees latency duration time delay delays error errors failure failures defect defects risk "
    "risks effort distance days hours minutes".split()
)
_DIRECTIONS = dict.fromkeys("min minimize minimise lower lowest low down".split(), "lower")
_DIRECTIONS |= dict.fromkeys("max maximize maximise higher highest high up".split(), "higher")
_WANTED = (
    ("lower", "lowest|minimi[sz]e|least|smallest|fewest|reduce|lower"),
    ("higher", "highest|maximi[sz]e|most|largest|greatest|increase|higher"),
)
_TOLERANCE = {"low": Fraction(2), "medium": Fraction(1), "high": Fraction(1, 2)}
_MAX_NAME = 80
_LINK = re.compile(r"(?: is| must be| should be| of)?\s{0,5}:?\s{0,5}$", re.IGNORECASE)
_LIMIT = re.compile(
    r"(?:(?P<max>at most|no more than|not over|up to|maximum|max|<=)|(?P<min>at least|no less than|minimum|min|>=)"
    r"|(?P<below>below|under|less than|<)|(?P<above>above|over|more than|>))"
    r"(?: of)?\s?[$€£]?(?P<limit>[0-9]{1,15}(?:\.[0-9]{1,6})?)",
    re.IGNORECASE,
)
_HOLDS = {
    "max": lambda value, limit: value <= limit,
    "min": lambda value, limit: value >= limit,
    "below": lambda value, limit: value < limit,
    "above": lambda value, limit: value > limit,
}


class DecisionOption(NamedTuple):
    """An option as given, with its name and its attributes by plain name."""

    id: str
    given: object
    attributes: dict[str, object]

    def number(self, name: str) -> Fraction | None:
        """Return the number it gives for an attribute; None without one."""
        value = self.attributes.get(name)
        return Fraction(value) if is_number(value) else None


class Criterion(NamedTuple):
    """What options are scored by."""

    name: str
    weight: Fraction
    direction: str
    direction_from: str

    def to_entry(self, status: str) -> dict[str, object]:
        """Return the criterion as part of an answer."""
        return {**self._asdict(), "weight": float(self.weight), "status": status}


def read_options(options: list[object]) -> list[DecisionOption]:
    """Return the options by their names. Refused: none (`no-evidence`), too many, two of one name or none with
    content.
    """
    if not options:
        raise Refused("no-evidence", "there are no options")
    if len(options) > _MAX_OPTIONS:
        raise Refused("too-large", f"{len(options)} options; at most {_MAX_OPTIONS} are compared")
    read = [_read(option, position) for position, option in enumerate(options, 1)]
    (name, count), *_ = Counter(option.id for option in read).most_common(1)
    if count > 1:
        raise Refused(
            "bad-data", f"two options are called {name!r:.60}", "give each an `id` of its own"
        )
    return read


def _read(option: object, position: int) -> DecisionOption:
    if isinstance(option, str):
        return DecisionOption(
            option.partition(":")[0].strip() or f"option-{position}", option, numbers_in(option)
        )
    if not isinstance(option, dict):
        raise Refused(
            "bad-data", f"option {position}: expected text or an object, found {kind_of(option)}"
        )
    names = (str(option[key]) for key in _NAMES if isinstance(option.get(key), (str, int)))
    name = next(names, f"option-{position}")
    inner = option["option"] if isinstance(option.get("option"), dict) else {}
    return DecisionOption(name, option, _attributes(inner) | _attributes(option))


def _attributes(option: dict[str, object]) -> dict[str, object]:
    """Return what is under `attributes` or the like by plain name; without any of these the fields themselves."""
    nested = [part for key in _NESTED if isinstance(part := option.get(key), dict)]
    return {plain(key): value for part in nested or [option] for key, value in part.items()}


def numbers_in(text: str) -> dict[str, object]:
    """Return the numbers that a text gives as `name: number` or `name = number`, by plain name."""
    return {plain(name): float(number) for name, number in _PAIR.findall(text)}


def plain(name: object) -> str:
    """Return an attribute's name as it is compared: small letters, spaces for `_` and `-`."""
    return " ".join(re.split(r"[\s_-]+", str(name).strip().casefold()))


def direction_of(name: str, goal: str) -> tuple[str, str]:
    """(lower or higher, what says so: goal, name or default) of what is better."""
    for direction, words in _WANTED:
        if re.search(rf"\b(?:{words}) (?:the |in )?{re.escape(name)}\b", plain(goal)):
            return direction, "goal"
    return ("lower", "name") if _LOWER & set(name.split()) else ("higher", "default")


def analyze_options(
    options: list[object],
    goal: str,
    context: str | None = None,
    constraints: dict[str, object] | None = None,
) -> dict[str, object]:
    """Return each option with its attributes, where it is best and worst of all, and which constraints it breaks.

    Constraints are those given, and limits that goal or context state beside an attribute (`price at most 500`).
    Best and worst need an attribute that two options have as a number, and a direction that the goal or its name
    gives; otherwise `stands_out` says highest and lowest. Refused: no options (`no-evidence`), two of one name.
    """
    read = read_options(options)
    names = list(dict.fromkeys(name for option in read for name in option.attributes))
    shared = {
        name: [n for option in read if (n := option.number(name)) is not None] for name in names
    }
    compared = {name: numbers for name, numbers in shared.items() if len(set(numbers)) > 1}
    stated = _stated_limits(list(shared), goal, context or "")
    analyzed = [_analyzed(option, compared, goal, constraints or {}, stated) for option in read]
    broken = sum(1 for entry in analyzed if entry["broken_constraints"])
    notes = f"{len(read)} options, {len(compared)} attributes compared, {broken} options break a constraint"
    return {"analyzed_options": analyzed, "analysis_notes": notes, "method": "rules:extremes"}


def _analyzed(
    option: DecisionOption,
    compared: dict[str, list[Fraction]],
    goal: str,
    constraints: dict[str, object],
    stated: list[tuple[str, str, Fraction, str]],
) -> dict[str, object]:
    out: list[dict[str, object]] = []
    for name, numbers in compared.items():
        number = option.number(name)
        direction, source = direction_of(name, goal)
        ends = {"lower": ("best", "worst"), "higher": ("worst", "best")}[direction]
        low, high = ("lowest", "highest") if source == "default" else ends
        place = low if number == min(numbers) else high if number == max(numbers) else ""
        if place:
            out.append(
                {
                    "attribute": name,
                    "value": option.attributes[name],
                    "is": place,
                    "of": len(numbers),
                }
            )
    broken, unchecked = check_constraints(option, constraints)
    broken += [
        {"constraint": quote, "attribute": name, "found": option.attributes[name]}
        for name, kind, limit, quote in stated
        if (number := option.number(name)) is not None and not _HOLDS[kind](number, limit)
    ]
    return {
        "id": option.id,
        "option": option.given,
        "attributes": {
            n: value for n, value in option.attributes.items() if n not in (*_NAMES, *_NESTED)
        },
        "best_on": [entry["attribute"] for entry in out if entry["is"] == "best"],
        "worst_on": [entry["attribute"] for entry in out if entry["is"] == "worst"],
        "stands_out": out,
        "broken_constraints": broken,
        "unchecked_constraints": unchecked,
    }


def _stated_limits(names: list[str], *texts: str) -> list[tuple[str, str, Fraction, str]]:
    """(attribute, kind, limit, quote) of each limit that a text states right after the name of an attribute."""
    found = []
    known = set(names)
    for text in texts:
        for match in _LIMIT.finditer(text):
            before = text[max(0, match.start() - _MAX_NAME) : match.start()]
            ahead = plain(_LINK.sub("", before))
            words = ahead.split()
            name = next(
                (name for n in range(len(words)) if (name := " ".join(words[n:])) in known), ""
            )
            if name:
                kind = next(kind for kind in _HOLDS if match[kind])
                start = match.start() - len(before) + _start_of(name, before)
                found.append((name, kind, Fraction(match["limit"]), text[start : match.end()]))
    return found


def _start_of(name: str, before: str) -> int:
    """Return where the last mention of an attribute begins in the text before its limit."""
    spelled = r"[\s_-]+".join(map(re.escape, name.split()))
    return max((match.start() for match in re.finditer(spelled, before, re.IGNORECASE)), default=0)


def check_constraints(
    option: DecisionOption, constraints: dict[str, object]
) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """(broken, unchecked) of `{max_price: 5}`, `{price: {max: 5, min: 1, below: 6, above: 0}}`, `{kind: [a, b]}`,
    `{kind: a}`. Unchecked is what the option gives no such value for."""
    broken, unchecked = [], []
    for key, given in constraints.items():
        name = plain(key)
        kind, _, rest = name.partition(" ")
        limits: dict[str, object] = given if isinstance(given, dict) else {}
        if kind in ("max", "min") and rest and not limits:
            name, limits = rest, {kind: given}
        value = option.attributes.get(name)
        holds = _fits(value, option.number(name), limits) if limits else _equals(value, given)
        entry = {"constraint": {key: given}, "attribute": name, "found": value}
        if value is None or holds is None:
            unchecked.append(entry)
        elif not holds:
            broken.append(entry)
    return broken, unchecked


def _fits(value: object, number: Fraction | None, limits: dict[str, object]) -> bool | None:
    found = []
    for kind, limit in limits.items():
        if kind not in _HOLDS or number is None or not is_number(limit):
            return None
        found.append(_HOLDS[kind](number, Fraction(limit)))
    return all(found)


def _equals(value: object, given: object) -> bool:
    listed = given if isinstance(given, list) else [given]
    return any(value == one and type(value) is type(one) for one in listed)


def score_options(
    options: list[object],
    goal: str,
    criteria: list[object] | None = None,
    risk_tolerance: str | None = None,
) -> dict[str, object]:
    """Return a score from 0 to 1 for each option: the weighted mean of its numbers, each between the worst and the
    best.

    `criteria` are names, or objects with `name`, `weight` (1) and `direction` (lower, higher); without any, every
    attribute that all options give as a number. What is better is said by the criterion, the goal or the name, else
    higher; `criteria_used` tells which. A tolerance of low doubles the weight of criteria called risk, high halves it.
    An option that lacks a number for a criterion that another has is `unscored`, one of all equal numbers is best.
    """
    read = read_options(options)
    wanted = _criteria(criteria, read, goal, risk_tolerance)
    known = [c for c in wanted if any(option.number(c.name) is not None for option in read)]
    missing = {o.id: [c.name for c in known or wanted if o.number(c.name) is None] for o in read}
    scored = [option for option in read if known and not missing[option.id]]
    scored = scored if len(scored) > 1 and any(c.weight for c in known) else []
    values = {o.id: {c.name: o.number(c.name) or Fraction() for c in known} for o in scored}
    columns = {c.name: [own[c.name] for own in values.values()] for c in known}
    parts = {
        name: {c.name: _part(own[c.name], c, columns[c.name]) for c in known}
        for name, own in values.items()
    }
    total = sum(c.weight for c in known)
    scores = {
        name: sum((c.weight * own[c.name] for c in known), Fraction()) / total
        for name, own in parts.items()
    }
    ranked = sorted(read, key=lambda option: (-scores.get(option.id, Fraction(-1)), option.id))
    entries = [_entry(option, scores, parts, missing, len(read)) for option in ranked]
    return {
        "scored_options": entries,
        "criteria_used": [c.to_entry("scored" if c in known else "unscored") for c in wanted],
        "comparative_summary": _summary(entries, known, risk_tolerance),
        "tradeoffs": list(_tradeoffs([o.id for o in ranked if o.id in scores][:5], parts)),
        "method": "rules:weighted-min-max",
    }


def _criteria(
    given: list[object] | None, read: list[DecisionOption], goal: str, tolerance: str | None
) -> list[Criterion]:
    if tolerance is not None and tolerance not in _TOLERANCE:
        raise Refused(
            "bad-data", f"risk_tolerance must be {', '.join(_TOLERANCE)}, found {tolerance!r:.40}"
        )
    if not given:
        first = [name for name in read[0].attributes if name not in _NAMES]
        given = [name for name in first if all(option.number(name) is not None for option in read)]
    found = [_criterion(entry, goal) for entry in given]
    factor = _TOLERANCE[tolerance or "medium"]
    return list(
        {
            c.name: c._replace(weight=c.weight * (factor if _is_risk(c) else 1)) for c in found
        }.values()
    )


def _is_risk(criterion: Criterion) -> bool:
    return not {"risk", "risks"}.isdisjoint(criterion.name.split())


def _criterion(entry: object, goal: str) -> Criterion:
    fields = entry if isinstance(entry, dict) else {"name": entry}
    names = [fields.get(key) for key in ("name", "id", "criterion", "label")]
    name = next((name for name in names if isinstance(name, str)), "")
    weight = fields.get("weight", 1)
    if not name or not is_number(weight) or not 0 <= weight <= 1e6:
        raise Refused(
            "bad-data", f"criterion {entry!r:.60}: expected a name, and a weight from 0 to 1e6"
        )
    direction, source = direction_of(plain(name), goal)
    said = next((fields[key] for key in ("direction", "goal", "better") if fields.get(key)), None)
    if said is not None:
        direction, source = _DIRECTIONS.get(plain(said), ""), "criterion"
        if not direction:
            raise Refused(
                "bad-data",
                f"criterion {name!r:.40}: direction must be lower or higher, found {said!r:.40}",
            )
    return Criterion(plain(name), Fraction(weight), direction, source)


def _part(own: Fraction, criterion: Criterion, numbers: list[Fraction]) -> Fraction:
    """Return where a number lies between the worst (0) and the best (1); 1 where all are equal."""
    low, high = min(numbers), max(numbers)
    if low == high:
        return Fraction(1)
    return (own - low if criterion.direction == "higher" else high - own) / (high - low)


def _entry(
    option: DecisionOption,
    scores: dict[str, Fraction],
    parts: dict[str, dict[str, Fraction]],
    missing: dict[str, list[str]],
    total: int,
) -> dict[str, object]:
    entry: dict[str, object] = {"id": option.id, "option": option.given}
    if option.id in scores:
        score = scores[option.id]
        rank = 1 + sum(other > score for other in scores.values())
        shown = {name: round(float(part), 6) for name, part in parts[option.id].items()}
        return entry | {
            "status": "scored",
            "score": round(float(score), 6),
            "rank": rank,
            "parts": shown,
        }
    lacks = missing[option.id]
    reason = f"no number for {', '.join(lacks)}" if lacks else "nothing to compare it with"
    return entry | {"status": "unscored", "score": None, "missing": lacks, "reason": reason}


def _summary(
    entries: list[dict[str, object]], known: list[Criterion], tolerance: str | None
) -> str:
    scored = [entry for entry in entries if entry["status"] == "scored"]
    said = [f"{len(entries)} options, {len(scored)} of them scored by {len(known)} criteria."]
    if scored:
        said.append("; ".join(f"{entry['id']}: {entry['score']}" for entry in scored[:10]) + ".")
    best = [str(entry["id"]) for entry in scored if entry["rank"] == 1]
    if len(best) > 1:
        said.append(f"Tie at the top: {', '.join(best)}.")
    lacking = [
        f"{entry['id']} ({entry['reason']})" for entry in entries if entry["status"] == "unscored"
    ]
    if lacking:
        said.append(f"Unscored: {', '.join(lacking[:10])}.")
    if tolerance and not any(map(_is_risk, known)):
        said.append("No criterion is called risk, so the risk tolerance changed nothing.")
    return " ".join(said)


def _tradeoffs(best: list[str], parts: dict[str, dict[str, Fraction]]) -> list[dict[str, object]]:
    """Return pairs of the best five where each is better by some criterion."""
    found: list[dict[str, object]] = []
    for a, b in combinations(best, 2):
        of_a = [name for name, part in parts[a].items() if part > parts[b][name]]
        of_b = [name for name, part in parts[b].items() if part > parts[a][name]]
        if of_a and of_b:
            found.append({"a": a, "b": b, "a_better_on": of_a, "b_better_on": of_b})
    return found[:_MAX_TRADEOFFS]
