"""`python -m support.tinymodel`: the tiny model until it is interrupted. The first line printed is its address."""

from __future__ import annotations

import argparse
import contextlib
import json
from pathlib import Path

from support.tinymodel import TinyModel


def main() -> None:
    parser = argparse.ArgumentParser(prog="tinymodel")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--key", default="")
    parser.add_argument("--scripts", type=Path, help="a JSON file: lists of replies by name")
    given = parser.parse_args()
    scripts = json.loads(given.scripts.read_text(encoding="utf-8")) if given.scripts else {}
    # The signal may come at any time, also while the model closes.
    with (
        contextlib.suppress(KeyboardInterrupt),
        TinyModel(seed=given.seed, key=given.key, scripts=scripts, port=given.port) as server,
    ):
        print(server.base_url, flush=True)
        server.closing.wait()


if __name__ == "__main__":
    main()
