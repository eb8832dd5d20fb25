"""Text without the inline marks of Markdown: what a reader sees of links, emphasis and code."""

from __future__ import annotations

import re

# Bounded repetitions, and no part of a pattern can begin in two ways: linear in the text.
_IMAGE = re.compile(
    r"!\[[^\[\]\n]{0,500}\](?:\([^()\s]{0,2000}(?:\s[^()\n]{0,200})?\)|\[[^\[\]\n]{0,200}\])"
)
_LINK = re.compile(
    r"\[([^\[\]\n]{1,500})\](?:\([^()\s]{0,2000}(?:\s[^()\n]{0,200})?\)|\[[^\[\]\n]{0,200}\])"
)
_ADDRESS = re.compile(r"<((?:https?|mailto):[^<>\s]{1,2000})>")
_CODE = re.compile(r"(?<!`)(`{1,2})(?!`)([^`\n]{1,500})\1(?!`)")
_EMPHASIS = re.compile(
    r"(?<![\w*_\\])(\*{1,3}|_{1,3})(?=[^\s*_])([^*_\n]{1,500})(?<=\S)\1(?![\w*_])"
)
_ESCAPED = re.compile(r"\\([\\`*_{}\[\]()#+.!>|~-])")


def readable(text: str) -> str:
    """Return the text with its links as their labels, without images and the marks of emphasis and code; any other
    text is unchanged.
    """
    if not any(mark in text for mark in "[`*_<\\"):
        return text
    bare = _LINK.sub(r"\1", _IMAGE.sub("", text))
    bare = _ADDRESS.sub(r"\1", bare)
    parts: list[str] = []
    reached = 0
    for code in _CODE.finditer(bare):
        parts += [_without_emphasis(bare[reached : code.start()]), code[2].strip() or code[0]]
        reached = code.end()
    return "".join([*parts, _without_emphasis(bare[reached:])])


def _without_emphasis(text: str) -> str:
    inner = _EMPHASIS.sub(r"\2", _EMPHASIS.sub(r"\2", text))
    return _ESCAPED.sub(r"\1", inner)
