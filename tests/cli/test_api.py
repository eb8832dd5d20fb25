"""`cogcli.api`: the use cases of the commands, from Python."""

from __future__ import annotations

import re
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.project import Project as Files
from support.waiting import wait_until

from cogcli.api import CogcliError, Control, Options, Project, RunFailed

pytestmark = pytest.mark.sampled(4)


def open_(project: Any) -> Project:
    """The project, seen from another working directory; its module has a name that no other test has loaded."""
    name = f"services_{project.root.parent.name.replace('-', '_')}"
    (project.root / "demo_services.py").rename(project.root / f"{name}.py")
    service = project.root / "services/local/demo.yaml"
    service.write_text(service.read_text().replace("demo_services", name))
    return Project(project.root, environ=project.env)


@pytest.fixture
def opened(demo: Any) -> Project:
    """A project of two small skills."""
    return open_(demo)


def test_a_run_gives_its_outputs_and_an_episode_like_that_of_the_command(
    demo: Any, opened: Project
) -> None:
    seen: list[str | None] = []
    run = opened.run(
        "demo.greet", {"text": "hi"}, on_event=lambda event: seen.append(event.event_type), goal="g"
    )
    assert (run.status, run.exit_code, run.error) == ("ok", 0, None)
    assert run.require() == run.outputs == demo.run("run", "demo.greet", "-p", "text=hi").json
    told = [
        event.event_type
        for event in run.episode.events()
        if event.event_type != "run.state_projection"
    ]
    assert told == seen
    assert run.episode.state["outcomes"]["status"] == "ok"
    assert not [finding for finding in run.episode.findings() if finding["severity"] == "error"]
    assert opened.episode(run.episode.id[:-1]).directory == run.episode.directory
    rows = opened.episodes(skill="demo.greet", outcome="ok", limit=None)
    assert [row.id for row in rows][-1] == run.episode.id
    demo.run("replay", str(run.episode.directory)).assert_ok()


@pytest.mark.sampled(8)
def test_skills_are_the_rows_of_the_list(demo: Any, opened: Project) -> None:
    assert opened.skills() == demo.run("skills", "ls", "--json").json["skills"]
    assert opened.skill("demo.greet")["id"] == "demo.greet"
    with pytest.raises(CogcliError) as refused:
        opened.skill("demo.gret")
    assert refused.value.code == "skill.not-found"


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("skill", "inputs", "options", "code"),
    [
        ("demo.greet", {}, {}, "input.missing"),
        ("demo.greet", {"text": 1}, {}, "input.type"),
        ("demo.gret", {}, {}, "skill.not-found"),
        ("demo.greet", {"text": "x"}, {"pack": "none"}, "usage.flag"),
        ("demo.greet", {"text": "x"}, {"trust": "high"}, "usage.flag"),
        ("demo.greet", {"text": "x"}, {"bind": {"demo.none": "b"}}, "usage.value"),
        ("demo.greet", {"text": "x"}, {"trust_level": "highest"}, "usage.value"),
        ("demo.greet", {"text": "x"}, {"max_workers": 0}, "usage.value"),
        ("demo.greet", {"text": "x"}, {"step_timeout": "soon"}, "usage.value"),
        ("demo.greet", {"text": "x"}, {"seed": -1}, "usage.value"),
        ("demo.greet", {"text": "x"}, {"trace_id": "a b"}, "usage.value"),
        ("demo.greet", {"text": "x"}, {"tags": {"a": "\ud800"}}, "usage.value"),
        ("demo.greet", "text", {}, "input.json"),
        ("demo.greet", {"text": "\ud800"}, {}, "input.json"),
        ("demo.greet", {"text": "x", "times": 2**70}, {}, "input.json"),
        ("demo.greet", {"text": "x", "times": float("nan")}, {}, "input.json"),
        ("demo.greet", {"text": b"x"}, {}, "input.json"),
        ("demo.greet", {1: "x"}, {}, "input.json"),
        ("demo.greet", {"text": nested(5000)}, {}, "input.json"),
        ("demo.greet", {"text": "x"}, {"frame": {"context": {"at": {1, 2}}}}, "input.json"),
        ("demo.greet", {"text": "x"}, {"goal": "\ud800"}, "usage.value"),
    ],
)
def test_what_a_command_would_refuse_is_raised_and_nothing_ran(
    demo: Any, opened: Project, skill: str, inputs: Any, options: Any, code: str
) -> None:
    with pytest.raises(CogcliError) as refused:
        opened.run(skill, inputs, **options)
    found = {refused.value.code} | {
        problem.code for problem in getattr(refused.value, "problems", ())
    }
    assert code in found
    assert demo.episodes == []


