"""Scores the quality of an output by rules. Dimensions that need judgement are `unscored`."""

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


class _ScoredOutput(NamedTuple):
    """The output with its text and context, and the settings of one dimension."""

    output: object
    text: str
    context: str
    rules: dict[str, object]


def score_output(
    output: object, rubric: dict[str, object] | None = None, context: str | None = None
) -> dict[str, object]:
    """Return the weighted mean, from 0 to 1, of the dimensions that rules can measure.

    A rubric maps a dimension to its weight, or to an object with `weight` (1) and settings:
    `completeness` (`required`: keys; else the share of values that are not empty), `length`
    (`min_words`, `max_words`), `mentions` (`terms` that the text must contain), `readability`
    (Flesch), and against the context `grounding` (it contains all numbers and names) and `coverage`
    (the share of its common words that the output uses). Any other dimension is `unscored`, with
    the reason. The default is grounding; without a context, completeness, and then no
    `quality_level`. Raise Refused `no-evidence` if nothing could be measured, `bad-data` for an
    invalid rubric.
    """
    texts = [text for _, text in strings_in(output)]
    text = "\n".join(texts)
    require_size(text, MAX_CHARACTERS)
    require_size(context or "", MAX_CHARACTERS)
    used_rubric = rubric or ({"grounding": 1} if context else {"completeness": 1})
    weights = {name: _parse_weight(name, setting) for name, setting in used_rubric.items()}
    rules = {
        name: setting if isinstance(setting, dict) else {} for name, setting in used_rubric.items()
    }
    entries = {
        name: _measure_dimension(name, _ScoredOutput(output, text, context or "", rules[name]))
        for name in used_rubric
    }
    scored = {
        name: share
        for name in used_rubric
        if isinstance(share := entries[name].get("score"), float)
    }
    total = math.fsum(weights[name] for name in scored)
    if not total:
        reasons = "; ".join(
            f"{name}: {entry.get('reason', 'weight 0')}" for name, entry in entries.items()
        )
        hint = f"give a `rubric` of: {_KNOWN}" if not rubric else f"measured are: {_KNOWN}"
        raise Refused("no-evidence", f"no dimension could be measured ({reasons:.300})", hint)
    score = round(math.fsum(weights[name] * share for name, share in scored.items()) / total, 4)
    dimensions = {name: {"weight": weights[name], **entry} for name, entry in entries.items()}
    level = next((name for minimum, name in _LEVELS if score >= minimum), "poor")
    level_entry = {"quality_level": level} if rubric or context else {}
    return {
        "score": score,
        "dimensions": dimensions,
        **level_entry,
        **_split_by_result(entries, rules),
        "method": "rules:measures",
    }


def _split_by_result(
    entries: dict[str, dict[str, object]], rules: dict[str, dict[str, object]]
) -> dict[str, list[object]]:
    """Return the passed, failed and unmeasured items: the required keys and terms, else the dimension."""
    answer: dict[str, list[object]] = {"passed": [], "failed": [], "unscored": []}
    for name, entry in entries.items():
        required = rules[name].get(_ASKED.get(name, ""))
        missing = entry.get("missing", [])
        if entry["status"] == "unscored":
            answer["unscored"].append(name)
        elif isinstance(required, list) and isinstance(missing, list):
            answer["passed"] += [str(each) for each in required if each not in missing]
            answer["failed"] += [str(each) for each in missing]
        else:
            answer["passed" if entry["score"] == 1 else "failed"].append(name)
    return answer


def _parse_weight(name: str, setting: object) -> float:
    weight = setting.get("weight", 1) if isinstance(setting, dict) else setting
    if not is_number(weight) or not 0 <= weight <= 1e6:
        raise Refused("bad-data", f"rubric {name!r:.40}: the weight must be a number from 0 to 1e6")
    return weight


