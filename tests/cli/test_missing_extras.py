"""Without an extra the command says which one to install, and everything else works."""

from __future__ import annotations

from typing import Any

import pytest
from support.remote_project import remote

pytestmark = pytest.mark.sampled(16)

BLOCKER = """
import importlib.machinery, os, sys


class Without(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] in os.environ["COGCLI_TEST_WITHOUT"].split():
            return None
        return super().find_spec(name, path, target)


sys.meta_path[:] = [Without if each is importlib.machinery.PathFinder else each for each in sys.meta_path]
"""
BARE = """\
contract_meta: {contract_version: "1.0"}
pack_meta: {pack_id: bare, pack_version: 1.0.0}
policy_layer: {}
tooling_layer: {}
decision_layer: {}
"""


@pytest.fixture
def without(project: Any) -> Any:
    """Runs a command in an interpreter that does not find these libraries."""
    project.write("blocker/sitecustomize.py", BLOCKER)

    def run(libraries: str, *command: str, **env: str) -> Any:
        environ = {
            "PYTHONPATH": str(project.root / "blocker"),
            "COGCLI_TEST_WITHOUT": libraries,
            **env,
        }
        return project.installed(*command, env=environ)

    return run


def test_each_extra_is_named_where_it_is_needed(project: Any, without: Any) -> None:
    command = remote(
        project, "openapi", "http://127.0.0.1:9", "x", service="auth_ref: keyring:svc/me\n"
    )
    told = without("keyring", *command).assert_exit(3).json["error"]
    assert (told["code"], told["hint"]) == ("env.extra", "pip install 'cogcli[keyring]'")

    project.write("services/local/remote.yaml", "id: remote\nkind: mcp\ncommand: cat\n")
    project.write(
        "bindings/local/remote.thing.ask/ask.yaml",
        "id: remote_ask\ncapability: remote.thing.ask\nservice: remote\nprotocol: mcp\noperation: x\n"
        "request: {text: input.text}\nresponse: {text: response.text}\n",
    )
    told = without("mcp", *command).assert_exit(3).json["error"]
    assert (told["code"], told["hint"]) == ("env.extra", "pip install 'cogcli[mcp]'")
    told = without("mcp", "serve", "mcp").assert_exit(3)
    assert "pip install 'cogcli[mcp]'" in told.err

    project.write("bare.yaml", BARE)
    command = ("policy", "diff", "bare.yaml", "bare.yaml", "--prove", "--json")
    told = without("z3", *command).assert_exit(3).json["error"]
    assert (told["code"], told["hint"]) == ("env.extra", "pip install 'cogcli[prove]'")


@pytest.mark.sampled(32)
def test_the_rest_works_without_any(demo: Any, tmp_path: Any) -> None:
    demo.write("blocker/sitecustomize.py", BLOCKER)
    env = {
        "PYTHONPATH": str(demo.root / "blocker"),
        "COGCLI_TEST_WITHOUT": "mcp mcp_types keyring cryptography py3langid snowballstemmer bs4 pypdf"
        " httpx2 starlette uvicorn",
    }
    demo.installed("run", "demo.greet", "-p", "text=hi", env=env).assert_ok()
    demo.installed("validate", env=env).assert_ok()


def test_a_shipped_skill_that_needs_an_extra_fails_no_project_of_others(
    project: Any, without: Any
) -> None:
    step = "- {id: clean, uses: text.content.normalize, input: {text: x}, output: {}}"
    project.skill("demo.clean", step)
    checked = without("trafilatura", "validate", "--strict").assert_ok()
    assert "env.extra]" not in checked.out
    assert ", shown with -v." in checked.out
    assert "env.extra]" in without("trafilatura", "validate", "--strict", "-v").assert_ok().out
    project.skill(
        "demo.page",
        "- {id: read, uses: web.page.extract, input: {content: {$literal: <p>x</p>}}, output: {text: outputs.text}}",
        outputs="{text: {type: string}}",
    )
    without("trafilatura", "validate", "--strict").assert_ok()
    mine = without("trafilatura", "validate", "--ready").assert_exit(1)
    assert "skills/local/demo/page/skill.yaml" in mine.out
    assert mine.out.count("env.extra]") == 1
