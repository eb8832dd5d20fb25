"""A finished episode to be tampered with, its log as lines, and what an attacker without a key can compute anew."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from cogcli.declarations.checksum import add_sum

GREET = ("run", "demo.greet", "-p", "text=hi", "--trace-id", "trace-001")


def finished(project: Any, *, long: bool = False) -> Path:
    """The folder of a sealed episode; a `long` one has blobs of its own text."""
    command = (*GREET[:-3], f"text={'hi ' * 40_000}", *GREET[-2:]) if long else GREET
    project.run(*command).assert_ok()
    folder: Path = project.episode
    return folder


def another(project: Any) -> Path:
    """A second sealed episode in the same runs directory."""
    project.run("run", "demo.greet", "-p", "text=other").assert_ok()
    folder: Path = project.episode
    return folder


def lines(folder: Path) -> list[bytes]:
    """The lines of the log, without their newlines."""
    return (folder / "events.jsonl").read_bytes().splitlines()


def write_lines(folder: Path, log: list[bytes]) -> None:
    """Make these the whole log."""
    (folder / "events.jsonl").write_bytes(b"".join(line + b"\n" for line in log))


def edit(name: str, change: Callable[[Any], Any]) -> Callable[[Path], None]:
    """Changes one of the JSON documents of an episode."""

    def apply(folder: Path) -> None:
        value = json.loads((folder / name).read_bytes())
        change(value)
        (folder / name).write_text(json.dumps(value, indent=2) + "\n")

    return apply


def chained(folder: Path, events: list[dict[str, Any]]) -> None:
    """Write a log anew with a chain that holds."""
    link = f"sha256:{sha256(f'cogcli/events/1:{folder.name}'.encode()).hexdigest()}"
    log = []
    for event in events:
        line = line_of({**event, "prev": link})
        link = f"sha256:{sha256(line).hexdigest()}"
        log.append(line)
    write_lines(folder, log)


def line_of(event: dict[str, Any]) -> bytes:
    """The line of an event, its checksum made anew."""
    unsummed = {key: value for key, value in event.items() if key != "sum"}
    text = json.dumps(unsummed, ensure_ascii=False, separators=(",", ":")).encode()
    return add_sum(text) if "sum" in event else text


def events(folder: Path) -> list[dict[str, Any]]:
    """The events as JSON objects, in the order of their keys."""
    return [json.loads(line) for line in lines(folder)]


def forged(folder: Path) -> None:
    """Another run's folder instead of this one, every id, hash and document computed anew, as far as it has them."""
    from cogcli.episode.document_bytes import to_bytes
    from cogcli.episode.learn import learn_lines
    from cogcli.episode.log_fold import LogFold
    from cogcli.episode.log_reader import EventLog
    from cogcli.episode.projection import project, project_bytes, snapshot_outcomes
    from cogcli.episode.summary import summary_of

    chained(
        folder, [json.loads(json.dumps(event).replace('"HI"', '"HO"')) for event in events(folder)]
    )
    log = [event for _, event in EventLog(folder)]
    account = LogFold(lambda _: None)
    for event in log:
        account.apply(event)
    renewed = events(folder)
    for number, event in enumerate(renewed):
        if event["event_type"] == "run.state_projection":
            evidence, data = project(log[:number]), project_bytes(log[:number])
            event["payload"].update({key: evidence[key] for key in ("outcomes", "links")})
            event["payload"]["state"] = {
                "sha256": sha256(data).hexdigest(),
                "size_bytes": len(data),
            }
            if event["payload"].get("snapshot"):
                event["payload"]["outcomes"] = snapshot_outcomes(evidence["outcomes"])
    chained(folder, renewed)
    if (folder / "state.json").exists():
        last = max(
            n for n, event in enumerate(renewed) if event["event_type"] == "run.state_projection"
        )
        (folder / "state.json").write_bytes(project_bytes(log[: last + 1]))
    if not (folder / "manifest.json").exists():
        return
    (folder / "learn.jsonl").write_bytes(learn_lines(account))
    (folder / "summary.json").write_bytes(to_bytes(summary_of(account)))
    _seal_again(folder)


def _seal_again(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_bytes())
    for entry in manifest["files"]:
        data = (folder / entry["name"]).read_bytes()
        entry.update(sha256=sha256(data).hexdigest(), size_bytes=len(data))
    manifest["chain"]["head"] = f"sha256:{sha256(lines(folder)[-1]).hexdigest()}"
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")


def copied(folder: Path, to: Path) -> Path:
    """The folder again, elsewhere or under another name."""
    shutil.copytree(folder, to)
    return to
