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
    """Return the text with links as their labels, without images and without marks of emphasis and
    code.

    Other text is unchanged.
    """
    if not any(mark in text for mark in "[`*_<\\"):
        return text
    text_without_links = _LINK.sub(r"\1", _IMAGE.sub("", text))
    text_without_links = _ADDRESS.sub(r"\1", text_without_links)
    parts: list[str] = []
    last_end = 0
    for code in _CODE.finditer(text_without_links):
        parts += [
            _without_emphasis(text_without_links[last_end : code.start()]),
            code[2].strip() or code[0],
        ]
        last_end = code.end()
    return "".join([*parts, _without_emphasis(text_without_links[last_end:])])


def _without_emphasis(text: str) -> str:
    inner = _EMPHASIS.sub(r"\2", _EMPHASIS.sub(r"\2", text))
    return _ESCAPED.sub(r"\1", inner)
