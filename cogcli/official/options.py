"""Compares options by their numbers: what stands out, which constraints they break, and a weighted
score.
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
    """An option as given, with its id, and its attributes by normalized name."""

    id: str
    given: object
    attributes: dict[str, object]

    def number(self, name: str) -> Fraction | None:
        """Return the number of an attribute, or None."""
        value = self.attributes.get(name)
        return Fraction(value) if is_number(value) else None


class Criterion(NamedTuple):
    """An attribute to score options by, with its weight and the better direction."""

    name: str
    weight: Fraction
    direction: str
    direction_from: str

    def to_entry(self, status: str) -> dict[str, object]:
        """Return the criterion as a member of the answer."""
        return {**self._asdict(), "weight": float(self.weight), "status": status}


def read_options(options: list[object]) -> list[DecisionOption]:
    """Return the options with their ids. Raise Refused for none (`no-evidence`), too many, or two
    of one id.
    """
    if not options:
        raise Refused("no-evidence", "there are no options")
    if len(options) > _MAX_OPTIONS:
        raise Refused("too-large", f"{len(options)} options; at most {_MAX_OPTIONS} are compared")
    parsed = [_read_option(option, position) for position, option in enumerate(options, 1)]
    (name, count), *_ = Counter(option.id for option in parsed).most_common(1)
    if count > 1:
        raise Refused(
            "bad-data", f"two options are called {name!r:.60}", "give each an `id` of its own"
        )
    return parsed


def _read_option(option: object, position: int) -> DecisionOption:
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
    return DecisionOption(name, option, _attributes_of(inner) | _attributes_of(option))


def _attributes_of(option: dict[str, object]) -> dict[str, object]:
    """Return the members of `attributes` or a similar key, by normalized name; without any, the
    option's own members.
    """
    nested = [part for key in _NESTED if isinstance(part := option.get(key), dict)]
    return {
        normalize_name(key): value for part in nested or [option] for key, value in part.items()
    }


def numbers_in(text: str) -> dict[str, object]:
    """Return the numbers written as `name: number` or `name = number` in a text, by normalized name."""
    return {normalize_name(name): float(number) for name, number in _PAIR.findall(text)}


def normalize_name(name: object) -> str:
    """Return the name of an attribute in the form used for comparison: lower case, blanks instead
    of `_` and `-`.
    """
    return " ".join(re.split(r"[\s_-]+", str(name).strip().casefold()))


def direction_of(name: str, goal: str) -> tuple[str, str]:
    """Return which direction is better (lower or higher), and where that follows from (goal, name
    or default).
    """
    for direction, verbs in _WANTED:
        if re.search(rf"\b(?:{verbs}) (?:the |in )?{re.escape(name)}\b", normalize_name(goal)):
            return direction, "goal"
    return ("lower", "name") if _LOWER & set(name.split()) else ("higher", "default")


def analyze_options(
    options: list[object],
    goal: str,
    context: str | None = None,
    constraints: dict[str, object] | None = None,
) -> dict[str, object]:
    """Return each option with its attributes, where it is best and worst, and the constraints it
    breaks.

    Constraints are the given ones, and limits in goal or context such as `price at most 500`. Best
    and worst need an attribute that two options have as a number, and a direction from the goal or
    the name; otherwise `stands_out` reports highest and lowest. Raise Refused for no options
    (`no-evidence`), or two of one name.
    """
    parsed = read_options(options)
    names = list(dict.fromkeys(name for option in parsed for name in option.attributes))
    numbers_by_name = {
        name: [n for option in parsed if (n := option.number(name)) is not None] for name in names
    }
    compared = {name: numbers for name, numbers in numbers_by_name.items() if len(set(numbers)) > 1}
    stated_limits = _stated_limits(list(numbers_by_name), goal, context or "")
    analyzed = [
        _analyze_option(option, compared, goal, constraints or {}, stated_limits)
        for option in parsed
    ]
    broken = sum(1 for entry in analyzed if entry["broken_constraints"])
    notes = f"{len(parsed)} options, {len(compared)} attributes compared, {broken} options break a constraint"
    return {"analyzed_options": analyzed, "analysis_notes": notes, "method": "rules:extremes"}


def _analyze_option(
    option: DecisionOption,
    compared: dict[str, list[Fraction]],
    goal: str,
    constraints: dict[str, object],
    stated_limits: list[tuple[str, str, Fraction, str]],
) -> dict[str, object]:
    extremes: list[dict[str, object]] = []
    for name, numbers in compared.items():
        number = option.number(name)
        direction, source = direction_of(name, goal)
        ends = {"lower": ("best", "worst"), "higher": ("worst", "best")}[direction]
        low, high = ("lowest", "highest") if source == "default" else ends
        place = low if number == min(numbers) else high if number == max(numbers) else ""
        if place:
            extremes.append(
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
        for name, kind, limit, quote in stated_limits
        if (number := option.number(name)) is not None and not _HOLDS[kind](number, limit)
    ]
    return {
        "id": option.id,
        "option": option.given,
        "attributes": {
            n: value for n, value in option.attributes.items() if n not in (*_NAMES, *_NESTED)
        },
        "best_on": [entry["attribute"] for entry in extremes if entry["is"] == "best"],
        "worst_on": [entry["attribute"] for entry in extremes if entry["is"] == "worst"],
        "stands_out": extremes,
        "broken_constraints": broken,
        "unchecked_constraints": unchecked,
    }


def _stated_limits(names: list[str], *texts: str) -> list[tuple[str, str, Fraction, str]]:
    """Return (attribute, kind, limit, quote) of each limit that directly follows an attribute's
    name in a text.
    """
    limits = []
    known_names = set(names)
    for text in texts:
        for match in _LIMIT.finditer(text):
            text_before = text[max(0, match.start() - _MAX_NAME) : match.start()]
            normalized = normalize_name(_LINK.sub("", text_before))
            name_words = normalized.split()
            name = next(
                (
                    name
                    for n in range(len(name_words))
                    if (name := " ".join(name_words[n:])) in known_names
                ),
                "",
            )
            if name:
                kind = next(kind for kind in _HOLDS if match[kind])
                start = match.start() - len(text_before) + _last_mention(name, text_before)
                limits.append((name, kind, Fraction(match["limit"]), text[start : match.end()]))
    return limits


def _last_mention(name: str, text_before: str) -> int:
    """Return where the last mention of an attribute begins in the text before its limit."""
    pattern = r"[\s_-]+".join(map(re.escape, name.split()))
    return max(
        (match.start() for match in re.finditer(pattern, text_before, re.IGNORECASE)), default=0
    )


def check_constraints(
    option: DecisionOption, constraints: dict[str, object]
) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Return the broken and the unchecked constraints of an option.

    Forms: `{max_price: 5}`, `{price: {max: 5, min: 1, below: 6, above: 0}}`, `{kind: [a, b]}`,
    `{kind: a}`. A constraint is unchecked if the option has no such value.
    """
    broken, unchecked = [], []
    for key, expected in constraints.items():
        name = normalize_name(key)
        kind, _, attribute = name.partition(" ")
        limits: dict[str, object] = expected if isinstance(expected, dict) else {}
        if kind in ("max", "min") and attribute and not limits:
            name, limits = attribute, {kind: expected}
        value = option.attributes.get(name)
        holds = (
            _is_within(value, option.number(name), limits)
            if limits
            else _equals_any(value, expected)
        )
        entry = {"constraint": {key: expected}, "attribute": name, "found": value}
        if value is None or holds is None:
            unchecked.append(entry)
        elif not holds:
            broken.append(entry)
    return broken, unchecked


