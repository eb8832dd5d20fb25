"""5,000 rows of an API in 100 pages: by `page` of a binding, by a loop that appends, and by loops that carry their rows
through a skill, which appends to them or hands them to a function.

The API answers on loopback from a thread of this process. Each run is a process of its own, whose memory the system
measures.
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

PAGES, SIZE = 100, 50
_SECONDS, _MB = 3.0, 100.0
"""The goals of a run that reads all pages."""
_LONGER, _GROWTH = 4, 4.5
"""So many times the pages may take so many times the CPU time."""
_GROWING = (
    ("bench.appends", "a loop that appends", _GROWTH),
    ("bench.hands", "a loop through a skill that appends", _GROWTH),
    # Its function gets a copy of all rows in each round, which takes as long as there are rows.
    ("bench.carries", "a loop that carries its rows", None),
)
_FIELDS = 'version: "1.0.0"\ndescription: Measured.\nproperties: {side_effects: false}\n'
_LIST = "{type: array, required: true}"
_FIRST = """\
  - id: begin
    uses: bench.page.read
    input: {}
    output: {rows: vars.rows, next: vars.next}
"""
_APPENDING = f"""\
{_FIRST}  - id: rest
    uses: bench.page.read
    input: {{cursor: vars.next}}
    config:
      while: {{condition: "vars.next != ''", max_iterations: 1000}}
      merge_strategy: {{vars.rows: append, vars.next: replace}}
    output: {{rows: vars.rows, next: vars.next}}
"""
_CARRYING = f"""\
{_FIRST}  - id: rest
    uses: skill:bench.round
    input: {{rows: vars.rows, cursor: vars.next}}
    config: {{while: {{condition: "vars.next != ''", max_iterations: 1000}}, merge_strategy: replace}}
    output: {{rows: vars.rows, next: vars.next}}
"""
_HANDING = _CARRYING.replace("bench.round", "bench.more")
_MORE = """\
  - id: read
    uses: bench.page.read
    input: {cursor: inputs.cursor}
    config: {merge_strategy: {outputs.rows: append, outputs.next: replace}}
    output: {inputs.rows: outputs.rows, rows: outputs.rows, next: outputs.next}
"""
_ROUND = """\
  - id: read
    uses: bench.page.read
    input: {cursor: inputs.cursor}
    output: {rows: vars.more, next: outputs.next}
  - id: join
    uses: bench.list.join
    input: {first: inputs.rows, second: vars.more}
    output: {rows: outputs.rows}
