"""`doctor` about services: what keeps each from being called, and with `--net` whether it can be reached.

Nothing is started and no secret is sent: a server is asked for nothing but to answer, a program is only looked for.
"""

from __future__ import annotations

import os
import shutil
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from cogcli.app.check import Check
from cogcli.core.errors import RuntimeErrorBase

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cogcli.app.checks import Checked
    from cogcli.app.settings import Settings
    from cogcli.core.http import Http
    from cogcli.specs.service import Service

CODES: Final = ("env.missing", "env.extra", "service.module", "service.untrusted", "service.server")
"""Problems of services, told here instead of under the file that they were found in."""
_SECONDS: Final = 5.0
_AT_ONCE: Final = 8
_LIBRARIES: Final = {"mcp": ("mcp", "mcp"), "openapi": ("httpx", ""), "openrpc": ("httpx", "")}
"""By kind: the module that its calls import, and the extra that installs it."""


def services(settings: Settings, found: Checked, *, net: bool) -> Iterator[Check]:
    """A line per service and reason, however many steps run into it; then what can be reached."""
    told: set[tuple[str, str]] = set()
    for problem in found.problems:
        if problem.code not in CODES:
            continue
        _, named, rest = problem.message.rpartition("service `")
        name, _, reason = rest.partition("`: ")
        if not named or not reason:
            name, reason = os.path.basename(problem.file).removesuffix(".yaml"), problem.message
        if (name, problem.code) not in told:
            told.add((name, problem.code))
            place = f"{problem.file}:{problem.line}:{problem.column}" if problem.line else problem.file
            yield Check("services", name, "error", reason, (place,), problem.hint)
    known = found.catalog.services.values()
    yield from _installed(settings, known)
    yield from _reached(known, {name for name, _ in told}, net=net)


def _installed(settings: Settings, known: Iterable[Service]) -> Iterator[Check]:
    """Libraries and programs that calls would need and that are not here."""
    for service in known:
        module, extra = _LIBRARIES.get(service.kind, ("", ""))
        if "server" in service.settings:
            module = ""  # our own tables
        if module and find_spec(module) is None:
            fix = f"pip install 'cogcli[{extra}]'" if extra else f"pip install {module}"
            yield Check("services", service.id, "error", f"needs `{module}`, which is not installed", (), fix)
        command = service.settings.get("command")
        if command and _program(command, service, settings) is None:
            place = (f"{service.file}",)
            said = f"program `{command}` is not found"
            yield Check(
                "services", service.id, "error", said, place, f"install {command}, or put it on the PATH"
            )


def _program(command: str, service: Service, settings: Settings) -> str | None:
    """Where a program is, found as the call finds it: from the service's directory, else on the PATH."""
    if os.sep in command:
        path = os.path.join(service.root, service.settings.get("cwd") or "", command)
        return path if os.access(path, os.X_OK) else None
    return shutil.which(command, path=settings.environ.get("PATH", ""))


def _reached(known: Iterable[Service], broken: set[str], *, net: bool) -> Iterator[Check]:
    remote = [service for service in known if _url(service)]
    if not remote:
        return
    if not net:
        yield Check("services", "network", "skipped", f"{len(remote)} not tested (add --net)")
        return
    asked = [service for service in remote if service.trusted and service.id not in broken]
    for service in remote:
        if not service.trusted:
            yield Check("services", service.id, "skipped", "not tested: its layer is not trusted")
    from concurrent.futures import ThreadPoolExecutor

    from cogcli.core.http import Http

    http = Http()
    try:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            yield from pool.map(lambda service: _answers(http, service), asked)
    finally:
        http.close()


def _url(service: Service) -> str:
    return service.settings.get("base_url") or service.settings.get("url") or ""


def _answers(http: Http, service: Service) -> Check:
    """Whether a server answers at all; which status it gives does not matter."""
    from cogcli.core.calls import Cancellation
    from cogcli.core.http import HttpRequest

    url = _url(service)
    try:
        request = HttpRequest("HEAD", url, network=service.network)
        reply = http.send(request, time.monotonic() + _SECONDS, Cancellation())
    except RuntimeErrorBase as error:
        fix = error.hint or "is it running, and is its address right?"
        return Check("services", service.id, "error", f"{url}: {error.message}", (service.file,), fix)
    return Check("services", service.id, "ok", f"{url} answers (HTTP {reply.status})")
