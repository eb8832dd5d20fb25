"""A Prefect server on loopback: its document is bound, and skills make flows and read them in pages, by the installed
command (docs/how-to/read-all-pages.md).

A long job: it installs Prefect into an environment of its own, so it runs with `COGCLI_LONG_TESTS=1`
(`check.py --long`) alone. `COGCLI_SERVERS_DIR` names a directory that keeps the environment.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from support.foreign_servers import keep_environments, python_environment
from support.pages import free_port
from support.project import Project
from support.waiting import wait_until

LONG = bool(os.environ.get("COGCLI_LONG_TESTS"))
pytestmark = pytest.mark.skipif(
    not LONG, reason="Prefect: not asked for (COGCLI_LONG_TESTS=1, or check.py --long)"
)
PREFECT = "prefect==3.9.1"
NAMES = ["ebb", "flood", "slack", "spring", "neap"]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command of Prefect, in an environment of its own."""
    environments = keep_environments(tmp_path_factory.mktemp("servers"))
    return python_environment(environments / "prefect", PREFECT) / "bin/prefect"


def is_answering(url: str) -> bool:
    try:
        with urlopen(f"{url}/api/health", timeout=5) as reply:
            return bool(reply.status == 200)
    except (URLError, TimeoutError, ConnectionError):
        return False


@contextmanager
def serving(program: Path, home: Path) -> Iterator[str]:
    """The address of a server with an empty database."""
    port = str(free_port())
    env = {
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "PREFECT_HOME": str(home),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
    }
    words = [str(program), "server", "start", "--host", "127.0.0.1", "--port", port, "--no-ui"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(words, env=env, start_new_session=True, **quiet) as process:
        url = f"http://127.0.0.1:{port}"
        try:
            wait_until(lambda: is_answering(url) or process.poll() is not None, seconds=180)
            assert process.poll() is None, "the server ended"
            yield url
        finally:
            os.killpg(process.pid, 9)


def bind(project: Project, url: str, capability: str, operation: str) -> None:
    words = ("new", "binding", capability, "--from-openapi", "prefect.json")
    base = ("--base-url", f"{url}/api", "--operation", operation)
    project.run(*words, *base).assert_ok()


def change(project: Project, path: str, old: str, new: str) -> None:
    """Replace a text in the only file of a path, or append `new` if `old` is empty."""
    (file,) = project.root.glob(path)
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new) if old else text + new, encoding="utf-8")


def test_flows_are_made_and_read_in_pages(
    project: Project, program: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    project.run("new", "project", ".").assert_ok()
    with serving(program, tmp_path_factory.mktemp("prefect")) as url:
        with urlopen(f"{url}/openapi.json", timeout=60) as reply:
            project.write("prefect.json", reply.read())
        bind(project, url, "flow.item.make", "create_flow_flows__post")
        bind(project, url, "flow.list.read", "read_flows_flows_filter_post")
        # To the document each POST has an effect; a person knows that this one reads.
        effects = "side_effects: true, idempotent: false"
        reads = "side_effects: false, idempotent: true"
        change(project, "capabilities/flow.list.read.yaml", effects, reads)
        page = "page: {items: result, by: offset, send: body.offset, size: 2}\n"
        change(project, "bindings/local/flow.list.read/*.yaml", "", page)
        project.skill(
            "flow.make",
            "- {id: make, uses: flow.item.make, input: {name: name}, output: {id: outputs.ids},"
            " config: {foreach: {items: inputs.names, as: name}}}",
            inputs="{names: {type: array, required: true}}",
            outputs="{ids: {type: array}}",
        )
        project.skill(
            "flow.all",
            "- {id: read, uses: flow.list.read, input: {limit: 2, sort: NAME_ASC},"
            " output: {result: outputs.flows}}",
            outputs="{flows: {type: array}}",
        )
        project.run("validate", "--strict").assert_ok()
        made = project.run("run", "flow.make", "-q", "-p", f"names:={json.dumps(NAMES)}")
        assert len(set(made.assert_ok().json["ids"])) == len(NAMES)
        read = project.run("run", "flow.all", "-q").assert_ok().json["flows"]
        assert [flow["name"] for flow in read] == sorted(NAMES)
        events = project.run("trace", "@last", "--view", "events", "--format", "jsonl").out
        assert events.count('"call.page"') == 3
        project.run("verify", "@last").assert_ok()
