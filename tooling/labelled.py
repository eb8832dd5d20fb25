"""How well the detectors of the shipped registry do on labelled lines (tests/registry/labelled/README.md)."""

from __future__ import annotations

import base64
import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from cogcli.official.personal_data import find_personal_data
from cogcli.official.secret_values import find_secrets
from cogcli.official.text import detect_language

ROOT = Path(__file__).resolve().parent.parent
LINES = ROOT / "tests" / "registry" / "labelled"
SPLITS = ("tune", "held")
_RESERVED = re.compile(r"\bexample(?=\.\w)|(?<=\.)example\b")
"""The part of an address that says that nobody has it."""


class Score(NamedTuple):
    """Of what is of a kind in one half of the lines: found, found where it is not, and missed."""

    detector: str
    split: str
    kind: str
    right: int
    wrong: int
    missed: int

    @property
    def precision(self) -> float:
        """The part of the findings that is right; 1 without any."""
        found = self.right + self.wrong
        return self.right / found if found else 1.0

    @property
    def recall(self) -> float:
        """The part of what is there that is found; 0 where there is nothing."""
        there = self.right + self.missed
        return self.right / there if there else 0.0


def personal_data_scores() -> Iterator[Score]:
    """By half and kind."""
    for split in SPLITS:
        counted = Counter[tuple[str, str]]()
        for line in _lines("pii", split):
            text, wanted = line["text"], {(each["kind"], each["value"]) for each in line["found"]}
            if any(kind == "email" for kind, _ in wanted):
                text = _owned(text)
                wanted = {(kind, _owned(value)) for kind, value in wanted}
            found = {(each.kind, text[each.start : each.end]) for each in find_personal_data(text)}
            _count(counted, found, wanted)
        yield from _scores("personal data", split, counted)


def secret_scores() -> Iterator[Score]:
    """By half and kind. A finding is of the kind of its line; one where there is nothing is of the kind `none`."""
    for split in SPLITS:
        counted = Counter[tuple[str, str]]()
        for line in _lines("secrets", split):
            token = _token(line["build"]) if line["build"] else ""
            text, kind = line["template"].replace("{token}", token), line["kind"]
            start, found = text.index(token), find_secrets(text)
            hits = [
                each
                for each in found
                if kind and each.start < start + len(token) and start < each.end
            ]
            counted[kind or "none", "right"] += bool(hits)
            counted[kind or "none", "missed"] += bool(kind) and not hits
            counted[kind or "none", "wrong"] += len(found) - len(hits)
        yield from _scores("secrets", split, counted)


def language_scores() -> Iterator[Score]:
    """By half: the languages of all its sentences."""
    for split in SPLITS:
        told = [
            detect_language(line["text"])["language"] == line["language"]
            for line in _lines("language", split)
        ]
        yield Score("language", split, "all", sum(told), told.count(False), told.count(False))


def total(scores: Iterable[Score]) -> Score:
    """Scores of one detector as one."""
    each = list(scores)
    counts = (
        sum(score.right for score in each),
        sum(score.wrong for score in each),
        sum(score.missed for score in each),
    )
    return Score(each[0].detector, each[0].split, "all", *counts)


def _owned(text: str) -> str:
    """A text in whose addresses somebody may have the domain."""
    return _RESERVED.sub(
        lambda part: "haldenmoor" if text[part.end() :].startswith(".") else "info", text
    )


def questions(split: str) -> list[dict[str, Any]]:
    """The questions of users in one half, with the ids of the skills that answer them."""
    return [*_lines("search", split)]


def _lines(name: str, split: str) -> Iterator[dict[str, Any]]:
    for line in (LINES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        read = json.loads(line)
        if read["split"] == split:
            yield read


def _count(
    counted: Counter[tuple[str, str]], found: set[tuple[str, str]], wanted: set[tuple[str, str]]
) -> None:
    for name, values in (
        ("right", found & wanted),
        ("wrong", found - wanted),
        ("missed", wanted - found),
    ):
        for kind, _ in values:
            counted[kind, name] += 1


def _scores(detector: str, split: str, counted: Mapping[tuple[str, str], int]) -> Iterator[Score]:
    for kind in sorted({kind for kind, _ in counted}):
        counts = (counted[kind, name] for name in ("right", "wrong", "missed"))
        yield Score(detector, split, kind, *counts)


def _token(build: Mapping[str, Any]) -> str:
    """The credential that a line of `secrets.jsonl` describes."""
    parts = build.get("parts")
    return build.get("join", "").join(map(_part, parts)) if parts else _part(build)


def _part(build: Mapping[str, Any]) -> str:
    if "json" in build:
        raw = json.dumps(build["json"], separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")
    drawn = random.Random(build["seed"]).choices(_spread(build["alphabet"]), k=build["length"])
    body = build.get("prefix", "") + "".join(drawn) + build.get("suffix", "")
    width = build.get("wrap") or len(body) or 1
    places = [*range(0, len(body), width), len(body)]
    return str(build.get("newline", "\n")).join(body[start:end] for start, end in pairwise(places))


def _spread(alphabet: str) -> str:
    """`A-C7` is `ABC7`."""
    return re.sub(
        "([A-Za-z0-9])-([A-Za-z0-9])",
        lambda ends: "".join(map(chr, range(ord(ends[1]), ord(ends[2]) + 1))),
        alphabet,
    )
