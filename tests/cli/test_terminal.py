"""A real terminal: the live display, its end, signals, and a cursor that comes back."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

if sys.platform == "win32":
    pytest.skip("no pseudo-terminals here", allow_module_level=True)
from support.terminal import Terminal

pytestmark = pytest.mark.sampled(12)

SLOW = """
import time

def wait(text: str) -> dict[str, object]:
    time.sleep(float(text))
    return {"text": text}
"""


def slow(project: Any, *seconds: str) -> None:
    """`demo.slow` waits in each of its steps."""
    project.services(SLOW)
    project.capability("demo.text.wait", "wait")
    steps = "\n".join(
        f'- {{id: w{n}, uses: demo.text.wait, input: {{text: {{$literal: "{s}"}}}}, output: {{text: outputs.t{n}}}}}'
        for n, s in enumerate(seconds)
    )
    outputs = ", ".join(f"t{n}: {{type: string}}" for n in range(len(seconds)))
    project.skill("demo.slow", steps, outputs=f"{{{outputs}}}")


@pytest.mark.parametrize(("rows", "columns"), [(24, 80), (34, 120), (20, 40)])
def test_the_live_display_shows_running_steps_and_leaves_final_lines(
    project: Any, rows: int, columns: int
) -> None:
    slow(project, "0.1", "1.5")
    terminal = Terminal(project, "run", "demo.slow", rows=rows, columns=columns)
    terminal.until("● w1")
    assert "✓ w0" in "\n".join(terminal.screen.display)
    final = terminal.finish()
    assert terminal.process.exitstatus == 0
    assert "✓ w1" in final
    assert "●" not in final
    assert '"t1": "1.5"' in final
    assert final.count("✓ w0") == 1
    assert not terminal.screen.cursor.hidden


def test_a_display_that_is_too_tall_shows_what_runs_and_a_count(project: Any) -> None:
    slow(project, *["0.05"] * 30, "1.5")
    terminal = Terminal(project, "run", "demo.slow", rows=12)
    terminal.until("30 of 31 done")
    assert "● w30" in "\n".join(terminal.screen.display)
    terminal.finish()
    assert terminal.process.exitstatus == 0


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_says_what_happens_and_the_cursor_comes_back(project: Any, times: int) -> None:
    slow(project, "0.1", "600")
    terminal = Terminal(project, "run", "demo.slow")
    terminal.until("● w1")
    terminal.process.sendintr()
    terminal.until("stopping, up to 5s for running calls (Ctrl-C again: now)")
    if times == 2:
        terminal.process.sendintr()
    final = terminal.finish()
    assert terminal.process.exitstatus == 130, final
    assert "aborted in" in final
    assert not terminal.screen.cursor.hidden
    project.run("verify").assert_ok()


def test_sigterm_gives_the_cursor_back(project: Any) -> None:
    slow(project, "0.1", "1.5")
    terminal = Terminal(project, "run", "demo.slow")
    terminal.until("● w1")
    terminal.process.kill(15)
    final = terminal.finish()
    assert terminal.process.exitstatus == 143, final
    assert not terminal.screen.cursor.hidden


def test_no_color_and_dumb_terminals_get_no_escape(demo: Any) -> None:
    for more in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        demo.env = {**demo.env, "NO_COLOR": "", **more}
        terminal = Terminal(demo, "trace", "demo.greet", "-p", "text=hi")
        terminal.finish()
        assert b"\x1b" not in terminal.raw


def test_reading_from_the_terminal_is_announced(demo: Any) -> None:
    terminal = Terminal(demo, "run", "demo.greet", "-p", "text=@-")
    terminal.until("reading from the terminal; end with Ctrl-D")
    terminal.process.sendline("typed")
    terminal.process.sendeof()
    assert '"text": "TYPED\\n"' in terminal.finish()


@pytest.mark.parametrize(("typed", "left"), [("y", 0), ("", 1), ("n", 1), (None, 1)])
def test_clearing_away_asks_and_takes_everything_but_yes_for_no(
    demo: Any, typed: str | None, left: int
) -> None:
    demo.run("run", "demo.greet", "-p", "text=hi", "-q").assert_ok()
    terminal = Terminal(demo, "gc", "--keep", "0")
    terminal.until("remove 1 episode")
    if typed is None:
        terminal.process.sendeof()
    else:
        terminal.process.sendline(typed)
    final = terminal.finish()
    assert terminal.process.exitstatus == 0
    assert ("nothing was removed" in final) is bool(left)
    assert len(demo.episodes) == left


def test_a_run_is_followed_live(project: Any) -> None:
    slow(project, "0.1", "2.5")
    run = Terminal(project, "run", "demo.slow")
    run.until("● w1")
    terminal = Terminal(project, "trace", "--follow")
    terminal.until("● w1")
    final = terminal.finish()
    run.finish()
    assert terminal.process.exitstatus == 0
    assert "✓ w1" in final
    assert "2 of 2 done" in final
    assert not terminal.screen.cursor.hidden


# -- approval ----------------------------------------------------------------------------------------------------------


def asking(project: Any) -> Any:
    """`demo.slow` with a step that needs a yes."""
    slow(project, "0", "0")
    project.write(
        "capabilities/demo.text.wait.yaml",
        'id: demo.text.wait\nversion: "1.0.0"\ndescription: Wait.\ninputs: {text: {type: string, required: true}}\n'
        "outputs: {text: {type: string, required: true}}\nsafety: {requires_confirmation: true}\n",
    )
    return Terminal(project, "run", "demo.slow")


def outcome(project: Any) -> str:
    return str(json.loads((project.episode / "state.json").read_text())["outcomes"]["status"])


def test_a_person_approves_each_action_once(project: Any) -> None:
    terminal = asking(project)
    for number in range(2):
        terminal.until(f"demo.text.wait · w{number}")
        terminal.until("decide later")
        terminal.process.send("\rv\ry\r")
    screen = terminal.finish()
    assert terminal.process.exitstatus == 0, screen
    assert outcome(project) == "ok"
    assert "ok in" in screen
    assert "  input.text  0" in screen, "v shows all, a line for each argument"
    project.run("verify", "@last").assert_ok()
    project.run("replay", "@last").assert_ok()


@pytest.mark.parametrize(
    ("typed", "code", "status"),
    [("n\r", 4, "vetoed"), ("d\r", 5, "pending"), ("\x04", 5, "pending"), ("\x03", 5, "pending")],
    ids=["reject", "later", "end", "interrupt"],
)
def test_every_other_answer_calls_nothing(project: Any, typed: str, code: int, status: str) -> None:
    terminal = asking(project)
    terminal.until("decide later")
    terminal.process.send(typed)
    screen = terminal.finish()
    assert terminal.process.exitstatus == code, screen
    assert outcome(project) == status
    assert ("is saved and waits" in screen) == (status == "pending"), screen
    assert "step.started" not in (project.episode / "events.jsonl").read_text()


def test_nobody_is_asked_without_a_terminal_on_both_sides(project: Any) -> None:
    asking(project).process.close(force=True)
    result = project.run("run", "demo.slow").assert_exit(5)
    assert "Approve?" not in result.err
    assert "--approve demo.text.wait" in result.err


# -- effects that a rerun would make again -----------------------------------------------------------------------------


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("typed", "code", "calls"),
    [
        ("what\rreuse\r", 0, 1),
        ("repeat\r", 0, 2),
        ("fail\r", 1, 1),
        ("quit\r", 2, 1),
        ("\x04", 2, 1),
    ],
    ids=["reuse", "repeat", "fail", "quit", "end"],
)
def test_a_rerun_asks_about_each_effect(project: Any, typed: str, code: int, calls: int) -> None:
    project.services(
        """
        def act(text: str) -> dict[str, object]:
            with open("ledger", "a") as ledger:
                ledger.write("x\\n")
            return {"text": text}
        """
    )
    project.capability("demo.text.act", "act")
    file = project.root / "capabilities/demo.text.act.yaml"
    file.write_text(file.read_text().replace("side_effects: false", "side_effects: true"))
    project.skill("demo.act", "- {id: act, uses: demo.text.act, input: {text: {$literal: x}}}")
    project.run("run", "demo.act", "-q").assert_ok()
    terminal = Terminal(project, "rerun", "@last")
    terminal.until("[reuse]  [repeat]  [fail]  [quit]")
    terminal.process.send(typed)
    screen = terminal.finish()
    assert terminal.process.exitstatus == code, screen
    assert len((project.root / "ledger").read_text().split()) == calls
    assert len(project.episodes) == (1 if code == 2 else 2)


def test_the_page_of_a_code_goes_on_below_its_text(project: Any) -> None:
    terminal = Terminal(project, "explain", "project.none")
    assert "\n           use `-C DIR`." in terminal.finish()
