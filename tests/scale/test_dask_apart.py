"""Batches on Dask workers that do not share the runs directory: a real scheduler, real workers, and a directory of runs
for each of them.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from counted import RUN, assert_same_outputs, batch_folder, effects, outcomes, rows, write_lines
from dask_cluster import DaskCluster, dask_cluster, kill, make_counted_anywhere, on
from support.waiting import wait_until

from cogcli.base.extras import missing_module

COGCLI = str(Path(sys.executable).parent / "cogcli")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.sampled(3),
    pytest.mark.skipif(bool(missing_module("scale")), reason="the extra `scale` is not installed"),
]


@pytest.fixture
def counting(project: Any) -> Any:
    return make_counted_anywhere(project)


def add_worker_apart(
    cluster: DaskCluster, project: Any, name: str = "one", **variables: str
) -> Any:
    """A worker with a directory of runs of its own."""
    return cluster.add_worker({"COGCLI_RUNS_DIR": str(runs_of(project, name)), **variables})


def runs_of(project: Any, name: str = "one") -> Path:
    path: Path = project.root.parent / f"runs-{name}"
    return path


def ledger_kinds(project: Any) -> list[tuple[str, int]]:
    lines = (batch_folder(project) / "ledger.jsonl").read_text().splitlines()
    return [(entry["kind"], entry["line"]) for entry in map(json.loads, lines)]


@pytest.mark.sampled(12)
def test_episodes_come_back_and_the_workers_keep_none(counting: Any) -> None:
    write_lines(counting, ["a", "b", "fail:x", "c"])
    with dask_cluster(counting, workers=0) as cluster:
        add_worker_apart(cluster, counting)
        counting.started(*RUN, *on(cluster)).assert_exit(1)
        assert outcomes(counting) == [(1, "ok"), (2, "ok"), (3, "error"), (4, "ok")]
        assert effects(counting) == ["a", "b", "c"]
        assert len(counting.episodes) == 4
        assert not list(runs_of(counting).glob("ep_*"))
        assert not (batch_folder(counting) / "incoming").exists()
    kinds = ledger_kinds(counting)
    for line in range(1, 5):
        assert kinds.index(("sent", line)) < kinds.index(("ended", line))
    counting.run("verify", batch_folder(counting).name).assert_ok()


@pytest.mark.sampled(12)
def test_a_line_whose_worker_died_is_in_doubt_until_a_person_decides(counting: Any) -> None:
    texts = ["a", "b", "c", "d"]
    write_lines(counting, texts)
    counting.write("die-after", "b")
    with dask_cluster(counting, workers=0) as cluster:
        add_worker_apart(cluster, counting)  # its nanny starts another in its place
        counting.started(*RUN, *on(cluster)).assert_exit(5)
        waiting = [row["line"] for row in rows(counting) if row["status"] == "pending"]
        assert 2 in waiting
        assert set(waiting) <= {1, 2, 3}, "a line that waited at the worker may be in doubt, too"
        assert rows(counting)[1]["error"]["code"] == "effect.in-doubt"
        done = effects(counting)
        # A line in doubt may have run: its worker died before the result had left.
        assert done == sorted(set(done)), "no line ran twice"
        known = {text for line, text in enumerate(texts, 1) if line not in waiting}
        assert {*known, "b"} <= set(done)
        # Where the files are, nothing is known of these lines either.
        counting.started(*RUN).assert_exit(5)
        assert effects(counting) == done
        counting.started(*RUN, *on(cluster), "--in-doubt", "rerun").assert_ok()
    assert [line for line, status in outcomes(counting) if status == "ok"] == [1, 2, 3, 4]
    calls = Counter(effects(counting))
    assert calls["b"] == 2
    # The log of another line in doubt may have its result: then it is not called again.
    assert all(calls[text] in (1, 2) for text in texts)
    assert all(calls[text] == 1 for text in known)
    counting.run("verify", batch_folder(counting).name).assert_ok()


@pytest.mark.sampled(12)
def test_lines_whose_calls_may_be_repeated_go_to_another_worker(project: Any) -> None:
    make_counted_anywhere(project, idempotent=True)
    texts = ["a", "b", "c"]
    write_lines(project, texts)
    project.write("die-before", "b")
    with dask_cluster(project, workers=0) as cluster:
        add_worker_apart(cluster, project)
        project.started(*RUN, *on(cluster)).assert_ok()
    assert set(effects(project)) == set(texts)


@pytest.mark.sampled(12)
def test_a_line_that_waits_comes_back_and_is_answered_here(counting: Any) -> None:
    file = counting.root / "capabilities/demo.count.yaml"
    file.write_text(file.read_text() + "safety: {requires_confirmation: true}\n")
    write_lines(counting, ["a", "b"])
    with dask_cluster(counting, workers=0) as cluster:
        add_worker_apart(cluster, counting)
        counting.started(*RUN, *on(cluster)).assert_exit(5)
        assert [status for _, status in outcomes(counting)] == ["pending", "pending"]
        assert not list(runs_of(counting).glob("ep_*"))
        line = f"{batch_folder(counting).name}/2"
        counting.run("resume", line, "--approve", "demo.count").assert_ok()
        counting.started(*RUN, *on(cluster)).assert_exit(5)
    assert outcomes(counting) == [(1, "pending"), (2, "ok")]
    assert effects(counting) == ["b"]


@pytest.mark.sampled(12)
def test_a_worker_with_the_key_of_another_user_gets_no_line(counting: Any) -> None:
    write_lines(counting, ["a"])
    with dask_cluster(counting, workers=0) as cluster:
        other = str(counting.root.parent / "other")
        add_worker_apart(cluster, counting, XDG_CONFIG_HOME=other)
        error = counting.started(*RUN, *on(cluster), "--json").assert_exit(3).json["error"]
    assert error["code"] == "batch.worker-differs"
    assert "its user has another key" in error["found"]
    assert effects(counting) == []


def make_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """A certificate that is its own CA, made as the page shows it, and its key."""
    certificate, key = folder / f"{name}.pem", folder / f"{name}-key.pem"
    command = (
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "1",
        "-subj",
        "/CN=batch-ca",
    )
    files = ("-keyout", str(key), "-out", str(certificate))
    subprocess.run([*command, *files], check=True, capture_output=True)
    return certificate, key


@pytest.mark.sampled(6)
@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")
def test_a_certificate_of_another_ca_reaches_no_worker(counting: Any) -> None:
    write_lines(counting, ["a"])
    folder = counting.root.parent
    certificate, key = make_certificate(folder, "cluster")
    tls = "DASK_DISTRIBUTED__COMM__TLS__"
    for side in ("SCHEDULER", "WORKER", "CLIENT"):
        counting.env[f"{tls}{side}__CERT"] = str(certificate)
        counting.env[f"{tls}{side}__KEY"] = str(key)
    counting.env[f"{tls}CA_FILE"] = str(certificate)
    counting.env["DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION"] = "True"
    with dask_cluster(counting, workers=0) as cluster:
        add_worker_apart(cluster, counting)
        other, other_key = make_certificate(folder, "other")
        counting.env[f"{tls}CLIENT__CERT"] = str(other)
        counting.env[f"{tls}CLIENT__KEY"] = str(other_key)
        error = counting.started(*RUN, *on(cluster), "--json").assert_exit(6).json["error"]
        assert error["code"] == "batch.executor-lost"
        assert effects(counting) == []
        counting.env[f"{tls}CLIENT__CERT"] = str(certificate)
        counting.env[f"{tls}CLIENT__KEY"] = str(key)
        counting.started(*RUN, *on(cluster)).assert_ok()
    assert effects(counting) == ["a"]


def start(project: Any, cluster: DaskCluster) -> subprocess.Popen[bytes]:
    """A batch in a process of its own, after its first effect."""
    process = subprocess.Popen(
        [COGCLI, *RUN, *on(cluster)], cwd=project.root, env=project.env, stderr=subprocess.PIPE
    )
    wait_until(lambda: bool(effects(project)) or process.poll() is not None)
    return process


def assert_completed(project: Any, texts: list[str]) -> None:
    """Each line has one row, each effect happened once at most, and what may not have happened waits."""
    assert [line for line, _ in outcomes(project)] == list(range(1, len(texts) + 1))
    done = effects(project)
    assert len(done) == len(set(done))
    good = {texts[line - 1] for line, status in outcomes(project) if status == "ok"}
    assert good <= set(done)
    waiting = [row for row in rows(project) if row["status"] == "pending"]
    assert len(good) + len(waiting) == len(texts)
    assert {row["error"]["code"] for row in waiting} <= {"effect.in-doubt"}
    sent = [line for kind, line in ledger_kinds(project) if kind == "sent"]
    assert {row["line"] for row in waiting} <= set(sent)
    assert_same_outputs(project, texts)
    project.run("verify", batch_folder(project).name).assert_ok()


@pytest.mark.sampled(12)
def test_a_killed_client_gets_what_its_worker_did(counting: Any) -> None:
    texts = ["a", "b", "sleep:1", "c", "d"]
    write_lines(counting, texts)
    with dask_cluster(counting, workers=0) as cluster:
        add_worker_apart(cluster, counting)
        process = start(counting, cluster)
        process.kill()
        process.communicate()
        # The worker is the same one: it is asked for the lines that it was sent.
        counting.started(*RUN, *on(cluster)).assert_ok()
    assert effects(counting) == sorted(texts)
    assert_completed(counting, texts)


long = pytest.mark.skipif(
    not os.environ.get("COGCLI_LONG_TESTS"),
    reason="seeded kills: COGCLI_LONG_TESTS=1, or check.py --long",
)


@long
@pytest.mark.parametrize("victim", ["worker", "node", "client", "scheduler"])
@pytest.mark.parametrize("seed", range(20))
def test_a_batch_with_kills_repeats_nothing_and_waits_only_in_doubt(
    counting: Any, victim: str, seed: int
) -> None:
    texts = [f"t{number}" for number in range(30)]
    write_lines(counting, texts)
    chance = random.Random(f"apart{victim}{seed}")
    with dask_cluster(counting, workers=0) as cluster:
        for name in ("one", "two"):
            add_worker_apart(cluster, counting, name)
        process = start(counting, cluster)
        time.sleep(chance.uniform(0, 0.5))
        kill(victim, cluster, process, chance)
        process.communicate(timeout=90)
        if victim != "scheduler":
            code = counting.started(*RUN, *on(cluster)).code
            assert code in (0, 5)
            assert_completed(counting, texts)
    with dask_cluster(counting, workers=0) as cluster:
        add_worker_apart(cluster, counting)
        assert counting.started(*RUN, *on(cluster)).code in (0, 5)
        assert_completed(counting, texts)


PACK = """
contract_meta: {contract_version: '1.0'}
pack_meta: {pack_id: counted, pack_version: 1.0.0, defaults: {safety_mode: network}}
policy_layer:
  permissions: [{role: clerk, allow: [demo.count]}]
  limits: [{id: two, applies_to: {capabilities: [demo.count]}, max: 2, per: tenant}]
tooling_layer: {}
decision_layer: {intents: [{id: demo.counted, capabilities: [demo.count]}]}
tone_and_comms: {agent: {role: clerk}}
"""
UNDER = ("--pack", "counted@1.0.0", "--intent", "demo.counted")


@pytest.mark.sampled(12)
def test_a_pack_with_limits_gives_no_line_to_workers_apart(counting: Any) -> None:
    counting.write("packs/counted/1.0.0.yaml", PACK)
    write_lines(counting, ["a", "b", "c"])
    with dask_cluster(counting, workers=0) as cluster:
        add_worker_apart(cluster, counting)
        refused = counting.started(*RUN, *UNDER, *on(cluster))
        refused.assert_exit(3)
        assert "the limits of the pack count all calls together" in refused.err
        assert effects(counting) == []
        cluster.add_worker()
        counting.started(*RUN, *UNDER, *on(cluster)).assert_exit(1)
    assert len(effects(counting)) == 2
    assert sorted(outcome for _, outcome in outcomes(counting)) == ["ok", "ok", "vetoed"]
