"""Checkpoints: what their records vouch for, and what is left of them after any crash."""

from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogcli.app.settings.owner_key import ensure_key, find_key, key_path, read_key
from cogcli.episode.checkpoint import (
    MAX_RANGES,
    NOTHING,
    SLOT,
    CheckpointWriter,
    TrustedEvents,
    compare,
    is_own,
    places_of,
    read_checkpoints,
    read_trusted_checkpoints,
)
from cogcli.episode.folder import Folder
from cogcli.episode.log_lines import first_link
from cogcli.episode.schemas import SCHEMAS

EPISODE, KEY, OTHER = "ep_01M85BQSJW192W9BY56KY38P88", b"k" * 32, b"o" * 32


def head(number: int) -> str:
    """The hash of the chain after so many events."""
    return f"sha256:{sha256(str(number).encode()).hexdigest()}" if number else first_link(EPISODE)


def heads(count: int) -> dict[int, str]:
    """Those of a log of `count` events."""
    return {number: head(number) for number in range(count + 1)}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder.open(tmp_path)


def vouched(folder: Folder, count: int, key: bytes = KEY) -> TrustedEvents:
    return compare(read_trusted_checkpoints(folder, key), EPISODE, heads(count))


def test_a_record_vouches_for_its_lines_and_for_the_one_that_it_announced(folder: Folder) -> None:
    CheckpointWriter(folder, EPISODE, KEY, None).announce(4, head(4), head(5))
    assert vouched(folder, 4).ranges == ((0, 3),)
    assert vouched(folder, 5).ranges == ((0, 4),)
    assert vouched(folder, 9).ranges == ((0, 4),), "lines after that are not vouched for"
    assert vouched(folder, 9).missing(9) == ((5, 8),)
    assert vouched(folder, 3).differs, "the log was cut"
    assert vouched(folder, 9, OTHER) == NOTHING


def test_a_record_is_of_one_episode(folder: Folder) -> None:
    CheckpointWriter(folder, EPISODE, KEY, None).announce(4, head(4), head(5))
    known = read_trusted_checkpoints(folder, KEY)
    assert compare(known, "ep_01M85BQSJW192W9BY56KY38P89", heads(5)).differs
    assert compare(known, EPISODE, {**heads(5), 4: head(7), 5: head(8)}).differs
    assert places_of(known) == {4, 5}


@pytest.mark.parametrize("byte", range(0, 330, 7))
def test_a_record_with_an_altered_byte_vouches_for_nothing(folder: Folder, byte: int) -> None:
    CheckpointWriter(folder, EPISODE, KEY, None).settle(4, head(4), head(5))
    path = folder.path / "checkpoint.jsonl"
    data = bytearray(path.read_bytes())
    assert bytes(data[byte : byte + 1]).strip()
    data[byte] ^= 1
    path.write_bytes(data)
    assert vouched(folder, 5) == NOTHING


