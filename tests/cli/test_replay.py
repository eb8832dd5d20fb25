"""`replay`: the engine tells the same story again from the log alone, or the first difference is named."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.raw_server import Conversation, serving
from support.remote_project import remote
from support.waiting import wait_until

from cogcli.declarations.checksum import add_sum

pytestmark = pytest.mark.sampled(10)

COGCLI = str(Path(sys.executable).parent / "cogcli")
SAMPLES = Path(__file__).resolve().parents[2] / "docs/samples"
RUNS: dict[str, list[str]] = {
    "text.brief": ["-p", f"text=@{SAMPLES}/release-notes.md"],
    "text.profile": ["-p", f"text=@{SAMPLES}/release-notes.md"],
    "text.risks": ["-p", f"text=@{SAMPLES}/release-notes.md"],
    "text.language": ["-p", f"text=@{SAMPLES}/release-notes.md"],
    "text.summarize": ["-p", f"text=@{SAMPLES}/release-notes.md"],
    "doc.review": ["-p", f"path={SAMPLES}/release-notes.md"],
    "pdf.brief": ["-p", f"path={SAMPLES}/trial-report.pdf"],
    "web.brief": ["-p", f"html=@{SAMPLES}/notice.html"],
    "data.check": [
        "-p",
        f"data=@{SAMPLES}/orders.json",
        "-p",
        f"schema=@{SAMPLES}/orders.schema.json",
    ],
    "table.summary": [
        "-p",
        f"text=@{SAMPLES}/arrivals.csv",
        "-p",
        "measure=tonnes",
        "-p",
        "group_by=harbour",
    ],
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("skill", sorted(RUNS))
def test_every_shipped_skill_replays_the_same(project: Any, skill: str) -> None:
    project.run("run", skill, *RUNS[skill], "-q").assert_ok()
    replay = project.run("replay", "@last", "--json").assert_ok().json["replay"]
    assert replay["equal"]
    assert replay["difference"] is None


def test_a_failed_run_replays_the_same(demo: Any) -> None:
    demo.run("run", "demo.review", "-p", "text=hi", "-q").assert_exit(1)
    demo.run("replay", "@last").assert_ok()


def test_a_vetoed_run_replays_the_same(project: Any) -> None:
    project.write("in.json", '{"path": "/root/.ssh/id_rsa"}')  # a typed path would be read
    project.run("run", "doc.digest", "--input-file", "in.json", "-q").assert_exit(4)
    project.run("replay", "@last").assert_ok()


def test_an_aborted_run_replays_to_where_it_was_cut(demo: Any) -> None:
    demo.services(
        "import time\n\ndef nap(text: str) -> dict[str, object]:\n    time.sleep(30)\n    return {'text': text}\n"
    )
    demo.capability("demo.text.nap", "nap")
    demo.skill("demo.sleepy", "- {id: nap, uses: demo.text.nap, input: {text: {$literal: x}}}")
    command = [COGCLI, "run", "demo.sleepy", "-q"]
    process = subprocess.Popen(command, cwd=demo.root, env=demo.env, stderr=subprocess.DEVNULL)
    wait_until(lambda: list(demo.root.glob(".cogcli/episodes/*/events.jsonl")))
    time.sleep(0.4)
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
    assert process.wait(60) == 130
    demo.run("replay", "@last").assert_ok()


@pytest.mark.parametrize("twice", [False, True])
def test_what_ended_within_the_grace_of_a_signal_is_told_again(demo: Any, twice: bool) -> None:
    """One item never began; the last of those that had begun ends, too, or is cut off by a second signal."""
    demo.services(
        "import pathlib\nimport time\n\n\ndef nap(text: str) -> dict[str, object]:\n"
        f"    here = pathlib.Path({str(demo.root)!r})\n"
        "    (here / f'began-{text}').touch()\n"
        "    while not (here / f'go-{text}').exists():\n"
        "        time.sleep(0.01)\n"
        "    return {'text': text}\n"
    )
    demo.capability("demo.text.nap", "nap")
    demo.skill(
        "demo.sleepy",
        "- {id: nap, uses: demo.text.nap, input: {text: item},"
        " config: {foreach: {items: inputs.texts, max_parallel: 2}}}",
        inputs="{texts: {type: array, required: true}}",
    )
    command = [COGCLI, "run", "demo.sleepy", "-p", 'texts:=["a", "b", "c"]', "-q"]
    process = subprocess.Popen(command, cwd=demo.root, env=demo.env, stderr=subprocess.DEVNULL)

    def logged(text: str) -> bool:
        return any(
            text in log.read_text() for log in demo.root.glob(".cogcli/episodes/*/events.jsonl")
        )

    wait_until(lambda: (demo.root / "began-a").exists() and (demo.root / "began-b").exists())
    process.send_signal(signal.SIGTERM)
    wait_until(lambda: logged("run.aborting"))
    (demo.root / "go-a").touch()
    wait_until(lambda: logged("step.completed"))
    if twice:
        process.send_signal(signal.SIGTERM)
    else:
        (demo.root / "go-b").touch()
    assert process.wait(60) == 143
    demo.run("replay", "@last").assert_ok()


def test_a_step_that_a_signal_kept_from_beginning_is_not_told_again(demo: Any) -> None:
    """One signal: the call that runs ends within the grace, and nothing is said of the step after it."""
    demo.services(
        "import pathlib\nimport time\n\n\ndef nap(text: str) -> dict[str, object]:\n"
        f"    here = pathlib.Path({str(demo.root)!r})\n"
        "    (here / 'began').touch()\n"
        "    while not (here / 'go').exists():\n"
        "        time.sleep(0.01)\n"
        "    return {'text': text}\n"
    )
    demo.capability("demo.text.nap", "nap")
    nap = "uses: demo.text.nap, input: {text: {$literal: x}}"
    demo.skill("demo.sleepy", f"- {{id: first, {nap}}}\n- {{id: second, {nap}}}")
    command = [COGCLI, "run", "demo.sleepy", "-q"]
    with subprocess.Popen(command, cwd=demo.root, env=demo.env, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        wait_until((demo.root / "began").exists)
        process.send_signal(signal.SIGINT)
        assert b"stopping" in process.stderr.readline()
        (demo.root / "go").touch()
        assert process.wait(60) == 130
    state = demo.run("state", "show", "@last", "--json").assert_ok().json["state"]
    assert [step["status"] for step in state["plan"]["steps"]] == ["done", "pending"]
    demo.run("replay", "@last").assert_ok()


@pytest.mark.parametrize("status", ["302 Found", "401 Unauthorized"])
def test_an_error_with_a_hint_replays_the_same(project: Any, status: str) -> None:
    def answer(conversation: Conversation) -> None:
        conversation.reply(b"", status=status, headers="Location: /elsewhere")

    with serving(answer) as server:
        command = remote(project, "openapi", server.url, "ask")
        error = project.run(*command).assert_exit(1).json["error"]
    assert error["hint"]
    project.run("replay", "@last").assert_ok()


def test_a_mailed_episode_replays_with_no_project_around_it(demo: Any, tmp_path: Path) -> None:
    episode = demo.run("run", "demo.greet", "-p", "text=hi", "--json", "-q").assert_ok().json["dir"]
    away = tmp_path / "mailed" / Path(episode).name
    shutil.copytree(demo.root / episode, away)
    shutil.rmtree(demo.root / "skills")
    demo.run("replay", str(away)).assert_ok()


def test_a_changed_binding_is_named_with_its_step(demo: Any) -> None:
    demo.run("run", "demo.greet", "-p", "text=hi", "-q").assert_ok()
    binding = next((demo.root / "bindings/local/demo.text.upper").glob("*.yaml"))
    binding.write_text(binding.read_text() + "# edited\n")
    result = demo.run("replay", "@last", "--json").assert_exit(1).json
    assert result["error"]["code"] == "replay.differs"
    assert result["replay"]["difference"]["step_id"]
    assert result["replay"]["changed_specs"] == ["binding:demo_text_upper"]


def test_another_answer_in_the_log_is_the_first_difference(demo: Any) -> None:
    episode = demo.run("run", "demo.greet", "-p", "text=hi", "--json", "-q").assert_ok().json["dir"]
    log = demo.root / episode / "events.jsonl"
    lines = log.read_text().splitlines()
    index = next(n for n, line in enumerate(lines) if '"step.completed"' in line)
    event = json.loads(lines[index])
    del event["sum"]
    event["payload"]["writes"][0]["value"] = "forged"
    lines[index] = add_sum(json.dumps(event, separators=(",", ":")).encode()).decode()
    log.write_text("\n".join(lines) + "\n")
    difference = demo.run("replay", "@last", "--json").assert_exit(1).json["replay"]["difference"]
    assert difference["seq"] == index
    assert "writes" in difference["what"]


@pytest.mark.parametrize("command", ["replay", "rerun"])
def test_no_answers_are_taken_from_a_log_that_was_damaged(demo: Any, command: str) -> None:
    """What stands behind the damage may be an effect: who runs the skill again from there would make it again."""
    episode = demo.run("run", "demo.greet", "-p", "text=hi", "--json", "-q").assert_ok().json["dir"]
    log = demo.root / episode / "events.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    lines[4] = lines[4].replace(b'"HI"', b'"HO"')
    log.write_bytes(b"".join(lines))
    error = demo.run(command, "@last", "--json").assert_exit(3).json["error"]
    assert (error["code"], error["line"]) == ("episode.unreadable", 5)
    assert error["next"][0].startswith("cogcli verify ")
    assert len(demo.episodes) == 1


def test_a_moment_is_the_projection_of_the_events_up_to_it(demo: Any) -> None:
    demo.run("run", "demo.greet", "-p", "text=hi", "-q").assert_ok()
    early = demo.run("replay", "@last", "--at", "1").assert_ok().json
    assert early["outcomes"]["status"] == "pending"
    assert all(step["status"] == "pending" for step in early["plan"]["steps"])
    demo.run("replay", "@last", "--at", "999").assert_exit(2)


@pytest.mark.parametrize("config", ["", ", config: {foreach: {items: [a, b], max_parallel: 2}}"])
def test_a_run_whose_last_call_ended_within_the_grace_is_told_again(
    project: Any, config: str
) -> None:
    """Nothing was kept from beginning: the signal shows in the end alone."""
    project.services(
        "import os, time\ndef stop(text: str) -> dict[str, object]:\n"
        "    if text == 'a':\n        os.kill(os.getpid(), 2)\n        time.sleep(0.2)\n"
        "    return {'text': text}\n"
    )
    project.capability("demo.stop", "stop", response="{text: response.text}")
    value = "item" if config else "{$literal: a}"
    project.skill(
        "demo.last",
        f"- {{id: a, uses: demo.stop, input: {{text: {value}}}, output: {{text: outputs.text}}{config}}}",
        inputs="{}",
        outputs="{text: {type: any}}",
    )
    project.installed("run", "demo.last", "-q").assert_exit(130)
    project.run("replay", "@last").assert_ok()


def test_specs_may_have_ids_that_sound_like_secrets(demo: Any) -> None:
    demo.capability("demo.text.get_secret", "upper")
    steps = "- {id: api_key, uses: demo.text.get_secret, input: {text: inputs.text}, output: {text: outputs.text}}"
    demo.skill(
        "demo.secret", steps, inputs="{text: {type: string}}", outputs="{text: {type: string}}"
    )
    bind = ("--bind", "demo.text.get_secret=demo_text_get_secret")
    demo.run("run", "demo.secret", "-p", "text=hi", *bind).assert_ok()
    (log,) = (folder / "events.jsonl" for folder in demo.episodes)
    assert b"[masked]" not in log.read_bytes()
    demo.run("replay").assert_ok()
