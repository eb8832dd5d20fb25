"""Write the generated parts of the docs, or with `--check` say which of them are stale."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
GENERATORS = (
    "generate_key_tables.py",
    "generate_keys.py",
    "generate_schemas.py",
    "generate_cli_docs.py",
    "generate_failures.py",
    "generate_api_options.py",
    "generate_performance.py",
    "generate_openapi_support.py",
)
WITH_REGISTRY = ("generate_gallery.py",)
"""Written with the others; whether it is stale is told by `tests/registry/test_gallery.py`."""


def main() -> int:
    arguments = sys.argv[1:]
    codes = [
        subprocess.run([sys.executable, HERE / name, *arguments], check=False).returncode
        for name in (*GENERATORS, *(() if "--check" in arguments else WITH_REGISTRY))
    ]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
