"""The path of a step, item, round, target, gate or probe (docs/reference/episode.md#step-paths).

1. `outer/inner` is a step of the run nested in step `outer`.
2. `step#3` is an item or a round of a step, `step#name` a target of a scatter; `step@pre0` and `step@post0` are its
   gates, `step@probe0` asks whether its call in doubt has happened. All these are parts of their step.
"""

from __future__ import annotations

from typing import Final

from cogcli.base.lazy_pattern import lazy_pattern

_NUMBER: Final = lazy_pattern(r"#\d+")
_ITEM: Final = lazy_pattern(r"#\d+(?=[/@#]|$)")
_NAME: Final = lazy_pattern(r"#[A-Za-z0-9_-]+")
_GATE: Final = lazy_pattern(r"(?:pre|post)\d+")
_PROBE: Final = lazy_pattern(r"probe\d+")
_PROBES: Final = "@probe"
_DIGITS: Final = 10
"""More digits than any round has."""
_ROOT: Final = lazy_pattern(r"[^/#@]*")


class StepPath(str):
    """A step path with properties for its parts.

    Create one for a question and drop it: as a key, a subclass of `str` slows a dict down. So all
    results, including new paths, are plain `str`.
    """

    __slots__ = ()

    # -- what it names ------------------------------------------------------------------------------------------------

    @property
    def is_step(self) -> bool:
        """Whether the path names a step of its run, not a part of a step."""
        start = self.rfind("/") + 1
        return self.find("#", start) < 0 and self.find("@", start) < 0

    @property
    def is_gate(self) -> bool:
        """Whether the path names a gate of a step or of a part of a step."""
        return _GATE.fullmatch(self._call_segment) is not None

    @property
    def is_gate_before(self) -> bool:
        """Whether the path names a gate that is checked before the call."""
        return self.is_gate and self._call_segment.startswith("pre")

    @property
    def is_probe(self) -> bool:
        """Whether the path names a probe itself."""
        return _PROBE.fullmatch(self._call_segment) is not None

    @property
    def in_call(self) -> bool:
        """Whether the path names a gate or a probe, or a part of one."""
        return "@" in self

    @property
    def in_probe(self) -> bool:
        """Whether the path names a probe or a part of one."""
        return _PROBES in self

    @property
    def in_loop(self) -> bool:
        """Whether the path names an item, a round or a target, or something inside one."""
        return "#" in self

    @property
    def _call_segment(self) -> str:
        """Return `pre0`, `post0` or `probe0` of a call inside a step; empty for other paths."""
        own = self.name
        return own.rpartition("@")[2] if "@" in own else ""

    # -- what it is a part of -----------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Return the last part: `inner#2` of `outer/inner#2`."""
        return self[self.rfind("/") + 1 :]

    @property
    def root_step(self) -> str:
        """Return the id of the root run's step: `outer` of `outer#1/inner`."""
        found = _ROOT.match(self)
        return found[0] if found else ""

    @property
    def parent(self) -> str:
        """Return the path that directly contains this one; empty for a step of the root run.

        For `a/b#1@pre0` that is `a/b#1`, for that `a/b`, then `a`.
        """
        cut = max(self.rfind("/"), self.rfind("#"), self.rfind("@"))
        return self[:cut] if cut > 0 else ""

    @property
    def owner(self) -> str:
        """Return the step, item, round or target that this path is a part of; empty for a step.

        For `a/b#1` that is `a/b`.
        """
        return "" if self.is_step else self.parent

    @property
    def without_items(self) -> str:
        """Return the path without items, rounds and targets, so that all parts of a loop share it."""
        return _NAME.sub("", self)

    @property
    def innermost_item(self) -> str:
        """Return the innermost item or round that contains this path or is it; empty if none does."""
        found = ""
        if self.in_loop:
            for match in _ITEM.finditer(self):
                found = self[: match.end()]
        return found

    @property
    def loop(self) -> str:
        """Return the path without the numbers of items and rounds, but with targets.

        Calls whose order may have changed share this path.
        """
        return _NUMBER.sub("#", self)

    def first(self, below: str = "") -> str:
        """Return the first part with its item.

        With `below`, return the first part in the run that is nested in the step `below`.
        """
        return self.removeprefix(f"{below}/").partition("/")[0]

    def within(self, outer: str) -> bool:
        """Return whether the path is `outer`, one of its parts, or inside its nested run."""
        return self == outer or self.startswith((f"{outer}/", f"{outer}#", f"{outer}@"))

    # -- the paths below it -------------------------------------------------------------------------------------------

    def step(self, step_id: str) -> str:
        """Return the path of a step in the run nested in this one."""
        return f"{self}/{step_id}"

    def item(self, name: int | str) -> str:
        """Return the path of an item or a round by its number from 0, or of a target by its name."""
        return f"{self}#{name}"

    def gate(self, when: str, number: int) -> str:
        """Return the path of a gate; `when` is `pre` or `post`."""
        return f"{self}@{when}{number}"

    def probe(self, number: int) -> str:
        """Return the path of the probe with this number, from 0. It checks whether the call
        happened.
        """
        return f"{self}{_PROBES}{number}"


def split_round(path: str) -> tuple[str, int]:
    """Return the loop and the number of an item or a round; ("", -1) for any other path."""
    loop, mark, number = path.rpartition("#")
    is_number = mark and number.isdecimal() and len(number) < _DIGITS
    return (loop, int(number)) if is_number and str(int(number)) == number else ("", -1)
