"""Regular expressions that are compiled when they are first used.

A command imports some 150 of them, uses about half, and compiling them all took a tenth of its time to start.
"""

from __future__ import annotations

import re
from typing import AnyStr, cast


def lazy_pattern(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern that is compiled at its first use. An invalid pattern raises `re.error` only then."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(source, flags))


class _LazyPattern:
    def __init__(self, source: str | bytes, flags: int) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> object:
        """Return an attribute of the compiled pattern, and keep it, so that the next reading costs nothing more."""
        found: object = getattr(re.compile(self._source, self._flags), name)
        setattr(self, name, found)
        return found
