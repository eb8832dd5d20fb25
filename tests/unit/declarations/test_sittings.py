"""How long a run was under way: the sum of its sittings."""

from __future__ import annotations

from cogcli.declarations.envelope import ActiveTime, Event

DAY = "2026-11-20T{}.000000Z"


def sat(*told: tuple[str, str]) -> int | None:
    sittings = ActiveTime()
    for at, kind in told:
        sittings.apply(
            Event(
                None, "", at if "T" in at else DAY.format(at), "ep_a", None, None, "act", kind, {}
            )
        )
    return sittings.milliseconds


def test_one_sitting_lasts_from_its_first_event_to_its_last() -> None:
    assert sat() is None
    assert sat(("10:00:00", "run.started")) == 0
    assert (
        sat(
            ("10:00:00", "run.started"),
            ("10:00:02", "run.paused"),
            ("10:00:09", "run.state_projection"),
        )
        == 2000
    )


def test_what_lies_between_two_sittings_counts_for_nothing() -> None:
    assert sat(
        ("10:00:00", "run.started"), ("10:00:02", "run.paused"), ("18:00:00", "run.recovered"),
        ("18:00:00", "run.resumed"), ("18:00:03", "step.completed"),
        ("19:00:00", "run.resumed"), ("19:00:04", "step.completed"),
    ) == 9000  # fmt: skip


def test_a_log_without_times_tells_none() -> None:
    assert sat(("Tuesday T", "run.started"), ("10:00:02", "run.paused")) is None
