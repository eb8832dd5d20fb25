"""The licence that a text is or names: by SPDX tags, fields, and phrases of one licence only."""

from __future__ import annotations

import re

from cogcli.official.debian_copyright import read_licence_fields
from cogcli.official.sentences import require_size

_MAX_TEXT = 2_000_000
_TAG = re.compile(
    r"SPDX-License-Identifier:[ \t]*([A-Za-z0-9.+() -]{2,200}?)[ \t]*(?:\*/|-->|$)", re.M
)
# Of each licence the phrases that its text has, `|` between, in small letters, blanks as one; the more special first.
_PHRASES = {
    "AGPL-3.0": "gnu affero general public license | version 3, 19 november 2007 | remote network interaction",
    "LGPL-3.0": "gnu lesser general public license | version 3, 29 june 2007 | additional permissions listed below",
    "LGPL-2.1": "gnu lesser general public license | version 2.1, february 1999",
    "LGPL-2.0": "gnu library general public license | version 2, june 1991",
    "GPL-3.0": "gnu general public license | version 3, 29 june 2007 | conveying verbatim copies",
    "GPL-2.0": "gnu general public license | version 2, june 1991 | the act of running the program is not restricted",
    "GPL-1.0": "gnu general public license | version 1, february 1989",
    "GFDL-1.3": "gnu free documentation license | version 1.3, 3 november 2008",
    "GFDL-1.2": "gnu free documentation license | version 1.2, november 2002",
    "Apache-2.0": "apache license | version 2.0, january 2004 | grant of patent license",
    "MPL-2.0": "mozilla public license version 2.0 | covered software | incompatible with secondary licenses",
    "MPL-1.1": "mozilla public license version 1.1 | covered code | initial developer",
    "EPL-2.0": "eclipse public license - v 2.0 | secondary license | contributor",
    "EPL-1.0": "eclipse public license - v 1.0 | contributor",
    "EUPL-1.2": "european union public licence v. 1.2 | the licensor",
    "CC0-1.0": "cc0 1.0 universal | affirmer | waiver",
    "CC-BY-SA-4.0": "attribution-sharealike 4.0 international | adapter's license",
    "CC-BY-4.0": "attribution 4.0 international | licensed material",
    "Artistic-2.0": "the artistic license 2.0 | copyright holder",
    "Artistic-1.0": "artistic license | the intent of this document is to state the conditions",
    "OFL-1.1": "sil open font license version 1.1 | font software",
    "BSL-1.0": "boost software license - version 1.0 | machine-executable object code",
    "PSF-2.0": "python software foundation license version 2 | psf hereby grants",
    "Unlicense": "this is free and unencumbered software released into the public domain",
    "WTFPL": "do what the fuck you want to public license",
    "Zlib": "this software is provided 'as-is' | altered source versions must be plainly marked",
    "BSD-4-Clause": "redistribution and use in source and binary forms | all advertising materials mentioning features",
    "BSD-3-Clause": "redistribution and use in source and binary forms | endorse or promote products",
    "BSD-2-Clause": "redistribution and use in source and binary forms | must reproduce the above copyright notice",
    "ISC": "permission to use, copy, modify, and/or distribute this software | provided that the above copyright",
    "0BSD": "permission to use, copy, modify, and/or distribute this software for any purpose | with or without fee",
    "MIT": "permission is hereby granted, free of charge | the above copyright notice and this permission notice",
    "MIT-0": "permission is hereby granted, free of charge | sell copies of the software",
}
# Where a text only names a licence, as the head of a source file does.
_NAMES = {
    "AGPL-3.0-or-later": r"gnu affero general public license[^.]{0,120}(?:version 3|any later version)",
    "LGPL-3.0-or-later": r"gnu lesser general public license[^.]{0,120}version 3[^.]{0,80}any later version",
    "LGPL-2.1-or-later": r"gnu lesser general public license[^.]{0,120}version 2\.1[^.]{0,80}any later version",
    "GPL-3.0-or-later": r"gnu general public license[^.]{0,120}version 3[^.]{0,80}any later version",
    "GPL-2.0-or-later": r"gnu general public license[^.]{0,120}version 2[^.]{0,80}any later version",
    "Apache-2.0": r"licensed under the apache license,? version 2\.0|apache\.org/licenses/license-2\.0",
    "MPL-2.0": r"subject to the terms of the mozilla public license, v\. 2\.0",
    "MIT": r"(?:licensed|released|distributed) under the (?:terms of the )?mit licen[cs]e",
    "BSD-3-Clause": r"(?:licensed|released) under the (?:3-clause|new|modified) bsd licen[cs]e",
}
_NEGATED = re.compile(
    r"(?:\b(?:(?<!if )(?<!where )not(?! only)|no|never|neither|nor|cannot|without|instead of|rather than)|n't)\b"
    r"(?: (?!(?:and|but) )[^\s.,:!?()]+){0,8} $"
)
"""What stands before a name that a clause denies."""
_BEFORE = 160
_FAMILIES = (
    ("AGPL-3.0", "GPL-3.0"),
    ("BSD-4-Clause", "BSD-3-Clause", "BSD-2-Clause"),
    ("ISC", "0BSD"),
    ("MIT", "MIT-0"),
)
"""Licences whose texts have the phrases of those behind them."""
_CONFIDENCE = {"tag": 1.0, "text": 0.95, "name": 0.7}
_OF_SEVERAL = 0.7


