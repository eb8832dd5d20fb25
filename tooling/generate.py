"""Write the generated parts of the docs, or with `--check` say which of them are stale."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
GENERATORS = ("generate_schemas.py", "generate_cli_docs.py", "generate_failures.py")


def main() -> int:
    arguments = sys.argv[1:]
    codes = [
        subprocess.run([sys.executable, HERE / name, *arguments], check=False).returncode
        for name in GENERATORS
    ]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
