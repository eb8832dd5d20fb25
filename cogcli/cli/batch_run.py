"""`run SKILL --batch`: flags, signals, display and last lines of a batch (docs/reference/batch.md#command)."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, BinaryIO, Final

from cogcli.base.terminal_text import visible
from cogcli.cli.batch_flags import BatchFlags
from cogcli.cli.context import CommandContext
from cogcli.cli.inputs import read_inputs
from cogcli.cli.options import wrong_flag, wrong_value
from cogcli.cli.run_flags import RunFlags
from cogcli.cli.run_skill import read_options_of, require_skill_id, warn_of_distrust
from cogcli.cli.streams import Screen, silence_stdout
from cogcli.declarations.value_types import Json
from cogcli.report.humanize import duration
from cogcli.run.given_inputs import RequestedRun
from cogcli.run.prepare import RunRequest
from cogcli.scale.batch_folder import Shard
from cogcli.scale.batch_request import STDOUT, BatchRequest, BatchResult
from cogcli.scale.batch_run import run_batch
from cogcli.scale.cluster.address import LOCAL, address_of, is_dask, parse_executor
from cogcli.scale.coordinator import StopSignals
from cogcli.scale.pacing import FailureLimit
from cogcli.scale.rates import parse_rate
from cogcli.scale.shard_words import parse_shard
from cogcli.scale.totals import Totals

_SIGNALS: Final = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
_MAX_JOBS: Final = 256
_LINE_EVERY: Final = 10.0
_REDRAW_EVERY: Final = 0.25
_RATE_OF: Final = 60.0
"""Seconds of which the rate is shown."""
_ETA_FROM: Final = 20


def run_batch_command(
    context: CommandContext, skill_id: str, flags: RunFlags, batch: BatchFlags
) -> int:
    """Run a skill once per line of a file, report the totals, and return the exit code."""
    _refuse_inputs(context, flags, batch)
    require_skill_id(context, skill_id)
    inputs = read_inputs(context, flags)
    options = read_options_of(context, skill_id, flags, inputs.frame)
    problems = [*options.problems, *inputs.problems]
    given = RequestedRun(RunRequest(skill_id, {}, options.options), problems, ())
    request = read_request(context, batch)
    warn_of_distrust(context, "skill", skill_id)
    return perform_batch(context, given, request)


def perform_batch(context: CommandContext, requested: RequestedRun, request: BatchRequest) -> int:
    """Run a batch with its display and signals, report the totals, and return the exit code."""
    context.warn_of_shared_runs()
    display = BatchDisplay(context.screen, request.output, str(context.settings.value("progress")))
    take_signals = partial(_handle_signals, context, display)
    writer = RowPrinter(context.screen)
    result = run_batch(context.settings, requested, request, writer, display, take_signals)
    return report_batch(context, result)


def _refuse_inputs(context: CommandContext, flags: RunFlags, batch: BatchFlags) -> None:
    given = {"--input": flags.input, "--input-file": flags.input_file, "-p": flags.p or None}
    for name, value in given.items():
        if value is not None:
            raise wrong_flag(f"`{name}`: a batch takes all inputs from its lines", "leave it out")
    if flags.plan:
        raise wrong_flag(
            "`--plan` shows one run", "leave out --batch, and give the inputs of a line"
        )
    if flags.options.get("exclusive") or flags.on_conflict or flags.wait_timeout:
        raise wrong_flag(
            "`--exclusive`: the lines of a batch are runs of their own, and hold no name",
            "leave it out: two batches of one name exclude each other (--batch-name)",
        )
    if context.json and batch.o is None:
        raise wrong_flag("`--json` with `--batch` needs `-o FILE`", "stdout has the envelope")


def read_request(context: CommandContext, batch: BatchFlags) -> BatchRequest:
    """Return the typed flags of a batch. Raise UsageError."""
    output = STDOUT if batch.o in (None, STDOUT) else _output_path(context, str(batch.o))
    return BatchRequest(
        input=str(batch.batch),
        stdin=_open_stdin(context) if batch.batch == "-" else None,
        output=output,
        name=batch.batch_name or "",
        shard=_parse_shard(context, batch),
        retry_failed=_existing_path(context, batch.retry_failed),
        jobs=_parse_jobs(batch.jobs),
        executor=_parse_executor(batch),
        order=batch.order or "input",
        keep=batch.keep or "auto",
        invalid=batch.invalid or "stop",
        max_failures=_parse_limit(batch.max_failures),
        in_doubt=batch.in_doubt or "",
        rates=_parse_rates(batch.rate),
        force=batch.force,
    )


def _open_stdin(context: CommandContext) -> BinaryIO | None:
    """Return stdin as bytes; None if it is closed. At a terminal, first write how to end the input."""
    if sys.stdin is None:
        return None
    if sys.stdin.isatty() and not context.screen.quiet:
        context.screen.notify("reading from the terminal; end with Ctrl-D\n")
    return sys.stdin.buffer


def _output_path(context: CommandContext, path: str) -> str:
    """Return the real path of the output. Raise UsageError, or UnusableEnvironment `project.link`."""
    folder, name = os.path.split(os.path.abspath(path))
    if not name or os.path.isdir(path):
        raise wrong_value(f"`-o {path}` is a directory", expected="a file")
    folder = context.settings.require_inside(folder)
    if not os.path.isdir(folder):
        raise wrong_value(f"`-o {path}`: its directory does not exist", "make it first")
    return os.path.join(folder, name)


def _existing_path(context: CommandContext, path: str | None) -> str:
    """Return the real path of a file that is read. Raise UnusableEnvironment `project.link`."""
    return "" if path is None else context.settings.require_inside(os.path.abspath(path))


def _parse_shard(context: CommandContext, batch: BatchFlags) -> Shard:
    """Return the shard of `--shard`. Raise UsageError, also without a name that all shards share."""
    if batch.shard is None:
        return Shard()
    shard = parse_shard(batch.shard, context.environ)
    if not batch.batch_name:
        hint = "all shards of a batch have the same name, and an output each"
        raise wrong_flag("`--shard` needs `--batch-name NAME`", hint)
    return shard


def _parse_jobs(text: str | None) -> int:
    if text in (None, "1"):
        return 1
    if os.name == "nt":
        raise wrong_value("`--jobs`: worker processes do not work on Windows", "leave it out")
    if text == "auto":
        return _usable_processors()
    if not (str(text).isascii() and str(text).isdigit() and 1 <= int(str(text)[:6]) <= _MAX_JOBS):
        expected = f"a number from 1 to {_MAX_JOBS}, or auto"
        raise wrong_value(f"`--jobs`: found `{str(text)[:60]}`, expected {expected}")
    return int(str(text))


def _parse_executor(batch: BatchFlags) -> str:
    """Return the words of `--executor`. Raise UsageError."""
    executor = parse_executor(batch.executor or LOCAL)
    if is_dask(executor) and os.name == "nt":
        raise wrong_value("`--executor`: workers do not work on Windows", "leave it out")
    if address_of(executor) and batch.jobs is not None:
        hint = "leave it out: the workers are those of the scheduler"
        raise wrong_flag("`--jobs` with `--executor dask:ADDR`", hint)
    return executor


def _usable_processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return min(len(os.sched_getaffinity(0)), _MAX_JOBS)
    return min(os.cpu_count() or 1, _MAX_JOBS)


def _parse_rates(texts: list[str]) -> dict[str, float]:
    """Return the rates of `--rate`. Raise UsageError."""
    rates: dict[str, float] = {}
    for text in texts:
        service, _, rate = text.partition("=")
        try:
            rates[service] = parse_rate(rate)
        except ValueError as error:
            expected = "SERVICE=N/s, such as notes=5/s"
            raise wrong_value(f"`--rate`: found `{text[:60]}`", expected=expected) from error
    return rates


def _parse_limit(text: str | None) -> FailureLimit | None:
    if text is None:
        return None
    number = text.removesuffix("%")
    is_percentage = number != text
    if not (number.isascii() and number.isdigit() and len(number) < 13):
        raise wrong_value(
            f"`--max-failures`: found `{text[:60]}`, expected a number or a percentage"
        )
    if is_percentage and int(number) > 100:
        raise wrong_value(f"`--max-failures`: found `{text[:60]}`, expected at most 100%")
    return FailureLimit(int(number), is_percentage)


class RowPrinter:
    """Writes rows to stdout. After the reader closed the pipe, rows go nowhere."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def write(self, row: bytes) -> None:
        """Write one row. Raise UnusableEnvironment `env.disk`."""
        try:
            self._screen.answer(row.decode())
        except BrokenPipeError:
            silence_stdout()
            self._screen.out.file = None


