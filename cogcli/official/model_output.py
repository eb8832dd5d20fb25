"""Cleans the output of a model, and checks it against a schema and its evidence."""

from __future__ import annotations

import json
import re
from typing import Any

from cogcli.official.guards import as_lines
from cogcli.official.passages import strings_in
from cogcli.official.personal_data import Placeholders, find_personal_data
from cogcli.official.secret_values import find_secrets
from cogcli.official.sentences import ClaimSource, claims_in
from cogcli.official.values import is_number, walk
from cogcli.sdk import Refused, schema_errors

_MAX_DEPTH = 100
# Taking away may bring two halves together.
_ROUNDS = 5
_MAX_TEXT = 1_000_000
_MAX_VALUES = 10_000
_SWITCHES = ("remove_pii", "remove_secrets", "remove_scripts", "remove_controls")
_POLICIES = ("schema", "required_keys", "grounded")
# Each part ends at the next `<` or after a bounded run, so that no text takes more than linear time.
_TAGS = re.compile(
    r"<(/?)(script|iframe|object|embed|style|form|meta|link|base|svg)\b[^<>]*>", re.I
)
_HANDLERS = re.compile(
    r"(?<=\s)on[a-z]{3,20}\s{0,4}=\s{0,4}(?:\"[^\"<>]{0,2000}\"|'[^'<>]{0,2000}'|[^\s\"'<>]{1,500})",
    re.I,
)
_LINKS = re.compile(r"\b(?:javascript|vbscript)\s{0,4}:|data:text/html", re.I)
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x0d\x0e-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def sanitize_output(
    output: dict[str, object], policy: dict[str, Any] | None = None
) -> dict[str, object]:
    """Return the output without personal data, credentials, scripts and invisible characters;
    placeholders replace data.

    `policy` switches parts off: remove_pii, remove_secrets, remove_scripts, remove_controls.
    `removals` lists kind, path and count, never a value; `clean` is true if nothing was removed.
    """
    policy = policy or {}
    for key, value in policy.items():
        if key not in _SWITCHES or not isinstance(value, bool):
            raise Refused(
                "bad-data",
                f"policy: {key!r:.60} must be one of {', '.join(_SWITCHES)}, true or false",
            )
    size, values = len(as_lines(output)), sum(1 for _ in walk(output))
    if size > _MAX_TEXT or values > _MAX_VALUES:
        raise Refused("too-large", f"more than {_MAX_TEXT:,} characters or {_MAX_VALUES:,} values")
    cleaner = _Cleaner({key for key in _SWITCHES if policy.get(key, True)})
    cleaned = cleaner.clean(output, "", "", 0)
    return {
        "sanitized_output": cleaned,
        "removals": cleaner.removals,
        "clean": not cleaner.removals,
    }


class _Cleaner:
    def __init__(self, parts: set[str]) -> None:
        self.removals: list[dict[str, object]] = []
        self._parts = parts
        self._placeholders = Placeholders()

    def clean(self, value: Any, key: str, path: str, depth: int) -> Any:
        """Return a copy of the value with all texts inside cleaned, including keys."""
        if depth > _MAX_DEPTH:
            raise Refused("too-large", f"nested deeper than {_MAX_DEPTH}")
        if isinstance(value, dict):
            names = {name: self._clean_text(str(name), "", path) for name in value}
            inner = {
                name: self.clean(value[name], str(name), f"{path}.{name}", depth + 1)
                for name in value
            }
            return {names[name]: inner[name] for name in value}
        if isinstance(value, list):
            return [self.clean(one, key, f"{path}.{n}", depth + 1) for n, one in enumerate(value)]
        if isinstance(value, str):
            return self._clean_text(value, key, path)
        if is_number(value) and abs(value) >= 10**9:
            # A number may be a card's.
            text = self._clean_text(json.dumps(value), key, path)
            return value if text == json.dumps(value) else text
        return value

    def _clean_text(self, text: str, key: str, path: str) -> str:
        """Return a text without the parts that the policy removes."""
        if "remove_controls" in self._parts:
            text = self._remove_matches(_CONTROLS, text, "control", path)
        if "remove_scripts" in self._parts:
            text = self._without_scripts(text, path)
        if "remove_secrets" in self._parts:
            text = self._without_secrets(text, key, path)
        if "remove_pii" in self._parts:
            spans = find_personal_data(text)
            for data in spans:
                self._add_removal(data.kind, path, 1)
            text = self._placeholders.replace(text, spans) if spans else text
        return text

    def _without_secrets(self, text: str, key: str, path: str) -> str:
        """Return a text with placeholders for credentials. The key counts, since it may name a
        password.
        """
        # With its key before it: a value may be a password by its name alone.
        key_prefix = f"{key}: " if key else ""
        quoted = (
            f'{key_prefix}"{text}"'
            if key_prefix and not re.search(r"[\"\n]", text)
            else key_prefix + text
        )
        offset = (
            len(quoted)
            - len(text)
            - quoted.endswith('"') * bool(key_prefix and quoted != key_prefix + text)
        )
        parts, last_end = [], 0
        for secret in find_secrets(quoted):
            start, end = max(secret.start - offset, last_end), min(secret.end - offset, len(text))
            if end <= start:
                continue
            parts += [
                text[last_end:start],
                self._placeholders.placeholder("secret", text[start:end]),
            ]
            last_end = end
            self._add_removal("secret", path, 1)
        return "".join([*parts, text[last_end:]])

    def _without_scripts(self, text: str, path: str) -> str:
        """Return a text without script elements, event handlers and script links."""
        for _ in range(_ROUNDS):
            if not _TAGS.search(text):
                break
            parts: list[str] = []
            last_end, hidden_tag, count = 0, "", 0
            for tag in _TAGS.finditer(text):
                if not hidden_tag:
                    parts.append(text[last_end : tag.start()])
                name = tag[2].lower()
                if (
                    name in ("script", "style", "iframe", "object", "svg")
                    and not hidden_tag
                    and not tag[1]
                ):
                    hidden_tag = name
                elif hidden_tag == name and tag[1]:
                    hidden_tag = ""
                last_end = tag.end()
                count += 1
            parts.append("" if hidden_tag else text[last_end:])
            text = "".join(parts)
            self._add_removal("script", path, count)
        # What still is one after so many rounds was made to be.
        text = _TAGS.sub("", text).replace("<", "&lt;") if _TAGS.search(text) else text
        return self._remove_matches(
            _LINKS, self._remove_matches(_HANDLERS, text, "script", path), "script", path
        )

    def _remove_matches(self, pattern: re.Pattern[str], text: str, kind: str, path: str) -> str:
        """Return a text without the matches of a pattern. Removal is repeated, since it can create
        new matches.
        """
        total = 0
        for _ in range(_ROUNDS):
            text, count = pattern.subn("", text)
            total += count
            if not count:
                break
        if total:
            self._add_removal(kind, path, total)
        return text

    def _add_removal(self, kind: str, path: str, count: int) -> None:
        last = self.removals[-1] if self.removals else {}
        if (last.get("kind"), last.get("path")) == (kind, path.strip(".")):
            self.removals[-1]["count"] = int(str(self.removals[-1]["count"])) + count
        else:
            self.removals.append({"kind": kind, "path": path.strip("."), "count": count})


