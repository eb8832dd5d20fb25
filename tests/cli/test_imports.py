"""What a command must not import (start-up): names of modules seen by `-X importtime`."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

pytestmark = pytest.mark.sampled(10)

HEAVY = {"rich", "pydantic", "ruamel", "jsonschema", "httpx", "mcp", "jinja2", "asyncio"}
GREET = ("run", "demo.greet", "-p", "text=hi")
CLEAN = ("run", "demo.clean", "-p", "text=hi")

FORBIDDEN: dict[tuple[str, ...], set[str]] = {
    (): HEAVY | {"orjson", "typing", "dataclasses", "typer"},
    ("--help",): HEAVY | {"orjson", "typing", "dataclasses", "typer"},
    ("-h",): HEAVY | {"orjson", "typing", "dataclasses", "typer"},
    ("run", "--help"): HEAVY | {"orjson"},
    ("help", "inputs"): HEAVY,
    ("explain", "ref.unwritten"): HEAVY,
    ("rnu",): HEAVY,
    ("run", "--inptu"): HEAVY,
    ("ls",): HEAVY | {"pathlib", "urllib"},
    ("ls", "--trace-id", "trace-001"): HEAVY,
    ("state", "show"): HEAVY,
    ("state", "show", "--path", "outcomes.status"): HEAVY,
    ("trace", "@last"): HEAVY,
    ("trace", "--view", "table"): HEAVY,
    ("trace", "--view", "timeline"): HEAVY,
    ("trace", "--view", "lineage"): HEAVY,
    ("trace", "--why", "outputs.text"): HEAVY,
    ("trace", "--follow"): HEAVY,
    ("diff",): HEAVY,
    ("gc", "--keep", "1"): HEAVY,
    # The page is verified as `verify` does it, whose models of payloads are pydantic's.
    ("report", "-o", "-"): HEAVY - {"jinja2", "pydantic"},
    ("graph", "@last"): HEAVY,
    ("graph", "demo.greet"): {"httpx", "mcp", "jinja2"},
    ("skills", "ls"): {"httpx", "mcp", "jinja2", "rich"},
    ("validate",): {"httpx", "mcp", "jinja2"},
    ("doctor",): {"httpx", "mcp", "jinja2", "rich"},
    CLEAN: HEAVY | {"jsonschema_rs", "referencing", "pathlib", "urllib"},
}


def shipped_skill(project: Any) -> None:
    """`demo.clean` calls a shipped function through files without any warning, whose places would be looked up."""
    project.capability("demo.text.clean", "normalize")
    binding = project.root / "bindings/local/demo.text.clean/demo_text_clean.yaml"
    binding.write_text(binding.read_text().replace("service: demo", "service: shipped"))
    project.write(
        "services/local/shipped.yaml",
        "id: shipped\nkind: pythoncall\nmodule: cogcli.official.text\n",
    )
    project.skill(
        "demo.clean",
        "- {id: clean, uses: demo.text.clean, input: {text: inputs.text}, output: {text: outputs.text}}",
        inputs="{text: {type: string, required: true}}",
        outputs="{text: {type: string, required: true}}",
    )


def imported(project: Any, command: tuple[str, ...]) -> set[str]:
    """The names of all modules that a command imports."""
    script = "import sys; from cogcli.__main__ import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", script, *command],
        cwd=project.root, env=project.env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    lines = [line for line in done.stderr.split("\n") if line.startswith("import time:")][1:]
    return {line.rpartition("|")[2].strip() for line in lines}


def imported_packages(project: Any, command: tuple[str, ...]) -> set[str]:
    """Their top-level names."""
    return {name.partition(".")[0] for name in imported(project, command)}


@pytest.mark.parametrize(
    "command",
    [("--json",), ("-q", "--help"), ("ls", "--version"), ("state",), ("ls",), ("rnu",)],
    ids=" ".join,
)
def test_whatever_is_not_a_fixed_text_is_parsed_by_typer(
    project: Any, command: tuple[str, ...]
) -> None:
    names = imported_packages(project, command)
    assert "typer" in names
    assert "click" not in names


def test_a_command_line_loads_only_the_part_of_typer_that_parses(project: Any) -> None:
    names = imported(project, ("ls",))
    assert not {"typer.main", "typer.params", "typer.completion", "subprocess"} & names


@pytest.mark.parametrize(
    ("name", "words"), [("ls", "ls"), ("state", "state show"), ("trace", "trace @last")]
)
def test_a_command_imports_the_module_of_no_other(demo: Any, name: str, words: str) -> None:
    demo.run(*GREET).assert_ok()
    script = (
        "import sys; from cogcli.__main__ import main; main(); print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *words.split()],
        cwd=demo.root, env=demo.env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    modules = {found for found in done.stderr.split() if found.startswith("cogcli.cli.commands.")}
    assert modules == {f"cogcli.cli.commands.{name}"}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("command", FORBIDDEN, ids=" ".join)
def test_a_command_imports_only_what_it_needs(demo: Any, command: tuple[str, ...]) -> None:
    shipped_skill(demo)
    demo.run(*GREET).assert_ok()
    demo.run(*CLEAN).assert_ok()
    assert not imported_packages(demo, command) & FORBIDDEN[command]


def test_the_version_needs_nothing_but_the_standard_library(demo: Any) -> None:
    names = imported_packages(demo, ("--version",))
    assert names <= set(sys.stdlib_module_names) | {"cogcli", "sitecustomize", "_distutils_hack"}
    assert not names & {"typing", "re", "importlib.metadata", "dataclasses"}


def test_a_warm_run_judges_no_spec_anew(demo: Any) -> None:
    shipped_skill(demo)
    demo.run(*CLEAN).assert_ok()
    judges = {
        "cogcli.specs.checks.skills",
        "cogcli.specs.checks.capabilities",
        "cogcli.protocols.pythoncall.contract",
        "cogcli.protocols.contract_finding",
        "cogcli.base.api_documents.loader",
    }
    assert not imported(demo, CLEAN) & judges


def test_a_run_that_succeeds_loads_nothing_that_judges_values_by_a_schema(demo: Any) -> None:
    shipped_skill(demo)
    demo.run(*CLEAN).assert_ok()
    names = imported(demo, CLEAN)
    assert (
        not {"cogcli.base.schema.validator", "cogcli.base.schema.regex_parser", "fractions"} & names
    )


OTHER_ROOMS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("skills", "ls"): ("run", "episode", "agent", "authoring"),
    ("capabilities", "ls"): ("run", "episode", "agent", "authoring"),
    ("validate",): ("run", "stores", "agent", "authoring", "episode.verify"),
    ("doctor",): (
        "run",
        "authoring",
        "episode.verify",
        "agent.state",
        "agent.stores",
        "agent.cognition",
        "agent.use_cases.jobs",
    ),
}
"""What commands over the whole registry do not load."""


@pytest.mark.sampled(20)
@pytest.mark.parametrize("command", OTHER_ROOMS, ids=" ".join)
def test_a_command_over_the_registry_loads_the_registry_alone(
    demo: Any, command: tuple[str, ...]
) -> None:
    rooms = tuple(f"cogcli.{room}." for room in OTHER_ROOMS[command])
    assert not [name for name in imported(demo, command) if f"{name}.".startswith(rooms)]


def test_a_warm_run_reads_compiled_specs(demo: Any) -> None:
    del demo.env["XDG_CACHE_HOME"]
    demo.run(*GREET).assert_ok()
    assert (demo.home / ".cache" / "cogcli" / "specs.db").is_file()


@pytest.mark.sampled(20)
@pytest.mark.parametrize(
    "command", [CLEAN, ("doctor",), ("agent", "invoke", "requests/allowed.json")], ids=" ".join
)
def test_without_a_model_no_adapter_is_imported(
    demo: Any, desk: Any, command: tuple[str, ...]
) -> None:
    project = desk if command[0] == "agent" else demo
    if project is demo:
        shipped_skill(project)
        project.run(*CLEAN).assert_ok()
    rooms = {name for name in imported(project, command) if name.startswith("cogcli.agent.models.")}
    known = {"cogcli.agent.models.port", "cogcli.agent.models.settings"}
    assert rooms <= (set() if command is CLEAN else known)
