"""Every recipe of the cookbook does what its page says, in a copy of its folder."""

from __future__ import annotations

import re
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest
from support.pages import Reader, blocks, free_port
from support.project import Project

pytestmark = pytest.mark.sampled(4)

COOKBOOK = Path(__file__).resolve().parents[2] / "docs/cookbook"
RECIPES = sorted(path.parent for path in COOKBOOK.glob("*/README.md"))
_ADDRESS = re.compile(r"(?<=127\.0\.0\.1)(:|\", )88\d\d\b")


@pytest.fixture
def tmp_path(ordinary_path: Path) -> Path:
    """A folder in which shipped functions may read files."""
    return ordinary_path


@pytest.mark.sampled(16)
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.name)
def test_a_recipe_does_what_its_page_says(recipe: Path, project: Project) -> None:
    copytree(
        recipe, project.root, dirs_exist_ok=True, ignore=ignore_patterns("__pycache__", ".cogcli")
    )
    del project.env["COGCLI_TRUST_PROJECT"]
    port = str(free_port())
    for file in filter(Path.is_file, project.root.rglob("*")):
        text = file.read_text(encoding="utf-8")
        file.write_text(_ADDRESS.sub(rf"\g<1>{port}", text), encoding="utf-8")
    with Reader(project) as reader:
        reader.read(recipe / "README.md", write=False)
    assert any(line.startswith(("cogcli run", "cogcli test")) for line in reader.ran)
    project.run("validate", "--strict", env={"COGCLI_TRUST_PROJECT": "1"}).assert_ok()


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.name)
def test_a_recipe_is_short_and_names_its_files(recipe: Path) -> None:
    text = (recipe / "README.md").read_text(encoding="utf-8")
    assert 20 <= len(text.splitlines()) <= 55
    assert all(block.named or block.language != "yaml" for block in blocks(recipe / "README.md"))
    assert f"({recipe.name}/README.md)" in (COOKBOOK / "README.md").read_text(encoding="utf-8")


def test_there_are_fifteen() -> None:
    assert len(RECIPES) >= 15
