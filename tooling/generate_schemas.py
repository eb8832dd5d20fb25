"""Write the JSON Schemas of an episode's artifacts to docs/schemas/, or with `--check` say which are stale."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from cogcli.episode.schemas import SCHEMAS

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "schemas"


def main() -> int:
    """Exit code 0, or 1 where `--check` found a file that differs."""
    check = "--check" in sys.argv[1:]
    stale = []
    for name, schema in SCHEMAS.items():
        path = FOLDER / f"{name}.schema.json"
        text = json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        if check:
            stale.append(path.name)
        else:
            FOLDER.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(path)
    if stale:
        print(f"stale: {', '.join(stale)} (python tooling/generate_schemas.py)", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
