"""Personal data in texts: e-mail addresses, telephone, card, account and national numbers, addresses of computers.

What looks like one and is none is passed over: what has a wrong check digit, is reserved for examples, or stands
where versions, order numbers, identifiers and encoded files stand. Findings never show a whole value.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING

from cogcli.official.findings import TextSpan, finding_entries, without_overlaps
from cogcli.official.national_ids import bounded_matches, find_national_ids
from cogcli.official.sentences import require_size
from cogcli.sdk import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_TEXT = 1_000_000
_MAX_NUMBERS = 5_000


# Encoded files and identifiers: nothing inside them is personal.
_OPAQUE = re.compile(
    r"data:[\w/+.-]{1,60};base64,[A-Za-z0-9+/=]+"
    r"|(?<![\w-])[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}(?![\w-])"
)
_NUMBERED = re.compile(
    r"(?:order|invoice|ref(?:erence)?|tracking|ticket|serial|sku|isbn|issn|imei|build|part|item|job|transaction|txn|batch"
    r"|case|article|product|model|epoch|timestamp|version|shipment|parcel|commit|request|session|trace|licen[cs]e|patent)"
    r"[ \t]?(?:no\.?|nr\.?|number|num|id|code|key)?[ \t]?[:=#]{0,2}[ \t]?[\"'#(]?$",
    re.I,
)


def _follows_label(text: str, start: int) -> bool:
    """Return whether a label such as `order no.` precedes a position, so that digits there are not personal."""
    return _NUMBERED.search(text[max(0, start - 40) : start]) is not None


_EMAIL = re.compile(
    r"(?<![\w.%+@-])[\w%+'-][\w.%+'-]{0,63}+@(?=[^\s@]{4})((?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8})([^\W\d_]{2,24})(?![\w@-])"
)
_GENERIC = frozenset(
    """com org net edu gov mil int info biz app dev name pro online shop site tech store xyz cloud email blog club live
    news agency digital company solutions studio world media group health care bank law art design space museum travel
    jobs mobi asia cat coop aero work email page team today life global network systems services center academy expert
    consulting software""".split()
)
_FILES = frozenset("js py md sh rs ts pl so cc vb ps mk tf".split())
_SAMPLE = re.compile(r"(?:^|\.)(?:example|test|invalid|localhost|local|lan)(?:\.|$)")
_NOBODY = re.compile(
    r"(?:user|username|name|you|your[._-]?(?:name|email)?|someone|email|foo|first\.last|me|login)"
    r"@(?:(?:your|my)?-?(?:domain|company|host|server|email|mail|site)|foo|bar|somewhere|acme)\.\w+"
)


def _find_emails(text: str) -> Iterator[TextSpan]:
    if "@" not in text:
        return
    for match in bounded_matches(_EMAIL, text):
        end, top = match[1].lower(), match[2].lower()
        country = len(top) == 2 and (top not in _FILES or "." in end[:-1])
        if not (country or top in _GENERIC or not top.isascii()) or _SAMPLE.search(end + top):
            continue
        # `user:password@host` of an address on the web, and `git@host:path`.
        lead = text[max(0, match.start() - 100) : match.start()]
        if re.search(r"://[^\s/@]*$", lead) or (
            match[0].startswith("git@") and text[match.end() : match.end() + 1] == ":"
        ):
            continue
        if not _NOBODY.fullmatch(match[0].lower()):
            yield TextSpan(match.start(), match.end(), "email")


_IPV4 = re.compile(r"(?<![\w.-])(?:\d{1,3}\.){3}\d{1,3}(?![\w-]|[./]\d)")
_IPV6 = re.compile(
    r"(?<![\w:.])[23][0-9A-Fa-f]{3}:(?:[0-9A-Fa-f]{0,4}:){1,6}[0-9A-Fa-f]{0,4}(?![\w:]|[./]\d)"
)
_VERSIONED = re.compile(
    r"(?:\bv|(?:\b|_)ver(?:sion)?s?|\brelease|\bbuild|\bfirmware|\brev(?:ision)?|\bdriver|\bupdate"
    r"|\bupgraded?(?: to| from)?|\bpatch|\bsection|\bchapter|\bclause|\bfigure|\bstep|\boid|§"
    r"|[=<>~^]=|[A-Za-z]/)[\s.:=v-]{0,3}$",
    re.I,
)
_DOCUMENTED = tuple(
    ip_network(net)
    for net in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32")
)


def _find_addresses(text: str) -> Iterator[TextSpan]:
    """Yield public IP addresses. Private addresses, and version numbers of the same form, are skipped."""
    for pattern in (_IPV4, _IPV6):
        for match in bounded_matches(pattern, text):
            try:
                address = ip_address(match[0])
            except ValueError:
                continue
            # Parts of one digit are a version, a section or an identifier of an object.
            if len(match[0]) == len("1.2.3.4"):
                continue
            if not _is_public(address) or _VERSIONED.search(
                text[max(0, match.start() - 24) : match.start()]
            ):
                continue
            yield TextSpan(match.start(), match.end(), "ip")


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    if any(address in net for net in _DOCUMENTED if net.version == address.version):
        return True
    return address.is_global and not address.is_multicast


_CARD = re.compile(
    r"(?<![\w.+/-])(?:\d{13,19}|\d{4}([ -])\d{4}\1\d{4}\1\d{1,7}|\d{4}([ -])\d{6}\2\d{4,5})(?![\w-]|\.\d)"
)
_ISSUERS = (
    ("visa", re.compile(r"4(?:\d{12}|\d{15}|\d{18})")),
    ("mastercard", re.compile(r"(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}")),
    ("amex", re.compile(r"3[47]\d{13}")),
    ("discover", re.compile(r"6(?:011|5\d\d|4[4-9]\d)\d{12}")),
    ("diners", re.compile(r"3(?:0[0-5]|[689]\d)\d{11}")),
    ("jcb", re.compile(r"35(?:2[89]|[3-8]\d)\d{12}")),
    ("unionpay", re.compile(r"62\d{14,17}")),
    ("maestro", re.compile(r"(?:5018|5020|5038|5893|6304|6759|676[1-3])\d{8,15}")),
)


def _find_cards(text: str) -> Iterator[TextSpan]:
    from stdnum.luhn import is_valid

    for match in bounded_matches(_CARD, text):
        digits = re.sub(r"\D", "", match[0])
        issuer = next((name for name, form in _ISSUERS if form.fullmatch(digits)), "")
        if (
            issuer
            and len(set(digits)) > 1
            and is_valid(digits)
            and not _follows_label(text, match.start())
        ):
            yield TextSpan(match.start(), match.end(), "card", issuer)


_IBAN = re.compile(r"(?<![\w-])([A-Z]{2}|[a-z]{2})\d\d(?=[ -]?[A-Za-z0-9]{4})")
_IBAN_LENGTHS = {
    code[:2]: int(code[2:])
    for code in """AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DK18 DO28 EE20 EG29
    ES24 FI18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21
    LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MR27 MT31 MU30 NL18 NO15 PK24 PL28 PS29 PT25 QA29 RO24 RS22 SA24 SC31 SE24
    SI19 SK24 SM27 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20""".split()
}


def _find_accounts(text: str) -> Iterator[TextSpan]:
    for match in bounded_matches(_IBAN, text):
        length = _IBAN_LENGTHS.get(match[1].upper(), 0)
        end, account = match.start(), ""
        while len(account) < length and end < len(text) and end - match.start() < 50:
            char = text[end]
            if char.isascii() and char.isalnum():
                account += char
            elif char not in " -" or not text[end - 1].isalnum():
                break
            end += 1
        if (
            length == len(account) > 0
            and not text[end : end + 1].isalnum()
            and _is_iban(account.upper())
        ):
            yield TextSpan(match.start(), end, "iban", match[1].upper())


def _is_iban(iban: str) -> bool:
    return int("".join(str(int(char, 36)) for char in iban[4:] + iban[:4])) % 97 == 1


_DIGITS = r"[\d ().\-/\u00a0]"
_ABROAD = re.compile(rf"(?<![\w+.])(?:\+|00(?=[1-9]))\(?\d{_DIGITS}{{6,21}}\d(?![\w@]|[.,]\d)")
_FORMS = {
    "US": r"(?:\+?1[ .-])?(?:\([2-9]\d\d\) ?|[2-9]\d\d[-.])\d{3}[-. ]\d{4}",
    "FR": r"0[1-9](?:[ .]\d\d){4}(?! \d)",
    "GB": r"07\d{3} ?\d{3} ?\d{3}|0(?:2\d \d{4}|1\d1 \d{3}) \d{4}|0[1-9]\d{3} \d{3} ?\d{3}"
    r"|\(0[12]\d{1,3}\) ?\d{3,4} ?\d{3,4}",
    "DE": r"01[567]\d[ /-]\d{7,8}|0[2-9]\d{1,3} ?/ ?\d{2,4} ?\d{2,4}(?: ?\d\d)?"
    r"|\(0[2-9]\d{1,3}\) ?\d{3,4} ?\d{2,5}",
    "CH": r"0\d\d \d{3} \d\d \d\d(?! \d)",
    "NL": r"0(?:\d\d-\d{7}|\d{3}-\d{6}|6[- ]\d{8})",
}
_USUAL = {
    country: re.compile(rf"(?<![\w.+/-])(?:{form})(?![\w-]|[.]\d)")
    for country, form in _FORMS.items()
}
_CALL = re.compile(
    r"(?:\b(?:(?:tele)?(?:phone|fon)|tel(?:éfono|efono)?|mobile?|cell|handy|fax|call(?: (?:me|us|him|her|them))?"
    r"(?: back)?|ring|rufnummer|móvil|portable|sms|text (?:me|him|her|us)|whatsapp|reach (?:me|us|him|her)|dial"
    r"|landline|contact)\b|☎|📞)(?:\s(?:no\b|nr\b|number|nummer|is|at|on|under|via)){0,3}[\s.:#=*\"'-]{0,6}",
    re.I,
)
_CALLED = re.compile(rf"\(?[+0-9]{_DIGITS}{{5,20}}\d(?![\w@]|[.,]\d)")
_DECIMAL = re.compile(r"[+-]?\d+\.\d+")
_REGIONS = (
    "US",
    "GB",
    "DE",
    "FR",
    "ES",
    "IT",
    "NL",
    "BE",
    "AT",
    "CH",
    "PT",
    "SE",
    "PL",
    "IN",
    "AU",
    "BR",
)


def _find_phones(text: str) -> Iterator[TextSpan]:
    """Yield numbers with a country code, in a usual form of a country, or after a word such as
    `phone`.
    """
    checks_left = _MAX_NUMBERS
    for start, end, regions, lenient in _phone_places(text):
        checks_left -= 1
        if checks_left < 0:
            raise Refused(
                "too-large", f"more than {_MAX_NUMBERS:,} numbers may be telephone numbers"
            )
        if _DECIMAL.fullmatch(text, start, end) or _follows_label(text, start):
            continue
        if not 7 <= sum(map(str.isdigit, text[start:end])) <= 15:
            continue
        country = _country_of_number(text[start:end], regions, lenient)
        if country:
            yield TextSpan(start, end, "phone", country.strip("?"))


def _phone_places(text: str) -> Iterator[tuple[int, int, tuple[str, ...], bool]]:
    """Yield (start, end, regions to try, whether a possible number is enough)."""
    for match in bounded_matches(_ABROAD, text):
        yield *match.span(), ("ZZ",), match[0].startswith("+")
    for region, form in _USUAL.items():
        yield from (
            (*match.span(), (region,), region in ("US", "GB"))
            for match in bounded_matches(form, text)
        )
    for cue in bounded_matches(_CALL, text):
        number = _CALLED.match(text, cue.end())
        if number:
            yield *number.span(), _REGIONS, True


def _country_of_number(number: str, regions: tuple[str, ...], lenient: bool) -> str:
    """Return the country whose numbering plan a number fits. Return `?` for a number with only a possible length if
    `lenient` is set, else empty.
    """
    import phonenumbers

    if number.startswith("00"):
        number = "+" + number[2:]
    is_possible = False
    for region in ("ZZ",) if number.startswith("+") else regions:
        try:
            parsed = phonenumbers.parse(number, None if region == "ZZ" else region)
        except phonenumbers.NumberParseException:
            continue
        if phonenumbers.is_valid_number(parsed):
            is_certain = region == "ZZ" or len(regions) == 1
            return str(phonenumbers.region_code_for_number(parsed) or "?") if is_certain else "?"
        is_possible = is_possible or phonenumbers.is_possible_number(parsed)
    has_groups = re.search(r"\d[ ().\-/]+\d", number) or sum(map(str.isdigit, number)) >= 10
    return "?" if lenient and is_possible and has_groups else ""


def _national_ids(text: str) -> Iterator[TextSpan]:
    return (span for span in find_national_ids(text) if not _follows_label(text, span.start))


# Where two claim the same characters the earlier kind has them: its check is the stronger one.
_FINDERS: tuple[Callable[[str], Iterator[TextSpan]], ...] = (
    _find_accounts,
    _find_emails,
    _find_cards,
    _national_ids,
    _find_phones,
    _find_addresses,
)


def find_personal_data(text: str) -> list[TextSpan]:
    """Return all personal data in text order, without overlaps."""
    require_size(text, MAX_TEXT)
    searched = _OPAQUE.sub(lambda match: "\0" * len(match[0]), text)
    finders = _FINDERS if re.search(r"\d", searched) else (_find_emails,)
    ranked = [(rank, span) for rank, find in enumerate(finders) for span in find(searched)]
    ranked.sort(key=lambda pair: (pair[0], pair[1].start, -pair[1].end))
    return without_overlaps(span for _, span in ranked)


def mask(value: str) -> str:
    """Return the value with its first and its last two characters; other letters and digits become
    `*`.
    """
    masked = (
        value[:1]
        + re.sub(r"[^\W_]", "*", value[1:-2])
        + (value[-2:] if len(value) > 6 else "*" * len(value[1:]))
    )
    return masked if len(masked) <= 40 else f"{masked[:36]}…{masked[-2:]}"


def detect_personal_data(text: str) -> dict[str, object]:
    """Return whether a text has personal data, with `kind`, `start`, `end`, `line` and the masked
    value of each.

    `allowed` is true if it has none, so that a gate can call this.
    """
    spans = find_personal_data(text)
    return {
        "contains_pii": bool(spans),
        "findings": _masked_entries(text, spans),
        "allowed": not spans,
    }


def redact_personal_data(text: str) -> dict[str, object]:
    """Return the text with placeholders such as `[EMAIL_1]` for personal data. Equal values get
    equal numbers.
    """
    spans = find_personal_data(text)
    placeholders = Placeholders(text)
    findings = _masked_entries(text, spans)
    for finding, data in zip(findings, spans, strict=True):
        finding["placeholder"] = placeholders.placeholder(data.kind, text[data.start : data.end])
    return {"redacted_text": placeholders.replace(text, spans), "findings": findings}


class Placeholders:
    """Placeholders by kind and value. Placeholders that the text has already are not used."""

    def __init__(self, text: str = "") -> None:
        self._given: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}
        self._taken = set(re.findall(r"\[[A-Z_]{2,20}_\d{1,9}\]", text))

    def placeholder(self, kind: str, value: str) -> str:
        """Return the placeholder of a value. Equal values of a kind have the same one."""
        key = (kind, re.sub(r"[\W_]", "", value).casefold())
        while key not in self._given:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            name = f"[{kind.upper()}_{self._counts[kind]}]"
            if name not in self._taken:
                self._given[key] = name
        return self._given[key]

    def replace(self, text: str, spans: list[TextSpan]) -> str:
        """Return the text with placeholders."""
        parts, last_end = [], 0
        for data in spans:
            parts += [
                text[last_end : data.start],
                self.placeholder(data.kind, text[data.start : data.end]),
            ]
            last_end = data.end
        return "".join([*parts, text[last_end:]])


def _masked_entries(text: str, spans: list[TextSpan]) -> list[dict[str, object]]:
    entries = finding_entries(text, spans)
    for entry, data in zip(entries, spans, strict=True):
        entry["masked"] = mask(text[data.start : data.end])
        entry |= {"detail": data.detail} if data.detail else {}
    return entries
