"""A batch over two hosts with nothing in common but a wire, as the page sets it up: certificates, TLS, a scheduler on
one host and a worker on the other. The hosts are network namespaces of Linux; their runs directories are apart.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from counted import RUN, batch_folder, effects, outcomes, rows, write_lines
from dask_cluster import make_counted_anywhere
from support.examples import LONG
from support.waiting import wait_until

from cogcli.base.extras import missing_module

PAGE = Path(__file__).parents[2] / "docs/how-to/run-a-batch.md"
PROGRAMS = ("ip", "mount", "nsenter", "openssl", "unshare")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(missing_module("scale")), reason="the extra `scale` is not installed"),
]


class Host:
    """A network namespace with a file of host names of its own. `before` are the words that enter another one."""

    def __init__(self, before: tuple[str, ...], *words: str) -> None:
        """Raise OSError if the system does not allow it."""
        self._process = subprocess.Popen(
            [*before, *words, "sh", "-c", "echo ready; exec sleep 3600"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert self._process.stdout is not None
        if self._process.stdout.readline() != b"ready\n":
            raise OSError(self._process.communicate()[1].decode().strip())
        self.pid = self._process.pid
        self.enter = ("nsenter", "-t", str(self.pid), "-U", "--preserve-credentials", "-n", "-m")
        self._started: list[subprocess.Popen[bytes]] = []

    def set_up(self, *words: str) -> None:
        """Run a command of the system. Raise OSError."""
        done = subprocess.run([*self.enter, *words], capture_output=True, check=False)
        if done.returncode:
            raise OSError(f"{' '.join(words)}: {done.stderr.decode().strip()}")

    def run(
        self, line: str, project: Any, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a line of a shell in a project."""
        return subprocess.run(
            [*self.enter, "sh", "-c", f"cd {project.root} && {line}"], env={**project.env, **(env or {})},
            capture_output=True, check=False, text=True, timeout=180,
        )  # fmt: skip

    def start(self, line: str, project: Any, env: Mapping[str, str] | None = None) -> Any:
        """Start a line of a shell in a project. It ends with the host."""
        process = subprocess.Popen(
            [*self.enter, "sh", "-c", f"cd {project.root} && exec {line}"],
            env={**project.env, **(env or {})}, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._started.append(process)
        return process

    def close(self) -> None:
        """End the host and all that was started on it."""
        for process in reversed(self._started):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[tuple[Host, Host]]:
    """Two hosts. Each finds the first one under the name that the page uses."""
    if missing := [name for name in PROGRAMS if not shutil.which(name)]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    names = tmp_path / "hosts"
    names.write_text("127.0.0.1 localhost\n10.77.0.1 scheduler.example\n")
    opened: list[Host] = []
    try:
        opened.append(first := Host((), "unshare", "-rnm"))
        first.set_up("mount", "--bind", str(names), "/etc/hosts")
        opened.append(second := Host(first.enter, "unshare", "-nm"))
        wire = ("type", "veth", "peer", "name", "wire", "netns", str(second.pid))
        first.set_up("ip", "link", "add", "wire", *wire)
        for host, address in ((first, "10.77.0.1/24"), (second, "10.77.0.2/24")):
            host.set_up("ip", "address", "add", address, "dev", "wire")
            host.set_up("ip", "link", "set", "lo", "up")
            host.set_up("ip", "link", "set", "wire", "up")
            host.set_up("ip", "route", "add", "default", "dev", "wire")
    except OSError as error:
        for host in reversed(opened):
            host.close()
        pytest.skip(f"no network namespaces can be made here: {error}")
    yield first, second
    for host in (second, first):
        host.close()


class PageCommands:
    """The commands and settings of the page for several machines, with the directory of the certificates replaced."""

    def __init__(self, certificates: Path) -> None:
        page = PAGE.read_text("utf-8").replace("/etc/dask-tls", str(certificates))
        part = page[page.index("On several machines everything speaks TLS") :]
        blocks = re.findall(r"(?ms)^```(text|yaml)\n(.*?)^```$", part)
        (_, self.openssl), (_, self.settings), (_, started) = blocks[:3]
        self.scheduler, self.worker, self.batch = started.replace(" 8 ", " 1 ").splitlines()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the certificates, made as the page shows it."""
    if not shutil.which("openssl"):
        pytest.skip("not installed: openssl")
    folder = tmp_path_factory.mktemp("dask-tls")
    script = ["sh", "-e", "-c", PageCommands(folder).openssl]
    subprocess.run(script, cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture
def commands(project: Any, certificates: Path) -> PageCommands:
    """The commands of the page, after the settings are made as it shows."""
    project.env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{project.env['PATH']}"
    made = PageCommands(certificates)
    settings = project.home / ".config/dask/tls.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text(made.settings)
    return made


def runs_of_worker(tmp_path: Path) -> dict[str, str]:
    return {"COGCLI_RUNS_DIR": str(tmp_path / "runs-of-the-other-host")}


def connects(host: Host, project: Any, name: str) -> bool:
    """Return whether a host reaches the scheduler under a name."""
    program = f"import socket; socket.create_connection(('{name}', 8786), 10)"
    return host.run(f'"{sys.executable}" -c "{program}"', project).returncode == 0


def test_the_certificates_of_the_page_are_accepted_by_strict_checks(
    certificates: Path,
) -> None:
    """Python checks so from 3.13 on."""
    words = ["openssl", "verify", "-x509_strict", "-CAfile", "ca.pem", "cert.pem"]
    done = subprocess.run(words, cwd=certificates, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.sampled(12)
def test_the_commands_of_the_page_run_a_batch_over_two_hosts(
    project: Any, hosts: tuple[Host, Host], commands: PageCommands, tmp_path: Path
) -> None:
    first, second = hosts
    assert "tls://scheduler.example:8786" in commands.worker
    project.started("new", "project", ".").assert_ok()
    write_lines(project, ["one", "two", "three"])
    first.start(commands.scheduler, project)
    second.start(commands.worker, project, runs_of_worker(tmp_path))
    done = first.run(commands.batch, project)
    assert done.returncode == 0, done.stderr
    assert connects(second, project, "scheduler.example")
    assert not connects(second, project, "127.0.0.1"), "the hosts have no loopback in common"
    assert outcomes(project) == [(line, "ok") for line in (1, 2, 3)]
    ledger = (batch_folder(project) / "ledger.jsonl").read_text().splitlines()
    assert [json.loads(line)["kind"] for line in ledger].count("sent") == 3
    assert len(project.episodes) == 3
    assert not list((tmp_path / "runs-of-the-other-host").glob("ep_*"))
    project.run("verify", batch_folder(project).name).assert_ok()


@pytest.mark.skipif(not LONG, reason="waits until a worker counts as gone: COGCLI_LONG_TESTS=1")
def test_lines_at_a_host_that_is_cut_off_wait_and_no_effect_is_repeated(
    project: Any, hosts: tuple[Host, Host], commands: PageCommands, tmp_path: Path
) -> None:
    first, second = hosts
    make_counted_anywhere(project)
    texts = ["a", "sleep:2", "b"]
    write_lines(project, texts)
    batch = f"cogcli {' '.join(RUN)} --executor dask:tls://scheduler.example:8786"
    first.start(commands.scheduler, project)
    second.start(commands.worker, project, runs_of_worker(tmp_path))
    process = first.start(batch, project)
    wait_until(lambda: effects(project) == ["a"] or process.poll() is not None)
    first.set_up("ip", "link", "set", "wire", "down")
    wait_until(lambda: process.poll() is not None, 180)
    assert process.returncode in (5, 6)
    wait_until(lambda: "sleep:2" in effects(project))  # a line that runs needs no wire
    # Dask ends a worker that does not reach its scheduler. The next one is another worker, which finds the episodes.
    first.set_up("ip", "link", "set", "wire", "up")
    second.start(commands.worker, project, runs_of_worker(tmp_path))
    done = first.run(batch, project)
    assert done.returncode == 5, done.stderr
    assert (2, "pending") in outcomes(project)
    waiting = [row for row in rows(project) if row["status"] == "pending"]
    assert {row["error"]["code"] for row in waiting} == {"effect.in-doubt"}
    done = first.run(f"{batch} --in-doubt rerun", project)
    assert done.returncode == 0, done.stderr
    assert outcomes(project) == [(line, "ok") for line in (1, 2, 3)]
    assert effects(project) == sorted(texts)
    project.run("verify", batch_folder(project).name).assert_ok()
