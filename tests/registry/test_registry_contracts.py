"""The shipped capabilities keep their contracts and the shipped skills run, by real runs through their bindings, those
that need a model, a service of the host or the web against servers on loopback
(docs/reference/command-line.md#registry-checks)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from support.loopback_host import SENDERS, LoopbackHost, loopback_host

from cogcli.app.settings import Settings
from cogcli.authoring.contracts import check_contracts
from cogcli.authoring.executability import check_skills
from cogcli.authoring.spec_results import SpecResult, summary_line
from cogcli.authoring.verification.check_result import PASSED

pytestmark = pytest.mark.sampled(8)

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/command-line.md").read_text(encoding="utf-8")


@pytest.fixture
def host(tmp_path: Path) -> Iterator[LoopbackHost]:
    with loopback_host(tmp_path) as host:
        yield host


def left(checked: Iterable[SpecResult]) -> dict[str, str]:
    """What did not pass, but for code on a machine that cannot keep it apart."""
    return {
        each.result.id: each.result.reason
        for each in checked
        if each.result.status != PASSED and [need.kind for need in each.needs] != ["isolation"]
    }


@pytest.mark.sampled(32)
@pytest.mark.slow
def test_each_capability_keeps_its_contract(host: LoopbackHost) -> None:
    """Each example through each binding that can be called here, and wrong inputs refused before any call."""
    checked = check_contracts(Settings({}, host.environ, base=str(ROOT)), real=SENDERS).checked
    assert left(checked) == {}
    assert len(checked) == len(list((ROOT / "capabilities").glob("*.yaml")))
    assert len(host.mail.messages) == 1
    assert sorted(host.requests) == [
        "GET /search?q=tide+tables&format=json", *["GET http://example.org/"] * 2, *["POST /"] * 2,
    ]  # fmt: skip
    assert [request.path for request in host.model.requests] == ["/v1/chat/completions"] * 5


@pytest.mark.slow
def test_each_skill_runs(host: LoopbackHost) -> None:
    checked = check_skills(Settings({}, host.environ, base=str(ROOT))).checked
    assert left(checked) == {}
    assert len(checked) == len(list((ROOT / "skills/official").glob("*/*/skill.yaml")))
    assert len(host.model.requests) == 4
    assert any("/search?" in request for request in host.requests)
    assert "GET http://example.org/" in host.requests


@pytest.mark.sampled(32)
@pytest.mark.slow
def test_the_page_shows_what_is_printed(tmp_path: Path) -> None:
    """Without a model, a service of the host and the network."""
    environ = {"HOME": str(tmp_path), "COGCLI_TRUST_PROJECT": "1"}
    line = summary_line(
        check_contracts(Settings({}, environ, base=str(ROOT)), once=True).checked, "contracts"
    )
    assert f"`{line}`" in PAGE
