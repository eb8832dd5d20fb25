"""The clock of the machine, and ids that increase (cogcli.base.system)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cogcli.base.system import SystemClock, SystemIds, encode_ulid

FUTURE = 1 << 45
"""A millisecond that the clock has not reached, so that ids count up within it."""


@pytest.mark.parametrize("entropy", [0, 1023, (1 << 20) - 2, (1 << 40) - 2, 12345 << 20])
def test_ids_within_a_millisecond_count_up_across_every_digit(entropy: int) -> None:
    ids = SystemIds()
    ids.ulid()
    ids._millisecond = FUTURE
    ids._high, ids._low = divmod(entropy - 1, 1 << 20)
    ids._start = encode_ulid(FUTURE, max(entropy - 1, 0))[:-4]
    made = [ids.ulid() for _ in range(5)]
    assert made == [encode_ulid(FUTURE, entropy + number) for number in range(5)]


def test_a_reading_is_the_time_with_six_digits() -> None:
    clock = SystemClock()
    before = datetime.now(UTC)
    readings = [clock.now() for _ in range(2000)]
    after = datetime.now(UTC)
    times = [datetime.strptime(each, "%Y-%m-%dT%H:%M:%S.%f%z") for each in readings]
    assert {len(each) for each in readings} == {27}
    assert before <= times[0]
    assert times[-1] <= after
    assert times == sorted(times)
