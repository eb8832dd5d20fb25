"""`report`: one page about an episode, or several side by side (docs/reference/command-line.md#page)."""

from __future__ import annotations

import json
import shutil
from functools import cache
from pathlib import Path

import pytest
from fakes.logged import event
from hypothesis import given
from hypothesis import strategies as st
from support.html_reader import ReadPage, read_page
from support.project import Project

from cogcli.declarations.envelope import Event
from cogcli.episode.history import history_of
from cogcli.episode.log_reader import EventLog
from cogcli.report.html import LARGEST, html_page
from cogcli.report.lineage import NOTHING
from cogcli.report.page import PageSource
from cogcli.report.page import page_of as build
from cogcli.report.unfinished_runs import UnfinishedState

pytestmark = pytest.mark.sampled(10)

TEXT = "{text: {type: string, required: true}}"


def page_of(project: Project, *arguments: str) -> ReadPage:
    """The page that `report` writes to stdout."""
    return read_page(project.run("report", *arguments, "-o", "-").assert_ok().out)


def test_the_outcome_and_the_error_come_first(demo: Project) -> None:
    demo.run("run", "demo.review", "-p", "text=hi").assert_exit(1)
    page = page_of(demo)
    assert page.headings[:2] == ["demo.review1.0.0", "call.server-error"]
    assert page.headings[2:] == [
        "Next", "Inputs", "Timeline", "How the values came about", "Steps", "Events", "Is it unaltered?"
    ]  # fmt: skip
    assert "✗ Failed" in page.text
    assert "no luck with HI" in page.text
    assert "score → demo.text.score → demo_text_score → demo" in page.text
    assert "1 of 3 steps done" in page.text
    assert "consistent" in page.text


def test_every_step_is_there_with_those_of_nested_runs(demo: Project) -> None:
    demo.run("run", "demo.review", "-p", "text=hi")
    page = page_of(demo)
    rows = demo.run("trace", "--view", "table", "--format", "jsonl").out.splitlines()
    named = [json.loads(row)["step_id"] for row in rows]
    steps = [a["id"] for tag, a in page.tags if tag == "details" and "id" in a]
    assert len(steps) == len(named) == 5
    assert all(name.rpartition("/")[2] in page.text for name in named)


def test_a_reply_that_lacks_something_is_framed_as_the_binding_was_pinned(demo: Project) -> None:
    demo.services("def odd(text: str) -> dict[str, object]:\n    return {'result': text}\n")
    demo.capability("demo.text.odd", "odd")
    demo.skill("demo.odd", "- {id: ask, uses: demo.text.odd, input: {text: inputs.text}, output: {text: outputs.text}}",
               inputs=TEXT, outputs=TEXT)  # fmt: skip
    demo.run("run", "demo.odd", "-p", "text=hi").assert_exit(1)
    html = demo.run("report", "-o", "-").out
    assert "demo_text_odd.yaml" in html
    assert "response:\n  text: response.text\n<b>        ^^^^^^^^^^^^^</b>" in html
    assert "{&#34;result&#34;: &#34;hi&#34;}" in html


def test_the_same_episode_gives_the_same_bytes_wherever_it_lies(
    demo: Project, tmp_path: Path
) -> None:
    demo.run("run", "demo.review", "-p", "text=hi")
    first = demo.run("report", "-o", "-").out_bytes
    copy = tmp_path / "mailed" / demo.episode.name
    shutil.copytree(demo.episode, copy)
    assert demo.run("report", str(copy), "-o", "-").out_bytes == first
    assert demo.run("report", "-o", "-", env={"TZ": "Asia/Tokyo", "LC_ALL": "C"}).out_bytes == first


def test_what_data_says_is_text_and_nothing_else(demo: Project) -> None:
    hostile = (
        "</pre><script>alert(1)</script><img src=x onerror=alert(2)>&amp;{{ 7*7 }}\x1b[31m\u202e"
    )
    demo.run("run", "demo.greet", "--input", json.dumps({"text": hostile}), "--tag", "a=<b>")
    html = demo.run("report", "-o", "-").assert_ok().out
    page = read_page(html)
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert "</pre><script>alert(1)</script>" in page.text
    assert "&amp;{{ 7*7 }}\\x1b[31m\\u202e" in page.text
    assert "&amp;lt;" not in html
    assert "a=<b>" in page.text


def test_a_gate_that_passed_is_no_veto(ordinary_path: Path, warm_cache: Path) -> None:
    demo = Project(ordinary_path, warm_cache).demo()
    demo.write("note.md", "The harbour opens at six.\n")
    demo.run("run", "doc.digest", "-p", "path=note.md").assert_ok()
    page = page_of(demo)
    assert "✓ read pass doc.path.check" in page.text
    assert "⊘" not in page.text


def test_long_values_are_cut_and_name_the_file_that_holds_them(demo: Project) -> None:
    demo.run("run", "demo.greet", "-p", f"text={'x' * 9000}").assert_ok()
    page = page_of(demo)
    assert "x" * 4096 in page.text
    assert "x" * 4097 not in page.text
    assert "4,904 bytes more; all of it: state.json" in page.text
    assert "all of it: events.jsonl, line 4" in page.text


