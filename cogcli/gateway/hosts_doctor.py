"""`gateway doctor HOST`: whether the hooks of a host are in place, and what lets a call run in spite of them
(docs/reference/hosts.md#doctor).
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from typing import Final, Literal

from cogcli.app.settings import Settings
from cogcli.base.errors import CogcliError
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.value_types import Json
from cogcli.gateway.hook_marks import read_marks
from cogcli.gateway.hook_wire import SECONDS
from cogcli.gateway.hosts import AgentHost
from cogcli.gateway.hosts_config import CONFIGS, commands_in, is_own_command, read_config
from cogcli.specs.unchecked import objects_at, value_at

State = Literal["ok", "fault", "open"]
"""`fault`: to be corrected. `open`: the host lets a call run, and no configuration changes that."""
_SECONDS: Final = 10.0
_VERSION: Final = re.compile(rb"(\d+)\.(\d+)\.(\d+)")


class HostVersions(NamedTuple):
    """The version of a host since which it enforces each rule."""

    program: str
    hooks: str
    """The oldest version whose hooks are known to be as they are described here."""
    switch: str = ""
    """The first version with a switch that blocks after a failure of a hook. Empty if it has none."""
    open: tuple[str, ...] = ()
    """The settings under which a call runs in spite of the hook."""
    open_without_switch: tuple[str, ...] = ()


VERSIONS: Final[Mapping[str, HostVersions]] = {
    "claude-code": HostVersions(
        "claude",
        "1.0.38",
        "2.1.295",
        ("files that a prompt names with `@` are read without a hook",),
        ("a hook that times out, or is killed with its shell",),
    ),
    "cursor": HostVersions(
        "cursor",
        "3.0.0",
        "3.0.0",
        ("Tab completions read files without `preToolUse`",),
    ),
    "gemini-cli": HostVersions(
        "gemini",
        "0.26.0",
        "",
        ("a hook that times out, or is killed with its shell",),
    ),
    "codex": HostVersions(
        "codex",
        "0.124.0",
        "",
        (
            "a hook that times out, or is killed with its shell",
            "a project that Codex does not trust: its `.codex` is not read",
            "tools for which Codex starts no hook, such as its own web search",
        ),
    ),
    "copilot": HostVersions(
        "copilot",
        "1.0.0",
        "",
        (
            "a hook that times out, or is killed with its shell",
            "a session in the cloud, without cogcli",
            "`copilot -p`, which reads the project's hooks and servers only if you opt in by"
            " GITHUB_COPILOT_PROMPT_MODE_REPO_HOOKS and GITHUB_COPILOT_PROMPT_MODE_WORKSPACE_MCP",
        ),
    ),
}
"""By host, as documented in October 2026."""


class DoctorLine(NamedTuple):
    """One result of the check."""

    state: State
    text: str
    next: str = ""
    """The command that corrects a fault."""


def check_host(settings: Settings, host: AgentHost) -> Iterator[DoctorLine]:
    """Yield the complete, missing and fail-open parts of the set-up. Start the host once, for its
    version.
    """
    version, lines = _check_version(settings, host)
    yield from lines
    try:
        document = read_config(host, settings.project or settings.base)
    except CogcliError as error:
        yield DoctorLine("fault", error.message)
        document = None
    yield from _check_config(host, document)
    yield from _check_command(settings)
    yield from _check_marks(settings, host)
    yield from _find_bypasses(host, version)


def _check_version(
    settings: Settings, host: AgentHost
) -> tuple[tuple[int, ...] | None, list[DoctorLine]]:
    """Return the version of a host, None if it is not known, and the lines about it."""
    known = VERSIONS[host.name]
    program = shutil.which(known.program, path=settings.environ.get("PATH", ""))
    if program is None:
        text = f"{host.title}: no program `{known.program}` in PATH, so its version is unknown"
        return None, [DoctorLine("fault", text)]
    try:
        done = subprocess.run(  # noqa: S603  # the user's own program, named by the table above
            [program, "--version"], capture_output=True, timeout=_SECONDS, check=False,
            env=dict(settings.environ), stdin=subprocess.DEVNULL,
        )  # fmt: skip
        words = _VERSION.search(done.stdout)
    except (OSError, subprocess.TimeoutExpired):
        words = None
    if words is None:
        return None, [DoctorLine("fault", f"{host.title}: `{program} --version` names no version")]
    version = tuple(map(int, words.groups()))
    shown = ".".join(map(str, version))
    if version < _parse_version(known.hooks):
        text = (
            f"{host.title} {shown}: its hooks are not known; those of {known.hooks} and newer are"
        )
        return version, [DoctorLine("fault", text)]
    if known.switch and version < _parse_version(known.switch):
        text = f"{host.title} {shown} cannot block after a failure of a hook: {known.switch} can"
        return version, [DoctorLine("fault", text)]
    return version, [DoctorLine("ok", f"{host.title} {shown} calls the hook before each tool")]


def _parse_version(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


_DENIES_AFTER_FAILURE: Final[Mapping[str, tuple[str, object, str]]] = {
    "claude-code": ("onFailure", "block", "`block`"),
    "cursor": ("failClosed", True, "true"),
}
"""By host: the member of a hook and its value with which a failed hook denies, and the value as shown."""


def _check_config(host: AgentHost, document: Json | None) -> Iterator[DoctorLine]:
    """Check the file of the host: its events, its switch, and its time limits."""
    config = CONFIGS[host.name]
    for event in config.events:
        yield _check_event(host, event, document)
    if document is not None and value_at(document, "disableAllHooks") is True:
        yield DoctorLine("fault", f"{config.file} turns all hooks off: `disableAllHooks`")


def _check_event(host: AgentHost, event: str, document: Json | None) -> DoctorLine:
    """Check the hooks of one event in the file of the host."""
    file = CONFIGS[host.name].file
    again = f"cogcli gateway config {host.name} --write"
    own = [
        entry
        for _, entry in objects_at(document, "hooks", event)
        if any(is_own_command(host, each) for each in commands_in(entry))
    ]
    if not own:
        return DoctorLine("fault", f"{file} has no hook for {event}", again)
    faults = filter(None, (_find_fault(host, event, entry) for entry in own))
    if fault := next(faults, ""):
        return DoctorLine("fault", f"{file}: {event}: {fault}", again)
    return DoctorLine("ok", f"{file} has a hook for {event}")


def _find_fault(host: AgentHost, event: str, entry: Json) -> str:
    """Return a message if the hook of an event would fail open or time out too early; empty for a correct hook."""
    hooks = [hook for _, hook in objects_at(entry, "hooks")] or [entry]
    hook = next(
        each for each in hooks if any(is_own_command(host, one) for one in commands_in(each))
    )
    decides = event in CONFIGS[host.name].decides
    if entry.get("matcher", "*") not in ("*", "", ".*"):
        return "its matcher leaves tools out"
    if not decides:
        return ""
    if "||" not in commands_in(hook)[0]:
        return "its command does not deny if cogcli does not start"
    member, value, shown = _DENIES_AFTER_FAILURE.get(host.name, ("", None, ""))
    if hook.get(member) != value:
        return f"it lets calls run after a failure: `{member}` is not {shown}"
    return _find_time_fault(host, hook)


def _find_time_fault(host: AgentHost, hook: Json) -> str:
    """Return a message if the host's time limit ends before the hook denies; otherwise empty. Without a limit, the
    host's default applies.
    """
    limit = hook.get("timeoutSec" if host.name == "copilot" else "timeout")
    seconds = SECONDS[host.name]
    if limit is None and host.name != "cursor":
        return ""
    unit = 1000 if host.name == "gemini-cli" else 1
    if isinstance(limit, int | float) and not isinstance(limit, bool) and limit > seconds * unit:
        return ""
    return f"its time limit is not above {seconds} seconds"


def _check_command(settings: Settings) -> Iterator[DoctorLine]:
    if shutil.which("cogcli", path=settings.environ.get("PATH", "")) is None:
        yield DoctorLine("fault", "no program `cogcli` in PATH: each call would be denied")
    else:
        yield DoctorLine("ok", "`cogcli` is in PATH")


def _check_marks(settings: Settings, host: AgentHost) -> Iterator[DoctorLine]:
    try:
        marked = read_marks(settings, host)
    except CogcliError as error:
        yield DoctorLine("fault", error.message)
        return
    if marked:
        yield DoctorLine("ok", f"read-only without asking: {', '.join(sorted(marked))}")
    elif settings.project is not None and not settings.trust:
        text = "the project is not trusted: a person is asked for each call, whatever is marked"
        yield DoctorLine("ok", text)
    else:
        yield DoctorLine("ok", "no tool is marked read-only: a person is asked for each call")


def _find_bypasses(host: AgentHost, version: tuple[int, ...] | None) -> Iterator[DoctorLine]:
    """Yield the settings and versions under which the host runs a call without the hook. An unknown version has no
    switch.
    """
    known = VERSIONS[host.name]
    has_switch = (
        bool(known.switch) and version is not None and version >= _parse_version(known.switch)
    )
    texts = known.open if has_switch else (*known.open, *known.open_without_switch)
    for text in texts:
        yield DoctorLine("open", text)
    yield DoctorLine("open", "a person or a program that changes the host's own settings")


def has_fault(lines: list[DoctorLine]) -> bool:
    """Return whether something is to be corrected."""
    return any(line.state == "fault" for line in lines)