class BatchDisplay:
    """One line of progress on a terminal, or a line every ten seconds elsewhere."""

    def __init__(self, screen: Screen, output: str, progress: str) -> None:
        self._screen = screen
        self._is_live = progress == "live" or (
            progress == "auto" and screen.err.tty and not screen.ci
        )
        is_mixed = output == STDOUT and screen.out.tty
        self._is_quiet = screen.quiet or is_mixed or progress == "none"
        self._times: deque[tuple[float, int]] = deque()
        self._shown = 0.0
        self._last = ""
        self.lines = 0
        """The lines of the batch, when they are known."""

    def begin(self, lines: int, ended_before: int) -> None:
        """Store the number of lines, and the number of those that ended before."""
        self.lines = lines
        self._shown = time.monotonic()
        self._times.append((self._shown, ended_before))

    def update(self, totals: Totals, *, force: bool = False) -> None:
        """Show the present counts."""
        now = time.monotonic()
        if self._is_quiet or not (force or now - self._shown >= self._refresh_interval):
            return
        self._shown = now
        text = self._progress_line(totals, now)
        if self._is_live:
            self._screen.notify(f"\r\x1b[K  {text}")
        elif not force or self._last:
            self._screen.notify(f"{text}\n")
        self._last = text

    @property
    def _refresh_interval(self) -> float:
        return _REDRAW_EVERY if self._is_live else _LINE_EVERY

    def _progress_line(self, totals: Totals, now: float) -> str:
        self._times.append((now, totals.ended))
        while len(self._times) > 2 and now - self._times[0][0] > _RATE_OF:
            self._times.popleft()
        then, before = self._times[0]
        rate = (totals.ended - before) / (now - then) if now > then else 0.0
        parts = [f"{totals.ended}/{self.lines}"]
        parts += [f"{totals.failed} failed"] if totals.failed else []
        parts += [f"{len(totals.pending)} waits"] if totals.pending else []
        parts += [f"{rate:.1f}/s"] if rate else []
        left = self.lines - totals.ended
        if rate and left and totals.ended - self._times[0][1] >= _ETA_FROM:
            parts.append(f"about {duration(round(1000 * left / rate))} left")
        return "  ".join(parts)

    def note(self, text: str) -> None:
        """Show one line of text."""
        if not self._is_quiet:
            self._erase_line()
            self._screen.notify(f"{visible(text)}\n")

    def _erase_line(self) -> None:
        if self._is_live and self._last:
            self._screen.notify("\r\x1b[K")

    def close(self) -> None:
        """Remove the line of progress."""
        self._erase_line()
        self._last = ""


