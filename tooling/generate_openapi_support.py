"""Write docs/reference/openapi-support.md from cases that a test binds, or with `--check` say whether it is stale."""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.openapi_support import read_cases, rows  # noqa: E402

FILE = ROOT / "docs/reference/openapi-support.md"
INTRODUCTION = """\
# What is supported of OpenAPI

Generated from `tests/documents/openapi-support.yaml`, whose cases are bound by a test; edit that file.

Here you find whether `new binding --from-openapi` binds an operation, and whether a call sends it. Versions 3.0, 3.1
and 3.2 are read, as JSON or YAML, in one file or in [several](service.md#documents). A document of Swagger 2.0 is
converted first: `npx swagger2openapi swagger.json -o openapi.json`. An operation that is not supported is skipped
with its reason. Extensions (`x-`) are ignored.
"""


def document() -> str:
    """Return the page."""
    parts = [INTRODUCTION]
    for section, features in groupby(rows(read_cases()), key=lambda row: row[0]):
        lines = [
            f'<a id="{section.lower()}"></a>',
            f"## {section}",
            "",
            "| feature | supported | remark |",
            "|---|---|---|",
        ]
        lines += [
            f"| {feature} | {verdict} | {remark} |" for _, feature, verdict, remark in features
        ]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def main() -> int:
    """Exit code 0, or 1 where `--check` found the file to differ."""
    text = document()
    if FILE.exists() and FILE.read_text(encoding="utf-8") == text:
        return 0
    if "--check" in sys.argv[1:]:
        print(f"stale: {FILE.relative_to(ROOT)} (python tooling/generate_openapi_support.py)")
        return 1
    FILE.write_text(text, encoding="utf-8")
    print(FILE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