def validate_response(
    output: dict[str, object],
    validation_policy: dict[str, Any],
    evidence_context: list[Any] | None = None,
) -> dict[str, object]:
    """Return whether a model's output fits its schema, and whether the evidence contains its
    numbers and names.

    `validation_policy` has any of `schema`, `required_keys` and `grounded` (default: true with
    evidence). `confidence_adjustment` is -1 for a wrong form, else minus the share of numbers and
    names without evidence. Raise Refused if claims must be checked and there is no evidence.
    """
    unknown = [key for key in validation_policy if key not in _POLICIES]
    if unknown:
        raise Refused(
            "bad-data",
            f"validation_policy: unknown key {unknown[0]!r:.60}; known are {', '.join(_POLICIES)}",
        )
    checks_claims = validation_policy.get("grounded", bool(evidence_context))
    if checks_claims and not evidence_context:
        raise Refused(
            "no-evidence",
            "claims are to be checked, and there is no evidence to check them against",
        )
    issues: list[dict[str, object]] = []
    if "schema" in validation_policy:
        for place, message in schema_errors(validation_policy["schema"], output):
            issues.append({"kind": "schema", "path": place.replace("/", "."), "message": message})
    missing = [str(key) for key in validation_policy.get("required_keys", ()) if key not in output]
    issues += [{"kind": "required", "path": key, "message": f"{key} is missing"} for key in missing]
    is_malformed = bool(issues)
    claims, unsupported = (
        _find_unsupported_claims(output, evidence_context or []) if checks_claims else ([], [])
    )
    for path, claim in unsupported:
        message = f"{claim!r} does not stand in the evidence"
        issues.append({"kind": "unsupported", "path": path, "message": message, "claim": claim})
    share = len(unsupported) / len(claims) if claims else 0.0
    return {
        "valid": not issues,
        "issues": issues,
        "confidence_adjustment": -1.0 if is_malformed else round(0.0 - share, 4),
        "rationale": _rationale_text(issues, len(claims), len(unsupported)),
        "method": "rules:claims",
    }


def _find_unsupported_claims(
    output: object, evidence: list[Any]
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return (path, claim) of all numbers and names of an output, and of those that the evidence
    lacks.
    """
    source = ClaimSource(as_lines(evidence))
    claims: dict[tuple[str, str], None] = {}
    for pointer, text in strings_in(output):
        path = pointer.strip("/").replace("/", ".")
        claims.update(dict.fromkeys((path, claim) for claim in claims_in(text)))
    numbers = (
        (key, json.dumps(claim_with_path))
        for _, key, claim_with_path in walk(output)
        if is_number(claim_with_path)
    )
    claims.update(dict.fromkeys(numbers))
    return list(claims), [
        claim_with_path for claim_with_path in claims if not source.holds(claim_with_path[1])
    ]


def _rationale_text(issues: list[dict[str, object]], claims: int, unsupported: int) -> str:
    form_issues = sum(1 for issue in issues if issue["kind"] != "unsupported")
    result = (
        f"{form_issues} places do not have the form asked for"
        if form_issues
        else "The form is as asked for"
    )
    return f"{result}; {claims - unsupported} of {claims} numbers and names stand in the evidence."
