"""Masks the values of secret keys in displayed lines of files
(docs/reference/episode.md#redaction).
"""

from __future__ import annotations

import re

from cogcli.base.redact import names_secret

_WORD = r"(?<![A-Za-z0-9_-])([A-Za-z_][A-Za-z0-9_-]*)"
"""A whole word: looked for from each of its letters, a long one would take the square of its length."""
_MEMBER = re.compile(
    _WORD + r"""(["']?\s*:\s+)("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s,\]}{\[#&*|>][^,\]}#]*)"""
)
_LISTED = re.compile(_WORD + r"""(["']?\s*[:=]\s*)([\[{].*)""")
_SET = re.compile(_WORD + r"""(["']?\s*=\s*)("(?:[^"\\]|\\.)*"?|'[^']*'?|[^\s,\]}{\[#"']+)""")
_FLAG = re.compile(
    r"""(?<![A-Za-z0-9_-])(--?[A-Za-z][A-Za-z0-9_-]*)(["']?(?:\s*[,=]\s*|\s+)["']?)([^\s,"'\]]+)"""
)
_SCHEME = re.compile(r"\b(Bearer|Basic)(\s+)([^\s,\"'\]}$]{8,})", re.IGNORECASE)
_TAKEN = re.compile(
    r"[^ ]*\$\{|(?:inputs?|vars|outputs?|frame|working|extensions)\.|(?:true|false|null)$"
)
"""Prefixes of references: such a value is looked up elsewhere and is no secret itself."""


def hide_secrets(text: str) -> str:
    """Return a line with the values of secret keys replaced by stars. The length is unchanged, so that columns stay
    correct.
    """

    def replace_by_stars(match: re.Match[str]) -> str:
        key, between, value = match.groups()
        plain = not names_secret(key) or _TAKEN.match(value.strip("\"'"))
        return match[0] if plain else f"{key}{between}{'*' * len(value)}"

    for written in (_MEMBER, _SET, _LISTED, _FLAG):
        text = written.sub(replace_by_stars, text)
    return _SCHEME.sub(lambda found: f"{found[1]}{found[2]}{'*' * len(found[3])}", text)
