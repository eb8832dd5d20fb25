"""Completion in shells, by typer: its scripts, its protocol, and what our values may be
(docs/reference/command-line.md#completion).

The shell starts `cogcli` with a variable that asks for the words that may come next; values come from paths and caches,
no spec is read. In trouble the answer is empty and the exit code 0: a shell that waits for a word shows no error.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cogcli.app.episodes import find, list_episodes
from cogcli.app.explain import pages
from cogcli.app.settings import Settings
from cogcli.app.settings.config import KEYS
from cogcli.app.state_document import parse_state, read_stored_state
from cogcli.cli.app import COMMANDS, TOPICS, first_words
from cogcli.core.canonical import digest
from cogcli.core.errors import OK
from cogcli.core.files import FileRefused, read_regular
from cogcli.episode.listing.episode_row import EpisodeFilter
from cogcli.specs.cache import CompiledCache
from cogcli.specs.host_layout import layout_of
from cogcli.specs.layout import FoundFile, Layout
from cogcli.specs.spec_reader import MAX_BYTES

if TYPE_CHECKING:
    from pathlib import Path


VARIABLE: Final = "_COGCLI_COMPLETE"
SHELLS: Final = ("bash", "zsh", "fish", "powershell")
NEWEST: Final = 50
"""How many episodes are offered."""


def answer() -> int:
    """Write the words that may come next, as the shell of the variables wants them. Returns 0, whatever happens."""
    from io import StringIO

    text = StringIO()
    try:
        with redirect_stdout(text), redirect_stderr(StringIO()), _plain_help():
            _complete()
    except (Exception, SystemExit):
        return OK
    try:
        os.write(1, text.getvalue().encode("utf-8", "replace"))
    except OSError:
        return OK
    return OK


def _complete() -> None:
    from cogcli.cli.typer_app import root

    def complete(kind: str | tuple[str, ...], ctx: Any, incomplete: str) -> list[tuple[str, str]]:
        return values(
            kind,
            CompletionQuery(ctx.command.words, {**ctx.find_root().params, **_typed(ctx.params)}, incomplete),
        )

    typers = _typers()
    typers.completion_init()
    typers.shell_complete(root(complete), {"obj": complete}, "cogcli", VARIABLE, os.environ[VARIABLE])


def _typed(params: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if value}


@contextmanager
def _plain_help() -> Iterator[None]:
    """Within it rich cannot be found: typer would import all of it to take markup out of texts that have none."""
    before = sys.modules.get("rich", ...)
    sys.modules["rich"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["rich"]
        if before is not ...:
            sys.modules["rich"] = before


def script(shell: str) -> str:
    """The script that a shell reads at its start."""
    return f"{_typers().get_completion_script(prog_name='cogcli', complete_var=VARIABLE, shell=shell)}\n"


def install(shell: str) -> str:
    """Write the script where the shell finds it, and name it in the shell's own file; returns the script's path.

    Raises OSError and ValueError where a file cannot be read or written.
    """
    _, path = _typers().install(shell=shell, prog_name="cogcli", complete_var=VARIABLE)
    return str(path)


def detect() -> str:
    """The shell that started this process; empty for one that is unknown."""
    name = _typers()._get_shell_name() or ""
    return "powershell" if name == "pwsh" else name if name in SHELLS else ""


def _typers() -> Any:
    """typer's completion: it has these functions in all versions that we take, and documents none of them."""
    return import_module("typer.completion")


class CompletionQuery(NamedTuple):
    """What is asked: the command, its flags and words before the value, and the beginning of the value."""

    command: str
    typed: dict[str, Any]
    incomplete: str

    @property
    def settings(self) -> Settings:
        """The settings under the global flags typed; `-C` is followed."""
        if directory := self.typed.get("directory"):
            os.chdir(directory)
        flags = {name: self.typed[name] for name in ("registry", "runs_dir") if self.typed.get(name)}
        return Settings(flags, os.environ)


def values(kind: str | tuple[str, ...], query: CompletionQuery) -> list[tuple[str, str]]:
    """The words for a value with what they mean: those given, or those of the kinds named."""
    if isinstance(kind, tuple):
        return [(word, "") for word in kind]
    found = [pair for name in kind.split() for pair in _KINDS[name](query)]
    return [(word, _SPECIAL.sub(" ", meaning)) for word, meaning in found if _PLAIN_WORD.fullmatch(word)]


