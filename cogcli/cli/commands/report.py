"""`report [EP...]`: one HTML page about episodes, for readers without cogcli
(docs/reference/command-line.md#page).
"""

from __future__ import annotations

import os
import re
import webbrowser
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import Annotated, Final

from cogcli.app import episodes
from cogcli.app.report_page import read_source, report_page
from cogcli.app.wings import WingFunction, is_batch_word
from cogcli.base.errors import OK, UnusableEnvironment, UsageError
from cogcli.base.files import UnreadableFile, hint_for_write, read_regular, write_atomic
from cogcli.base.step_path import StepPath
from cogcli.base.terminal_text import visible
from cogcli.cli.context import CommandContext
from cogcli.cli.options import OUTPUT, argument, command, switch, text, wrong_flag, wrong_value
from cogcli.cli.trace_tree import TracedEpisode, continuations
from cogcli.episode.run_history import RunHistory
from cogcli.report.humanize import short_episode, size
from cogcli.report.page import PageSource

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")


@command(
    examples=(
        ("cogcli report @last --open", "the newest episode as a page, in the browser"),
        ("cogcli report @last~1 @last -o compared.html", "two runs side by side"),
        (
            "cogcli report ./mailed/ep_01M7XJNZDYM9 -o - > page.html",
            "a copy that was mailed, through a pipe",
        ),
    ),
    exits=(0, 2, 3),
    maximum=20,
)
def report(
    context: CommandContext,
    names: Annotated[list[str], argument("[EP...]", "episodes")],
    *,
    o: Annotated[
        str | None, text("-o", "FILE|-", "the file, or stdout", OUTPUT, default="report-EP.html")
    ] = None,
    force: Annotated[
        bool, switch("--force", help="overwrite the file of -o", panel=OUTPUT)
    ] = False,
    open: Annotated[
        bool, switch("--open", help="open the page in the browser", panel=OUTPUT)
    ] = False,
) -> int:
    """Write one self-contained HTML page about an episode, or a comparison of several.

    The answer is its path, and on a terminal also its size.
    """
    if any(map(is_batch_word, names)):
        return _report_batch(context, names, o, force=force, open=open)
    directories = [episodes.find(context.settings, name) for name in names or ["@last"]]
    if o == "-":
        _require_plain_output(json=context.json, has_flags=open or force)
        path = None
    else:
        path = _file_name(o, directories, force=force)
        context.settings.require_inside(path)
    page = _page_of_episodes(context, directories)
    if path is None:
        context.answer(page.decode())
        return OK
    _write_answer(context, path, page)
    if open and not webbrowser.open(Path(path).resolve().as_uri()):
        context.note("no browser could be opened: open the file yourself")
    return OK


def _page_of_episodes(context: CommandContext, directories: Sequence[Path]) -> bytes:
    """Return the page about these episodes, and name them in the answer of `--json`."""
    sources = [read_source(context.settings, directory, context.warn) for directory in directories]
    context.own["episodes"] = [
        {"episode_id": source.name, "status": source.fault_status or source.status}
        for source in sources
    ]
    if len(sources) == 1:
        context.own["episode_id"] = sources[0].name
    return report_page([source._replace(next=tuple(_next_commands(source))) for source in sources])


_PAGE_OF_BATCH: Final = WingFunction("cogcli.scale.batch_report", "page_of_batch")


def _report_batch(
    context: CommandContext, names: list[str], o: str | None, *, force: bool, open: bool
) -> int:
    """Write the page about a batch."""
    if len(names) != 1:
        raise wrong_flag("a batch has a page of its own", "cogcli report ba_...")
    batch_id, page = _PAGE_OF_BATCH(context.settings, names[0])
    if o == "-":
        _require_plain_output(json=context.json, has_flags=open or force)
        context.answer(page.decode())
        return OK
    path = _file_name(o, [Path(batch_id)], force=force)
    context.settings.require_inside(path)
    _write_answer(context, path, page)
    if open and not webbrowser.open(Path(path).resolve().as_uri()):
        context.note("no browser could be opened: open the file yourself")
    return OK