@pytest.mark.parametrize("cut", [0, 1, 100, SLOT // 2, SLOT - 1])
def test_a_write_that_is_cut_short_leaves_the_record_before(
    folder: Folder, cut: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = CheckpointWriter(folder, EPISODE, KEY, None)
    for number in (0, 3, 6):
        writer.announce(number, head(number), head(number + 1))
    real = os.write

    def torn(fd: int, data: bytes) -> int:
        real(fd, data[:cut])
        raise OSError(5, "the process died here")

    monkeypatch.setattr(os, "write", torn)
    writer.announce(8, head(8), head(9))
    monkeypatch.undo()
    assert vouched(folder, 8).ranges in (((0, 6),), ((0, 7),))
    assert not vouched(folder, 8).differs
    writer.announce(9, head(9), head(10))
    assert vouched(folder, 9).ranges in (((0, 6),), ((0, 8),)), (
        "after a failed write nothing more is written"
    )


def test_a_pause_leaves_one_record_and_equal_logs_have_equal_files(folder: Folder) -> None:
    contents = set()
    for announced in range(4):
        (folder.path / "checkpoint.jsonl").unlink(missing_ok=True)
        writer = CheckpointWriter(folder, EPISODE, KEY, None)
        for number in range(announced):
            writer.announce(number, head(number), head(number + 1))
        writer.settle(4, head(4), head(5))
        writer.close()
        contents.add((folder.path / "checkpoint.jsonl").read_bytes())
        assert len(read_checkpoints(folder)) == 1
    assert len(contents) == 1


def test_each_record_fits_its_schema(folder: Folder) -> None:
    schema = jsonschema.Draft202012Validator(SCHEMAS["checkpoint"]())
    signature = {"alg": "ed25519", "key_id": "a", "value": "b"}
    writer = CheckpointWriter(folder, EPISODE, KEY, lambda _: signature)
    writer.announce(0, head(0), head(1))
    writer.announce(1, head(1), head(2))
    records = [
        json.loads(line)
        for line in (folder.path / "checkpoint.jsonl").read_bytes().split(b"\n")
        if line
    ]
    assert [record["events"] for record in records] == [0, 1]
    for record in records:
        schema.validate(record)
        with pytest.raises(jsonschema.ValidationError):
            schema.validate({**record, "events": -1})


def test_what_was_in_the_log_before_stays_unvouched(folder: Folder) -> None:
    CheckpointWriter(folder, EPISODE, KEY, None).announce(3, head(3), head(4))
    before = vouched(folder, 9)
    writer = CheckpointWriter(folder, EPISODE, KEY, None, vouched=before, count=9)
    assert writer.unvouched == ((4, 8),)
    writer.announce(9, head(9), head(10))
    after = vouched(folder, 12)
    assert after.ranges == ((0, 3), (9, 9))
    assert (after.covers(3), after.covers(4), after.covers(8), after.covers(9)) == (
        True,
        False,
        False,
        True,
    )
    assert not after.allows(5)
    writer.renew_permissions(9)
    writer.announce(10, head(10), head(11))
    assert vouched(folder, 12).allows(5)


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), max_size=40))
def test_many_gaps_are_joined_and_never_forgotten(gaps: list[tuple[int, int]]) -> None:
    ranges, at = [], 0
    for vouched_for, missing in gaps:
        ranges.append((at, at + vouched_for - 1))
        at += vouched_for + missing
    known = TrustedEvents(tuple(ranges))
    writer = CheckpointWriter(Folder(Path("."), None), EPISODE, KEY, None, vouched=known, count=at)
    assert len(writer.unvouched) <= MAX_RANGES
    left = NOTHING._replace(ranges=writer.unvouched)
    assert all(left.covers(number) for number in range(at) if not known.covers(number))


def test_a_record_of_no_key_is_nobodys(folder: Folder) -> None:
    CheckpointWriter(folder, EPISODE, None, None).announce(0, head(0), head(1))
    assert not (folder.path / "checkpoint.jsonl").exists()
    assert not any(is_own(record, None) for record in read_checkpoints(folder))


# -- the user's key ----------------------------------------------------------------------------------------------------


def test_the_key_is_made_once_by_a_run_and_never_by_looking(tmp_path: Path) -> None:
    environ = {"XDG_CONFIG_HOME": str(tmp_path)}
    find_key(environ)
    assert not os.path.exists(key_path(environ))
    key = ensure_key(environ)
    assert key == ensure_key(environ) == find_key(environ) == read_key(environ).key
    assert os.stat(key_path(environ)).st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", [b"", b"x" * 65, b"0" * 64, b"0" * 63 + b"\n", b"\xff" * 65])
def test_a_damaged_key_is_not_replaced(tmp_path: Path, content: bytes) -> None:
    environ = {"XDG_CONFIG_HOME": str(tmp_path)}
    path = Path(key_path(environ))
    path.parent.mkdir()
    path.write_bytes(content)
    path.chmod(0o600)
    assert read_key(environ).key is None
    assert read_key(environ).problem
    ensure_key(environ)
    assert path.read_bytes() == content


def test_without_a_home_a_process_knows_its_own_episodes(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "file")}
    assert ensure_key(environ) == find_key(environ)
    assert read_key(environ).key is None
