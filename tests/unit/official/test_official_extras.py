"""A binding says which extra it cannot do without (docs/reference/binding.md#extras)."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from cogcli.base.extras import EXTRAS, SHIPPED, extra_of

pytestmark = pytest.mark.sampled(6)

ROOT = Path(__file__).parents[3]
WITHOUT_LIBRARIES = """
import sys
from cogcli.base.extras import SHIPPED, extra_of
for modules in SHIPPED.values():
    for module in modules:
        sys.modules[module] = None
import json
import pathlib
sys.path.insert(0, sys.argv[1])
from test_official_registry import examples, inputs_of, produced
needs = {}
for example in examples():
    binding, capability, given = example.values[:3]
    extra = ""
    try:
        produced(binding, capability, inputs_of(given, pathlib.Path.cwd()))
    except ModuleNotFoundError as error:
        extra = extra_of(error.name or "") or "!" + str(error.name)
    except Exception:
        pass
    needs.setdefault(binding["id"], []).append(extra)
print(json.dumps(needs))
"""


def test_the_extras_are_those_of_the_package() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert set(EXTRAS) == set(declared) - {"all", "dev"}
    own_names = {"bs4": "beautifulsoup4", "PIL": "pillow", "stdnum": "python-stdnum"}
    for extra, modules in EXTRAS.items():
        for module in modules:
            assert any(one.startswith(own_names.get(module, module)) for one in declared[extra]), (
                module
            )
    assert [extra_of(module) for module in ("bs4.element", "PIL", "os", "")] == [
        "web",
        "media",
        "",
        "",
    ]


@pytest.mark.sampled(24)
@pytest.mark.slow
def test_a_binding_names_the_extra_that_it_cannot_do_without(tmp_path: Path) -> None:
    """Run without any of the libraries: where no example of its capability runs, the binding says which extra; where it
    names one, some example needs it."""
    command = [sys.executable, "-c", WITHOUT_LIBRARIES, str(Path(__file__).parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    needed: dict[str, list[str]] = json.loads(done.stdout)
    from test_official_registry import load

    declared: dict[str, Any] = {}
    for path in (ROOT / "bindings/official").glob("*/*.yaml"):
        binding = load(path)
        declared[binding["id"]] = (binding.get("metadata") or {}).get("extra", "")
    wrong = {
        id: f"metadata.extra is {declared[id]!r}, its examples need {each}"
        for id, each in needed.items()
        if ((declared[id] and declared[id] not in each) or (all(each) and not declared[id]))
        and id not in CONFINED
    }
    assert not wrong


CONFINED = {
    "python_pdf_document_read", "python_git_log_read", "python_video_frame_extract", "python_image_file_check",
    "python_web_page_extract",
}  # fmt: skip
"""Bindings whose library is imported by a process of its own, where nothing is blocked."""


def test_the_extras_of_shipped_functions_are_named_in_the_decision() -> None:
    page = (ROOT / "docs/adr/0020-libraries-of-the-shipped-registry.md").read_text()
    assert not [extra for extra in SHIPPED if f"| `{extra}` |" not in page]