def _is_within(value: object, number: Fraction | None, limits: dict[str, object]) -> bool | None:
    results = []
    for kind, limit in limits.items():
        if kind not in _HOLDS or number is None or not is_number(limit):
            return None
        results.append(_HOLDS[kind](number, Fraction(limit)))
    return all(results)


def _equals_any(value: object, expected: object) -> bool:
    choices = expected if isinstance(expected, list) else [expected]
    return any(value == choice and type(value) is type(choice) for choice in choices)


def score_options(
    options: list[object],
    goal: str,
    criteria: list[object] | None = None,
    risk_tolerance: str | None = None,
) -> dict[str, object]:
    """Return a score from 0 to 1 for each option: the weighted mean of its numbers, scaled from
    worst to best.

    `criteria` are names, or objects with `name`, `weight` (1) and `direction` (lower, higher). The
    default is every attribute that all options give as a number. The direction comes from the
    criterion, the goal or the name, else higher; `criteria_used` reports which. A risk tolerance of
    low doubles the weight of criteria called risk, high halves it. An option without a number that
    another one has is `unscored`. With equal numbers all are best.
    """
    parsed = read_options(options)
    all_criteria = _parse_criteria(criteria, parsed, goal, risk_tolerance)
    usable = [
        c for c in all_criteria if any(option.number(c.name) is not None for option in parsed)
    ]
    missing = {
        o.id: [c.name for c in usable or all_criteria if o.number(c.name) is None] for o in parsed
    }
    scored = [option for option in parsed if usable and not missing[option.id]]
    scored = scored if len(scored) > 1 and any(c.weight for c in usable) else []
    values = {o.id: {c.name: o.number(c.name) or Fraction() for c in usable} for o in scored}
    columns = {c.name: [numbers[c.name] for numbers in values.values()] for c in usable}
    parts = {
        name: {c.name: _scale(numbers[c.name], c, columns[c.name]) for c in usable}
        for name, numbers in values.items()
    }
    total = sum(c.weight for c in usable)
    scores = {
        name: sum((c.weight * numbers[c.name] for c in usable), Fraction()) / total
        for name, numbers in parts.items()
    }
    ranked = sorted(parsed, key=lambda option: (-scores.get(option.id, Fraction(-1)), option.id))
    entries = [_option_entry(option, scores, parts, missing, len(parsed)) for option in ranked]
    return {
        "scored_options": entries,
        "criteria_used": [
            c.to_entry("scored" if c in usable else "unscored") for c in all_criteria
        ],
        "comparative_summary": _summary_text(entries, usable, risk_tolerance),
        "tradeoffs": list(_find_tradeoffs([o.id for o in ranked if o.id in scores][:5], parts)),
        "method": "rules:weighted-min-max",
    }


