"""Configuration: precedence, origins, positions, trust."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytestmark = pytest.mark.sampled(8)


def test_flag_beats_environment_beats_project_beats_user(demo: Any) -> None:
    user = demo.home / ".config" / "cogcli" / "config.toml"
    user.parent.mkdir(parents=True)
    user.write_text("max_workers = 2\nstep_timeout = 5\n")
    demo.write("cogcli.toml", "# ours\nmax_workers = 4\n")
    origin = ("config", "show", "max_workers", "--origin")
    assert demo.run(*origin).assert_ok().out == "max_workers = 4   cogcli.toml:2\n"
    assert (
        demo.run(*origin, env={"COGCLI_MAX_WORKERS": "6"}).out
        == "max_workers = 6   COGCLI_MAX_WORKERS\n"
    )
    assert demo.run("config", "show", "step_timeout").out == "5\n"
    assert (
        demo.run("config", "show", "durability", "--origin").out
        == "durability = process   default\n"
    )
    demo.run("run", "demo.greet", "-p", "text=hi", "--max-workers", "3", "-q").assert_ok()
    (line, *_) = (demo.episode / "events.jsonl").read_text().splitlines()
    assert '"max_workers":3' in line


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("\nmax_worker = 4\n", 2, "unknown key `max_worker`"),
        ("max_workers = 0\n", 1, "a whole number from 1 to 256"),
        ("max_workers = true\n", 1, "expected"),
        ("trust_level = 'elevated'\n", 1, "cannot raise trust"),
        ("use_env_proxy = true\n", 1, "cannot send calls through a proxy"),
        ("durability = 'proces'\n", 1, "one of process"),
        ("max_workers = \n", 1, "not TOML"),
        ("[run]\nx = 1\n", 1, "unknown key `run`"),
        ("[agent]\n\nprofil = 'auto'\n", 3, "unknown key `agent.profil`"),
        ("[agent]\nprofile = 'always'\n", 2, "one of review, auto"),
        ("agent.synthesis_threshold = 0\n", 1, "a whole number from 1 to 1,000"),
        ("agent = 3\n", 1, "`agent`: found 3, expected a table"),
    ],
)
def test_a_wrong_line_is_told_with_its_place(demo: Any, text: str, line: int, says: str) -> None:
    demo.write("cogcli.toml", text.encode())
    error = demo.run("run", "demo.greet", "-p", "text=hi", "--json").assert_exit(3).json["error"]
    assert (error["code"], error["file"], error["line"]) == ("config.key", "cogcli.toml", line)
    assert says in error["message"]
    assert demo.episodes == []
    assert "config.key" in demo.run("config", "show").assert_ok().err
    demo.run("doctor").assert_exit(1)
    demo.run("ls").assert_ok()


@pytest.mark.parametrize("name", ["model.api_key", "model.headers", "token"])
@pytest.mark.parametrize("value", ["'sk-canary-77'", "['sk-canary-77']", "{a = 'sk-canary-77'}"])
def test_the_value_of_an_unknown_key_is_not_shown(demo: Any, name: str, value: str) -> None:
    path = demo.write("cogcli.toml", f"\n{name} = {value}\n".encode())
    for root in ("project", "own"):
        if root == "own":
            own = demo.home / ".config/cogcli/config.toml"
            own.parent.mkdir(parents=True, exist_ok=True)
            own.write_bytes(path.read_bytes())
            path.unlink()
            demo.write("cogcli.toml", b"")
        result = demo.run("run", "demo.greet", "-p", "text=hi").assert_exit(3)
        assert f"unknown key `{name}" in result.err
        assert ":2" in result.err
        assert "canary" not in result.err + result.out


def test_a_projects_table_of_agents_counts_only_once_it_is_trusted(demo: Any) -> None:
    del demo.env["COGCLI_TRUST_PROJECT"]
    demo.write("cogcli.toml", b"[agent]\nprofile = 'auto'\n")
    shown = ("config", "show", "agent.profile", "--origin")
    assert demo.run(*shown).assert_ok().out == "agent.profile = review   default\n"
    trusted = demo.run(*shown, env={"COGCLI_TRUST_PROJECT": "1"}).assert_ok()
    assert trusted.out == "agent.profile = auto   cogcli.toml:2\n"
    assert (
        "COGCLI_AGENT_PROFILE"
        in demo.run(*shown, env={"COGCLI_AGENT_PROFILE": "auto"}).assert_ok().out
    )


def test_a_wrong_environment_variable_is_a_usage_error(demo: Any) -> None:
    assert (
        "COGCLI_MAX_WORKERS"
        in demo.run("config", "show", env={"COGCLI_MAX_WORKERS": "many"}).assert_exit(2).err
    )


def test_what_stands_in_the_place_of_an_address_is_not_shown(demo: Any) -> None:
    env = {"COGCLI_OTLP_ENDPOINT": "http://me:hunter2@host/"}
    refused = demo.run("config", "show", "export.otlp", env=env).assert_exit(2)
    assert "COGCLI_OTLP_ENDPOINT: found another text" in refused.err
    assert "hunter2" not in refused.out + refused.err


def test_registries_of_all_sources_add_up_and_later_wins(demo: Any, tmp_path: Any) -> None:
    for name in ("one", "two"):
        folder = tmp_path / name / "skills/local/demo/greet"
        folder.mkdir(parents=True)
        text = (demo.root / "skills/local/demo/greet/skill.yaml").read_text()
        (folder / "skill.yaml").write_text(text.replace("The skill demo.greet.", f"From {name}."))
    described = ("skills", "show", "demo.greet", "--json")
    first, second = str(tmp_path / "one"), str(tmp_path / "two")
    assert (
        demo.run(*described, "--registry", first, "--registry", second).json["spec"]["description"]
        == "From two."
    )
    assert (
        demo.run(*described, "--registry", first, env={"COGCLI_REGISTRY": second}).json["spec"][
            "description"
        ]
        == "From one."
    )
    shadows = demo.run(*described, "--registry", first).json["spec"]["shadows"]
    assert shadows == ["skills/local/demo/greet/skill.yaml"]


def test_an_untrusted_project_starts_nothing_until_it_is_trusted(demo: Any) -> None:
    del demo.env["COGCLI_TRUST_PROJECT"]
    run = ("run", "demo.greet", "-p", "text=hi", "-q")
    result = demo.run(*run).assert_exit(3)
    assert "service.untrusted" in result.err
    assert demo.run("config", "trust").assert_ok().out == f"{demo.root}\n"
    demo.run(*run).assert_ok()
    demo.write("services/local/more.yaml", "id: more\nkind: pythoncall\nmodule: more\n")
    assert "service.untrusted" in demo.run(*run).assert_exit(3).err
    demo.run("config", "trust", "--yes").assert_ok()
    demo.run(*run).assert_ok()
    demo.run("config", "trust", "--revoke").assert_ok()
    demo.run(*run).assert_exit(3)


@pytest.mark.sampled(16)
def test_a_change_is_refused_with_its_files_and_the_command_that_accepts_them(demo: Any) -> None:
    del demo.env["COGCLI_TRUST_PROJECT"]
    run = ("run", "demo.greet", "-p", "text=hi", "-q")
    told = demo.run("config", "trust").assert_ok().err
    assert told.startswith(
        "this project is trusted in its present state: 8 files; a change of any of them ends the trust"
    )
    demo.run(*run).assert_ok()
    assert demo.run("config", "show", "trust").assert_ok().out == "accepted\n"
    module = demo.root / "demo_services.py"
    module.write_text(module.read_text().replace("upper()", "lower()"))
    demo.write("more.py", "")
    refused = demo.run(*run, "--json").assert_exit(3)
    error = refused.json["error"]
    assert error["code"] == "service.untrusted"
    assert "(changed demo_services.py, added more.py)" in error["message"]
    assert "cogcli config trust" in error["hint"]
    shown = demo.run("config", "show", "trust").assert_ok().out
    assert shown.splitlines() == [
        "changed", "  changed demo_services.py", "  added more.py", "  accept it: cogcli config trust",
    ]  # fmt: skip
    told = demo.run("config", "show", "--json").assert_ok().json
    assert told["settings"]["trust"]["value"] == "changed"
    assert told["trust"]["changes"] == [
        {"change": "changed", "name": "demo_services.py"},
        {"change": "added", "name": "more.py"},
    ]
    assert "changed demo_services.py" in demo.run("doctor").err + demo.run("doctor").out
    demo.run("config", "trust", "--yes").assert_ok()
    assert '"hi"' in demo.run(*run).assert_ok().out


def test_projects_that_are_trusted_at_once_are_all_trusted(project: Any) -> None:
    del project.env["COGCLI_TRUST_PROJECT"]
    names = [f"p{n}" for n in range(12)]
    for name in names:
        project.write(f"{name}/cogcli.toml", "")
    with ThreadPoolExecutor(len(names)) as pool:
        for done in pool.map(lambda name: project.installed("config", "trust", name), names):
            done.assert_ok()
    known = json.loads((project.home / ".config/cogcli/trust.json").read_text())["projects"]
    assert sorted(known) == sorted(str(project.root / name) for name in names)


def test_which_trust_is_in_force_is_shown_with_what_says_so(demo: Any) -> None:
    show = ("config", "show", "trust", "--origin")
    store = demo.home / ".config/cogcli/trust.json"
    assert demo.run(*show).out == "trust = environment   COGCLI_TRUST_PROJECT\n"
    del demo.env["COGCLI_TRUST_PROJECT"]
    assert demo.run(*show).out == "trust = untrusted   default\n"
    assert "including later changes" in demo.run("config", "trust", "--folder").assert_ok().err
    assert demo.run(*show).out == f"trust = folder   {store}\n"
    demo.write("demo_services.py", "def upper(text):\n    return {'text': 'anew'}\n")
    assert "anew" in demo.run("run", "demo.greet", "-p", "text=hi").assert_ok().out
    demo.run("config", "trust", "--folder", "--revoke").assert_exit(2)
    demo.run("config", "trust").assert_ok()
    assert demo.run(*show).out == f"trust = accepted   {store}\n"
    demo.run("config", "trust", "--revoke").assert_ok()
    assert demo.run(*show).out == "trust = untrusted   default\n"


def test_the_trust_store_is_private_and_outside_the_project(demo: Any) -> None:
    demo.run("config", "trust").assert_ok()
    store = demo.home / ".config" / "cogcli" / "trust.json"
    assert store.stat().st_mode & 0o077 == 0
    store.write_text("{broken")
    del demo.env["COGCLI_TRUST_PROJECT"]
    demo.run("run", "demo.greet", "-p", "text=hi").assert_exit(3)


def test_episodes_live_where_the_flag_then_the_environment_says(demo: Any) -> None:
    where = ("config", "show", "runs_dir", "--origin")
    assert demo.run(*where).out == "runs_dir = .cogcli/episodes   project\n"
    assert demo.run(*where, env={"COGCLI_RUNS_DIR": "a"}).out == "runs_dir = a   COGCLI_RUNS_DIR\n"
    assert (
        demo.run(*where, "--runs-dir", "b", env={"COGCLI_RUNS_DIR": "a"}).out
        == "runs_dir = b   --runs-dir\n"
    )