def test_the_page_of_the_default_name_is_written_again(demo: Project) -> None:
    demo.run("run", "demo.greet", "-p", "text=hi").assert_ok()
    name = f"report-{demo.episode.name}.html"
    page = demo.root / name
    assert demo.run("report").assert_ok().out == f"{name}\n"
    written = page.read_bytes()
    page.write_bytes(written[:-100])
    assert demo.run("report").assert_ok().out == f"{name}\n"
    assert page.read_bytes() == written
    terminal = {"COGCLI_FORCE_TTY": "80"}
    assert (
        demo.run("report", env=terminal).assert_ok().out
        == f"{name}  {len(written) / 1000:.0f} kB, replaced\n"
    )
    page.unlink()
    assert (
        demo.run("report", env=terminal).assert_ok().out
        == f"{name}  {len(written) / 1000:.0f} kB\n"
    )
    answer = demo.run("report", "--json").assert_ok().json
    assert (answer["file"], answer["bytes"]) == (name, len(written))


def test_a_file_that_is_no_page_of_ours_is_never_overwritten_unasked(demo: Project) -> None:
    demo.run("run", "demo.greet", "-p", "text=hi").assert_ok()
    page = demo.root / f"report-{demo.episode.name}.html"
    page.write_text("<!doctype html>\nnotes")
    assert "output.exists" in demo.run("report").assert_exit(2).err
    assert page.read_text() == "<!doctype html>\nnotes"
    demo.run("report", "-o", "page.html").assert_ok()
    assert "output.exists" in demo.run("report", "-o", "page.html").assert_exit(2).err
    page.unlink()
    page.symlink_to(demo.root / "page.html")
    demo.run("report").assert_exit(2)
    assert demo.run("report", "--force", "--json").assert_ok().json["file"] == page.name
    assert not page.is_symlink()


def test_a_file_that_cannot_be_written_is_refused(demo: Project) -> None:
    demo.run("run", "demo.greet", "-p", "text=hi").assert_ok()
    demo.run("report", "-o", "", "-q").assert_exit(2)
    demo.run("report", "-o", ".").assert_exit(2)
    demo.run("report", "-o", "-", "--open").assert_exit(2)
    demo.run("report", "-o", "-", "--json").assert_exit(2)
    demo.run("report", "-o", "no/such/page.html").assert_exit(3)


def test_open_shows_the_file_in_the_browser_of_the_user(demo: Project) -> None:
    demo.run("run", "demo.greet", "-p", "text=hi").assert_ok()
    browser = demo.write("browser.sh", 'printf "%s" "$1" > opened.txt\n')
    # The standard library looks for browsers once in a process.
    demo.installed(
        "report", "-o", "page.html", "--open", env={"BROWSER": f"sh {browser} %s"}
    ).assert_ok()
    assert (demo.root / "opened.txt").read_text() == (demo.root / "page.html").as_uri()


def test_a_run_that_waits_says_for_whom_and_how_to_answer(desk: Project) -> None:
    desk.run("agent", "invoke", "requests/needs-finance.json").assert_exit(5)
    page = page_of(desk)
    assert page.headings[1] == "Not finished"
    assert "? Waits for a person" in page.text
    assert (
        f"cogcli resume {desk.episode.name[:15]} --approve payments.refund --by $USER:finance"
        in page.text
    )
    assert "args.amount 240 > 200; 200 or less would wait for GATE_OPERATOR" in page.text
    assert "unfinished" in page.text


def test_an_agents_run_shows_turns_decisions_and_who_approved(desk: Project) -> None:
    desk.run("agent", "invoke", "requests/needs-finance.json").assert_exit(5)
    desk.run(
        "resume", "@last", "--approve", "payments.refund", "--by", "ann:finance", "--reason", "seen"
    ).assert_ok()
    page = page_of(desk)
    assert {"Turns", "Decisions", "Approvals"} <= set(page.headings)
    assert "refund_with_eligibility" in page.text
    assert "by ann (finance)" in page.text
    assert "saying seen" in page.text
    assert "completed: refunded" in page.text


def test_what_a_model_was_asked_and_answered_is_there(desk: Project) -> None:
    desk.write("replies.yaml", "replies:\n- json: {response: 'It is <b>twelve</b> days old.'}\n")
    desk.run("agent", "invoke", "requests/allowed.json", "--model", "scripted:replies.yaml")
    page = page_of(desk)
    assert "question to the model: m1 · judgment · answered" in page.text
    assert "tokens in" in page.text
    assert "It is <b>twelve</b> days old." in page.text
    assert "policy:never:00" in page.text


