"""Credentials in texts: keys in the forms of their vendors, private keys, tokens, passwords in addresses and settings.

A finding tells kind and place, never any part of the value. Passed over is what stands for a value: samples of
documentation, placeholders, references to variables, identifiers, digests and encoded images.
"""

from __future__ import annotations

import json
import math
import re
from base64 import urlsafe_b64decode
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from cogcli.official.findings import TextSpan, finding_entries, without_overlaps
from cogcli.official.sentences import require_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_TEXT = 2_000_000
_B64 = r"[A-Za-z0-9_-]"


class _Form(NamedTuple):
    """The form of one vendor's credentials. Each contains `hint`, so that most texts are skipped
    quickly.
    """

    kind: str
    hint: str
    pattern: str


_FORMS = (
    _Form("aws-access-key", "A", r"(?:AKIA|ASIA)[A-Z0-9]{16}"),
    _Form("github-token", "gh", r"gh[pousr]_[A-Za-z0-9]{36,251}"),
    _Form("github-token", "github_pat_", r"github_pat_[A-Za-z0-9_]{60,255}"),
    _Form("gitlab-token", "gl", rf"gl(?:pat|rt|dt|cbt|ptt|ft|imt|agent|soat)-{_B64}{{20,64}}"),
    _Form("slack-token", "xox", r"xox[abeoprs]-(?:\d-)?[A-Za-z0-9-]{20,250}"),
    _Form("slack-token", "xapp-", r"xapp-\d-[A-Za-z0-9-]{30,200}"),
    _Form(
        "slack-webhook",
        "hooks.slack.com",
        r"https://hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_]{30,120}",
    ),
    _Form(
        "discord-webhook",
        "/api/webhooks/",
        rf"https://(?:\w+\.)?discord(?:app)?\.com/api/webhooks/\d{{16,20}}/{_B64}{{60,80}}",
    ),
    _Form(
        "stripe-key",
        "_",
        r"(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,247}|whsec_[A-Za-z0-9+/=]{24,80}",
    ),
    _Form("google-api-key", "AIza", rf"AIza{_B64}{{35}}"),
    _Form("google-oauth", "GOCSPX-", rf"GOCSPX-{_B64}{{28}}"),
    _Form("google-oauth", "ya29.", rf"ya29\.{_B64}{{30,400}}"),
    _Form("anthropic-key", "sk-ant-", rf"sk-ant-[a-z0-9]{{3,8}}-{_B64}{{32,200}}"),
    _Form(
        "openai-key",
        "sk-",
        rf"sk-(?:proj|svcacct|admin|None)-{_B64}{{40,250}}|sk-[A-Za-z0-9]{{40,64}}",
    ),
    _Form("npm-token", "npm_", r"npm_[A-Za-z0-9]{36}"),
    _Form("pypi-token", "pypi-", rf"pypi-AgE{_B64}{{50,400}}"),
    _Form("sendgrid-key", "SG.", rf"SG\.{_B64}{{20,24}}\.{_B64}{{39,50}}"),
    _Form("twilio-key", "SK", r"SK[0-9a-f]{32}"),
    _Form("mailgun-key", "key-", r"key-[0-9a-f]{32}"),
    _Form("telegram-token", ":", rf"\d{{8,10}}:AA{_B64}{{33}}"),
    _Form("huggingface-token", "hf_", r"hf_[A-Za-z0-9]{34,40}"),
    _Form("digitalocean-token", "_v1_", r"do[opr]_v1_[0-9a-f]{64}"),
    _Form("shopify-token", "shp", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    _Form("databricks-token", "dapi", r"dapi[0-9a-f]{32}(?:-\d)?"),
    _Form("square-token", "sq0", rf"sq0(?:atp|csp)-{_B64}{{22,43}}"),
    _Form("azure-key", "AccountKey=", r"(?<=AccountKey=)[A-Za-z0-9+/]{86}=="),
    _Form("age-key", "AGE-SECRET-KEY-", r"AGE-SECRET-KEY-1[A-Z0-9]{58}"),
    _Form("vault-token", "hvs.", rf"hvs\.{_B64}{{24,200}}"),
    _Form("terraform-token", ".atlasv1.", rf"[A-Za-z0-9]{{14}}\.atlasv1\.{_B64}{{60,70}}"),
    _Form("docker-token", "dckr_", rf"dckr_(?:pat|oat)_{_B64}{{27,40}}"),
    _Form(
        "grafana-token", "gl", r"glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}|glc_[A-Za-z0-9+/]{32,400}={0,2}"
    ),
    _Form("linear-key", "lin_api_", r"lin_api_[A-Za-z0-9]{40}"),
    _Form("postman-key", "PMAK-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    _Form("newrelic-key", "NRAK-", r"NRAK-[A-Z0-9]{27}"),
)
_ENDS = r"(?<![\w/+.-])(?:{})(?![\w/+-])"
_IMAGE = re.compile(r"data:[\w/+.-]{1,60};base64,[A-Za-z0-9+/=]+")
_PLACEHOLDER = re.compile(
    r"example|sample|placeholder|redacted|change.?me|change.?this|replace|insert|your[_ -]?|dummy|x{4,}|\*{3,}|\.{3}|…"
    r"|fake|todo|not.?a.?(?:real|secret)|here$|0{6,}|foobar|my[_-]?(?:pass|secret|token|key)|(?:^|[_-])none$|lorem",
    re.I,
)
_REFERENCE = re.compile(
    r"[$%{<\[(]|\w+\(|process\.|os\.|env\.|ENV|vault:|secret://|arn:|self\.|settings\.|config\."
)


def _is_placeholder(value: str) -> bool:
    """Return whether a value is a sample, or a placeholder to be replaced."""
    return len(set(value)) < 6 or _PLACEHOLDER.search(value) is not None


def _vendor_keys(text: str) -> Iterator[TextSpan]:
    for form in _FORMS:
        if form.hint in text:
            for match in re.finditer(_ENDS.format(form.pattern), text):
                if not _is_placeholder(match[0]):
                    yield TextSpan(*match.span(), form.kind)


_PEM = re.compile(
    r"-----BEGIN ((?:RSA |EC |DSA |OPENSSH |ENCRYPTED |PGP )?PRIVATE KEY(?: BLOCK)?)-----"
    r"(?:(?:\s|\\n|\\r|[\"'+,|>])*[A-Za-z0-9+/=:, -]{16,80}){0,400}(?:(?:\s|\\n|\\r|[\"'+,]){0,40}-----END \1-----)?"
)


def _private_keys(text: str) -> Iterator[TextSpan]:
    if "PRIVATE KEY" not in text:
        return
    for match in _PEM.finditer(text):
        body = match[0].partition("KEY")[2].strip("-")
        is_header_only = (
            not body.strip("- BLOCK\r\n")
            and text[match.end() :].strip() == ""
            and _begins_line(text, match.start())
        )
        if (len(body) > 40 and len(set(body)) > 15) or is_header_only:
            yield TextSpan(*match.span(), "private-key")


def _begins_line(text: str, place: int) -> bool:
    return text[text.rfind("\n", 0, place) + 1 : place].strip() == ""


_JWT = re.compile(
    rf"(?<![\w.-])eyJ{_B64}{{8,2000}}\.eyJ{_B64}{{4,8000}}\.{_B64}{{16,2000}}(?![\w-])"
)


def _web_tokens(text: str) -> Iterator[TextSpan]:
    for match in _JWT.finditer(text):
        head = match[0].partition(".")[0]
        try:
            header = json.loads(urlsafe_b64decode(head + "=" * (-len(head) % 4)))
        except ValueError:
            continue
        if isinstance(header, dict) and "alg" in header:
            yield TextSpan(*match.span(), "json-web-token")


_URL = re.compile(
    r"(?<![\w+.-])[A-Za-z][A-Za-z0-9+.-]{1,30}://([^\s:/@\"'<>`?#]{0,100}):([^\s/@\"'<>`]{3,200})@(?=[A-Za-z0-9_\[-])"
)
_WEAK = frozenset(
    "password passwd pass pwd secret user username login token postgres mysql root pw admin guest test foo bar".split()
)


def _url_passwords(text: str) -> Iterator[TextSpan]:
    for match in _URL.finditer(text):
        user, password = match[1], match[2]
        is_usual_word = password.lower() in _WEAK or password.lower() == user.lower()
        if not (
            is_usual_word
            or _REFERENCE.match(password)
            or (_PLACEHOLDER.search(password) or len(set(password)) < 3)
        ):
            yield TextSpan(match.start(2), match.end(2), "url-password")


_NAME = (
    r"(?:[\w.-]{0,40}?(?:password|passwd|secret|token|api[_-]?key)|(?:[\w.-]{0,40}?[_.-])?(?:pass(?:word|wd|phrase|code)?|pwd|secret(?:[_-]?(?:access)?[_-]?key)?|(?:api|app|access|auth|account"
    r"|private|signing|encryption|master|service|client|consumer|admin|shared|license|session)[_-]?(?:key|token|secret|pass(?:word)?)"
    r"|token|apikey|credentials?|auth|bearer|connection[_-]?string|private[_-]?key|webhook[_-]?secret|salt))"
)
_NO_NAME = re.compile(r"page|next|continu|sync|csrf|public|hash|cancel|bypass|compass", re.I)
_SETTING = re.compile(
    rf"(?<![\w.-])[\"']?({_NAME})[\"']?[ \t]{{0,8}}(?:=>|:=|[:=]|\bis\b:?)[ \t]{{0,8}}"
    r"(?:[rbu]?([\"'`])([^\"'`\n]{4,400})\2|([^\s\"'`,;]{6,400}))",
    re.I,
)
_ELEMENT = re.compile(
    rf"[<\"']({_NAME})(?:[\"']\s{{1,8}}value=[\"']|[\"']?>)([^<>\"'\n]{{6,400}})(?=[\"'<])", re.I
)
"""A setting in XML: `<password>...</password>`, `name="password">...<`, `key="password" value="..."`."""
_ANY_NAME = re.compile(r"pass|pwd|secret|token|key|cred|auth|bearer|string|salt", re.I)
# A name of the program, as `settings.token` or `b64.decode(`.
_ATTRIBUTE = re.compile(r"[:.]|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?:\(|$)")
_FLAG = re.compile(
    r"(?<!\S)(?:--(?:[\w-]{0,30}-)?(?:password|passwd|token|api-?key|secret|(?:access|auth|secret)-key)[ =]"
    r"|-u ?[\w.@-]{1,40}:|(?<=mysql )-p|(?<=sshpass )-p ?)([\"']?)([^\s\"']{6,400})\1"
)
_HEADER = re.compile(
    r"(?:authorization|x-api-key|x-auth-token)[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:(?:bearer|basic|token|apikey)\s+)?"
    r"([A-Za-z0-9+/=_.~-]{16,2000})|\bbearer\s+([A-Za-z0-9+/=_.~-]{20,2000})",
    re.I,
)
_PASS = re.compile(r"pass|pwd", re.I)
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.I)
_PATH = re.compile(
    r"(?:[.~]?/|[A-Za-z]:\\|https?://)|.*\.(?:pem|key|json|ya?ml|txt|py|js|env|crt|cfg|ini|html?)$"
)
_PLAIN = re.compile(
    r"[A-Za-z]+(?:[_.:-][A-Za-z]+)*|[a-z]+(?:[A-Z][a-z]+)+|\d+(?:[.:]\d+)*[a-z]?|[A-Z_]+"
)
_LEAST_BITS = 3.0


def entropy(value: str) -> float:
    """Return the entropy of a text in bits per character."""
    counts = Counter(value)
    return -sum(count / len(value) * math.log2(count / len(value)) for count in counts.values())


def _find_settings(text: str) -> Iterator[TextSpan]:
    if not _ANY_NAME.search(text):
        return
    for match in _SETTING.finditer(text):
        if _NO_NAME.search(match[1]):
            continue
        is_quoted = match[3] is not None
        start, value = match.start(3 if is_quoted else 4), match[3 if is_quoted else 4]
        if not is_quoted:
            if _ATTRIBUTE.match(value):
                continue
            value = re.sub(r"&\w+=.*", "", value).rstrip(".,;:!?)]}>\\")
        yield from _setting_value(match[1], value, is_quoted, start)


def _find_elements(text: str) -> Iterator[TextSpan]:
    for match in _ELEMENT.finditer(text):
        if not _NO_NAME.search(match[1]):
            yield from _setting_value(match[1], match[2], True, match.start(2))


def _setting_value(name: str, value: str, is_quoted: bool, start: int) -> Iterator[TextSpan]:
    """Yield the span of a setting's value if it is a secret. The setting has a name of secrets."""
    is_password = _PASS.search(name) is not None
    if _may_be_secret(value, is_quoted) and (
        _is_password(value) if is_password else _is_random(value, 16)
    ):
        yield TextSpan(start, start + len(value), "password" if is_password else "secret")


def _find_flags(text: str) -> Iterator[TextSpan]:
    for match in _FLAG.finditer(text):
        if _may_be_secret(match[2], False) and (_is_password(match[2]) or _is_random(match[2], 16)):
            yield TextSpan(*match.span(2), "secret" if _is_random(match[2], 16) else "password")


def _find_headers(text: str) -> Iterator[TextSpan]:
    for match in _HEADER.finditer(text):
        group = 1 if match[1] else 2
        if _may_be_secret(match[group], True) and _is_random(match[group], 16):
            yield TextSpan(*match.span(group), "authorization")


def _may_be_secret(value: str, is_quoted: bool) -> bool:
    """Return whether a text is a value, and not a placeholder, a reference, a path or a usual word."""
    if _is_placeholder(value) or _PATH.match(value) or (not is_quoted and _REFERENCE.search(value)):
        return False
    return not (_REFERENCE.match(value) or value.lower() in _WEAK)


def _is_password(value: str) -> bool:
    """Return whether a value looks like a password: no plain word or sentence, and two kinds of
    characters.
    """
    if " " in value.strip() or len(value) < 6 or _PLAIN.fullmatch(value):
        return False
    kinds = sum(bool(re.search(kind, value)) for kind in ("[a-z]", "[A-Z]", r"\d", r"[^\w\s]"))
    return kinds >= 2 and entropy(value) >= 2.2


def _is_random(value: str, min_length: int) -> bool:
    """Return whether a value looks generated: long, with letters and digits, and of high entropy."""
    if (
        len(value) < min_length
        or " " in value
        or not re.search(r"\d", value)
        or not re.search(r"[A-Za-z]", value)
    ):
        return False
    return (
        not _PLAIN.fullmatch(value) and not _UUID.fullmatch(value) and entropy(value) >= _LEAST_BITS
    )


_FINDERS: tuple[Callable[[str], Iterator[TextSpan]], ...] = (
    _private_keys,
    _web_tokens,
    _vendor_keys,
    _url_passwords,
    _find_headers,
    _find_flags,
    _find_settings,
    _find_elements,
)


def find_secrets(text: str) -> list[TextSpan]:
    """Return all credentials in text order, without overlaps. The more specific kind wins."""
    require_size(text, MAX_TEXT)
    searched = _IMAGE.sub(lambda match: " " * len(match[0]), text)
    return without_overlaps(span for find in _FINDERS for span in find(searched))


def detect_secrets(text: str) -> dict[str, object]:
    """Return whether a text has credentials, with `kind`, `start`, `end`, `line` and `length` of
    each, never the value.

    `allowed` is true if it has none, so that a gate can call this.
    """
    spans = find_secrets(text)
    findings = finding_entries(text, spans)
    for finding, secret in zip(findings, spans, strict=True):
        finding["length"] = secret.end - secret.start
    return {"contains_secret": bool(spans), "findings": findings, "allowed": not spans}