@contextmanager
def _handle_signals(context: CommandContext, display: BatchDisplay) -> Iterator[StopSignals]:
    """Return the switch that signals press within the block: the first stops sending, a second one ends at once."""
    stop = StopSignals()
    previous: dict[int, Any] = {}

    def handle_signal(number: int, frame: object) -> None:
        """Stop the batch."""
        name = signal.Signals(number).name
        stop.press("SIGINT" if name == "SIGBREAK" else name)
        if len(stop.signals) == 1:
            hint = " (Ctrl-C again: now)" if name == "SIGINT" else ""
            display.note(f"stopping, up to 5s for running lines{hint}")

    context.screen.claim_stdout()
    try:
        for number in (getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)):
            if signal.getsignal(number) is not signal.SIG_IGN:
                previous[number] = signal.signal(number, handle_signal)
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        display.close()


def report_batch(context: CommandContext, result: BatchResult) -> int:
    """Write the totals of a batch, fill the envelope, and return the exit code."""
    totals = result.totals
    context.own["status"] = _status_word(result)
    context.own["batch"] = batch_to_payload(context, result)
    place = "stdout" if result.output == STDOUT else context.settings.display_path(result.output)
    counts = _status_counts(totals)
    if result.is_complete:
        context.note(
            f"{counts} → {place}" + (" (it was finished before)" if result.was_complete else "")
        )
    else:
        left = result.lines - totals.ended
        why = "stopped" if result.stopped_by else "--max-failures"
        context.note(f"{counts}, {left} not run ({why}) · {result.batch_id}")
    for line in _next_commands(context, result):
        context.note(f"next: {line}")
    return result.exit_code


def _status_counts(totals: Totals) -> str:
    words = [f"{totals.by_status['ok']} ok"]
    words += [f"{totals.failed} failed"] if totals.failed else []
    words += [f"{len(totals.pending)} wait"] if totals.pending else []
    return ", ".join(words)


def _next_commands(context: CommandContext, result: BatchResult) -> list[str]:
    if not result.is_complete:
        return [f"cogcli{context.again} resume {result.batch_id}"]
    if result.totals.pending:
        first = min(result.totals.pending)
        return [f"cogcli{context.again} trace {result.batch_id}/{first}"]
    return []


def _status_word(result: BatchResult) -> str:
    if not result.is_complete:
        return "aborted" if result.exit_code in (130, 143) else "error"
    if result.totals.failed:
        return "partial" if result.totals.by_status["ok"] else "error"
    return "pending" if result.totals.pending else "ok"


def batch_to_payload(context: CommandContext, result: BatchResult) -> Json:
    """Return a batch as the `batch` of the envelope."""
    totals = result.totals
    return {
        "batch_id": result.batch_id,
        "lines": result.lines,
        "ended": totals.ended,
        "by_status": totals.counts(totals.by_status),
        "by_code": totals.counts(totals.by_code),
        "output": None if result.output == STDOUT else context.settings.display_path(result.output),
        "complete": result.is_complete,
    }
