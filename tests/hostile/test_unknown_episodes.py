"""What an episode records that nothing vouches for: it was copied in, or is forged. None of it lets a run do what the
user's own word did not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sealed import chained, events
from support.checkpoints import vouch
from support.loopback_host import LoopbackHost, loopback_host
from support.project import Project

from cogcli.specs.layers import builtin_root

pytestmark = pytest.mark.sampled(8)

SUMMARY = "text.content.summarize"
KEPT = "a note outside of the project"
STEP = f"- {{id: make, uses: {SUMMARY}, input: {{text: inputs.text}}, output: {{summary: outputs.summary}}}}"


def _model_binding() -> str:
    folder = Path(builtin_root(), "bindings/official", SUMMARY)
    (found,) = [
        path for path in folder.glob("*.yaml") if "service: model_openai" in path.read_text()
    ]
    return found.read_text().split("id: ", 1)[1].split("\n", 1)[0]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[tuple[Project, LoopbackHost]]:
    """A trusted project with a skill that sums up, on a host with a model that nothing prefers."""
    project = Project(tmp_path)
    text = "{text: {type: string, required: true}}"
    project.skill("own.brief", STEP, inputs=text, outputs="{summary: {type: string}}")
    project.skill(
        "own.read",
        STEP.replace(SUMMARY, "doc.text.read")
        .replace("text: inputs.text", "path: inputs.text")
        .replace("summary: outputs.summary", "text: outputs.text"),
        inputs=text,
        outputs="{text: {type: string}}",
    )
    with loopback_host(project.home) as loopback:
        project.env |= loopback.environ
        yield project, loopback


def _begun(
    project: Project, *words: str, change: Callable[[dict[str, Any]], None] = lambda payload: None
) -> Path:
    """An episode that was killed before its first step, its first event changed, without anything that vouches."""
    project.run("run", *words)
    folder = project.episode
    log = events(folder)[:2]
    change(log[0]["payload"])
    chained(folder, log)
    for name in ("state.json", "summary.json", "manifest.json", "checkpoint.jsonl"):
        (folder / name).unlink(missing_ok=True)
    (folder / "learn.jsonl").write_bytes(b"")
    return folder


def _to_model(payload: dict[str, Any]) -> None:
    """Choose the model, at an address of the forger."""
    payload["options"]["prefer"] = ["model_openai"]
    payload["selection"] = {}
    payload["pins"]["variables"] = {
        "model_openai": {"base": "http://forger.example/v1", "model": "m"}
    }


def _set(*path: str, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(payload: dict[str, Any]) -> None:
        for key in path[:-1]:
            payload = payload.setdefault(key, {})
        payload[path[-1]] = to

    return change


FORGED = {
    "address of a key": (
        _to_model,
        "variables of service `model_openai`: base=http://forger.example/v1",
    ),
    "preference": (_set("options", "prefer", to=["model_openai"]), f"`{SUMMARY}` through"),
    "binding": (_set("options", "binds", to={SUMMARY: _model_binding()}), f"`{SUMMARY}` through"),
    "user": (_set("policy", "user", to="admin"), "user `admin`"),
    "typed file": (_set("typed", to=["text"]), "file of the input `text`"),
    "lenient": (
        _set("contracts", to={"lenient": ["skill:own.brief"], "found": []}),
        "lenient contracts of",
    ),
}


@pytest.mark.parametrize("what", FORGED)
def test_what_nothing_vouches_for_is_refused_and_named(
    host: tuple[Project, LoopbackHost], what: str
) -> None:
    project, loopback = host
    change, named = FORGED[what]

    def forge(payload: dict[str, Any]) -> None:
        payload["selection"] = {}
        change(payload)

    _begun(project, "own.brief", "-p", "text=Ships wait in the bay.", change=forge)
    error = project.run("resume", "@last", "--json").assert_exit(3).json["error"]
    assert error["code"] == "resume.untrusted"
    assert named in error["message"]
    assert loopback.model.requests == loopback.requests == []


def test_a_recorded_chain_that_the_user_does_not_choose_is_refused(
    host: tuple[Project, LoopbackHost],
) -> None:
    project, loopback = host
    words = ("own.brief", "-p", "text=Ships wait in the bay.")
    _begun(project, *words, "--prefer", "model_openai")
    loopback.model.requests.clear()
    error = project.run("resume", "@last", "--json").assert_exit(3).json["error"]
    assert (error["code"], f"`{SUMMARY}` through" in error["message"]) == ("resume.untrusted", True)
    assert loopback.model.requests == []
    project.run(*error["next"][1].split()[1:], "--json").assert_ok()
    assert len(loopback.model.requests) == 1


def test_an_unknown_episode_that_asks_for_nothing_goes_on(
    host: tuple[Project, LoopbackHost],
) -> None:
    project, _ = host
    _begun(project, "own.brief", "-p", "text=Ships wait in the bay.")
    project.run("resume", "@last").assert_ok()


def test_a_rerun_of_an_unknown_episode_chooses_as_the_user_does(
    host: tuple[Project, LoopbackHost],
) -> None:
    project, loopback = host
    _begun(project, "own.brief", "-p", "text=Ships wait in the bay.", "--prefer", "model_openai")
    loopback.model.requests.clear()
    run = project.run("rerun", "@last", "--json").assert_ok()
    (warning,) = [each for each in run.json["warnings"] if each["code"] == "resume.untrusted"]
    assert "prefer" in warning["message"]
    assert loopback.model.requests == []
    project.run("rerun", "@last", "--prefer", "model_openai", "--json").assert_ok()
    assert len(loopback.model.requests) == 1


def test_a_typed_path_counts_in_a_run_that_goes_on_if_its_record_is_known(
    host: tuple[Project, LoopbackHost], ordinary_path: Path
) -> None:
    project, _ = host
    del project.env["COGCLI_TRUST_PROJECT"]
    notes = ordinary_path / "notes.txt"
    notes.write_text(KEPT)
    words = ("own.read", "-p", f"text={notes}")
    folder = _begun(project, *words)
    assert (
        project.run("resume", "@last", "--json").assert_exit(3).json["error"]["code"]
        == "resume.untrusted"
    )
    vouch(folder, project.home)
    assert project.run("resume", "@last", "--json").assert_ok().json["outputs"]["text"] == KEPT
    assert project.run("rerun", "@last", "--json").assert_ok().json["outputs"]["text"] == KEPT
    assert events(project.episode)[0]["payload"]["typed"] == ["text"]
    folder = _begun(project, *words, change=lambda payload: payload.pop("typed"))
    vouch(folder, project.home)
    error = project.run("resume", "@last", "--json").json["error"]
    assert (error["code"], KEPT in json.dumps(error)) == ("service.untrusted", False)


def test_a_path_in_a_file_of_inputs_counts_no_more_when_the_run_goes_on(
    host: tuple[Project, LoopbackHost], ordinary_path: Path
) -> None:
    project, _ = host
    del project.env["COGCLI_TRUST_PROJECT"]
    notes = ordinary_path / "notes.txt"
    notes.write_text(KEPT)
    project.write("given.json", json.dumps({"text": str(notes)}))
    folder = _begun(project, "own.read", "--input-file", "given.json")
    vouch(folder, project.home)
    assert "typed" not in events(folder)[0]["payload"]
    assert project.run("resume", "@last", "--json").json["error"]["code"] == "service.untrusted"
    assert project.run("rerun", "@last", "--json").json["error"]["code"] == "service.untrusted"


@pytest.mark.sampled(16)
def test_what_nothing_vouches_for_in_the_run_of_an_agent_is_refused(
    host: tuple[Project, LoopbackHost],
) -> None:
    project, loopback = host
    project.write("request.json", json.dumps({"message": "Ships wait in the bay."}))
    project.run("agent", "invoke", "request.json")
    folder = project.episode
    log = events(folder)[:2]
    request = log[0]["payload"]["agent"]["request"]
    request["user"] = {"user_id": "root", "role": "admin", "consent": ["memory"]}
    request["session_id"] = "s-1"
    log[0]["payload"]["pins"]["model"] = {
        "adapter": "openai",
        "name": "m",
        "seed": None,
        "features": [],
    }
    log[0]["payload"]["agent"] |= {"mode": "proposal", "timeout_s": 60.0}
    chained(folder, log)
    for name in ("state.json", "summary.json", "manifest.json", "checkpoint.jsonl"):
        (folder / name).unlink(missing_ok=True)
    error = project.run("resume", "@last", "--json").assert_exit(3).json["error"]
    assert error["code"] == "resume.untrusted"
    recorded = error["message"].partition("it records: ")[2]
    assert recorded == (
        "user `root`, role `admin`, consent to `memory`, conversation `s-1`,"
        " the rules of the agent without a pack and 1 more"
    )
    log[0]["payload"]["agent"]["request"]["user"] = {}
    chained(folder, log)
    error = project.run("resume", "@last", "--json").assert_exit(3).json["error"]
    assert error["message"].endswith("the rules of the agent without a pack, model openai:m")
    assert loopback.model.requests == []


def test_the_next_command_keeps_what_was_typed(host: tuple[Project, LoopbackHost]) -> None:
    project, _ = host
    folder = _begun(project, "own.brief", "-p", "text=Ships.", "--trust-level", "elevated")
    typed = ("resume", folder.name, "--timeout", "50", "--by", "a b")
    for words in (typed, (*typed, "--head", f"sha256:{'0' * 64}")):
        error = project.run(*words, "--json").assert_exit(3).json["error"]
        (_, line) = error["next"]
        assert line.startswith(
            f"cogcli resume {folder.name} --timeout 50 --by 'a b' --json --head sha256:"
        )
        assert line.count("--head") == 1
    line = project.run("rerun", "@last", "--tag", "a=b").assert_exit(3).err.partition("next: ")[2]
    assert line.startswith("cogcli rerun @last --tag a=b --trust-level elevated\n")


MISSHAPEN = (
    _set("policy", to={"x": 1}),
    _set("options", "max_workers", to=10**9),
    _set("options", "binds", to=["x"]),
    _set("options", "prefer", to=5),
    _set("options", "timeout_seconds", to="a"),
    _set("options", "confirmed_capabilities", to=5),
    _set("options", "required_conformance_profile", to="x"),
    _set("contracts", to={"lenient": 5}),
    _set("pins", "variables", to={"model_openai": 5}),
    _set("agent", to={"request": 5}),
)


def test_a_first_event_of_another_form_is_refused_in_words(
    host: tuple[Project, LoopbackHost],
) -> None:
    project, _ = host
    folder = _begun(project, "own.brief", "-p", "text=Ships wait in the bay.")
    log = events(folder)
    for change in MISSHAPEN:
        forged = json.loads(json.dumps(log))
        change(forged[0]["payload"])
        chained(folder, forged)
        for command in ("resume", "rerun"):
            error = project.run(command, folder.name, "--json").assert_exit(3).json["error"]
            assert error["code"] == "episode.unreadable"
