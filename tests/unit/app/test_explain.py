"""Every code that the sources can give has a page."""

from __future__ import annotations

import re
from pathlib import Path

from cogcli.app.explain import pages, read_topic
from cogcli.base.errors import FAILURE_OF
from cogcli.cli.app import TOPICS

PACKAGE = Path(__file__).resolve().parents[3] / "cogcli"
CODE = re.compile(r'"([a-z]+\.[a-z]+(?:-[a-z]+)*)"')
NO_CODES = re.compile(r"(run|step|plan|call|gate|policy|approval|layer|reflection)\.(started|created|completed|failed|"
                      r"skipped|degraded|vetoed|answered|retried|decided|requested|terminated)|.*\.(json|jsonl|yaml|torn|db|pdf)|"
                      r"(working|frame|output)\.[a-z]+|header\.name|builtin\.read-only|"
                      r"sys\.(path|modules)|site\.addsitedir|pyvenv\.cfg")  # fmt: skip


def test_every_code_of_the_failure_model_has_a_page() -> None:
    assert set(FAILURE_OF) <= set(pages())


def test_every_code_of_checks_and_findings_has_a_page() -> None:
    files = [
        *(PACKAGE / "specs").rglob("*.py"),
        *(PACKAGE / "episode").glob("verify*.py"),
        PACKAGE / "base/strict_json.py",
        PACKAGE / "base/json_parser.py",
    ]
    found = {code for file in files for code in CODE.findall(file.read_text(encoding="utf-8"))}
    found |= {f"{document}.differs" for document in ("learn", "summary", "state", "manifest")}
    assert not {code for code in found if not NO_CODES.fullmatch(code)} - set(pages())


def test_pages_are_sorted_and_short() -> None:
    known = pages()
    assert list(known) == sorted(known)
    assert all(len(part) <= 160 for page in known.values() for part in page)


def test_every_topic_fits_a_terminal() -> None:
    for name in (each for each in TOPICS if each != "commands"):  # a list of the command line's own
        assert all(len(line) <= 80 for line in read_topic(name).splitlines()), name