def test_a_relative_path_starts_in_the_project(
    demo: Any, opened: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    demo.write("below/note.txt", "ships")
    run = opened.run("demo.greet", {"text": Path("below/note.txt")})
    assert str(demo.root / "below/note.txt").upper() in str(run.outputs).upper()


def test_a_refusal_is_its_message_and_a_traceback_shows_the_hint_once(
    demo: Any, opened: Project
) -> None:
    file = demo.write("plain.txt", "")
    nowhere = Project(demo.root, runs_dir=file, environ=demo.env)
    asked: tuple[Any, ...] = (
        lambda: opened.run("demo.gret"),
        lambda: opened.skill("demo.gret"),
        lambda: nowhere.resume("@last"),
    )
    for ask in asked:
        with pytest.raises(CogcliError) as refused:
            ask()
        error = refused.value
        assert str(error) == error.message
        assert error.hint
        assert error.hint not in error.message
        assert "".join(traceback.format_exception(error)).count(f"help: {error.hint}") == 1


def test_a_directory_that_is_not_there_is_no_project(demo: Any) -> None:
    with pytest.raises(CogcliError, match=r"`.*/nowhere` is not a directory"):
        Project(demo.root / "nowhere", environ=demo.env)


def test_a_failed_run_is_a_result(project: Any) -> None:
    project.services('def fail(text: str) -> dict[str, object]:\n    raise ValueError("no")\n')
    project.capability("demo.text.fail", "fail")
    project.skill("demo.fails", "- {id: a, uses: demo.text.fail, input: {text: {$literal: x}}}")
    run = open_(project).run("demo.fails")
    assert (run.status, run.exit_code, run.outputs) == ("error", 1, None)
    assert run.error is not None
    assert run.error["step"] == "a"
    with pytest.raises(RunFailed, match=r"error: call\.") as failed:
        run.require()
    assert failed.value.run is run


def test_a_run_that_waits_says_for_what_and_goes_on(demo: Any) -> None:
    file = demo.root / "capabilities/demo.text.upper.yaml"
    file.write_text(file.read_text() + "safety: {requires_confirmation: true}\n")
    opened = open_(demo)
    run = opened.run("demo.greet", {"text": "hi"}, exclusive="greeting")
    assert (run.status, run.exit_code, run.outputs) == ("pending", 5, None)
    with pytest.raises(CogcliError, match=run.episode.id):
        opened.run("demo.greet", {"text": "ho"}, exclusive="greeting")
    while run.status == "pending":
        (asked, *_) = run.episode.waits_for
        assert (asked.capability, asked.input) == ("demo.text.upper", {"text": asked.input["text"]})
        assert not asked.signed
        run = opened.resume(run.episode, approve=[asked.approval_id], by="ann", timeout=60)
    assert run.status == "ok"
    resumptions = [
        event.payload for event in run.episode.events() if event.event_type == "run.resumed"
    ]
    assert {payload["timeout_seconds"] for payload in resumptions} == {60}
    assert run.episode.waits_for == []
    with pytest.raises(CogcliError) as refused:
        opened.resume(run.episode)
    assert refused.value.code == "episode.sealed"


def test_another_thread_stops_a_run(project: Any) -> None:
    over = project.root / "over"
    project.services(
        f"import os\nimport time\n\ndef wait(text: str) -> dict[str, object]:\n"
        f"    while not os.path.exists({str(over)!r}):\n        time.sleep(0.01)\n    return {{}}\n"
    )
    project.capability("demo.text.wait", "wait")
    project.skill("demo.waits", "- {id: a, uses: demo.text.wait, input: {text: {$literal: x}}}")
    control, begun = Control(), threading.Event()

    def listen(event: Any) -> None:
        if event.event_type == "step.started":
            begun.set()

    opened = open_(project)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(opened.run, "demo.waits", on_event=listen, control=control)
        begun.wait(60)
        control.cancel("SIGINT")
        control.cancel("SIGINT")
        assert running.result(60).status == "aborted"
    over.write_text("")  # the function that was given up ends, and no longer holds the streams
    wait_until(lambda: not any(thread.name == "call" for thread in threading.enumerate()))


def test_runs_of_several_threads_are_each_their_own(demo: Any, opened: Project) -> None:
    texts = [f"t{number}" for number in range(8)]
    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(lambda text: opened.run("demo.greet", {"text": text}), texts))
    assert [
        text.upper() in str(run.outputs).upper() for text, run in zip(texts, runs, strict=True)
    ] == [True] * 8
    assert len({run.episode.id for run in runs}) == len(demo.episodes) == 8


def test_an_episode_is_found_by_its_directory(demo: Any, opened: Project) -> None:
    made = opened.run("demo.greet", {"text": "hi"}).episode
    assert opened.episode(made.directory).directory == made.directory
    (row,) = opened.episodes()
    assert opened.episode(row.directory).directory == made.directory


def test_two_projects_never_get_the_module_of_the_other(tmp_path: Path, warm_cache: Path) -> None:
    runs = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        project = Files(tmp_path / name, warm_cache).demo()
        source = project.root / "demo_services.py"
        source.rename(project.root / "same_name.py")
        (project.root / "same_name.py").write_text(
            f"# of {name}\n{(project.root / 'same_name.py').read_text()}"
        )
        service = project.root / "services/local/demo.yaml"
        service.write_text(service.read_text().replace("demo_services", "same_name"))
        runs.append(Project(project.root, environ=project.env).run("demo.greet", {"text": "hi"}))
    assert [run.status for run in runs] == ["ok", "error"]
    assert runs[1].error is not None
    assert runs[1].error["code"] == "service.module"
    assert "another module `same_name` is loaded in this process" in runs[1].error["message"]


def test_the_shipped_skills_need_no_project(tmp_path: Path, demo: Any) -> None:
    opened = Project(tmp_path, runs_dir=tmp_path / "runs", environ=demo.env)
    assert opened.skills(usable=True)
    assert opened.episodes() == []
    with pytest.raises(CogcliError) as refused:
        opened.episode()
    assert refused.value.code == "episode.unknown"


def test_the_examples_of_the_page_run(
    tmp_path: Path, demo: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[2] / "docs/reference/api.md").read_text()
    for name, value in demo.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        exec(block, found)
    assert found["run"].status == "ok"
    assert found["episode"].directory.is_relative_to(tmp_path)


def test_every_option_is_named_on_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/api.md").read_text()
    told = page[page.index("flags of\n`cogcli run`: `") :].partition("`: `")[2].partition("`")[0]
    assert set(told.split()) == set(Options.__annotations__)
