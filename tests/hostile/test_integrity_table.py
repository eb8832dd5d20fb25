"""What `verify` reports of each kind of run after each attack, with and without key, signature and anchor.

The table is data (`TABLE`); docs/reference/episode.md#verify-table shows the same one.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from sealed import chained, events, forged
from support.project import Project

pytestmark = pytest.mark.sampled(12)

COLUMNS: Final = ("user", "none", "signed", "anchor")
TABLE: Final[dict[tuple[str, str], tuple[str, str, str, str]]] = {
    ("sealed", "none"): (
        "0 nothing altered",
        "0 consistent, unsigned",
        "0 nothing altered",
        "0 nothing altered",
    ),
    ("sealed", "forge"): ("1 1 finding", "0 consistent, unsigned", "1 1 finding", "1 1 finding"),
    ("sealed", "forge, remove what vouched"): (
        "0 consistent, unsigned",
        "0 consistent, unsigned",
        "1 1 finding",
        "1 1 finding",
    ),
    ("sealed", "re-chain"): ("1 5 findings", "1 4 findings", "1 4 findings", "1 5 findings"),
    ("sealed", "cut"): (
        "1 2 findings, not sealed",
        "1 1 finding, not sealed",
        "1 2 findings, not sealed",
        "1 2 findings, not sealed",
    ),
    ("sealed", "swap"): ("1 1 finding", "1 1 finding", "1 1 finding", "1 2 findings"),
    ("sealed", "delete"): ("3 no episode", "3 no episode", "3 no episode", "1 1 finding"),
    ("sealed", "roll back"): (
        "0 nothing altered, not sealed",
        "0 consistent, unsigned, not sealed",
        "0 nothing altered, not sealed",
        "1 1 finding, not sealed",
    ),
    ("paused", "none"): (
        "0 nothing altered, not sealed",
        "0 consistent, unsigned, not sealed",
        "0 nothing altered, not sealed",
        "0 nothing altered, not sealed",
    ),
    ("paused", "forge"): (
        "1 1 finding, not sealed",
        "0 consistent, unsigned, not sealed",
        "1 1 finding, not sealed",
        "1 1 finding, not sealed",
    ),
    ("paused", "forge, remove what vouched"): (
        "0 consistent, unsigned, not sealed",
        "0 consistent, unsigned, not sealed",
        "1 1 finding, not sealed",
        "1 1 finding, not sealed",
    ),
    ("paused", "re-chain"): (
        "1 4 findings, not sealed",
        "1 3 findings, not sealed",
        "1 4 findings, not sealed",
        "1 4 findings, not sealed",
    ),
    ("paused", "cut"): (
        "1 2 findings, not sealed",
        "1 1 finding, not sealed",
        "1 2 findings, not sealed",
        "1 2 findings, not sealed",
    ),
    ("paused", "swap"): (
        "1 1 finding, not sealed",
        "1 1 finding, not sealed",
        "1 1 finding, not sealed",
        "1 2 findings, not sealed",
    ),
    ("paused", "delete"): ("3 no episode", "3 no episode", "3 no episode", "1 1 finding"),
    ("paused", "roll back"): (
        "0 nothing altered, not sealed",
        "0 consistent, unsigned, not sealed",
        "0 nothing altered, not sealed",
        "1 1 finding, not sealed",
    ),
    ("killed", "none"): (
        "0 consistent, vouched for in part, not sealed",
        "0 consistent, unsigned, not sealed",
        "0 consistent, vouched for in part, not sealed",
        "0 nothing altered, not sealed",
    ),
    ("killed", "forge"): (
        "1 1 finding, not sealed",
        "0 consistent, unsigned, not sealed",
        "1 1 finding, not sealed",
        "1 1 finding, not sealed",
    ),
    ("killed", "forge, remove what vouched"): (
        "0 consistent, unsigned, not sealed",
        "0 consistent, unsigned, not sealed",
        "1 1 finding, not sealed",
        "1 1 finding, not sealed",
    ),
    ("killed", "re-chain"): (
        "1 3 findings, not sealed",
        "1 2 findings, not sealed",
        "1 3 findings, not sealed",
        "1 3 findings, not sealed",
    ),
    ("killed", "cut"): (
        "1 1 finding, not sealed",
        "0 consistent, unsigned, not sealed",
        "1 1 finding, not sealed",
        "1 1 finding, not sealed",
    ),
    ("killed", "swap"): (
        "1 1 finding, not sealed",
        "1 1 finding, not sealed",
        "1 1 finding, not sealed",
        "1 2 findings, not sealed",
    ),
    ("killed", "delete"): ("3 no episode", "3 no episode", "3 no episode", "1 1 finding"),
    ("killed", "roll back"): (
        "0 consistent, vouched for in part, not sealed",
        "0 consistent, unsigned, not sealed",
        "0 consistent, vouched for in part, not sealed",
        "1 1 finding, not sealed",
    ),
}
"""By run and attack: the cells of the columns."""
PAGE: Final = Path(__file__).parents[2] / "docs/reference/episode.md"
GUARDED: Final = "demo.text.guarded"


class States(NamedTuple):
    """Genuine states of the episodes of one project, as folders: the state that is attacked, an earlier one, and
    another episode."""

    project: Project
    public_key: Path
    now: dict[str, Path]
    earlier: dict[str, Path]
    other: dict[str, Path]


# -- the runs ----------------------------------------------------------------------------------------------------------


def _states(root: Path, *, signed: bool) -> States:
    root.mkdir()
    demo = Project(root).demo()
    demo.services(
        """
        import os
        import signal

        def upper(text: str) -> dict[str, object]:
            return {"text": text.upper()}

        def fail(text: str) -> dict[str, object]:
            raise ValueError("no luck with " + text)

        def die(text: str) -> dict[str, object]:
            os.kill(os.getpid(), signal.SIGKILL)
            return {"text": text}
        """
    )
    demo.capability(GUARDED, "upper", extra="safety: {requires_confirmation: true}\n")
    demo.capability("demo.text.die", "die")
    call = "- {id: %s, uses: %s, input: {text: inputs.text}, output: {text: outputs.text}, depends_on: %s}"
    steps = "\n".join([call % ("one", GUARDED, "[]"), call % ("two", GUARDED, "[one]")])
    fields = {"inputs": "{text: {type: string}}", "outputs": "{text: {type: string}}"}
    demo.skill("demo.waits", steps, **fields)
    steps = "\n".join(
        [call % ("one", "demo.text.upper", "[]"), call % ("two", "demo.text.die", "[one]")]
    )
    demo.skill("demo.dies", steps, **fields)
    secret, public = demo.home / "key.pem", demo.home / "key.pub.pem"
    make = ["openssl", "genpkey", "-algorithm", "ed25519", "-out", secret]
    subprocess.run(make, check=True, capture_output=True)
    subprocess.run(
        ["openssl", "pkey", "-in", secret, "-pubout", "-out", public],
        check=True,
        capture_output=True,
    )
    secret.chmod(0o600)
    env = {"COGCLI_SIGNING_KEY": str(secret)} if signed else {}
    kept: dict[str, list[Path]] = {}

    def keep(name: str) -> None:
        places = kept.setdefault(name, [])
        copy = root / "kept" / f"{name}-{len(places)}" / demo.episode.name
        shutil.copytree(demo.episode, copy)
        places.append(copy)

    for name in ("first", "second"):
        demo.run("run", "demo.waits", "-p", "text=hi", env=env).assert_exit(5)
        keep(f"{name} wait")
        demo.run("resume", "@last", "--approve", GUARDED, env=env).assert_exit(5)
        keep(f"{name} wait")
        demo.run("resume", "@last", "--approve", GUARDED, env=env).assert_ok()
        keep(f"{name} end")
        for words in (("run", "demo.dies", "-p", "text=hi"), ("resume", "@last")):
            assert demo.installed(*words, env=env).code < 0
            keep(f"{name} kill")
    first, second = kept["first wait"], kept["second wait"]
    return States(
        demo, public,
        {"sealed": kept["first end"][0], "paused": first[1], "killed": kept["first kill"][1]},
        {"sealed": first[1], "paused": first[0], "killed": kept["first kill"][0]},
        {"sealed": kept["second end"][0], "paused": second[1], "killed": kept["second kill"][1]},
    )  # fmt: skip


@pytest.fixture(scope="module")
def unsigned(tmp_path_factory: pytest.TempPathFactory) -> States:
    return _states(tmp_path_factory.mktemp("table") / "unsigned", signed=False)


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> States:
    return _states(tmp_path_factory.mktemp("table") / "signed", signed=True)


# -- the attacks -------------------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """The episode that is attacked, and what the attacker has kept of other states."""

    folder: Path
    earlier: Path
    other: Path


def _leave(place: Place) -> None:
    """No attack."""


def _forge(place: Place) -> None:
    """Another output, every hash and document computed anew."""
    before = (place.folder / "events.jsonl").read_bytes()
    forged(place.folder)
    assert (place.folder / "events.jsonl").read_bytes() != before


def _forge_unknown(place: Place) -> None:
    """The same, and what vouched for the run is removed."""
    _forge(place)
    (place.folder / "checkpoint.jsonl").unlink()
    manifest = place.folder / "manifest.json"
    if manifest.exists():
        document = json.loads(manifest.read_bytes())
        document["signature"] = None
        manifest.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def _rechain(place: Place) -> None:
    """One event altered, the chain computed anew, the documents left."""
    log = events(place.folder)
    altered = next(event for event in log if '"HI"' in json.dumps(event))
    altered["payload"] = json.loads(json.dumps(altered["payload"]).replace('"HI"', '"HO"'))
    chained(place.folder, log)


def _cut(place: Place) -> None:
    """The last five lines removed, and the documents that would contradict that."""
    chained(place.folder, events(place.folder)[:-5])
    for name in ("manifest.json", "summary.json", "state.json"):
        (place.folder / name).unlink(missing_ok=True)
    (place.folder / "learn.jsonl").write_bytes(b"")


def _swap(place: Place) -> None:
    """Another genuine episode of the user in its place."""
    shutil.rmtree(place.folder)
    shutil.copytree(place.other, place.folder)


def _delete(place: Place) -> None:
    """No episode any more."""
    shutil.rmtree(place.folder)


def _roll_back(place: Place) -> None:
    """A genuine earlier state of the same episode, with its checkpoint."""
    shutil.rmtree(place.folder)
    shutil.copytree(place.earlier, place.folder)


ATTACKS: Final[dict[str, Callable[[Place], None]]] = {
    "none": _leave,
    "forge": _forge,
    "forge, remove what vouched": _forge_unknown,
    "re-chain": _rechain,
    "cut": _cut,
    "swap": _swap,
    "delete": _delete,
    "roll back": _roll_back,
}


def _cell(states: States, tmp_path: Path, run: str, attack: str, column: str) -> str:
    """The exit code of `verify --all`, and the words of its first line."""
    genuine = states.now[run]
    place = Place(tmp_path / column / genuine.name, states.earlier[run], states.other[run])
    shutil.copytree(genuine, place.folder)
    where = ("--runs-dir", str(place.folder.parent))
    flags: list[str] = []
    if column == "anchor":
        anchor = tmp_path / "heads.txt"
        anchor.write_bytes(states.project.run("verify", "--heads", *where).assert_ok().out_bytes)
        flags = ["--anchor", str(anchor)]
    elif column == "signed":
        flags = ["--key", str(states.public_key)]
    ATTACKS[attack](place)
    env = {} if column == "user" else {"XDG_CONFIG_HOME": str(tmp_path / "another user")}
    done = states.project.run("verify", "--all", *flags, *where, env=env)
    first = done.out.partition("\n")[0]
    return f"{done.code} {first.partition('  ')[2] or 'no episode'}"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("run", ["sealed", "paused", "killed"])
def test_the_table_holds(
    unsigned: States, signed: States, tmp_path: Path, run: str, attack: str
) -> None:
    found = tuple(
        _cell(signed if column == "signed" else unsigned, tmp_path, run, attack, column)
        for column in COLUMNS
    )
    assert found == TABLE[run, attack]


def test_the_reference_shows_the_same_table() -> None:
    rows = [f"| {run} | {attack} | {' | '.join(cells)} |" for (run, attack), cells in TABLE.items()]
    header = ["| run | attack | user | none | signed | anchor |", "|---|---|---|---|---|---|"]
    assert "\n".join([*header, *rows]) in PAGE.read_text()
    assert len(rows) == 3 * len(ATTACKS)
