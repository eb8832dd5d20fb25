"""What a service's Python module imports of what lies beside it in its root, and an import that fails
(docs/reference/protocols.md#python-imports)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from cogcli.specs.python_imports import failed_imports

RUN = ("run", "t.ask", "-p", "text= a ", "-q")


@pytest.fixture
def beside(project: Any) -> Any:
    """A module with a package beside it, which imports parts of its own, and one function that imports when it runs."""
    project.services(
        """
        from helpers.text import clean

        def ask(text):
            return {"text": clean(text)}

        def later(text):
            from helpers.more import louder
            return {"text": louder(text)}
        """
    )
    project.write("helpers/__init__.py", "")
    project.write(
        "helpers/text.py", "from .parts import strip\n\ndef clean(text):\n    return strip(text)\n"
    )
    project.write("lone_helper.py", "clean = str.strip\n")
    project.write("helpers/parts.py", "def strip(text):\n    return text.strip()\n")
    project.write(
        "helpers/more.py",
        "from . import parts\n\ndef louder(text):\n    return parts.strip(text).upper()\n",
    )
    project.capability("t.text.ask", "ask")
    project.capability("t.text.later", "later")
    text = "{text: {type: string, required: true}}"
    step = "- {{id: ask, uses: {}, input: {{text: inputs.text}}, output: {{text: outputs.text}}}}"
    project.skill("t.ask", step.format("t.text.ask"), inputs=text, outputs=text)
    project.skill("t.later", step.format("t.text.later"), inputs=text, outputs=text)
    return project


def in_process_of_its_own(project: Any) -> None:
    project.write("services/local/demo.yaml", "id: demo\nkind: pythoncall\nmodule: demo_services\n")


def messages(project: Any, command: str = "validate") -> list[str]:
    problems = project.run(command, "--json").json["problems"]
    return [each["message"] for each in problems if each["code"] == "service.module"]


def faults(project: Any) -> list[str]:
    """What the check finds in the files, without the command around it."""
    found = failed_imports("demo_services", str(project.root), {"ask", "later"})
    return [
        f"{Path(each.file).relative_to(project.root)}:{each.line} imports `{each.name}`: {each.looked_for}"
        for each in found
        if each.hint
    ]


def test_a_package_beside_the_module_is_imported_in_a_thread(beside: Any) -> None:
    assert messages(beside) == []
    assert beside.run(*RUN).assert_ok().json == {"text": "a"}
    assert beside.run("run", "t.later", "-p", "text= a ", "-q").assert_ok().json == {"text": "A"}
    assert "helpers" not in sys.modules


@pytest.mark.slow
def test_a_package_beside_the_module_is_imported_in_a_worker(beside: Any) -> None:
    in_process_of_its_own(beside)
    assert beside.run(*RUN).assert_ok().json == {"text": "a"}
    assert beside.run("run", "t.later", "-p", "text= a ", "-q").assert_ok().json == {"text": "A"}


MISSING = "imports `helpers.tex`: there is no `helpers/tex.py` and no `helpers/tex/__init__.py` in "


@pytest.mark.sampled(6)
def test_an_import_that_fails_is_found_before_the_run(beside: Any) -> None:
    text = (beside.root / "demo_services.py").read_text().replace("helpers.text", "helpers.tex")
    beside.write("demo_services.py", text.encode())
    (message,) = messages(beside)
    assert message.startswith(f"service `demo`: demo_services.py:1 {MISSING}")
    (check,) = (
        each for each in beside.run("doctor", "--json").json["checks"] if each["name"] == "demo"
    )
    assert (check["status"], check["fix"]) == ("error", "did you mean `text`?")
    assert "demo_services.py:1" in check["message"]
    refused = beside.run(*RUN, "--json").assert_exit(3).json["error"]
    assert (refused["code"], refused["file"]) == ("service.module", "services/local/demo.yaml")
    assert not beside.run("skills", "ls", "--usable", "--domain", "t", "--json").json["skills"]
    assert beside.episodes == []


@pytest.mark.parametrize(
    ("file", "source", "told"),
    [
        ("helpers/text.py", "from .part import strip\n", "helpers/text.py:1 imports `.part`: there is no"),
        ("helpers/text.py", "import nothere_at_all\n", "imports `nothere_at_all`: there is no package `nothere_at"),
        ("helpers/text.py", "from lone_helper import clean\n", "the packages beside them, no others"),
        ("helpers/text.py", "from .parts import stripe as clean\n", "`helpers/parts.py` has no `stripe`"),
        ("helpers/text.py", "def cleaned(text):\n    pass\n", "`helpers/text.py` has no `clean`"),
        ("helpers/text.py", "def clean(text:\n", "helpers/text.py:1 imports `helpers.text`: it cannot be read"),
        ("helpers/text.py", "from ...up import x as clean\n", "it leads out of the package of the module"),
        ("helpers/text.py", "from cogcli.sdk import Refused as clean\nimport json, yaml_\n", "`yaml_`"),
        ("helpers/__init__.py", "from helpers.parts.x import y\n", "`helpers.parts` is a module, no package"),
        ("helpers/more.py", "import gone_from_here\n", "helpers/more.py:1 imports `gone_from_here`"),
    ],
)  # fmt: skip
def test_each_import_that_fails_is_told_with_its_place(
    beside: Any, file: str, source: str, told: str
) -> None:
    beside.write(file, source)
    found = faults(beside)
    assert any(told in message for message in found), found


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    import gone\nexcept ImportError:\n    gone = None\n",
        "from contextlib import suppress\nwith suppress(ImportError):\n    import gone\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import gone\n",
        "from helpers import *\n",
        "import os.path, helpers.text, xml.etree.ElementTree\n",
        "from helpers import text, parts\n",
    ],
)
def test_what_a_program_tries_is_no_failure(beside: Any, source: str) -> None:
    text = (beside.root / "demo_services.py").read_text()
    beside.write("demo_services.py", (source + text).encode())
    assert faults(beside) == []


@pytest.mark.parametrize(
    "source",
    [
        "def other(text):\n    import helpers.lost\n",
        "import sys\nif sys.argv[0] == 'x':\n    import helpers.lost\n",
        "for _ in ():\n    import helpers.lost\n",
    ],
)
def test_an_import_that_may_never_run_is_not_followed(beside: Any, source: str) -> None:
    text = (beside.root / "demo_services.py").read_text()
    beside.write("helpers/lost.py", "import gone\n")
    beside.write("demo_services.py", f"{text}\n{source}".encode())
    assert faults(beside) == []
    assert beside.run(*RUN).assert_ok()


def test_a_program_that_looks_for_modules_itself_may_find_them(beside: Any) -> None:
    beside.write("lib/gone_x.py", "WORD = 'x'\n")
    text = (beside.root / "demo_services.py").read_text()
    look = "import os, sys\nsys.path.insert(0, os.path.dirname(__file__) + '/lib')\nimport gone_x\n"
    beside.write("demo_services.py", (look + text).encode())
    assert len(faults(beside)) == 1
    problems = beside.run("validate", "--json").assert_ok().json["problems"]
    assert [each["severity"] for each in problems if each["code"] == "service.module"] == ["W"]
    assert beside.run(*RUN).assert_ok().json == {"text": "a"}


@pytest.mark.sampled(3)
def test_of_a_project_that_is_not_trusted_nothing_is_run(beside: Any) -> None:
    del beside.env["COGCLI_TRUST_PROJECT"]
    beside.write("helpers/text.py", "open('ran', 'w')\nfrom .gone import clean\n")
    beside.write("helpers/__init__.py", "open('ran', 'w')\n")
    assert len(messages(beside)) == 1
    beside.run("doctor")
    assert not list(beside.root.glob("**/ran"))


def test_a_package_beside_the_module_is_a_part_of_what_was_trusted(beside: Any) -> None:
    del beside.env["COGCLI_TRUST_PROJECT"]
    beside.run("config", "trust").assert_ok()
    assert beside.run(*RUN).assert_ok().json == {"text": "a"}
    beside.write("helpers/parts.py", "def strip(text):\n    return 'changed'\n")
    refused = beside.run(*RUN, "--json").assert_exit(3).json["error"]
    assert refused["code"] == "service.untrusted"
    assert "changed helpers/parts.py" in refused["message"]


def test_nothing_installed_or_shipped_is_replaced(beside: Any) -> None:
    for name in ("httpx", "json", "cogcli"):
        beside.write(f"{name}/__init__.py", "raise ValueError('this is not it')\n")
    text = "import httpx, json, cogcli.sdk\nassert httpx.Client and json.dumps\n"
    beside.write("helpers/__init__.py", text)
    assert messages(beside) == []
    assert beside.run(*RUN).assert_ok().json == {"text": "a"}


def test_inside_an_installed_package_nothing_is_looked_up(beside: Any) -> None:
    beside.write("httpx/__init__.py", "")
    beside.write("httpx/cleaning.py", "def clean(text):\n    return text\n")
    beside.write("helpers/text.py", "from httpx.cleaning import clean\n")
    assert faults(beside) == []


def test_the_working_directory_is_never_looked_at(
    beside: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside.write("helpers/text.py", "from elsewhere_x import clean\n")
    package = tmp_path / "elsewhere_x"
    package.mkdir()
    (package / "__init__.py").write_text("def clean(text):\n    return 'wrong'\n")
    monkeypatch.chdir(tmp_path)
    (message,) = faults(beside)
    assert "`elsewhere_x`" in message


def test_two_roots_with_packages_of_one_name_do_not_mix(beside: Any) -> None:
    """In one process the second is refused, whichever comes first; each in a process of its own has its own."""
    root = beside.root / "other"
    for folder in ("helpers",):
        (root / folder).mkdir(parents=True)
    (root / "helpers/__init__.py").write_text("")
    (root / "helpers/text.py").write_text("def clean(text):\n    return 'other'\n")
    (root / "second_services.py").write_text(
        "from helpers.text import clean\n\ndef ask(text):\n    return {'text': clean(text)}\n"
    )
    for path, text in {
        "services/local/second.yaml": "id: second\nkind: pythoncall\nmodule: second_services\nisolation: thread\n",
        "capabilities/t.text.second.yaml": (beside.root / "capabilities/t.text.ask.yaml")
        .read_text()
        .replace("t.text.ask", "t.text.second"),
        "bindings/local/t.text.second/second.yaml": (
            beside.root / "bindings/local/t.text.ask/t_text_ask.yaml"
        )
        .read_text()
        .replace("t.text.ask", "t.text.second")
        .replace("t_text_ask", "second")
        .replace("service: demo", "service: second"),
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    text = "{text: {type: string, required: true}}"
    beside.skill(
        "t.both",
        """
        - {id: ask, uses: t.text.ask, input: {text: inputs.text}, output: {text: vars.text}}
        - {id: second, uses: t.text.second, input: {text: vars.text}, output: {text: outputs.text}}
        """,
        inputs=text,
        outputs=text,
    )
    run = ("--registry", str(root), "run", "t.both", "-p", "text= a ", "--json")
    error = beside.run(*run).assert_exit(3).json["error"]
    assert error["code"] == "service.module"
    assert "another module `helpers` is loaded in this process" in error["message"]
    (root / "services/local/second.yaml").write_text(
        "id: second\nkind: pythoncall\nmodule: second_services\n"
    )
    assert beside.run(*run).assert_ok().json["outputs"] == {"text": "other"}