_PLAIN_WORD: Final = re.compile(r"[A-Za-z0-9_@][A-Za-z0-9_@.=/#-]*")
_SPECIAL: Final = re.compile(r"""[^\w ',.:;()<>/=+-]""")
"""A shell puts a word on its line as it is, and zsh evaluates the answer: names of files and texts of episodes hold
nothing that it would act on."""


def _ids(kind: str, query: CompletionQuery) -> list[tuple[str, str]]:
    settings = query.settings
    files = [file for layout in _layouts(settings) for file in layout.all(kind)]
    found = _binding_ids(settings, files) if kind == "binding" else {file.id for file in files}
    return [(id, kind) for id in sorted(found)]


def _specs(query: CompletionQuery) -> list[tuple[str, str]]:
    """The ids of the kind that the command's group is named for."""
    kind = query.command.split()[0]
    return _ids("capability" if kind == "capabilities" else kind.removesuffix("s"), query)


def _choices(query: CompletionQuery) -> list[tuple[str, str]]:
    """`CAP=BINDING`: capabilities; after the sign the bindings in the capability's folder."""
    capability, sign, _ = query.incomplete.partition("=")
    if not sign:
        return [(f"{id}=", meaning) for id, meaning in _ids("capability", query)]
    settings = query.settings
    files = [file for layout in _layouts(settings) for file in layout.bindings(capability)]
    return [(f"{capability}={id}", "binding") for id in sorted(_binding_ids(settings, files))]


def _binding_ids(settings: Settings, files: list[FoundFile]) -> set[str]:
    """The ids in files of bindings, whose names are free: as the cache has them, which no file is parsed for."""
    cache, found = CompiledCache(settings.cache_file), set()
    for file in files:
        with suppress(FileRefused):
            compiled = cache.get("binding", digest(read_regular(file.path, limit=MAX_BYTES)))
            if compiled:
                found.add(str(compiled.raw["id"]))
    cache.close()
    return found


def _layouts(settings: Settings) -> list[Layout]:
    return [layout_of(layer) for layer in settings.layers]


def _episodes(query: CompletionQuery) -> list[tuple[str, str]]:
    rows = list_episodes(query.settings, EpisodeFilter(), NEWEST)
    named = [("@last", "the newest"), ("@failed", "the newest that is not ok")] if rows else []
    return [*named, *((row.id, f"{row.skill} {row.status}") for row in rows)]


def _steps(query: CompletionQuery) -> list[tuple[str, str]]:
    """The steps of the episode that is typed, else of the newest."""
    directory: Path = find(query.settings, query.typed.get("target") or query.typed.get("episode"))
    data = read_stored_state(directory)
    steps = parse_state(data, directory)["plan"]["steps"] if data else []
    return [(step["id"], f"{step['status']} {step.get('description') or ''}".rstrip()) for step in steps]


def _codes(query: CompletionQuery) -> list[tuple[str, str]]:
    return [(code, meaning) for code, (meaning, _, _) in pages().items()]


def _topics(query: CompletionQuery) -> list[tuple[str, str]]:
    topics = [(name, "topic") for name in TOPICS]
    return [*topics, *((name, COMMANDS.get(name, ("", "group"))[1]) for name in first_words())]


def _settings(query: CompletionQuery) -> list[tuple[str, str]]:
    return [(name, "setting") for name in (*KEYS, "runs_dir", "project", "trust")]


_KINDS: Final[dict[str, Callable[[CompletionQuery], list[tuple[str, str]]]]] = {
    "skills": partial(_ids, "skill"),
    "capabilities": partial(_ids, "capability"),
    "bindings": partial(_ids, "binding"),
    "services": partial(_ids, "service"),
    "specs": _specs,
    "choices": _choices,
    "episodes": _episodes,
    "steps": _steps,
    "codes": _codes,
    "topics": _topics,
    "settings": _settings,
}
"""What completion offers, by the names that `cli/options.py` and the commands use."""
