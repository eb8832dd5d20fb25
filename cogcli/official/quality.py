"""How good an output is, as far as it can be measured: what needs judgement is `unscored`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from cogcli.official.passages import MAX_CHARACTERS, strings_in
from cogcli.official.prose import check_summary, score_readability
from cogcli.official.sentences import ClaimSource, claims_in, require_size
from cogcli.official.values import children_of, is_number
from cogcli.sdk import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

_LEVELS = ((0.8, "good"), (0.5, "fair"))
_ASKED = {"completeness": "required", "mentions": "terms"}
_MAX_VALUES = 100_000


class _Given(NamedTuple):
    """What a dimension is measured on."""

    output: object
    text: str
    context: str
    rules: dict[str, object]


def score_output(
    output: object, rubric: dict[str, object] | None = None, context: str | None = None
) -> dict[str, object]:
    """Return the weighted mean, from 0 to 1, of the dimensions that can be measured.

    A rubric maps a dimension to its weight, or to an object of `weight` (1) and its own settings:
    `completeness` (`required`: keys; else the share of the values of an object or list that are not empty), `length`
    (`min_words`, `max_words`), `mentions` (`terms` that must stand in it), `readability` (Flesch), and against the
    context `grounding` (its numbers and names stand there) and `coverage` (it uses the commonest words). Any other
    dimension is `unscored`, with the reason. Without a rubric: grounding; without a context either, completeness of an
    object or list, and no `quality_level`, for filled values say nothing of how good they are.
    Refused: nothing could be measured (`no-evidence`), a rubric that is no such mapping (`bad-data`).
    """
    texts = [text for _, text in strings_in(output)]
    text = "\n".join(texts)
    require_size(text, MAX_CHARACTERS)
    require_size(context or "", MAX_CHARACTERS)
    wanted = rubric or ({"grounding": 1} if context else {"completeness": 1})
    weights = {name: _weight(name, given) for name, given in wanted.items()}
    rules = {name: given if isinstance(given, dict) else {} for name, given in wanted.items()}
    found = {
        name: _dimension(name, _Given(output, text, context or "", rules[name])) for name in wanted
    }
    scored = {
        name: share for name in wanted if isinstance(share := found[name].get("score"), float)
    }
    total = math.fsum(weights[name] for name in scored)
    if not total:
        reasons = "; ".join(
            f"{name}: {entry.get('reason', 'weight 0')}" for name, entry in found.items()
        )
        hint = f"give a `rubric` of: {_KNOWN}" if not rubric else f"measured are: {_KNOWN}"
        raise Refused("no-evidence", f"no dimension could be measured ({reasons:.300})", hint)
    score = round(math.fsum(weights[name] * share for name, share in scored.items()) / total, 4)
    dimensions = {name: {"weight": weights[name], **entry} for name, entry in found.items()}
    level = next((name for least, name in _LEVELS if score >= least), "poor")
    rated = {"quality_level": level} if rubric or context else {}
    return {
        "score": score,
        "dimensions": dimensions,
        **rated,
        **_verdicts(found, rules),
        "method": "rules:measures",
    }


def _verdicts(
    found: dict[str, dict[str, object]], rules: dict[str, dict[str, object]]
) -> dict[str, list[object]]:
    """Return what is met, what is not and what was not measured: the keys and terms asked for, else the dimension."""
    answer: dict[str, list[object]] = {"passed": [], "failed": [], "unscored": []}
    for name, entry in found.items():
        listed = rules[name].get(_ASKED.get(name, ""))
        missing = entry.get("missing", [])
        if entry["status"] == "unscored":
            answer["unscored"].append(name)
        elif isinstance(listed, list) and isinstance(missing, list):
            answer["passed"] += [str(one) for one in listed if one not in missing]
            answer["failed"] += [str(one) for one in missing]
        else:
            answer["passed" if entry["score"] == 1 else "failed"].append(name)
    return answer


def _weight(name: str, given: object) -> float:
    weight = given.get("weight", 1) if isinstance(given, dict) else given
    if not is_number(weight) or not 0 <= weight <= 1e6:
        raise Refused("bad-data", f"rubric {name!r:.40}: the weight must be a number from 0 to 1e6")
    return weight


def _dimension(name: str, given: _Given) -> dict[str, object]:
    measure = _MEASURES.get(name)
    found = measure(given) if measure else "no rule measures it"
    if isinstance(found, str):
        return {"status": "unscored", "reason": found}
    return {"status": "scored", "score": round(found[0], 4), **found[1]}


_Measured = tuple[float, dict[str, object]] | str


def _completeness(given: _Given) -> _Measured:
    required = given.rules.get("required")
    if required is None:
        values = _values(given.output)
        empty = sum(1 for value in values if _is_empty(value))
        if not empty and not isinstance(given.output, dict | list):
            return "one value has no others that could be empty"
        return (1 - empty / len(values), {"values": len(values), "empty": empty})
    if not isinstance(required, list) or not required:
        raise Refused("bad-data", "rubric 'completeness': required must be a list of keys")
    fields = given.output if isinstance(given.output, dict) else {}
    missing = [key for key in required if _is_empty(fields.get(key))]
    return (1 - len(missing) / len(required), {"missing": missing})


def _values(output: object) -> list[object]:
    """Return every value of the output that is not an object or list, and every empty one."""
    found: list[object] = []
    waiting = [output]
    while waiting:
        value = waiting.pop()
        inner = children_of(value)
        waiting += inner
        found += [] if inner else [value]
        if len(found) + len(waiting) > _MAX_VALUES:
            raise Refused("too-large", f"over {_MAX_VALUES} values")
    return found


def _is_empty(value: object) -> bool:
    return value is None or value in ([], {}) or (isinstance(value, str) and not value.strip())


def _length(given: _Given) -> _Measured:
    words = len(given.text.split())
    limits = {
        name: given.rules[name]
        for name in ("min_words", "max_words")
        if given.rules.get(name) is not None
    }
    if not limits:
        return "give min_words or max_words"
    low, high = limits.get("min_words", 0), limits.get("max_words", math.inf)
    if not is_number(low) or not is_number(high):
        raise Refused("bad-data", "rubric 'length': min_words and max_words must be numbers")
    share = 1.0 if low <= words <= high else words / low if words < low else high / words
    return (max(0.0, share), {"words": words})


def _mentions(given: _Given) -> _Measured:
    terms = given.rules.get("terms")
    if not isinstance(terms, list) or not terms:
        return "give the terms"
    text = given.text.casefold()
    missing = [term for term in terms if str(term).casefold() not in text]
    return (1 - len(missing) / len(terms), {"missing": missing})


def _readability(given: _Given) -> _Measured:
    ease = score_readability(given.text).get("reading_ease")
    if not isinstance(ease, (int, float)):
        return "only English text is rated"
    return (min(1.0, max(0.0, ease / 100)), {"reading_ease": ease})


def _grounding(given: _Given) -> _Measured:
    if not given.context.strip():
        return "there is no context"
    if not given.text.strip():
        return "the output holds no text"
    claims = claims_in(given.text)
    if not claims:
        return "the output states no number and no name"
    source = ClaimSource(given.context)
    unsupported = [claim for claim in claims if not source.holds(claim)]
    return (1 - len(unsupported) / len(claims), {"claims": len(claims), "unsupported": unsupported})


def _coverage(given: _Given) -> _Measured:
    if not given.context.strip():
        return "there is no context"
    share = check_summary(given.context, given.text)["coverage"]
    return (share if isinstance(share, float) else 0.0, {})


_MEASURES: dict[str, Callable[[_Given], _Measured]] = {
    "completeness": _completeness,
    "length": _length,
    "mentions": _mentions,
    "readability": _readability,
    "grounding": _grounding,
    "coverage": _coverage,
}
_KNOWN = ", ".join(_MEASURES)