def _measure_dimension(name: str, scored: _ScoredOutput) -> dict[str, object]:
    measure = _MEASURES.get(name)
    result = measure(scored) if measure else "no rule measures it"
    if isinstance(result, str):
        return {"status": "unscored", "reason": result}
    return {"status": "scored", "score": round(result[0], 4), **result[1]}


_Measured = tuple[float, dict[str, object]] | str


def _measure_completeness(scored: _ScoredOutput) -> _Measured:
    required = scored.rules.get("required")
    if required is None:
        values = _leaf_values(scored.output)
        empty = sum(1 for value in values if _is_empty(value))
        if not empty and not isinstance(scored.output, dict | list):
            return "one value has no others that could be empty"
        return (1 - empty / len(values), {"values": len(values), "empty": empty})
    if not isinstance(required, list) or not required:
        raise Refused("bad-data", "rubric 'completeness': required must be a list of keys")
    fields = scored.output if isinstance(scored.output, dict) else {}
    missing = [key for key in required if _is_empty(fields.get(key))]
    return (1 - len(missing) / len(required), {"missing": missing})


def _leaf_values(output: object) -> list[object]:
    """Return every value of the output that is not an object or list, and every empty object or
    list.
    """
    leaves: list[object] = []
    waiting = [output]
    while waiting:
        value = waiting.pop()
        inner = children_of(value)
        waiting += inner
        leaves += [] if inner else [value]
        if len(leaves) + len(waiting) > _MAX_VALUES:
            raise Refused("too-large", f"over {_MAX_VALUES} values")
    return leaves


def _is_empty(value: object) -> bool:
    return value is None or value in ([], {}) or (isinstance(value, str) and not value.strip())


def _measure_length(scored: _ScoredOutput) -> _Measured:
    words = len(scored.text.split())
    limits = {
        name: scored.rules[name]
        for name in ("min_words", "max_words")
        if scored.rules.get(name) is not None
    }
    if not limits:
        return "give min_words or max_words"
    low, high = limits.get("min_words", 0), limits.get("max_words", math.inf)
    if not is_number(low) or not is_number(high):
        raise Refused("bad-data", "rubric 'length': min_words and max_words must be numbers")
    share = 1.0 if low <= words <= high else words / low if words < low else high / words
    return (max(0.0, share), {"words": words})


def _measure_mentions(scored: _ScoredOutput) -> _Measured:
    terms = scored.rules.get("terms")
    if not isinstance(terms, list) or not terms:
        return "give the terms"
    text = scored.text.casefold()
    missing = [term for term in terms if str(term).casefold() not in text]
    return (1 - len(missing) / len(terms), {"missing": missing})


def _measure_readability(scored: _ScoredOutput) -> _Measured:
    ease = score_readability(scored.text).get("reading_ease")
    if not isinstance(ease, (int, float)):
        return "only English text is rated"
    return (min(1.0, max(0.0, ease / 100)), {"reading_ease": ease})


def _measure_grounding(scored: _ScoredOutput) -> _Measured:
    if not scored.context.strip():
        return "there is no context"
    if not scored.text.strip():
        return "the output holds no text"
    claims = claims_in(scored.text)
    if not claims:
        return "the output states no number and no name"
    source = ClaimSource(scored.context)
    unsupported = [claim for claim in claims if not source.holds(claim)]
    return (1 - len(unsupported) / len(claims), {"claims": len(claims), "unsupported": unsupported})


def _measure_coverage(scored: _ScoredOutput) -> _Measured:
    if not scored.context.strip():
        return "there is no context"
    share = check_summary(scored.context, scored.text)["coverage"]
    return (share if isinstance(share, float) else 0.0, {})


_MEASURES: dict[str, Callable[[_ScoredOutput], _Measured]] = {
    "completeness": _measure_completeness,
    "length": _measure_length,
    "mentions": _measure_mentions,
    "readability": _measure_readability,
    "grounding": _measure_grounding,
    "coverage": _measure_coverage,
}
_KNOWN = ", ".join(_MEASURES)
