"""The checksum of a line: which bytes it is over, what it finds, what can be said of a line that was altered."""

from __future__ import annotations

import json
import subprocess
import zlib

from hypothesis import given
from hypothesis import strategies as st

from cogcli.declarations.checksum import (
    Checksums,
    add_sum,
    corrections,
    has_valid_checksum,
    looks_complete,
    valid_prefix,
)

LINE = add_sum(b'{"seq":3,"payload":{"sum":"00000000","note":"J*"},"prev":"sha256:ab"}')


def flipped(line: bytes) -> list[bytes]:
    """A line with each of its bits altered in turn."""
    return [
        line[:place] + bytes([line[place] ^ 1 << bit]) + line[place + 1 :]
        for place in range(len(line))
        for bit in range(8)
    ]


def test_the_checksum_is_over_the_bytes_before_its_key() -> None:
    before, _, rest = LINE.rpartition(b',"sum":"')
    assert rest == b'%08x"}' % zlib.crc32(before)
    assert json.loads(LINE)["sum"] == f"{zlib.crc32(before):08x}"


def test_gzip_computes_the_same() -> None:
    script = 'head -c -18 | gzip -c | tail -c 8 | od -An -N4 -tx4 --endian=little | tr -d " \\n"'
    told = subprocess.run(["sh", "-c", script], input=LINE, capture_output=True, check=True).stdout
    assert told.decode() == json.loads(LINE)["sum"]


def test_no_altered_bit_is_passed() -> None:
    assert has_valid_checksum(LINE)
    assert not any(map(has_valid_checksum, flipped(LINE)))


def test_an_altered_bit_leaves_a_line_like_a_whole_one() -> None:
    assert all(map(looks_complete, flipped(LINE)))
    assert not any(looks_complete(LINE[:size]) for size in range(len(LINE)))


def test_an_altered_byte_is_made_good() -> None:
    for line in flipped(LINE):
        assert list(corrections(line)) == [LINE]


@given(st.binary(min_size=1, max_size=300), st.data())
def test_any_altered_byte_of_any_line_is_made_good(text: bytes, data: st.DataObject) -> None:
    line = add_sum(b"{" + text + b"}")
    place = data.draw(st.integers(0, len(line) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != line[place]))
    assert line in list(corrections(line[:place] + bytes([byte]) + line[place + 1 :]))


def test_what_begins_with_a_whole_line_is_told_from_a_torn_one() -> None:
    assert valid_prefix(LINE + b"*") == valid_prefix(LINE) == len(LINE)
    assert not any(valid_prefix(LINE[:size]) for size in range(len(LINE)))


def told(*lines: bytes) -> list[str]:
    rule = Checksums()
    problems = (rule.problem(line, json.loads(line)) for line in lines)
    return [problem[0] if problem else "" for problem in problems]


def test_from_the_first_line_with_a_checksum_every_line_has_one() -> None:
    old = b'{"seq":0,"prev":"x"}'
    wrong = LINE.replace(b"note", b"mote")
    assert told(old, old, LINE, LINE) == ["", "", "", ""]
    assert told(LINE, old, LINE) == ["", "sum.missing", ""]
    assert told(LINE, wrong) == ["", "sum.wrong"]


def test_a_checksum_that_does_not_come_last_is_none() -> None:
    assert told(LINE[:-1] + b',"x-more":1}') == ["sum.wrong"]


def test_another_tools_sum_is_a_key_like_any_other() -> None:
    assert told(b'{"phase":"act","sum":12}', b'{"phase":"act"}') == ["", ""]
