"""A check that checked nothing is not a success (docs/reference/command-line.md#nothing-checked)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from support.project import Project

pytestmark = pytest.mark.sampled(16)

ROOT = Path(__file__).parents[2]
SHIPPED = ("skills", "capabilities", "bindings", "services", "policies")
GOOD = "metadata:\n  examples:\n    - {inputs: {text: a}, outputs: {text: A}}\n"


@pytest.fixture
def shop(ordinary_path: Path, warm_cache: Path) -> Project:
    """A project that is not trusted, with a capability of its own and an example, in a folder that documents are read
    in."""
    project = Project(ordinary_path, warm_cache)
    project.services("def upper(text: str) -> dict[str, str]:\n    return {'text': text.upper()}\n")
    project.capability("shop.text.upper", "upper", extra=GOOD)
    del project.env["COGCLI_TRUST_PROJECT"]
    return project


@pytest.fixture(scope="session")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A copy of this repository that is a project, and an environment in which cogcli is installed, not editable."""
    folder = tmp_path_factory.mktemp("clone")
    made = Project(folder)
    for name in (*SHIPPED, "tooling"):
        shutil.copytree(ROOT / name, made.root / name)
    shutil.copytree(
        ROOT / "cogcli", made.root / "cogcli", ignore=shutil.ignore_patterns("__pycache__")
    )
    venv.create(folder / "venv", symlinks=True)
    site = next((folder / "venv/lib").glob("python*/site-packages"))
    shutil.copytree(made.root / "cogcli", site / "cogcli")
    for name in SHIPPED:
        shutil.copytree(ROOT / name, site / "cogcli/registry" / name)
    for protocol in ("openapi", "openrpc", "mcp"):
        scenarios = f"tooling/{protocol}_scenarios"
        shutil.copytree(ROOT / scenarios, site / "cogcli/registry" / scenarios)
    libraries = [path for path in sys.path if path.endswith("site-packages")]
    (site / "libraries.pth").write_text("".join(f"{path}\n" for path in libraries))
    del made.env["COGCLI_TRUST_PROJECT"]
    return made


def run_plain(clone: Project, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python in the environment of the clone."""
    python = str(clone.root.parent / "venv/bin/python")
    return subprocess.run(
        [python, *words], cwd=clone.root, env=clone.env, capture_output=True, text=True, check=False
    )


CHECKS = (
    ("registry", "contracts", "shop.*"),
    ("registry", "smoke", "shop.*"),
    ("registry", "contracts"),
)


@pytest.mark.sampled(32)
@pytest.mark.parametrize("words", CHECKS)
def test_a_check_that_wants_trust_names_the_command_that_helps(
    words: tuple[str, ...], shop: Project
) -> None:
    done = shop.run(*words, "--report", "junit:r.xml", "--report", "json:r.json").assert_exit(3)
    assert "error[service.untrusted]: 1 of " in done.err
    assert done.err.endswith("next: cogcli config trust\n")
    assert ET.parse(shop.root / "r.xml").getroot().get("failures") == "0"
    assert '"exit_code":3' in (shop.root / "r.json").read_text()
    (shop.root / "r.xml").unlink()
    (shop.root / "r.json").unlink()
    shop.run("config", "trust").assert_ok()
    again = shop.run(*words).assert_ok()
    assert again.out.splitlines()[-1].removeprefix("yours ").startswith("1/1")


def test_what_the_user_owns_is_counted_apart_from_what_is_shipped(shop: Project) -> None:
    shop.run("config", "trust").assert_ok()
    done = shop.run("registry", "smoke", "shop.*", "data.json.*", "--json").assert_ok()
    assert done.json["yours"] == {"passed": 1, "total": 1}
    line = shop.run("registry", "smoke", "shop.*", "data.json.*").assert_ok().out.splitlines()[-1]
    assert line == "yours 1/1, shipped 2/2 capabilities called"


def test_a_check_whose_parts_were_all_skipped_is_no_success(shop: Project) -> None:
    shop.run("config", "trust").assert_ok()
    shop.capability("shop.text.plain", "upper")
    shop.run("config", "trust", "--yes").assert_ok()
    done = shop.run("registry", "contracts", "shop.text.plain").assert_exit(3)
    assert "error[check.nothing]: nothing was checked" in done.err


def test_no_test_case_is_no_success(demo: Project) -> None:
    done = demo.run("test", "--json").assert_exit(3).json
    assert (done["error"]["code"], done["status"], done["tests"]) == ("check.nothing", "error", [])
    demo.write("skills/local/demo/greet/tests/one.yaml", "needs: [network]\ninputs: {text: a}\n")
    skipped = demo.run("test").assert_exit(3)
    assert "0 passed, 1 skipped" in skipped.out
    assert "error[check.nothing]" in skipped.err


def test_no_scenario_and_no_episode_are_no_success(project: Project) -> None:
    (project.root / "none").mkdir()
    words = ("openapi", "verify-bindings", "--all", "--scenarios-dir", "none")
    assert "there is no scenario" in project.run(*words).assert_exit(3).err
    done = project.run("verify", "--all", "--runs-dir", "none").assert_exit(3)
    assert "error[check.nothing]: there is no episode in none\n" in done.err


@pytest.mark.slow
def test_a_shipped_skill_is_checked_by_its_own_samples_in_a_project_that_is_not_trusted(
    shop: Project,
) -> None:
    done = shop.run("registry", "executability", "licence.overview").assert_ok()
    assert done.out == "1/1 skills ran\n"


@pytest.mark.slow
def test_the_commands_in_a_clone_want_trust_with_a_plain_install(clone: Project) -> None:
    for words in (("registry", "contracts", "text.section.split"), ("registry", "executability", "text.brief"),
                  ("test", "text.brief")):  # fmt: skip
        done = run_plain(clone, "-P", "-m", "cogcli", *words)
        assert done.returncode == 3, done.stdout + done.stderr
        assert done.stderr.endswith("next: cogcli config trust\n"), done.stderr
    assert run_plain(clone, "-P", "-m", "cogcli", "config", "trust").returncode == 0
    for words in (("registry", "contracts", "text.section.split"), ("test", "text.brief")):
        done = run_plain(clone, "-P", "-m", "cogcli", *words)
        assert done.returncode == 0, done.stdout + done.stderr
    assert run_plain(clone, "-P", "-m", "cogcli", "config", "trust", "--revoke").returncode == 0


@pytest.mark.slow
def test_the_scripts_of_a_clone_check_it_with_a_plain_install(clone: Project) -> None:
    for script, words, said in (
        ("test_capability_contracts", ["text.section.split"], "1/1 contracts\n"),
        ("compute_skill_executability", ["text.brief"], "1/1 skills ran\n"),
        ("validate_registry", [], "0 errors, 0 warnings"),
    ):
        done = run_plain(clone, f"tooling/{script}.py", *words)
        assert done.returncode == 0, done.stdout + done.stderr
        assert said in done.stdout


@pytest.mark.slow
def test_a_confined_process_finds_the_packages_beside_a_plain_install(clone: Project) -> None:
    site = next((clone.root.parent / "venv/lib").glob("python*/site-packages"))
    show = "from cogcli.base.wall.enter import python_files; print(*python_files(), sep='\\n')"
    done = run_plain(clone, "-P", "-c", show)
    assert os.fspath(site) in done.stdout.splitlines(), done.stdout + done.stderr
