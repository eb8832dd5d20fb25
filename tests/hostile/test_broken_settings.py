"""A broken `cogcli.toml` of a project that is not trusted stops what is of the project, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.project import Project

pytestmark = pytest.mark.sampled(10)

STEP = "- {id: make, uses: text.content.normalize, input: {text: inputs.text}, output: {text: outputs.text}}"
BROKEN = {
    "unknown key": "bogus = 1\n",
    "not TOML": "= [[[\n",
    "too large": f"# {'.' * 300_000}\n",
    "missing folder": 'registry = ["nowhere"]\n',
    "link": "",
}


@pytest.fixture(params=BROKEN)
def broken(request: Any, tmp_path: Path) -> Project:
    """A clone with a broken file of settings and a skill, and a registry of the user outside of it."""
    project = Project(tmp_path)
    del project.env["COGCLI_TRUST_PROJECT"]
    project.skill("own.ask", STEP, inputs="{text: {type: string, required: true}}")
    (project.root / "skills").rename(project.home / "skills")
    project.skill("their.ask", STEP, inputs="{text: {type: string, required: true}}")
    if request.param == "link":
        (project.home / "settings.toml").write_text("")
        (project.root / "cogcli.toml").symlink_to(project.home / "settings.toml")
    else:
        project.write("cogcli.toml", BROKEN[request.param])
    return project


def _result(run: Any) -> tuple[Any, ...]:
    """What a run gave, without what differs from run to run and the warning about the project."""
    envelope = run.json
    others = [each["code"] for each in envelope["warnings"] if each["code"] != "service.untrusted"]
    return run.code, envelope["outputs"], envelope["error"], sorted(envelope), others


@pytest.mark.sampled(20)
def test_a_skill_of_the_user_runs_as_in_an_empty_directory(broken: Project) -> None:
    (empty := broken.home / "empty").mkdir()
    given = ("-p", "text=Good morning.", "--json")
    for skill in (("text.language",), ("own.ask", "--registry", str(broken.home))):
        run = broken.run("run", *skill, *given).assert_ok()
        (warning,) = [each for each in run.json["warnings"] if each["code"] == "service.untrusted"]
        assert "as in an empty directory" in warning["message"]
        alone = broken.run("-C", str(empty), "run", *skill, *given).assert_ok()
        assert _result(run) == _result(alone)
    again = broken.run("rerun", "@last", "--registry", str(broken.home), "--json").assert_ok()
    assert again.json["outputs"] == run.json["outputs"]


def test_what_is_of_the_project_and_what_looks_at_it_reports_the_error(broken: Project) -> None:
    code = {"missing folder": "registry.missing", "link": "project.link"}
    names = {*code.values(), "config.key"}
    for words in (("run", "their.ask", "-p", "text=x"), ("validate",), ("skills", "ls")):
        result = broken.run(*words, "--json")
        assert result.code in (2, 3), (words, result.out)
        assert result.json["error"]["code"] in names
    shown = broken.run("config", "show", "--json")
    lines = (broken.root / "cogcli.toml").read_text()
    if "nowhere" not in lines:
        assert shown.json["warnings"][0]["code"] in names


def test_a_trusted_project_is_stopped_by_its_file(broken: Project) -> None:
    result = broken.run(
        "run", "text.language", "-p", "text=x", "--json", env={"COGCLI_TRUST_PROJECT": "1"}
    )
    if (broken.root / "cogcli.toml").is_symlink():
        result.assert_ok()  # a trusted project may have links, and the file behind this one is sound
    else:
        assert result.code in (2, 3)
        assert result.json["error"]["code"] in ("config.key", "registry.missing")


def test_a_root_that_the_user_names_has_to_exist(broken: Project) -> None:
    result = broken.run(
        "run", "text.language", "-p", "text=x", "--registry", "absent", "--json"
    ).assert_exit(2)
    assert result.json["error"]["code"] == "registry.missing"