"""
_CARRIED = (
    f"{{rows: {_LIST}, cursor: {{type: string, required: true}}}}",
    f"{{rows: {_LIST}, next: {{type: string, required: true}}}}",
)
"""The inputs and outputs of a round."""


class Measure(NamedTuple):
    """One figure: its name, value, unit, goal and a note."""

    name: str
    value: float
    unit: str
    goal: float | None = None
    note: str = ""


Run = Callable[[list[str], Path, dict[str, str]], tuple[float, float, float]]
"""Returns the milliseconds, the bytes of memory and the milliseconds of CPU time of a command."""


def measure(folder: Path, command: str, run: Run, environ: Mapping[str, str]) -> Iterator[Measure]:
    """Yield the figures of all ways."""
    env = {"HOME": str(folder), "PATH": environ["PATH"], "COGCLI_TRUST_PROJECT": "1"}
    with _api() as url:
        project = folder / "project"
        _write_project(project, url)
        for way, skill, goals in (
            ("one step with `page`", "bench.paged", (_SECONDS, _MB)),
            ("a loop that appends", "bench.appends", (_SECONDS, _MB)),
            ("a loop through a skill that appends", "bench.hands", (None, None)),
            ("a loop that carries its rows", "bench.carries", (None, None)),
        ):
            run([command, "run", skill, "-q"], project, env)  # the specs are compiled
            shutil.rmtree(project / ".cogcli")
            milliseconds, memory, _ = run([command, "run", skill, "-q"], project, env)
            size = sum(
                file.stat().st_size for file in (project / ".cogcli").rglob("*") if file.is_file()
            )
            yield Measure(f"{way}: wall", milliseconds / 1000, "s", goals[0], f"{PAGES} pages")
            yield Measure(f"{way}: memory", memory / 1e6, "MB", goals[1])
            yield Measure(f"{way}: episode", size / 1e6, "MB")
            shutil.rmtree(project / ".cogcli")
        usual = {
            skill: run([command, "run", skill, "-q"], project, env)[2] for skill, _, _ in _GROWING
        }
    with _api(_LONGER * PAGES) as url:
        project = folder / "longer"
        _write_project(project, url)
        for skill, way, goal in _GROWING:
            _, _, longer = run([command, "run", skill, "-q"], project, env)
            name = f"{way}: {_LONGER * PAGES * SIZE:,} rows over {PAGES * SIZE:,}"
            yield Measure(name, longer / usual[skill], "x", goal, "CPU time")


@contextmanager
def _api(pages: int = PAGES) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1

        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query)
            data = _page(int(query.get("cursor", ["0"])[0]), pages)
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def _page(number: int, pages: int) -> bytes:
    rows = [
        {"id": n, "name": f"row {n}", "state": "open", "labels": ["a", "b"], "note": "n" * 60}
        for n in range(number * SIZE, (number + 1) * SIZE)
    ]
    following = str(number + 1) if number + 1 < pages else ""
    return json.dumps({"rows": rows, "next": following}).encode()


def _write_project(project: Path, url: str) -> None:
    files = {
        "cogcli.toml": "",
        "services/local/rows.yaml": f"id: rows\nkind: openapi\nbase_url: {url}\nnetwork: private\n",
        "services/local/lists.yaml": "id: lists\nkind: pythoncall\nmodule: lists\nisolation: thread\n",
        "lists.py": "def join(first: list, second: list) -> dict:\n    return {'rows': first + second}\n",
        "capabilities/bench.page.read.yaml": "id: bench.page.read\ninputs: {cursor: {type: string}}\n"
        f"outputs: {{rows: {_LIST}, next: {{type: string}}}}\n{_FIELDS}",
        "capabilities/bench.all.read.yaml": f"id: bench.all.read\ninputs: {{}}\noutputs: {{rows: {_LIST}}}\n{_FIELDS}",
        "capabilities/bench.list.join.yaml": f"id: bench.list.join\ninputs: {{first: {_LIST}, second: {_LIST}}}\n"
        f"outputs: {{rows: {_LIST}}}\n{_FIELDS}",
        "bindings/local/bench.page.read/page.yaml": "id: page\ncapability: bench.page.read\nservice: rows\n"
        "protocol: openapi\noperation: rows\nrequest: {cursor: input.cursor}\n"
        "response: {rows: response.rows, next: response.next}\nmetadata: {method: GET}\n",
        "bindings/local/bench.all.read/all.yaml": "id: all\ncapability: bench.all.read\nservice: rows\n"
        "protocol: openapi\noperation: rows\nrequest: {}\nresponse: {rows: response.rows}\n"
        "page: {items: rows, cursor: response.next, send: cursor}\nmetadata: {method: GET}\n",
        "bindings/local/bench.list.join/join.yaml": "id: join\ncapability: bench.list.join\nservice: lists\n"
        "protocol: pythoncall\noperation: join\nrequest: {first: input.first, second: input.second}\n"
        "response: {rows: response.rows}\n",
        "skills/local/bench/paged/skill.yaml": _skill(
            "bench.paged",
            "  - {id: read, uses: bench.all.read, input: {}, output: {rows: vars.rows}}\n",
        ),
        "skills/local/bench/appends/skill.yaml": _skill("bench.appends", _APPENDING),
        "skills/local/bench/carries/skill.yaml": _skill("bench.carries", _CARRYING),
        "skills/local/bench/hands/skill.yaml": _skill("bench.hands", _HANDING),
        "skills/local/bench/round/skill.yaml": _skill("bench.round", _ROUND, *_CARRIED),
        "skills/local/bench/more/skill.yaml": _skill("bench.more", _MORE, *_CARRIED),
    }
    for path, text in files.items():
        file = project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


def _skill(id: str, steps: str, inputs: str = "{}", outputs: str = "{}") -> str:
    head = f'id: {id}\nversion: "1.0.0"\nname: Pages\ndescription: Reads pages.\n'
    return f"{head}inputs: {inputs}\noutputs: {outputs}\nsteps:\n{steps}"
