"""Write docs/reference/gallery.md from the shipped registry, or with `--check` say whether it is stale."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from cogcli.app.inventory.skill import sample_run
from cogcli.app.needs import KINDS, find_outside_need
from cogcli.app.registry import open_registry
from cogcli.app.settings import Settings
from cogcli.base.errors import BindingResolutionError
from cogcli.declarations.field_spec import Fields
from cogcli.declarations.skill_spec import Skill
from cogcli.specs.binding_chain import SelectionOptions
from cogcli.specs.catalog import Catalog
from cogcli.specs.selection import named_binding

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "docs" / "reference" / "gallery.md"
HEAD = """# Gallery

Generated from the shipped registry by `tooling/generate.py`. What each takes and gives: `*` is required. The line below
a skill runs it as it stands. `cogcli skills search WORDS` finds one; `cogcli skills show SKILL` tells all of it.
"""


def main() -> int:
    """Exit code 0, or 1 where `--check` found the page to differ."""
    text = page(open_registry(Settings({}, {}, base=str(ROOT))).everything())
    if FILE.exists() and FILE.read_text(encoding="utf-8") == text:
        return 0
    if "--check" in sys.argv[1:]:
        print(
            "stale: docs/reference/gallery.md (python tooling/generate_gallery.py)", file=sys.stderr
        )
        return 1
    FILE.write_text(text, encoding="utf-8")
    print(FILE)
    return 0


def page(catalog: Catalog) -> str:
    """The whole page."""
    parts = [HEAD]
    for domain, skills in groupby(
        sorted(catalog.skills.items()), lambda item: item[0].partition(".")[0]
    ):
        parts.append(f'<a id="{domain}"></a>\n## {domain}\n')
        parts += [_entry(catalog, skill) for _, skill in skills]
    return "\n".join(parts)


def _entry(catalog: Catalog, skill: Skill) -> str:
    description = " ".join(skill.description.split()).replace("|", "\\|")
    needs = ", ".join(dict.fromkeys(_needs(catalog, skill)))
    told = f" Needs {needs}." if needs else ""
    fields = f"{_names(skill.inputs)} → {_names(skill.outputs)}"
    return f"- **{skill.id}**: {description}{told} {fields}\n\n  ```text\n  {sample_run(skill)}\n  ```\n"


def _names(fields: Fields) -> str:
    return " ".join(f"`{name}{'*' if field.required else ''}`" for name, field in fields.items())


def _needs(catalog: Catalog, skill: Skill) -> Iterator[str]:
    """What the bindings that are selected on any machine need, in words."""
    for capability in catalog.reached(skill.id):
        try:
            link = named_binding(catalog, capability.id, SelectionOptions()).chain[0]
        except BindingResolutionError:
            continue
        if need := find_outside_need(catalog, capability, link):
            yield KINDS[need.kind]
        if extra := catalog.bindings[link.binding_id].metadata.extra:
            yield f"extra `{extra}`"


if __name__ == "__main__":
    sys.exit(main())
