"""The shipped capabilities keep their contracts, by real runs through their bindings
(docs/reference/command-line.md#registry-checks)."""

from __future__ import annotations

from pathlib import Path

import pytest

from cogcli.app.checks.contracts import check_contracts
from cogcli.app.settings import Settings
from cogcli.verification.check_result import FAILED

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_each_capability_keeps_its_contract(tmp_path: Path) -> None:
    """Each example through each binding that can be called here, and wrong inputs refused before any call."""
    environ = {"HOME": str(tmp_path), "COGCLI_TRUST_PROJECT": "1"}
    checked = check_contracts(Settings({}, environ, base=str(ROOT))).checked
    failed = {each.result.id: each.result.reason for each in checked if each.result.status == FAILED}
    assert failed == {}
