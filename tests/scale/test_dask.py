"""Batches on Dask workers that share the runs directory: a real scheduler and real workers on loopback.

`COGCLI_LONG_TESTS=1` kills workers, nodes, client and scheduler at seeded moments.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from counted import RUN, assert_same_outputs, batch_folder, effects, outcomes, rows, write_lines
from dask_cluster import DaskCluster, dask_cluster, kill, make_counted_anywhere, on
from support.certificates import server_tls
from support.waiting import wait_until

from cogcli.app.registry import open_registry
from cogcli.app.settings import Settings
from cogcli.base.extras import missing_module
from cogcli.declarations.options import RunOptions
from cogcli.run.prepare import PreparedRun, RunRequest, prepare_for_inputs
from cogcli.scale.cluster.connection import read_result
from cogcli.scale.cluster.facts import Versions, compare_facts, compare_versions, find_facts
from cogcli.scale.cluster.meeting import RendezvousFile, sees_locked_file

LONG = bool(os.environ.get("COGCLI_LONG_TESTS"))
ROOT = Path(__file__).parents[2]
COGCLI = str(Path(sys.executable).parent / "cogcli")
needs_dask = pytest.mark.skipif(
    bool(missing_module("scale")), reason="the extra `scale` is not installed"
)

pytestmark = pytest.mark.sampled(2)


@pytest.fixture
def counting(project: Any) -> Any:
    return make_counted_anywhere(project)


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


@pytest.mark.sampled(4)
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


@pytest.mark.sampled(8)
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
        # A worker that imported a module before it was edited would run the old one.
        source = counting.root / "demo_services.py"
        source.write_text(source.read_text().replace("text.upper()", "text.lower()"))
        again = ("--batch-name", "again", "-o", "again.jsonl", "--json")
        result = counting.started(*RUN[:-2], *again, *on(cluster)).assert_exit(3)
        assert "start the worker again" in result.json["error"]["found"]
    assert effects(counting) == ["a", "b"]


def prepared(project: Any) -> PreparedRun:
    """The run of the counting skill, as a worker with the environment of a project reads it."""
    settings = Settings({}, project.env, base=str(project.root))
    catalog = open_registry(settings).reach("demo.counted")
    return prepare_for_inputs(catalog, RunRequest("demo.counted", {}, RunOptions()), project.env)


def test_a_worker_is_compared_by_versions_specs_modules_and_what_it_may_call(counting: Any) -> None:
    ours = Versions("0.1.0", "2026.8.0", "3.11")
    assert compare_versions(ours, ours) == []
    theirs = ours._replace(distributed="2026.9.0", python="3.12")
    text = "; ".join(compare_versions(ours, theirs))
    assert (
        text
        == "it has distributed 2026.9.0, the batch 2026.8.0; it has python 3.12, the batch 3.11"
    )
    before = find_facts(prepared(counting))
    assert compare_facts(before, find_facts(prepared(counting))) == []
    source = counting.root / "demo_services.py"
    source.write_text(source.read_text() + "\n# edited\n")
    (found,) = compare_facts(before, find_facts(prepared(counting)))
    assert found == "the source of module demo_services is another one"
    capability = counting.root / "capabilities/demo.count.yaml"
    capability.write_text(capability.read_text().replace("Counts a text", "Counts"))
    found = compare_facts(before, find_facts(prepared(counting)))[0]
    assert found == "capability:demo.count is another one"


def test_a_worker_that_lacks_a_variable_or_may_call_more_differs(counting: Any) -> None:
    ours = find_facts(prepared(counting))
    (binding,) = ours.reasons
    assert ours.reasons[binding] == []
    lacking = ours._replace(reasons={binding: ["env.missing"]})
    assert compare_facts(ours, lacking) == [
        f"binding {binding} cannot be called there: env.missing"
    ]
    assert compare_facts(lacking, ours) == [
        f"binding {binding} can be called there, but not here: env.missing"
    ]


def test_files_are_shared_if_each_side_sees_the_lock_of_the_other(tmp_path: Path) -> None:
    folder = str(tmp_path)
    meeting = RendezvousFile(folder, "a1")
    assert sees_locked_file(folder, "a1")
    assert not sees_locked_file(folder, "b2")
    meeting.close()
    assert not sees_locked_file(folder, "a1")
    (tmp_path / "meet-a1").write_text("a1")
    assert not sees_locked_file(folder, "a1"), "a file system without locks"
    (tmp_path / "meet-c3").symlink_to(tmp_path / "meet-a1")
    assert not sees_locked_file(folder, "c3")


@pytest.mark.sampled(8)
@needs_dask
@pytest.mark.slow
def test_a_result_that_is_given_up_takes_no_other_with_it(project: Any) -> None:
    """Dask fetches results together. Giving up one at any moment once left the others without an answer forever."""
    from distributed import Client

    async def give_up_one_of_two(client: Client, moment: int) -> bytes:
        futures = [
            client.submit(bytes, number, key=f"{moment}-{number}", pure=False) for number in (1, 2)
        ]
        for future in futures:
            await read_result(future)
        first, second = (asyncio.create_task(read_result(future)) for future in futures)
        for _ in range(moment):
            await asyncio.sleep(0)
        first.cancel()
        return await asyncio.wait_for(second, 20)

    async def give_up_at_each_moment(address: str) -> None:
        async with Client(address, asynchronous=True, set_as_default=False) as client:
            for moment in range(12):
                assert await give_up_one_of_two(client, moment) == bytes(2)

    with dask_cluster(project, workers=1) as cluster:
        asyncio.run(give_up_at_each_moment(cluster.address))


@needs_dask
@pytest.mark.slow
@pytest.mark.sampled(6)
def test_ctrl_c_reaches_no_worker_and_the_same_command_continues(project: Any) -> None:
    make_counted_anywhere(project, idempotent=True)
    texts = [f"t{number}" for number in range(200)]
    write_lines(project, texts)
    process = subprocess.Popen(
        [COGCLI, *RUN, "--executor", "dask", "--jobs", "1"], cwd=project.root, env=project.env,
        stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    wait_until(lambda: effects(project) or process.poll() is not None)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert b"stopping, up to 5s for running lines" in err
    assert b"Traceback" not in err
    project.started(*RUN).assert_ok()
    assert effects(project) == sorted(texts)


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
@pytest.mark.parametrize("signal_name", ["SIGKILL", "SIGSTOP"])
def test_a_scheduler_that_does_not_answer_ends_the_batch_and_the_same_command_continues(
    counting: Any, signal_name: str
) -> None:
    texts = [f"t{number}" for number in range(40)]
    write_lines(counting, texts)
    with dask_cluster(counting) as cluster:
        process = start(counting, cluster)
        cluster.scheduler.send_signal(getattr(signal, signal_name))
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
@pytest.mark.parametrize("seed", range(20))
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
    assert_same_outputs(project, texts)
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