def detect_licence(text: str) -> dict[str, object]:
    """Return the SPDX identifier of the licence that a text is or names, with the evidence.

    Sources in order: an SPDX tag (confidence 1), the fields of a Debian copyright file (1), the
    full text of a licence (0.95), a sentence that names one and does not deny it (0.7). Several
    texts are joined by `AND`. If a Debian file states several licences, the one of all other files
    (`*`) counts. Both have confidence 0.7. Without evidence there is no `licence` and the
    confidence is 0, which does not mean free.
    """
    require_size(text, _MAX_TEXT)
    if fields := read_licence_fields(text):
        return _answer_from_fields(fields)
    tag = _TAG.search(text)
    if tag:
        return _build_answer(tag[1].strip(), "tag", [tag[0].strip()])
    text = re.sub(r"(?<=\w);", ",", text.replace("“", '"').replace("’", "'"))
    plain = re.sub(r"[\s*#/;|]+", " ", text).lower()
    if texts := _licences_of_text(plain):
        answer = _build_answer(
            " AND ".join(texts), "text", " | ".join(_PHRASES[name] for name in texts).split(" | ")
        )
        return answer | ({"confidence": _OF_SEVERAL} if len(texts) > 1 else {})
    for licence, pattern in _NAMES.items():
        mention = next(
            (one for one in re.finditer(pattern, plain) if not _is_negated(plain, one.start())),
            None,
        )
        if mention:
            return _build_answer(licence, "name", [mention[0]])
    return {"confidence": 0.0, "evidence": []}


def _is_negated(plain: str, place: int) -> bool:
    return _NEGATED.search(plain[max(0, place - _BEFORE) : place]) is not None


def _licences_of_text(plain: str) -> list[str]:
    """Return the licences whose full text this has, in text order."""
    phrases_by_licence = {name: phrases.split(" | ") for name, phrases in _PHRASES.items()}
    position_by_licence = {
        name: plain.index(phrases[0])
        for name, phrases in phrases_by_licence.items()
        if all(phrase in plain for phrase in phrases)
    }
    for family in _FAMILIES:
        for name in [name for name in family if name in position_by_licence][1:]:
            del position_by_licence[name]
    return sorted(position_by_licence, key=lambda name: position_by_licence[name])


def _answer_from_fields(fields: list[tuple[str, str]]) -> dict[str, object]:
    licences = list(dict.fromkeys(licence for _, licence in fields))
    default = [licence for files, licence in fields if files == "*"]
    chosen = default[:1] or licences
    expression = (
        chosen[0]
        if len(chosen) == 1
        else " AND ".join(f"({name})" if " " in name else name for name in chosen)
    )
    evidence = [
        {"kind": "field", "phrase": f"{files[:200]}: {licence}"} for files, licence in fields
    ]
    return {
        "licence": expression,
        "confidence": _CONFIDENCE["tag"] if len(licences) == 1 else _OF_SEVERAL,
        "evidence": evidence,
    }


def _build_answer(licence: str, kind: str, phrases: list[str]) -> dict[str, object]:
    evidence = [{"kind": kind, "phrase": phrase} for phrase in phrases]
    return {"licence": licence, "confidence": _CONFIDENCE[kind], "evidence": evidence}
