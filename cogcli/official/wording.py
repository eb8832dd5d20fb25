"""Wording that a careful reader would question: promises that cannot be kept, and missing details."""

from __future__ import annotations

import re

from cogcli.sdk import Refused

_CLAIMS = {
    "absolute": r"guarantee(?:s|d)?|never fails?|always works?|zero (?:downtime|risk|defects)|no risk|risk[- ]free"
    r"|100\s?% (?:safe|secure|reliable|accurate|uptime)|fully secure|completely (?:safe|secure)|unbreakable",
    "sweeping": r"always|never|everyone|nobody|no one|in all cases|under no circumstances|impossible"
    r"|all (?:users|customers)",
    "superlative": r"best[- ]in[- ]class|world[- ]class|industry[- ]leading|state[- ]of[- ]the[- ]art|cutting[- ]edge"
    r"|unparalleled|unmatched|second to none|revolutionary",
    "unsourced": r"studies (?:show|suggest|have shown)|experts (?:agree|say|believe)|research shows"
    r"|it is (?:well|widely) known|as everyone knows",
    "vague-amount": r"significant(?:ly)?|substantial(?:ly)?|dramatic(?:ally)?|considerabl[ey]|a lot of|a number of"
    r"|numerous|much (?:faster|slower|better|cheaper)",
    "assumed": r"obviously|clearly|of course|needless to say|simply|trivially",
}
_GAPS = {
    "placeholder": r"(?-i:TODO|TBD|TBC|FIXME|XXX)|lorem ipsum|\?\?\?"
    r"|\[(?:insert|add|fill in|name|date)\b[^\]\n]{0,60}\]|to be (?:determined|decided|confirmed|defined)",
    "no-owner": r"someone (?:should|must|will|needs to)|somebody (?:should|must|will)"
    r"|needs to be (?:done|decided|fixed)|it (?:should|must) be (?:ensured|made sure)",
    "vague-date": r"soon|shortly|eventually|in due course|as soon as possible|(?-i:ASAP)|at some point"
    r"|in the (?:near|coming) (?:future|weeks|months)|later this (?:week|month|quarter|year)"
    r"|next (?:quarter|year)|in the future",
}
_WHY = {
    "absolute": ("high", "an absolute promise is broken by one exception"),
    "sweeping": ("medium", "a statement about every case needs a source or a limit"),
    "superlative": ("medium", "praise without a comparison proves nothing"),
    "unsourced": ("medium", "an authority is named without saying which"),
    "vague-amount": ("low", "an amount without a number cannot be checked"),
    "assumed": ("low", "a reader who does not see it is left behind"),
    "placeholder": ("high", "an open place was left in the text"),
    "no-owner": ("medium", "nobody is named who will do it"),
    "vague-date": ("medium", "a date that cannot be missed is not a date"),
}
"""By kind: how serious it is, and why."""
_WEIGHTS = {"low": 1, "medium": 3, "high": 5}
_AROUND = 60


def check_claims(text: str, max_risks: int = 200) -> dict[str, object]:
    """Return promises and claims that one exception would disprove, each with place, severity and
    reason.
    """
    return _find_risks(text, _CLAIMS, max_risks)


def find_gaps(text: str, max_risks: int = 200) -> dict[str, object]:
    """Return placeholders, tasks without an owner and vague dates, each with place, severity and
    reason.
    """
    return _find_risks(text, _GAPS, max_risks)


def _find_risks(text: str, rules: dict[str, str], max_risks: int) -> dict[str, object]:
    alternatives = "|".join(
        f"(?P<{kind.replace('-', '_')}>{pattern})" for kind, pattern in rules.items()
    )
    pattern = re.compile(rf"(?<![\w-])(?:{alternatives})(?![\w-])", re.IGNORECASE)
    risks: list[dict[str, object]] = []
    count = 0
    for number, line in enumerate(text.splitlines(), 1):
        for match in pattern.finditer(line):
            count += 1
            if count <= max_risks:
                risks.append(_risk_entry(match, number))
    return {"risks": risks, "count": count}


def _risk_entry(match: re.Match[str], line: int) -> dict[str, object]:
    kind = str(match.lastgroup).replace("_", "-")
    severity, reason = _WHY[kind]
    context = _surrounding_text(match.string, match.start(), match.end())
    risk = {"kind": kind, "severity": severity, "text": match[0], "line": line}
    return {**risk, "context": context, "why": reason}


def _surrounding_text(line: str, start: int, end: int) -> str:
    """Return a match with up to 60 characters of whole words on both sides."""
    text_before, text_after = line[max(0, start - _AROUND) : start], line[end : end + _AROUND]
    if start > _AROUND:
        text_before = f"… {text_before.partition(' ')[2]}"
    if len(line) > end + _AROUND:
        text_after = f"{text_after.rpartition(' ')[0]} …"
    return f"{text_before}{line[start:end]}{text_after}".strip()


def rate_risks(risks: list[dict[str, object]]) -> dict[str, object]:
    """Return one level for a list of risks (none, low, medium or high), with the score and the
    risks, worst first.

    A risk counts 1, 3 or 5 by its `severity`. The level is high from one high risk or 10 points,
    medium from 4.
    """
    severities = [_severity_word(index, risk) for index, risk in enumerate(risks, 1)]
    counts = {severity: severities.count(severity) for severity in reversed(_WEIGHTS)}
    score = sum(_WEIGHTS[severity] for severity in severities)
    order = sorted(range(len(risks)), key=lambda i: (-_WEIGHTS[severities[i]], i))
    ranked = [risks[i] for i in order]
    return {
        "level": _level_word(score, counts["high"]),
        "score": score,
        "counts": counts,
        "ranked": ranked,
        "summary": _summary_text(counts, ranked),
    }


def _severity_word(position: int, risk: dict[str, object]) -> str:
    severity = risk.get("severity")
    if isinstance(severity, str) and severity in _WEIGHTS:
        return severity
    raise Refused(
        "bad-data", f"risk {position}: severity must be low, medium or high, found {severity!r:.40}"
    )


def _level_word(score: int, high: int) -> str:
    if high or score >= 10:
        return "high"
    return "medium" if score >= 4 else "low" if score else "none"


def _summary_text(counts: dict[str, int], ranked: list[dict[str, object]]) -> str:
    if not ranked:
        return "No findings."
    parts = ", ".join(f"{count} {severity}" for severity, count in counts.items() if count)
    worst = ranked[0]
    detail = (
        f' Most serious: {worst["kind"]} "{worst["text"]}".'
        if {"kind", "text"} <= worst.keys()
        else ""
    )
    return f"{len(ranked)} finding{'s' if len(ranked) > 1 else ''}: {parts}.{detail}"
