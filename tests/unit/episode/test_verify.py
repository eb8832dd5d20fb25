"""Nothing in a sealed episode can be altered unnoticed, and nothing sound is complained of."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sample_episode as sample
from fakes.logged import is_clean
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from support.examples import examples

from cogcli.app.verify_episodes import verify_episode
from cogcli.base.errors import UnusableEnvironment
from cogcli.declarations.checksum import add_sum
from cogcli.episode.document_bytes import to_bytes
from cogcli.episode.layout import Finding
from cogcli.episode.log_lines import first_link
from cogcli.episode.seal import persist_pending, seal
from cogcli.episode.verify.check import MAX_PER_CODE, verify
from cogcli.episode.verify.ordering import _EndedSteps

pytestmark = pytest.mark.sampled(2)


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    return sample.sealed_episode(tmp_path)


@pytest.fixture
def with_blobs(tmp_path: Path) -> Path:
    journal = sample.new_journal(tmp_path)
    specs = journal.put_blob(sample.SPECS)
    sample.started(journal, inputs={"text": "x" * 70_000}, pins={"specs_blob": specs})
    sample.terminated(journal)
    seal(journal)
    journal.close()
    return journal.directory


def errors(directory: Path) -> list[Finding]:
    return [finding for finding in verify(directory) if finding.severity == "error"]


def codes(directory: Path) -> set[str]:
    return {finding.code for finding in errors(directory)}


def test_a_sealed_episode_is_clean_but_unsigned(sealed: Path) -> None:
    findings = verify(sealed)
    assert is_clean(findings)
    assert [finding.code for finding in findings] == ["signature.none"]
    assert "no other user can check" in findings[0].message


def test_verifying_changes_nothing(sealed: Path) -> None:
    before = {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in sealed.iterdir()}
    verify(sealed)
    assert {
        file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in sealed.iterdir()
    } == before


def altered_is_found(directory: Path, file: Path, offset: int, bit: int) -> None:
    data = file.read_bytes()
    changed = bytearray(data)
    changed[offset] ^= 1 << bit
    file.write_bytes(changed)
    try:
        found = errors(directory)
    finally:
        file.write_bytes(data)
    name = str(file.relative_to(directory))
    line = data[:offset].count(b"\n") + 1
    assert found, f"{name} byte {offset} bit {bit}"
    assert any(finding.file == name and finding.line in (0, line) for finding in found), (
        name,
        line,
        found,
    )


@pytest.mark.sampled(8)
@pytest.mark.slow
def test_every_altered_byte_is_found_in_its_file_and_line(sealed: Path) -> None:
    for file in sorted(sealed.iterdir()):
        for offset in range(0, file.stat().st_size, 23):
            altered_is_found(sealed, file, offset, offset % 8)


@pytest.mark.skipif(
    "COGCLI_LONG_TESTS" not in os.environ, reason="minutes: every bit of every file"
)
def test_every_altered_bit_is_found_in_its_file_and_line(sealed: Path) -> None:
    for file in sorted(sealed.iterdir()):
        for offset in range(file.stat().st_size):
            for bit in range(8):
                altered_is_found(sealed, file, offset, bit)


@given(st.data())
@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_altered_bit_is_found_with_blobs_too(with_blobs: Path, data: st.DataObject) -> None:
    files = sorted(file for file in with_blobs.rglob("*") if file.is_file())
    file = data.draw(st.sampled_from(files))
    offset = data.draw(st.integers(0, file.stat().st_size - 1))
    altered_is_found(with_blobs, file, offset, data.draw(st.integers(0, 7)))


@pytest.mark.sampled(4)
def test_every_cut_of_a_sealed_file_is_found(sealed: Path) -> None:
    for file in sorted(sealed.iterdir()):
        data = file.read_bytes()
        for size in range(0, len(data), max(1, len(data) // 40)):
            file.write_bytes(data[:size])
            assert errors(sealed), (file.name, size)
        file.write_bytes(data)


# -- the log ----------------------------------------------------------------------------------------------------------


def log_lines(directory: Path) -> list[bytes]:
    return (directory / "events.jsonl").read_bytes().splitlines(keepends=True)


def write_log(directory: Path, lines: list[bytes]) -> None:
    (directory / "events.jsonl").write_bytes(b"".join(lines))


def rechained(directory: Path, events: list[dict[str, Any]]) -> None:
    """Write events anew with a chain that holds, as somebody with all the time in the world would."""
    head, lines = first_link(events[0]["episode_id"]), []
    for number, event in enumerate(events):
        unsummed = {key: value for key, value in event.items() if key != "sum"}
        text = json.dumps(
            {**unsummed, "seq": number, "prev": head}, separators=(",", ":"), ensure_ascii=False
        )
        line = add_sum(text.encode())
        head = f"sha256:{hashlib.sha256(line).hexdigest()}"
        lines.append(line + b"\n")
    write_log(directory, lines)


def events_of(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log_lines(directory)]


def line_of(directory: Path, code: str) -> int:
    return next(finding.line for finding in errors(directory) if finding.code == code)


def test_a_changed_event_is_named_by_its_line(sealed: Path) -> None:
    lines = log_lines(sealed)
    lines[3] = lines[3].replace(b'"entries":15', b'"entries":16')
    write_log(sealed, lines)
    assert line_of(sealed, "chain.broken") == 4


def test_a_deleted_event_leaves_a_gap(sealed: Path) -> None:
    lines = log_lines(sealed)
    write_log(sealed, lines[:4] + lines[5:])
    assert line_of(sealed, "seq.wrong") == 5


def test_swapped_and_repeated_events_are_found_where_they_are(sealed: Path) -> None:
    lines = log_lines(sealed)
    write_log(sealed, [*lines[:4], lines[5], lines[4], *lines[6:]])
    assert line_of(sealed, "seq.wrong") == 5
    write_log(sealed, [*lines[:5], lines[4], *lines[5:]])
    assert line_of(sealed, "id.repeated") == 6


def test_a_shortened_log_does_not_fit_its_manifest(sealed: Path) -> None:
    write_log(sealed, log_lines(sealed)[:-2])
    assert not is_clean(verify(sealed))


def test_a_shortened_log_without_manifest_is_never_called_sound(sealed: Path) -> None:
    write_log(sealed, log_lines(sealed)[:-2])
    (sealed / "manifest.json").unlink()
    assert "state.unproven" in codes(sealed)


def test_a_gap_in_the_sequence_is_told_once(sealed: Path) -> None:
    lines = log_lines(sealed)
    write_log(sealed, [*lines[:3], *lines[4:]])
    assert [f.line for f in verify(sealed) if f.code == "seq.wrong"] == [4]


@pytest.mark.parametrize("bad", [{"step_id": 7}, {"evidence_ids": None}, {"note": "x"}])
def test_a_shape_that_is_not_sound_is_told_of_every_line_that_has_it(
    sealed: Path, bad: dict[str, Any]
) -> None:
    events = events_of(sealed)
    rechained(
        sealed, [{**event, **bad} if n in (2, 3) else event for n, event in enumerate(events)]
    )
    assert [f.line for f in verify(sealed) if f.code == "event.key"] == [3, 4]


@pytest.mark.parametrize("enabled", [True, False])
def test_looking_at_an_episode_leaves_the_collector_as_it_was(sealed: Path, enabled: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        assert is_clean(verify_episode(sealed).findings)
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()


@pytest.mark.parametrize("line", [b"[]\n", b"7\n"])
def test_json_that_is_no_event_is_no_torn_end(tmp_path: Path, line: bytes) -> None:
    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    journal.close()
    with (journal.directory / "events.jsonl").open("ab") as file:
        file.write(line)
    assert [(f.code, f.line) for f in verify(journal.directory) if f.severity == "error"] == [
        ("line.broken", 2)
    ]


def test_a_log_that_is_a_link_is_named_itself(sealed: Path, tmp_path: Path) -> None:
    log = sealed / "events.jsonl"
    log.rename(tmp_path / "away")
    log.symlink_to(tmp_path / "away")
    with pytest.raises(UnusableEnvironment, match=r"events\.jsonl: is a symbolic link") as refused:
        verify(sealed)
    assert refused.value.file == str(log)


def test_a_garbled_line_in_the_middle_stops_and_is_named(sealed: Path) -> None:
    lines = log_lines(sealed)
    write_log(sealed, [*lines[:3], b"garbage\n", *lines[3:]])
    assert line_of(sealed, "line.broken") == 4


def test_a_torn_end_is_said_of_a_run_and_failed_of_a_sealed_episode(
    sealed: Path, tmp_path: Path
) -> None:
    with (sealed / "events.jsonl").open("ab") as file:
        file.write(b'{"torn')
    assert "line.torn" in codes(sealed)
    journal = sample.new_journal(tmp_path / "other")
    sample.started(journal)
    journal.close()
    with (journal.directory / "events.jsonl").open("ab") as file:
        file.write(b'{"torn')
    findings = verify(journal.directory)
    assert is_clean(findings)
    assert "line.torn" in {finding.code for finding in findings}


def test_an_event_after_the_end_is_flagged(sealed: Path) -> None:
    events = events_of(sealed)
    late = {
        **events[3],
        "id": "ev_01HF7YAT00000000000000000Z",
        "timestamp": events[-1]["timestamp"],
    }
    late.pop("caused_by")
    rechained(sealed, [*events, late])
    assert "run.after-end" in codes(sealed)


@pytest.mark.parametrize("value", [1.0, "1", True, None])
def test_a_sequence_number_is_exactly_an_integer(sealed: Path, value: Any) -> None:
    lines = log_lines(sealed)
    lines[1] = lines[1].replace(b'"seq":1,', b'"seq":%s,' % json.dumps(value).encode())
    write_log(sealed, lines)
    assert line_of(sealed, "seq.wrong") == 2


def forged(change: Callable[[list[dict[str, Any]]], None], directory: Path) -> set[str]:
    events = events_of(directory)
    change(events)
    rechained(directory, events)
    return codes(directory)


def test_a_chain_recomputed_by_a_forger_must_still_tell_a_possible_story(sealed: Path) -> None:
    def result_without_intent(events: list[dict[str, Any]]) -> None:
        del events[2]
        events[2].pop("caused_by")

    assert "step.no-intent" in forged(result_without_intent, sealed)


def test_a_step_outside_the_plan_is_found(sealed: Path) -> None:
    def change(events: list[dict[str, Any]]) -> None:
        events[4]["step_id"] = events[4]["payload"]["step_id"] = "intruder"

    assert "step.unplanned" in forged(change, sealed)


def test_a_step_ends_once(sealed: Path) -> None:
    def change(events: list[dict[str, Any]]) -> None:
        events.insert(5, {**events[4], "id": "ev_01HF7YAT00000000000000000Z"})

    assert "step.twice-ended" in forged(change, sealed)


def test_runs_start_once_and_end_once(sealed: Path) -> None:
    def again(number: int) -> Callable[[list[dict[str, Any]]], None]:
        def change(events: list[dict[str, Any]]) -> None:
            copy = {
                **events[number],
                "id": "ev_01HF7YAT00000000000000000Z",
                "timestamp": events[-2]["timestamp"],
            }
            events.insert(len(events) - 1, copy)

        return change

    original = events_of(sealed)
    assert "run.twice-started" in forged(again(0), sealed)
    rechained(sealed, original)
    assert codes(sealed) == set()
    assert "run.twice-ended" in forged(again(7), sealed)
    rechained(sealed, original[1:])
    assert "run.unstarted" in codes(sealed)


def test_causes_are_earlier_events(sealed: Path) -> None:
    def change(events: list[dict[str, Any]]) -> None:
        events[3]["caused_by"] = events[6]["id"]

    assert "cause.unknown" in forged(change, sealed)


def test_time_goes_forward(sealed: Path) -> None:
    def change(events: list[dict[str, Any]]) -> None:
        events[4]["timestamp"] = events[0]["timestamp"]

    assert "time.back" in forged(change, sealed)


def test_all_lines_are_of_one_episode_and_one_trace(sealed: Path) -> None:
    def change(events: list[dict[str, Any]]) -> None:
        events[4]["episode_id"] = "ep_01HF7YAT00000000000000000Z"
        events[5]["trace_id"] = "other"

    assert {"episode.other", "trace.other"} <= forged(change, sealed)


@pytest.mark.parametrize(
    ("number", "key", "value"),
    [(2, "surprise", 1), (2, "uses", 3), (3, "step_status", "skipped"), (3, "usage", {"llm_calls": -1}),
     (0, "seed", "7"), (7, "status", "novel")],
)  # fmt: skip
def test_payloads_are_those_of_their_type(sealed: Path, number: int, key: str, value: Any) -> None:
    def change(events: list[dict[str, Any]]) -> None:
        events[number]["payload"][key] = value

    assert "event.payload" in forged(change, sealed)


def test_free_keys_and_unknown_types_are_no_errors(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    journal.append(sample.raw_event(sample.RUN, "future.thing", "insight", {"anything": 1}))
    journal.append(
        sample.raw_event(sample.RUN, "run.paused", "runtime", {"reason": "r", "x-own": 1})
    )
    journal.close()
    findings = verify(journal.directory)
    assert is_clean(findings)
    assert "event.unknown" in {finding.code for finding in findings}


def test_repairs_of_the_projection_are_findings(sealed: Path) -> None:
    def change(events: list[dict[str, Any]]) -> None:
        events[1]["payload"]["step_records"][0]["kind"] = "novel"

    assert "projection.repaired" in forged(change, sealed)


# -- documents and files ----------------------------------------------------------------------------------------------


def edited(path: Path, change: Callable[[Any], None]) -> None:
    document = json.loads(path.read_bytes())
    change(document)
    path.write_bytes(to_bytes(document))


def test_an_edited_state_loses_against_the_log(sealed: Path) -> None:
    edited(sealed / "state.json", lambda state: state["outcomes"].update(status="error"))
    [finding] = errors(sealed)
    assert (finding.code, finding.file) == ("state.differs", "state.json")
    assert (
        b'"status": "error"' in (sealed / "state.json").read_bytes().splitlines()[finding.line - 1]
    )


@pytest.mark.parametrize("link", ["../../../etc/passwd", "file:///etc/passwd"])
def test_links_that_lead_elsewhere_are_found(sealed: Path, link: str) -> None:
    edited(sealed / "state.json", lambda state: state["links"].update(events=link))
    assert codes(sealed) == {"state.differs"}


def test_a_manifest_of_another_episode_does_not_fit(sealed: Path, tmp_path: Path) -> None:
    other = sample.sealed_episode(tmp_path / "other", seed=500)
    shutil.copy(other / "manifest.json", sealed / "manifest.json")
    assert errors(sealed)


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest: manifest["files"].pop(),
        lambda manifest: manifest["files"].append(manifest["files"][0]),
        lambda manifest: manifest["files"][0].update(name="../../../etc/shadow"),
        lambda manifest: manifest["files"].append(
            {"name": "decision.json", "sha256": "0" * 64, "size_bytes": 1}
        ),
        lambda manifest: manifest["files"][0].update(md5="x"),
        lambda manifest: manifest["files"][0].update(sha256="md5:1"),
        lambda manifest: manifest.update(files=None),
        lambda manifest: manifest.update(schema_version="manifest/2"),
        lambda manifest: manifest.update(signature={"alg": "none"}),
        lambda manifest: manifest["chain"].update(events=1),
        lambda manifest: manifest["pins"].update(cogcli="9"),
        lambda manifest: manifest.clear(),
    ],
)
def test_an_edited_manifest_is_found(sealed: Path, change: Callable[[Any], None]) -> None:
    edited(sealed / "manifest.json", change)
    assert errors(sealed)


def test_a_manifest_with_a_key_twice_is_found(sealed: Path) -> None:
    path = sealed / "manifest.json"
    path.write_bytes(
        path.read_bytes().replace(b'"signature"', b'"episode_id": "x",\n  "signature"')
    )
    assert "manifest.syntax" in codes(sealed)


def test_extra_and_missing_files_are_found(sealed: Path) -> None:
    (sealed / "notes.txt").write_text("hello")
    assert codes(sealed) == {"file.extra"}
    (sealed / "notes.txt").unlink()
    (sealed / "decision.json").write_text("{}")
    assert codes(sealed) == {"file.extra"}
    (sealed / "decision.json").unlink()
    for name in ("learn.jsonl", "summary.json", "state.json"):
        data = (sealed / name).read_bytes()
        (sealed / name).unlink()
        assert "file.missing" in codes(sealed)
        (sealed / name).write_bytes(data)


def test_links_pipes_and_folders_are_no_files(sealed: Path) -> None:
    (sealed / "summary.json").rename(sealed.parent / "summary.json")
    for make in (
        lambda path: os.symlink(sealed.parent / "summary.json", path),
        os.mkfifo,
        os.mkdir,
    ):
        make(sealed / "summary.json")
        assert "file.kind" in codes(sealed)
        (sealed / "summary.json").rmdir() if (sealed / "summary.json").is_dir() else (
            sealed / "summary.json"
        ).unlink()


def test_a_second_name_for_a_file_is_found(sealed: Path, tmp_path: Path) -> None:
    os.link(sealed / "events.jsonl", tmp_path / "other-name")
    assert codes(sealed) == {"file.hard-link"}


def test_blobs_are_what_their_names_say(with_blobs: Path) -> None:
    assert is_clean(verify(with_blobs))
    blobs = sorted((with_blobs / "blobs").iterdir())
    (with_blobs / "blobs" / "readme").write_text("x")
    assert "file.extra" in codes(with_blobs)
    (with_blobs / "blobs" / "readme").unlink()
    blobs[0].unlink()
    assert {"blob.missing", "file.missing"} <= codes(with_blobs)


def test_an_unfinished_episode_is_said_not_failed(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    assert is_clean(verify(journal.directory))
    sample.started(journal)
    persist_pending(journal)
    findings = verify(journal.directory)
    assert is_clean(findings)
    assert "episode.unsealed" in {finding.code for finding in findings}
    journal.close()


def test_a_state_that_no_event_tells_of_is_found(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    journal.close()
    (journal.directory / "state.json").write_text("{}")
    assert codes(journal.directory) == {"state.unproven"}
    (journal.directory / "state.json").unlink()
    (journal.directory / "summary.json").write_text("{}")
    assert codes(journal.directory) == {"file.early"}


def test_a_state_one_projection_behind_is_said_while_unsealed(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    persist_pending(journal)
    old = (journal.directory / "state.json").read_bytes()
    journal.append(sample.raw_event(sample.RUN, "run.resumed", "runtime", {"reason": "r"}))
    persist_pending(journal)
    journal.close()
    (journal.directory / "state.json").write_bytes(old)
    findings = verify(journal.directory)
    assert is_clean(findings)
    assert "state.stale" in {finding.code for finding in findings}


def test_findings_do_not_depend_on_how_many_lines_are_read_together(
    sealed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each stage of the check goes through a batch of lines; the findings stay those of each line, in order."""
    events = events_of(sealed)
    for event in events[2:]:
        event["clock"] = "unclear"
        event["payload"] = {**event["payload"], "step_id": "unplanned", "reads": 1}
    rechained(sealed, events)
    found = verify(sealed)
    lines = [finding.line for finding in found if finding.file == "events.jsonl"]
    assert len(lines) > 2 * len(set(lines)) > 12
    for size in (1, 2, 3, 1000):
        monkeypatch.setattr("cogcli.episode.log_lines.BATCH", size)
        assert verify(sealed) == found


