"""The one test that most lines of a log pass finds a line sound only where the checks one by one find nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import orjson
import pytest
from sample_episode import sealed_episode

from cogcli.episode.layout import Finding
from cogcli.episode.verify.lines import LineCheck


class OneByOne(LineCheck):
    def _is_sound(self, raw: bytes, line: Any) -> bool:
        return False


VALUES: list[Any] = [None, True, 0, 1, 1.0, -1, "", "text", [], ["a"], {}, {"a": 1}]


def altered(line: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the line with each member left out or replaced, and with further members."""
    for key in line:
        yield {name: value for name, value in line.items() if name != key}
        for value in VALUES:
            yield {**line, key: value}
    yield {**line, "x-own": 1}
    yield {**line, "own": 1}
    yield {**line, "clock": "clamped"}
    yield {**line, "metrics": {"seconds": 1}}
    yield {**line, "caused_by": line["id"]}
    yield {**line, "timestamp": "2001-01-01T00:00:00.000000Z"}


def with_sum(line: dict[str, Any]) -> bytes:
    """Return the line with the checksum that fits, if it has one."""
    if "sum" not in line:
        return orjson.dumps(line)
    stem = orjson.dumps({name: value for name, value in line.items() if name != "sum"})[:-1]
    return stem + b',"sum":"%08x"}' % crc32(stem)


def findings(check: LineCheck, lines: list[bytes]) -> list[Finding]:
    return [
        finding
        for number, raw in enumerate(lines, 1)
        for finding in check.check(number, raw, orjson.loads(raw))
    ]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("is_chained_again", [False, True])
def test_both_ways_find_the_same(tmp_path: Path, is_chained_again: bool) -> None:
    log = sealed_episode(tmp_path) / "events.jsonl"
    lines = log.read_bytes().splitlines()
    assert findings(LineCheck(), lines) == []
    for place in (1, 4, len(lines) - 1):
        for changed in altered(orjson.loads(lines[place])):
            forged = [*lines[:place], with_sum(changed), *lines[place + 1 :]]
            if is_chained_again and place + 1 < len(lines):
                after = orjson.loads(lines[place + 1])
                after["prev"] = f"sha256:{hashlib.sha256(forged[place]).hexdigest()}"
                forged[place + 1] = with_sum(after)
            fast, slow = LineCheck(), OneByOne()
            assert findings(fast, forged) == findings(slow, forged), changed
            assert (fast.count, fast.head) == (slow.count, slow.head)
            assert vars(fast.ids) == vars(slow.ids)
