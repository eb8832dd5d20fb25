"""The signs and colours of statuses: characters, or words for terminals that cannot show them
(docs/reference/command-line.md#colour)."""

from __future__ import annotations


class Glyphs:
    """One set of signs. Boxes and bars follow the same choice."""

    __slots__ = ("arrow", "branch", "dot", "ellipsis", "last", "parallel", "pipe", "signs")

    def __init__(
        self, signs: str, parallel: str, lines: tuple[str, str, str], arrow: str, dot: str, ellipsis: str
    ) -> None:
        self.signs: dict[str, str] = dict(zip(_ORDER, signs.split(), strict=True))
        self.parallel = parallel
        self.branch, self.last, self.pipe = lines
        self.arrow = arrow
        self.dot = dot
        self.ellipsis = ellipsis

    def sign(self, status: str) -> str:
        """The sign of a step status or outcome."""
        return self.signs[_STATUS.get(status, "pending")]

    def outcome(self, status: str) -> str:
        """The sign of a whole run: one that is pending waits for a person."""
        return self.sign("waits" if status == "pending" else status)


_ORDER = ("done", "failed", "skipped", "vetoed", "running", "pending", "asks", "warning")
_STATUS = {
    **{name: name for name in _ORDER},
    "ok": "done", "error": "failed", "partial": "failed", "aborted": "failed", "interrupted": "warning",
    "cut off": "warning", "in doubt": "warning", "waits": "asks",
}  # fmt: skip
UNICODE = Glyphs("✓ ✗ – ⊘ ● · ? !", "∥", ("├─ ", "└─ ", "│  "), "→", "·", "…")
ASCII = Glyphs("ok FAIL skip veto run wait ask warn", "||", ("|- ", "`- ", "|  "), "->", "-", "...")
STYLES = {
    "done": "green", "failed": "red", "skipped": "dim", "vetoed": "yellow", "running": "cyan",
    "pending": "dim", "asks": "yellow", "warning": "yellow",
}  # fmt: skip


def outcome_style(status: str) -> str:
    """The colour word of a whole run."""
    return style_of("waits" if status == "pending" else status)


def style_of(status: str) -> str:
    """The colour word of a status; never alone in carrying meaning."""
    return STYLES[_STATUS.get(status, "pending")]