def test_items_of_a_loop_are_summed_up_those_that_failed_first(demo: Project) -> None:
    demo.skill(
        "demo.each",
        """
        - id: each
          uses: demo.text.score
          config: {foreach: {items: inputs.texts, as: text}}
          input: {text: text}
          output: {text: outputs.texts}
        """,
        inputs="{texts: {type: array, required: true}}",
        outputs="{texts: {type: array}}",
    )
    demo.run("run", "demo.each", "--input", '{"texts": ["a", "b", "c"]}').assert_exit(1)
    page = page_of(demo)
    assert "1 item 1 failed" in page.text
    assert "each#0 failed call.server-error" in page.text
    assert sum(tag == "details" and "id" in a for tag, a in page.tags) == 1


def test_what_is_damaged_unfinished_or_another_tools_is_told(demo: Project) -> None:
    demo.run("run", "demo.greet", "-p", "text=hi").assert_ok()
    demo.cut_after("step.started")
    assert "! Interrupted, not finalised" in page_of(demo).text
    log = demo.episode / "events.jsonl"
    head, found, tail = log.read_bytes().rpartition(b"demo.text.upper")
    log.write_bytes(head + found.replace(b"upper", b"lower") + tail)
    page = page_of(demo)
    assert "altered" in page.text
    assert "not whole" in page.text


def test_an_episode_of_state_alone_has_a_page(demo: Project) -> None:
    demo.run("run", "demo.greet", "-p", "text=hi").assert_ok()
    (demo.episode / "events.jsonl").unlink()
    page = page_of(demo)
    assert "what is shown is what state.json tells" in page.text
    assert "unreadable" in page.text


EPISODES = Path(__file__).parents[1] / "episodes"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "name", sorted(path.parent.name for path in EPISODES.glob("*/events.jsonl"))
)
def test_every_kind_of_episode_has_a_page(project: Project, name: str) -> None:
    result = project.run("report", str(EPISODES / name), "-o", "-").assert_ok()
    page = read_page(result.out)
    assert page.headings[-1] == "Is it unaltered?"
    assert ("Not finished" in page.headings) == (
        name in ("interrupted", "paused", "rules-2-paused")
    )
    assert (name in ("foreign-labels", "foreign-replanned", "seed-example")) == (
        "another tool's log" in page.text
    )


@given(st.data())
def test_whatever_a_payload_holds_the_page_is_whole(data: st.DataObject) -> None:
    events = list(_log())
    number = data.draw(st.integers(0, len(events) - 1))
    before = events[number]
    member = data.draw(st.sampled_from(sorted(before.payload) or ["none"]))
    odd = data.draw(st.sampled_from([None, 7, True, "x\x1b<b>", [1], {"a": 1}, [{"id": 3}], -1.5]))
    events[number] = before._replace(payload={**before.payload, member: odd})
    source = _source(events)
    html = html_page(lambda limit: [build(source, limit)], version="0.0.0", events=len(events))
    assert read_page(html.decode()).headings[-1] == "Is it unaltered?"


@cache
def _log() -> tuple[Event, ...]:
    return tuple(each for _, each in EventLog(EPISODES / "nested"))


def test_several_episodes_stand_side_by_side(demo: Project) -> None:
    demo.run("run", "demo.greet", "-p", "text=hi").assert_ok()
    demo.run("run", "demo.greet", "-p", "text=ho").assert_ok()
    page = page_of(demo, "@last~1", "@last")
    assert page.headings[0] == "2 runs side by side"
    assert "text HI HO" in page.text
    assert page.headings.count("Steps") == 2
    result = demo.run("report", "@last~1", "@last").assert_ok()
    assert result.out == f"report-{demo.episodes[1].name}-and-1-more.html\n"


def test_a_thousand_steps_fit_into_two_megabytes() -> None:
    source = big_source(1000)
    html = html_page(
        lambda limit: [build(source, limit)], version="0.0.0", events=len(source.events)
    )
    assert len(html) <= LARGEST
    page = read_page(html.decode())
    assert sum(tag == "details" and "id" in a for tag, a in page.tags) == 1000
    assert "500 events, the first of 3002" in page.text


def big_source(count: int) -> PageSource:
    """A run of so many steps, whose inputs, replies and outputs have 5 KB of quotes each."""
    long = {"text": '"' * 5000}
    events = [event(0, "run.started", "start", {"skill": {"id": "a.b", "version": "1"}})]
    for n in range(count):
        began = {
            "step_id": f"s{n}",
            "step_status": "running",
            "input": long,
            "reads": ["inputs.text"],
        }
        ended = {"step_id": f"s{n}", "step_status": "done", "output": long, "attempts": [{"reply": long}],
                 "writes": [{"target": f"vars.v{n}", "value": long}]}  # fmt: skip
        events += [
            event(1, "step.started", "act", began),
            event(1, "note", "runtime", {}),
            event(2, "step.completed", "act", ended),
        ]
    events.append(event(3, "run.terminated", "terminate", {"status": "ok"}))
    return _source(events)


def _source(events: list[Event]) -> PageSource:
    return PageSource(
        name="ep_big", status="ok", events=events, fold=history_of(events), unfinished=UnfinishedState(),
        declared=NOTHING, specs={}, findings=(), level="consistent", proves="", files=(), head="",
        explained=(), meaning="", warnings=(),
        next=(),
    )  # fmt: skip