def _require_plain_output(*, json: bool, has_flags: bool) -> None:
    """Raise UsageError for flags that do not fit a page on stdout."""
    if json:
        raise wrong_flag("`-o -` writes the page to stdout, where `--json` writes", "name a file")
    if has_flags:
        raise wrong_flag("`-o -` writes to stdout", "leave --open and --force out")


def _file_name(path_argument: str | None, directories: Sequence[Path], *, force: bool) -> str:
    """Return the path of the page, checked before any episode is read. Raise UsageError."""
    if path_argument == "":
        raise wrong_value("`-o`: an empty word names no file", "is a variable unset?")
    path = path_argument or _default_name(directories)
    if os.path.isdir(path):
        raise wrong_value(f"`-o`: `{path}` is a directory", "name a file in it")
    if os.path.lexists(path) and not force and (path_argument or not _is_report(path)):
        raise UsageError(
            "output.exists", f"`{path}` exists", hint="--force overwrites it; -o names another file"
        )
    return path


def _is_report(path: str) -> bool:
    """Return whether a file is a page of this command, which the command may overwrite under its default
    name.
    """
    if os.path.islink(path):
        return False
    try:
        return read_regular(path, limit=_MAX_BYTES).startswith(_PAGE_START)
    except UnreadableFile:
        return False


_PAGE_START = (
    b'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta http-equiv="Content-'
)
_MAX_BYTES = 64 * 1024 * 1024
"""Bytes of the largest file that is looked into."""


def _default_name(directories: Sequence[Path]) -> str:
    name = directories[0].name
    more = f"-and-{len(directories) - 1}-more" if len(directories) > 1 else ""
    return f"report-{name if _NAME.fullmatch(name) else 'episode'}{more}.html"


def _write_answer(context: CommandContext, path: str, page: bytes) -> None:
    """Write the page, and print its path."""
    was_there = os.path.lexists(path)
    _write_page(path, page)
    shown = context.settings.display_path(path)
    context.own.update(file=shown, bytes=len(page))
    about = f"  {size(len(page))}{', replaced' if was_there else ''}"
    context.answer(f"{visible(shown)}{about if context.screen.out.tty else ''}\n")


def _write_page(path: str, page: bytes) -> None:
    """Write the whole file or nothing. Raise UnusableEnvironment `env.disk`."""
    try:
        write_atomic(path, page, mode=0o644)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no such name"
        hint = f"{hint_for_write(error)}, or name another file"
        raise UnusableEnvironment(
            "env.disk", f"`{path}` cannot be written: {reason}", hint=hint
        ) from error


def _next_commands(source: PageSource) -> Iterator[str]:
    """Yield the commands that continue the run, or inspect its failure.

    They are relative to its last event, so that the page of an episode is always the same.
    """
    episode = short_episode(source.name) if source.name.startswith("ep_") else quote(source.name)
    shown = TracedEpisode(
        source.fold, source.status, unfinished=source.unfinished, unsealed=source.unsealed,
        fault_status=source.fault_status,
    )  # fmt: skip
    if source.fold.chained:
        yield from (f"cogcli {line}" for line in continuations(shown, episode, source.fold.last))
    if source.status in ("error", "vetoed"):
        yield from _commands_about_failure(source, episode)


def _commands_about_failure(source: PageSource, episode: str) -> Iterator[str]:
    """Yield the commands that inspect the failed step and repeat it."""
    root = source.fold.root
    step = (root.error.step or "") if root and root.error else ""
    if root is None or step not in root.steps:
        return
    yield f"cogcli trace {episode} --step {quote(step)} --io"
    if source.fold.chained and (flags := _rerun_flags(root, StepPath(step))):
        yield f"cogcli rerun {episode} {flags}"


def _rerun_flags(root: RunHistory, failed_step: StepPath) -> str:
    """Return the flags of a rerun that keeps finished items of a loop, else finished earlier steps.

    Empty if nothing can be kept.
    """
    step = root.steps.get(failed_step.root_step)
    if step is None or not (failed_step.is_step or failed_step.parent == step.id):
        return ""
    if (
        step.loop
        and step.loop.total
        and step.loop.done
        and failed_step.removeprefix(f"{step.id}#").isdigit()
    ):
        return "--failed-items"
    return f"--from {quote(step.id)}" if root.count("done") else ""