def _parse_criteria(
    names: list[object] | None, parsed: list[DecisionOption], goal: str, tolerance: str | None
) -> list[Criterion]:
    """Return the criteria, each once, with weights adjusted to the risk tolerance. Raise Refused."""
    if tolerance is not None and tolerance not in _TOLERANCE:
        raise Refused(
            "bad-data", f"risk_tolerance must be {', '.join(_TOLERANCE)}, found {tolerance!r:.40}"
        )
    if not names:
        candidates = [name for name in parsed[0].attributes if name not in _NAMES]
        names = [
            name for name in candidates if all(option.number(name) is not None for option in parsed)
        ]
    criteria = [_parse_criterion(entry, goal) for entry in names]
    factor = _TOLERANCE[tolerance or "medium"]
    return list(
        {
            c.name: c._replace(weight=c.weight * (factor if _is_risk(c) else 1)) for c in criteria
        }.values()
    )


def _is_risk(criterion: Criterion) -> bool:
    return not {"risk", "risks"}.isdisjoint(criterion.name.split())


def _parse_criterion(entry: object, goal: str) -> Criterion:
    fields = entry if isinstance(entry, dict) else {"name": entry}
    names = [fields.get(key) for key in ("name", "id", "criterion", "label")]
    name = next((name for name in names if isinstance(name, str)), "")
    weight = fields.get("weight", 1)
    if not name or not is_number(weight) or not 0 <= weight <= 1e6:
        raise Refused(
            "bad-data", f"criterion {entry!r:.60}: expected a name, and a weight from 0 to 1e6"
        )
    direction, source = direction_of(normalize_name(name), goal)
    stated = next((fields[key] for key in ("direction", "goal", "better") if fields.get(key)), None)
    if stated is not None:
        direction, source = _DIRECTIONS.get(normalize_name(stated), ""), "criterion"
        if not direction:
            raise Refused(
                "bad-data",
                f"criterion {name!r:.40}: direction must be lower or higher, found {stated!r:.40}",
            )
    return Criterion(normalize_name(name), Fraction(weight), direction, source)


def _scale(number: Fraction, criterion: Criterion, numbers: list[Fraction]) -> Fraction:
    """Return the position of a number between the worst (0) and the best (1); 1 if all are equal."""
    low, high = min(numbers), max(numbers)
    if low == high:
        return Fraction(1)
    return (number - low if criterion.direction == "higher" else high - number) / (high - low)


def _option_entry(
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
        rounded = {name: round(float(part), 6) for name, part in parts[option.id].items()}
        return entry | {
            "status": "scored",
            "score": round(float(score), 6),
            "rank": rank,
            "parts": rounded,
        }
    missing_names = missing[option.id]
    reason = (
        f"no number for {', '.join(missing_names)}"
        if missing_names
        else "nothing to compare it with"
    )
    return entry | {"status": "unscored", "score": None, "missing": missing_names, "reason": reason}


def _summary_text(
    entries: list[dict[str, object]], criteria: list[Criterion], tolerance: str | None
) -> str:
    scored = [entry for entry in entries if entry["status"] == "scored"]
    sentences = [
        f"{len(entries)} options, {len(scored)} of them scored by {len(criteria)} criteria."
    ]
    if scored:
        sentences.append(
            "; ".join(f"{entry['id']}: {entry['score']}" for entry in scored[:10]) + "."
        )
    best = [str(entry["id"]) for entry in scored if entry["rank"] == 1]
    if len(best) > 1:
        sentences.append(f"Tie at the top: {', '.join(best)}.")
    unscored = [
        f"{entry['id']} ({entry['reason']})" for entry in entries if entry["status"] == "unscored"
    ]
    if unscored:
        sentences.append(f"Unscored: {', '.join(unscored[:10])}.")
    if tolerance and not any(map(_is_risk, criteria)):
        sentences.append("No criterion is called risk, so the risk tolerance changed nothing.")
    return " ".join(sentences)


def _find_tradeoffs(
    best: list[str], parts: dict[str, dict[str, Fraction]]
) -> list[dict[str, object]]:
    """Return the pairs of the best options in which each is better by some criterion."""
    tradeoffs: list[dict[str, object]] = []
    for a, b in combinations(best, 2):
        a_better = [name for name, part in parts[a].items() if part > parts[b][name]]
        b_better = [name for name, part in parts[b].items() if part > parts[a][name]]
        if a_better and b_better:
            tradeoffs.append({"a": a, "b": b, "a_better_on": a_better, "b_better_on": b_better})
    return tradeoffs[:_MAX_TRADEOFFS]