def test_without_a_log_there_is_nothing_to_verify(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(UnusableEnvironment) as refused:
            verify(path)
        assert refused.value.code == "episode.unreadable"


def test_findings_of_one_kind_are_cut_short(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    for n in range(MAX_PER_CODE + 50):
        sample.ended(journal, f"s{n}", None, latency_ms=-1)
    journal.close()
    found = [finding for finding in verify(journal.directory) if finding.code == "event.payload"]
    assert len(found) == MAX_PER_CODE + 1
    assert "50 more" in found[-1].message


# -- other tools' logs ------------------------------------------------------------------------------------------------


def foreign(directory: Path, state: dict[str, Any] | None = None) -> Path:
    directory.mkdir()
    events = [
        {"id": "a", "timestamp": "2024-01-15T10:30:00Z", "episode_id": "ep_a", "phase": "start",
         "payload": {"task": "t"}},
        {"id": "b", "timestamp": "2024-01-15T10:30:01Z", "episode_id": "ep_a", "phase": "terminate",
         "payload": {"status": "ok"}},
    ]  # fmt: skip
    (directory / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    if state is not None:
        (directory / "state.json").write_text(json.dumps(state))
    return directory


def test_a_foreign_log_is_unchained_which_is_no_tampering(tmp_path: Path) -> None:
    findings = verify(foreign(tmp_path / "a"))
    assert is_clean(findings)
    assert "chain.unchained" in {finding.code for finding in findings}


def test_a_foreign_state_is_held_to_the_seeds_promises(tmp_path: Path) -> None:
    state: dict[str, Any] = {
        key: {}
        for key in (
            "version",
            "state_schema_version",
            "episode",
            "goal",
            "beliefs",
            "plan",
            "memory",
            "links",
        )
    }
    state["outcomes"] = {"status": "ok"}
    assert is_clean(verify(foreign(tmp_path / "a", state)))
    bad = {**state, "links": {"events": "../../../etc/passwd"}}
    assert codes(foreign(tmp_path / "b", bad)) == {"link.unsafe"}
    assert codes(foreign(tmp_path / "c", {"outcomes": {"status": "novel"}})) == {"state.fields"}


def test_a_chained_line_in_an_unchained_log_is_an_error(tmp_path: Path) -> None:
    directory = foreign(tmp_path / "a")
    lines = log_lines(directory)
    lines[1] = lines[1].replace(b"{", b'{"seq": 1, ', 1)
    write_log(directory, lines)
    assert codes(directory) == {"chain.mixed"}


def test_foreign_evidence_must_repeat_the_outcome(tmp_path: Path) -> None:
    state: dict[str, Any] = {
        key: {}
        for key in (
            "version",
            "state_schema_version",
            "episode",
            "goal",
            "beliefs",
            "plan",
            "memory",
            "links",
        )
    }
    directory = foreign(tmp_path / "a", {**state, "outcomes": {"status": "ok"}})
    evidence = {
        "id": "c",
        "timestamp": "2024-01-15T10:30:02Z",
        "episode_id": "ep_a",
        "phase": "runtime",
        "event_type": "run.state_projection",
        "payload": {"outcomes": {"status": "error"}},
    }
    with (directory / "events.jsonl").open("a") as file:
        file.write(json.dumps(evidence) + "\n")
    assert codes(directory) == {"state.evidence"}
    for text in ("not json", "[]"):
        (directory / "state.json").write_text(text)
        assert codes(directory) == {"state.syntax"}


def test_what_a_killed_writer_left_is_said(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    journal.close()
    (journal.directory / ".tmp-0123").write_text("half")
    findings = verify(journal.directory)
    assert is_clean(findings)
    assert "file.temporary" in {finding.code for finding in findings}


def test_a_nested_run_belongs_to_a_run_alive_and_plans_nothing(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    start = {**sample.START, "parent_run_id": "run_ffffffffffffffff"}
    journal.append(sample.raw_event(sample.CHILD, "run.started", "start", start))
    plan = {"source": "x", "rationale": "", "step_records": [], "steps": []}
    journal.append(sample.raw_event(sample.CHILD, "plan.created", "plan", plan))
    retried = {"step_id": "a", "attempt": 2, "reason": "retry", "wait_ms": 0}
    journal.append(sample.raw_event(sample.CHILD, "call.retried", "act", retried, step_id="b"))
    journal.close()
    assert {"run.parent", "plan.nested", "step.other", "step.no-intent"} <= codes(journal.directory)


@given(data=st.data())
def test_ended_steps_are_a_set(data: st.DataObject) -> None:
    steps = ["a", "a#0", "a#1", "a#2", "a#01", "a#-1", "a#x", "a#0/b", "b#0", "a#0#0", "#0", "a#²"]
    kept, known = _EndedSteps(), set[str]()
    for is_added, step in data.draw(st.lists(st.tuples(st.booleans(), st.sampled_from(steps)))):
        if is_added:
            assert kept.add(step) == (step in known)
            known.add(step)
        else:
            kept.discard(step)
            known.discard(step)
        assert len(kept) == len(known)
    assert {each for each in steps if kept.add(each)} == known
