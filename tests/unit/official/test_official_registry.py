"""The shipped registry and its functions: contracts, sizes, imports."""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from cogcli.official import extract, prose, text, wording
from cogcli.specs.examples import content_of, with_paths

pytestmark = pytest.mark.sampled(3)

ROOT = Path(__file__).parents[3]
MODULES = sorted(
    path for path in (ROOT / "cogcli" / "official").glob("*.py") if path.stem != "__init__"
)
LONG = [
    "a" * 1_000_000,
    *(part * (200_000 // len(part)) for part in ("a@", "1,", "# x\n", "Hi. ", "$9", "\n", "東京")),
]
READERS: list[Callable[[str], dict[str, Any]]] = [
    text.normalize,
    text.split_sections,
    prose.summarize_by_frequency,
    prose.summarize_by_lead,
    prose.extract_keywords,
    prose.extract_stemmed_keywords,
    prose.score_readability,
    extract.find_entities,
    wording.check_claims,
    wording.find_gaps,
]


def load(path: Path) -> Any:
    return YAML(typ="safe").load(path.read_text(encoding="utf-8"))


def examples() -> Iterator[Any]:
    """Every executable example with every binding; other bindings than the default owe only the shape."""
    chosen = load(ROOT / "policies" / "official_default_selection.yaml")["defaults"]
    for path in sorted((ROOT / "bindings" / "official").glob("*/*.yaml")):
        binding = load(path)
        service = load(ROOT / "services" / "official" / f"{binding['service']}.yaml")
        if binding["protocol"] != "pythoncall" or "auth_ref" in service:
            continue  # those are called against a server of the tests
        capability = load(ROOT / "capabilities" / f"{binding['capability']}.yaml")
        is_default = chosen.get(capability["id"], binding["id"]) == binding["id"]
        for number, example in enumerate(capability["metadata"]["examples"]):
            if "match" in example:  # others need what is outside
                exact = is_default and example["match"] == "exact"
                yield pytest.param(
                    binding, capability, example, exact, id=f"{binding['id']}-{number}"
                )


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_line_that_begins_with_def_is_a_function(path: Path) -> None:
    """Static checks find the shipped functions by these lines, and parse nothing."""
    source = path.read_text(encoding="utf-8")
    begun = re.findall(r"^(?:async +)?def +(\w+)", source, re.MULTILINE)
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    assert set(begun) == {
        node.name for node in ast.parse(source).body if isinstance(node, functions)
    }


def produced(binding: Any, capability: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    """What the bound function gives, the templates being plain `input.x` and `response.x`."""
    defaults = {
        name: field["default"] for name, field in capability["inputs"].items() if "default" in field
    }
    given = defaults | inputs
    payload = {
        key: given[path.removeprefix("input.")]
        for key, path in binding["request"].items()
        if path[6:] in given
    }
    service = load(ROOT / "services" / "official" / f"{binding['service']}.yaml")
    answer = getattr(importlib.import_module(service["module"]), binding["operation"])(**payload)
    return {
        name: answer[path[9:]] for name, path in binding["response"].items() if path[9:] in answer
    }


def inputs_of(example: Any, folder: Path) -> Any:
    """The inputs of an example, whose files then lie in a folder."""
    for name, content in example.get("files", {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content_of(content) or b"")
    return with_paths(example["inputs"], lambda name: str(folder / name))


@pytest.mark.sampled(24)
@pytest.mark.slow
@pytest.mark.parametrize(("binding", "capability", "example", "exact"), list(examples()))
@pytest.mark.usefixtures("shipped_registry")
def test_the_examples_of_a_capability_hold(
    binding: Any,
    capability: Any,
    example: Any,
    exact: bool,
    ordinary_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ordinary_path)
    answer = produced(binding, capability, inputs_of(example, ordinary_path))
    required = {name for name, field in capability["outputs"].items() if field.get("required")}
    assert required <= answer.keys() <= capability["outputs"].keys()
    if exact:
        outputs = with_paths(example["outputs"], lambda name: str(ordinary_path / name))
        assert {name: answer[name] for name in outputs} == outputs
    else:
        assert {name: type(answer[name]) for name in example["outputs"]} == {
            name: type(value) for name, value in example["outputs"].items()
        }


@pytest.mark.sampled(16)
@pytest.mark.slow
@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
@pytest.mark.parametrize("long", LONG, ids=lambda long: repr(long[:4]))
def test_a_long_text_without_structure_is_read_to_the_end(
    read: Callable[[str], Any], long: str
) -> None:
    json.dumps(read(long), allow_nan=False)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_of_the_package_shipped_functions_import_what_users_may(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            assert node.level == 0
            assert not module.startswith("cogcli") or module.startswith(
                ("cogcli.official.", "cogcli.sdk")
            )
        elif isinstance(node, ast.Import):
            assert not any(alias.name.startswith("cogcli") for alias in node.names)


def test_importing_the_functions_loads_no_library() -> None:
    names = ", ".join(f"cogcli.official.{path.stem}" for path in MODULES)
    heavy = (
        *(
            "py3langid",
            "numpy",
            "snowballstemmer",
            "bs4",
            "pypdf",
            "jsonschema",
            "referencing",
            "statistics",
            "httpx",
        ),
        *(
            "openpyxl",
            "polars",
            "trafilatura",
            "lxml",
            "lizard",
            "dulwich",
            "phonenumbers",
            "stdnum",
            "PIL",
            "av",
            "sqlite3",
        ),
    )
    code = f"import sys, {names}; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
