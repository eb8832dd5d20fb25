from __future__ import annotations

import pytest

from cogcli.base import errors
from cogcli.base.errors import FAILURE_OF, FAILURES, RuntimeErrorBase, exit_code
from cogcli.base.refs import overlap, parse_loop, parse_target
from cogcli.base.system import FakeClock, FakeIds, SystemClock, SystemIds, encode_ulid

RETRIED = {
    "call.transport",
    "call.circuit-open",
    "call.timeout",
    "step.timeout",
    "call.overloaded",
    "call.server-error",
}
FALLING_BACK = {
    "response.missing", "response.type", "response.not-json", "response.size", "response.pages",
    "call.transport", "call.circuit-open", "call.timeout", "call.overloaded", "call.server-error",
}  # fmt: skip
EXITS = {
    "skill.not-found": 2, "input.unknown": 2, "frame.field": 2, "capability.not-found": 3, "skill.depth": 3,
    "input.reference": 1, "input.contract": 1, "binding.none": 3, "binding.ambiguous": 3, "binding.ineligible": 3,
    "service.unknown": 3, "service.module": 3, "env.missing": 3, "env.extra": 3, "request.missing": 1,
    "request.value": 1, "response.not-json": 1, "protocol.unsupported": 3, "call.transport": 6,
    "call.circuit-open": 6, "call.timeout": 6, "step.timeout": 6, "run.timeout": 6, "call.overloaded": 6,
    "call.server-error": 1, "call.rejected": 1, "effect.in-doubt": 5, "output.missing": 1, "output.path": 1,
    "output.slot-type": 1, "output.merge": 1, "outputs.missing": 1, "outputs.type": 1, "safety.trust": 4,
    "safety.gate": 4, "safety.gate-error": 4, "safety.scope": 4, "safety.confirmation": 5, "internal": 70,
}  # fmt: skip


@pytest.mark.parametrize(("code", "exit"), EXITS.items())
def test_exit_codes_follow_the_failure_table(code: str, exit: int) -> None:
    assert exit_code(code) == exit


def test_what_is_retried_and_what_falls_back_follows_the_failure_table() -> None:
    assert {code for code, row in FAILURE_OF.items() if row.retryable} == RETRIED
    assert {code for code, row in FAILURE_OF.items() if row.falls_back} == FALLING_BACK


def test_every_code_belongs_to_one_class() -> None:
    codes = [code for row in FAILURES for code in row.codes]
    assert len(codes) == len(set(codes))


def test_every_runtime_class_derives_from_the_seeds_base() -> None:
    for row in FAILURES:
        if row.category not in ("command line", "environment", "batch"):
            assert issubclass(row.cls, RuntimeErrorBase)
    assert issubclass(errors.StepExecutionError, RuntimeErrorBase)


@pytest.mark.parametrize(
    ("a", "b", "meets"),
    [
        ("vars.a", "vars.a", True),
        ("vars.a", "vars.a.b", False),
        ("working.artifacts.a", "working.artifacts.a.b", True),
        ("working.artifacts.a", "working.artifacts.ab", False),
        ("working.artifacts", "working.artifacts.x", True),
        ("output.result", "outputs.result", False),
    ],
)
def test_targets_overlap_when_same_or_one_inside_the_other(a: str, b: str, meets: bool) -> None:
    left, right = parse_target(a), parse_target(b)
    assert left is not None
    assert right is not None
    assert overlap(left, right) is meets
    assert overlap(right, left) is meets


@pytest.mark.parametrize(
    "text", ["vars", "vars.", "vars.a b", "x.y", "inputs.a", "vars.a..b", "vars." + "a." * 16 + "a"]
)
def test_what_cannot_be_written_is_no_target(text: str) -> None:
    assert parse_target(text) is None


def test_loop_names_may_stand_bare() -> None:
    names = frozenset({"item"})
    assert parse_loop("item", names) is not None
    assert parse_loop("item.a.0", names) is not None
    for text in ("items", "item.", "item a", "inputs.x"):
        assert parse_loop(text, names) is None


@pytest.mark.parametrize("milliseconds", [0, 1_700_000_000_000, (1 << 48) - 1])
@pytest.mark.parametrize(
    "entropy", [0, 1, (1 << 20) - 1, 1 << 20, 0x0123_4567_89AB_CDEF_0123, (1 << 80) - 1]
)
def test_a_ulid_is_time_and_entropy_in_base_32(milliseconds: int, entropy: int) -> None:
    digits = {digit: value for value, digit in enumerate("0123456789ABCDEFGHJKMNPQRSTVWXYZ")}
    number = 0
    for digit in encode_ulid(milliseconds, entropy):
        number = number << 5 | digits[digit]
    assert number == milliseconds << 80 | entropy


def test_system_ids_and_clock_keep_their_formats() -> None:
    ids, clock = SystemIds(), SystemClock()
    ulids = [ids.ulid() for _ in range(2000)]
    assert ulids == sorted(ulids)
    assert len(set(ulids)) == 2000
    assert all(len(ulid) == 26 for ulid in ulids)
    assert ids.run_id().startswith("run_")
    assert len(ids.run_id()) == 20
    assert len(ids.trace_id()) == 32
    now = clock.now()
    assert len(now) == 27
    assert now.endswith("Z")


def test_fake_time_and_ids_count_up() -> None:
    clock, ids = FakeClock(0), FakeIds(5)
    assert [clock.now(), clock.now()] == [
        "1970-01-01T00:00:00.001000Z",
        "1970-01-01T00:00:00.002000Z",
    ]
    assert ids.run_id() == "run_0000000000000006"
