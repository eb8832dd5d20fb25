"""Batches on Dask workers that share the runs directory: a real scheduler and real workers on loopback.

`COGCLI_LONG_TESTS=1` kills workers, nodes, client and scheduler at seeded moments.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from counted import RUN, batch_folder, effects, outcomes, rows, write_lines
from dask_cluster import DaskCluster, children_of, dask_cluster, make_counted_anywhere
from support.certificates import server_tls
from support.waiting import wait_until

from cogcli.base.extras import missing_module

LONG = bool(os.environ.get("COGCLI_LONG_TESTS"))
ROOT = Path(__file__).parents[2]
COGCLI = str(Path(sys.executable).parent / "cogcli")
needs_dask = pytest.mark.skipif(
    bool(missing_module("scale")), reason="the extra `scale` is not installed"
)


@pytest.fixture
def counting(project: Any) -> Any:
    return make_counted_anywhere(project)


def on(cluster: DaskCluster) -> tuple[str, str]:
    return "--executor", f"dask:{cluster.address}"


def use_tls(project: Any) -> None:
    """Give all processes a certificate that is its own CA, through the settings of Dask."""
    folder = project.root.parent
    _, chain = server_tls(folder)
    key = str(folder / "key.pem")
    for name in ("SCHEDULER", "WORKER", "CLIENT"):
        project.env[f"DASK_DISTRIBUTED__COMM__TLS__{name}__CERT"] = str(chain)
        project.env[f"DASK_DISTRIBUTED__COMM__TLS__{name}__KEY"] = key
    project.env["DASK_DISTRIBUTED__COMM__TLS__CA_FILE"] = str(chain)
    project.env["DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION"] = "True"


@needs_dask
@pytest.mark.slow
def test_a_dead_worker_is_replaced_and_only_the_line_in_doubt_waits(counting: Any) -> None:
    write_lines(counting, [*(f"t{number}" for number in range(8)), "fail:x"])
    counting.write("die-after", "t3")
    use_tls(counting)
    with dask_cluster(counting) as cluster:
        assert cluster.address.startswith("tls://127.0.0.1:")
        counting.started(*RUN, *on(cluster)).assert_exit(1)
        done = [(line, "pending" if line == 4 else "ok") for line in range(1, 9)]
        assert outcomes(counting) == [*done, (9, "error")]
        assert rows(counting)[3]["error"]["code"] == "effect.in-doubt"
        assert effects(counting) == [f"t{number}" for number in range(8)]
        summary = json.loads((counting.root / "out.jsonl.summary.json").read_text())
        assert summary["executor"] == "dask"
        assert not list(batch_folder(counting).glob("meet-*"))
        # The recorded command continues on the same cluster.
        counting.started("resume", "ba_last", "--in-doubt", "skip").assert_exit(1)
    assert outcomes(counting)[3] == (4, "ok")
    assert effects(counting) == [f"t{number}" for number in range(8)]
    counting.run("verify", batch_folder(counting).name).assert_ok()


@needs_dask
@pytest.mark.slow
def test_workers_that_differ_get_no_line_and_are_named(counting: Any) -> None:
    write_lines(counting, ["a", "b"])
    with dask_cluster(counting, workers=0) as cluster:
        cluster.add_worker({"COGCLI_TRUST_PROJECT": "0"})
        error = counting.started(*RUN, *on(cluster), "--json").assert_exit(3).json["error"]
        assert error["code"] == "batch.worker-differs"
        assert "service.untrusted" in error["found"]
        assert effects(counting) == []
        cluster.add_worker()
        counting.started(*RUN, *on(cluster)).assert_ok()
    assert effects(counting) == ["a", "b"]


@pytest.mark.parametrize(
    "address",
    ["tcp://192.0.2.7:8786", "tcp://localhost:8786", "127.0.0.1:8786", "tcp://127.0.0.1", "ucx://127.0.0.1:1",
     "tls://127.0.0.1:8786", "tcp://[::1", "tcp://127.0.0.1:99999"],
)  # fmt: skip
@needs_dask
def test_an_address_that_strangers_may_reach_is_refused(counting: Any, address: str) -> None:
    write_lines(counting, ["a"])
    result = counting.run(*RUN, "--executor", f"dask:{address}", "--json").assert_exit(2)
    assert result.json["error"]["code"] == "batch.plain-address"
    assert not (counting.root / ".cogcli/episodes/.batches").exists()


def test_words_of_the_executor_are_checked(counting: Any) -> None:
    write_lines(counting, ["a"])
    for word in ("dask:", "Dask", "ray", "local:tcp://127.0.0.1:1"):
        result = counting.run(*RUN, "--executor", word, "--json").assert_exit(2)
        assert result.json["error"]["code"] == "usage.value"
    address = ("--executor", "dask:tcp://127.0.0.1:1")
    result = counting.run(*RUN, *address, "--jobs", "2", "--json").assert_exit(2)
    assert "leave it out" in result.json["error"]["hint"]


def start(project: Any, cluster: DaskCluster) -> subprocess.Popen[bytes]:
    """A batch in a process of its own, after its first line began to run."""
    before = len(project.episodes)
    process = subprocess.Popen(
        [COGCLI, *RUN, *on(cluster)], cwd=project.root, env=project.env, stderr=subprocess.PIPE
    )
    wait_until(lambda: len(project.episodes) > before or process.poll() is not None)
    return process


long = pytest.mark.skipif(not LONG, reason="seeded kills: COGCLI_LONG_TESTS=1, or check.py --long")


@needs_dask
@long
@pytest.mark.slow
def test_a_scheduler_that_is_gone_ends_the_batch_and_the_same_command_continues(
    counting: Any,
) -> None:
    texts = [f"t{number}" for number in range(40)]
    write_lines(counting, texts)
    with dask_cluster(counting) as cluster:
        process = start(counting, cluster)
        cluster.scheduler.kill()
        _, err = process.communicate(timeout=60)
        assert process.returncode == 6, err
        assert b"batch.executor-lost" in err
        assert f"cogcli resume {batch_folder(counting).name}".encode() in err
        assert b"Traceback" not in err
    with dask_cluster(counting) as cluster:
        assert_completed(counting, cluster, texts)


@needs_dask
@long
@pytest.mark.slow
@pytest.mark.parametrize("victim", ["worker", "node", "client", "scheduler"])
@pytest.mark.parametrize("seed", range(5))
def test_a_batch_with_kills_at_random_moments_is_completed(
    counting: Any, victim: str, seed: int
) -> None:
    texts = [f"t{number}" for number in range(40)]
    write_lines(counting, texts)
    chance = random.Random(f"{victim}{seed}")
    with dask_cluster(counting) as cluster:
        process = start(counting, cluster)
        time.sleep(chance.uniform(0, 0.4))
        kill(victim, cluster, process, chance)
        if victim in ("worker", "node"):
            time.sleep(chance.uniform(0, 0.4))
            process.kill()
        process.communicate(timeout=90)
    with dask_cluster(counting) as cluster:
        assert_completed(counting, cluster, texts)


def kill(
    victim: str, cluster: DaskCluster, client: subprocess.Popen[bytes], chance: random.Random
) -> None:
    match victim:
        case "worker":
            for pid in children_of(chance.choice(cluster.workers).pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        case "node":
            cluster.kill_node(chance.choice(cluster.workers))
        case "client":
            client.kill()
        case _:
            cluster.scheduler.kill()


def assert_completed(project: Any, cluster: DaskCluster, texts: list[str]) -> None:
    """Run the same command again: each effect at most once, each line once, what is in doubt waits."""
    result = project.started(*RUN, *on(cluster))
    assert result.code in (0, 5), result.err
    assert [line for line, _ in outcomes(project)] == list(range(1, len(texts) + 1))
    done = effects(project)
    assert len(done) == len(set(done))
    waiting = [row for row in rows(project) if row["status"] == "pending"]
    assert all(row["error"]["code"] == "effect.in-doubt" for row in waiting)
    assert set(texts) - set(done) <= {texts[row["line"] - 1] for row in waiting}
    project.run("verify", batch_folder(project).name).assert_ok()


@needs_dask
@long
@pytest.mark.slow
def test_the_commands_of_the_page_run(project: Any) -> None:
    """Those of the loopback, as they are written but for the port."""
    page = (ROOT / "docs/how-to/run-a-batch.md").read_text()
    lines = [line for line in page.splitlines() if line.startswith(("cogcli run", "dask "))]
    here = [line for line in lines if "tls://" not in line and "dask" in line.split("--batch")[-1]]
    own, scheduler, worker, addressed = [line.split() for line in here if "--protocol" not in line]
    project.started("new", "project", ".").assert_ok()
    write_lines(project, ["one", "two", "three"])
    project.started(*own[1:]).assert_ok()
    assert len(rows(project, "dask.jsonl")) == 3
    with dask_cluster(project, workers=0) as cluster:
        assert scheduler[:4] == ["dask", "scheduler", "--host", "127.0.0.1"]
        cluster.start_command(
            [each.replace("tcp://127.0.0.1:8786", cluster.address) for each in worker]
        )
        words = [each.replace("tcp://127.0.0.1:8786", cluster.address) for each in addressed]
        project.started(*words[1:]).assert_ok()
    assert len(rows(project)) == 3
    summary = json.loads((project.root / "out.jsonl.summary.json").read_text())
    assert (summary["executor"], summary["workers"]) == ("dask", 2)
