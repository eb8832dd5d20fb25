"""Names that look alike: the form in which names of people are compared
(docs/reference/execution.md#approvals). Pure.

A name passes for another one if it differs only in case, width, invisible characters, or in letters of another script
that look the same. Two forms that are equal need not be one person, but no screen shows the difference.
"""

from __future__ import annotations

from typing import Final
from unicodedata import normalize

_ALIKE: Final = str.maketrans(
    # Cyrillic, as small letters; those that look alike as capitals only are among them.
    "авеёзкмнорстухһіїјԛѕԝьԁӏгпү"
    # Greek
    "αβγεζηικμνορτυχωϳ"
    # Latin
    "ıɑɡɩʏ",
    "abeezkmhopctyxhiijqswbdlrnyabyezhikmvoptuxwjiagiy",
)
"""Letters of other scripts, and the Latin letters that they look like."""
_LUNATE: Final = str.maketrans("ϲϹ", "cC")
_INVISIBLE: Final = dict.fromkeys(
    [
        0x034F,
        0x115F,
        0x1160,
        0x17B4,
        0x17B5,
        *range(0x180B, 0x1810),
        *range(0xFE00, 0xFE10),
        *range(0xE0100, 0xE01F0),
    ]
)
"""Letters and marks that are printable by their category, and show nothing."""


def comparable_name(name: str) -> str:
    """Return the form of a name that is equal for names that look alike."""
    lunate = name.translate(_LUNATE)  # NFKC makes them sigmas, which look otherwise
    folded = normalize("NFKC", normalize("NFKC", lunate).casefold())
    shown = "".join(c for c in folded if c.isprintable() and not c.isspace())
    return shown.translate(_INVISIBLE).translate(_ALIKE)
