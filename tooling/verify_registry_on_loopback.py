"""All capabilities and skills run, those that need a model, a service of the host or the web against the servers of the
tests on loopback (docs/reference/tooling.md#loopback). Prints what did not run, and two lines of sums."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from registry_command import ROOT, hide_extras

from cogcli.app.settings import Settings
from cogcli.authoring.contracts import check_contracts
from cogcli.authoring.executability import check_skills
from cogcli.authoring.spec_results import SpecResult, summary_line
from cogcli.authoring.verification.check_result import PASSED

sys.path.insert(0, str(ROOT / "tests"))

from support.loopback_host import SENDERS, loopback_host


def main() -> int:
    """Exit code 1 where one did not pass; with `--without-extras` one that needs an extra may."""
    without = sys.argv[1:] == ["--without-extras"]
    if without:
        hide_extras()
    with TemporaryDirectory() as home, loopback_host(Path(home)) as host:
        settings = Settings({}, host.environ, base=str(ROOT))
        capabilities = check_contracts(settings, real=SENDERS).checked
        skills = check_skills(settings).checked
    codes = [_tell(capabilities, "contracts", without), _tell(skills, "skills ran", without)]
    return max(codes)


def _tell(checked: Sequence[SpecResult], noun: str, without_extras: bool) -> int:
    left = [each for each in checked if each.result.status != PASSED]
    for each in left:
        print(f"{each.result.id} {each.result.status}: {each.result.reason}")
    print(summary_line(checked, noun))
    return int(
        not all(without_extras and "extra" in {need.kind for need in each.needs} for each in left)
    )


if __name__ == "__main__":
    sys.exit(main())
