"""Episodes that packs keep no longer (docs/reference/pack.md#retention)."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.project import Project

pytestmark = pytest.mark.sampled(8)

DESK = Path(__file__).parents[2] / "docs/examples/support-desk"
UNDER = ("--pack", "support-desk@4.0.0", "--intent", "support.refund", "--user", "cust_7")
START, DAY = 1_795_000_000, 86_400
PACK = "packs/support-desk/4.0.0.yaml"
LOOKUP = "capabilities/orders.lookup.yaml"


def _refund(desk: Project, code: int, *flags: str) -> str:
    line = ("run", "support.refund", "-p", "order_id=ord_440", "--json", *flags)
    ran = desk.run(*line, env={"COGCLI_FAKE_CLOCK": str(START)}).assert_exit(code)
    return str(ran.json["episode_id"])


def _expired(desk: Project, days: float, *flags: str) -> list[str]:
    clock = {"COGCLI_FAKE_CLOCK": str(int(START + days * DAY))}
    done = desk.run("gc", "--expired", "--json", *(flags or ("--dry-run",)), env=clock).assert_ok()
    return list(done.json["removed"]["episodes"])


def _denied(desk: Project) -> str:
    return _refund(desk, 4, *UNDER, "--safety-mode", "network")


def _change(desk: Project, file: str, old: str, new: str) -> None:
    text = (desk.root / file).read_text()
    assert old in text
    (desk.root / file).write_text(text.replace(old, new, 1))


@pytest.mark.sampled(16)
def test_what_is_older_than_its_pack_keeps_it_goes_and_nothing_else(desk: Project) -> None:
    old = _denied(desk)
    waiting, without = _refund(desk, 5, *UNDER), _refund(desk, 0)
    pinned = _denied(desk)
    desk.run("gc", "--pin", pinned).assert_ok()
    (desk.root / PACK).unlink()  # what counts is the pack as it was
    assert _expired(desk, 89.9) == []
    assert _expired(desk, 90.1) == [old]
    assert _expired(desk, 90.1, "--dry-run", "--keep", "4") == []
    assert _expired(desk, 90.1, "--dry-run", "--outcome", "ok") == []
    assert sorted(path.name for path in desk.episodes) == sorted([old, waiting, without, pinned])
    assert _expired(desk, 9000, "--yes") == [old]
    assert sorted(path.name for path in desk.episodes) == sorted([waiting, without, pinned])


@pytest.mark.parametrize(
    ("days", "capability", "after"),
    [
        ("{internal: 90, pii: 30}", "pii", 30),
        ("{internal: 90, pii: 30}", "public", 90),
        ("{internal: 90, pii: 300}", "pii", 300),
        ("{internal: 90}", "restricted", 90),
        ("{internal: 0}", "public", 0),
        ("{pii: 30}", "public", None),
        ("{}", "public", None),
    ],
)
def test_the_highest_class_of_what_was_called_counts(
    desk: Project, days: str, capability: str, after: int | None
) -> None:
    _change(desk, PACK, "{internal: 90}", days)
    path = desk.root / LOOKUP
    path.write_text(f"{path.read_text().rstrip()}\nsafety: {{data_classification: {capability}}}\n")
    episode = _denied(desk)
    if after is None:
        assert _expired(desk, 10_000) == []
        return
    assert _expired(desk, after + 0.1) == [episode]
    assert after == 0 or _expired(desk, after - 0.1) == []


def test_what_cannot_be_read_stays(desk: Project) -> None:
    _denied(desk)
    for blob in (desk.episode / "blobs").iterdir():
        blob.write_bytes(b"{}")
    assert _expired(desk, 10_000) == []
    (desk.episode / "summary.json").write_text('{"ended_at": [1]}')
    assert _expired(desk, 10_000) == []


def test_without_a_terminal_the_suggested_line_says_all(desk: Project) -> None:
    asked = desk.run("gc", "--expired", env={"COGCLI_FAKE_CLOCK": str(START)}).assert_ok()
    assert "removed 0 episodes" in asked.out
    _denied(desk)
    late = {"COGCLI_FAKE_CLOCK": str(START + 100 * DAY)}
    refused = desk.run("gc", "--expired", "--json", env=late).assert_exit(2)
    assert refused.json["error"]["next"] == [
        "cogcli gc --expired --dry-run",
        "cogcli gc --expired --yes",
    ]
    desk.run("gc", "--expired", "--pin", "@last").assert_exit(2)
