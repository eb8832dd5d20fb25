"""The checks of `doctor` for services: whether each service can be called, and with `--net` whether
it responds.

No program is started and no secret is sent. A server gets a plain request. A program is only
searched for."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from cogcli.app.checks.registry_check import RegistryCheck
from cogcli.app.inventory.login import find_login_error
from cogcli.app.needs import first_eligible_link
from cogcli.app.registry import selection_options
from cogcli.app.settings import Settings
from cogcli.base.calls import Cancellation
from cogcli.base.errors import BindingResolutionError, CogcliError, RuntimeErrorBase
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import Problem
from cogcli.declarations.service_spec import Service
from cogcli.protocols import PROTOCOLS
from cogcli.specs.catalog import Catalog
from cogcli.specs.eligibility import unset_variables, unset_variables_text, untrusted_reasons
from cogcli.specs.layers import BUILT_IN
from cogcli.specs.selection import SelectionOptions
from cogcli.specs.service import network_of
from cogcli.specs.service_variables import lacking_variables

if TYPE_CHECKING:
    from cogcli.base.http import Http, HttpRequest

CODES: Final = (
    "env.missing", "env.extra", "service.module", "service.program", "service.server", "service.untrusted",
)  # fmt: skip
"""Codes of problems that are reported per service instead of per file."""
_SECONDS: Final = 5.0
_AT_ONCE: Final = 8


class DoctorCheck(NamedTuple):
    """One check: `status` is ok, warning, error or skipped. `fix` contains one command per line."""

    group: str
    name: str
    status: str
    message: str
    details: tuple[str, ...] = ()
    fix: str = ""


def place_of(problem: Problem | CogcliError) -> str:
    """Return the place of a problem as `FILE:LINE:COLUMN`, or only the file if the line is
    unknown."""
    return f"{problem.file}:{problem.line}:{problem.column}" if problem.line else problem.file


def check_services(settings: Settings, found: RegistryCheck, *, net: bool) -> Iterator[DoctorCheck]:
    """Yield one check per service and problem code, then the checks of responding servers."""
    troubled: set[str] = set()
    lacking = _services_without_variables(found.catalog, selection_options(settings))
    for service in found.catalog.services.values():
        used = service.id in lacking
        for check in (
            *_check_files(found, service, settings.environ, used=used),
            *_check_prerequisites(service),
            *_check_login(service, settings),
        ):
            if check.status != "ok":
                troubled.add(service.id)
            yield check
    proxies = settings.environ if settings.value("use_env_proxy") else {}
    known = (
        service
        for service in found.catalog.services.values()
        if _is_configured(service, settings.environ)
    )
    yield from _check_reachability(known, troubled, proxies, net=net)


def _is_configured(service: Service, environ: Mapping[str, str]) -> bool:
    """Return whether the user configured a service. A shipped service is configured if its variables are
    set."""
    unset = unset_variables(None, service, environ)
    return service.layer != BUILT_IN or not (unset or lacking_variables(service, environ))


def _services_without_variables(catalog: Catalog, options: SelectionOptions) -> set[str]:
    """Return the ids of the services that are selected for a capability but lack a variable."""
    lacking: set[str] = set()
    for id in catalog.capabilities:
        try:
            link = first_eligible_link(catalog, id, options)
        except BindingResolutionError:
            continue
        if any(reason.code == "env.missing" for reason in link.reasons):
            lacking.add(link.service_id or "")
    return lacking


def _check_files(
    found: RegistryCheck, service: Service, environ: Mapping[str, str], *, used: bool
) -> Iterator[DoctorCheck]:
    """Yield one check per problem code for the files of a service and its bindings.

    If the service is not `used`, unset variables are only a note, because no call needs them."""
    for code, problems in _problems_by_code(found, service).items():
        text = _describe_problems(code, problems, environ)
        fixes = dict.fromkeys(problem.hint for problem in problems if problem.hint)
        # An import may fail only under a changed search path.
        is_mild = code == "service.module" and all(problem.severity == "W" for problem in problems)
        status = "warning" if is_mild else "error"
        if code == "env.missing" and not used:
            status, text = "skipped", f"{text}; what is called as things are does not need it"
        details = tuple(map(place_of, problems))
        yield DoctorCheck("services", service.id, status, text, details, "\n".join(fixes))


def _describe_problems(code: str, problems: Sequence[Problem], environ: Mapping[str, str]) -> str:
    """Return one message for the problems with the same code."""
    texts = dict.fromkeys(
        problem.message.partition("`: ")[2] or problem.message for problem in problems
    )
    if code == "env.missing" and len(texts) > 1:
        return unset_variables_text([text.split("`")[1] for text in texts], environ)
    return "; ".join(texts)


def _problems_by_code(found: RegistryCheck, service: Service) -> dict[str, list[Problem]]:
    """Return the problems of a service and its bindings, by code."""
    bindings = {
        binding.file for binding in found.catalog.bindings.values() if binding.service == service.id
    }
    place = "".join(f"/{part}" for part in service.at)
    by_code: dict[str, list[Problem]] = {}
    for problem in found.problems:
        of_service = problem.file == service.file and f"{problem.path}/".startswith(f"{place}/")
        if problem.code in CODES and (of_service or problem.file in bindings):
            by_code.setdefault(problem.code, []).append(problem)
    return by_code


def _check_prerequisites(service: Service) -> Iterator[DoctorCheck]:
    """Yield a failed check if the service is not trusted, and another if its library is not
    installed."""
    error = partial(DoctorCheck, "services", service.id, "error")
    if reasons := list(untrusted_reasons(service)):
        yield error(
            "; ".join(reason.text.partition("`: ")[2] for reason in reasons),
            (),
            "cogcli config trust",
        )
    module, extra = PROTOCOLS[service.kind].library, PROTOCOLS[service.kind].extra
    if module and "server" not in service.settings and find_spec(module) is None:
        fix = f"pip install 'cogcli[{extra}]'" if extra else f"pip install {module}"
        yield error(f"needs `{module}`, which is not installed", (), fix)


def _check_login(service: Service, settings: Settings) -> Iterator[DoctorCheck]:
    """Yield whether a run can use the login of a service of a trusted layer, if it wants one."""
    if service.keys.login is None or not service.trusted:
        return
    check = partial(DoctorCheck, "services", service.id)
    error = find_login_error(service, settings.environ, settings.clock.now())
    if error is not None:
        why = error.message.partition("`: ")[2]
        yield check("error", f"not logged in: {why}", (), error.hint)
    else:
        yield check("ok", "logged in")


def _check_reachability(
    known: Iterable[Service], broken: set[str], proxies: Mapping[str, str], *, net: bool
) -> Iterator[DoctorCheck]:
    """Check whether each server responds to a request that takes the same route as a run."""
    remote = [service for service in known if service.keys.address]
    if not remote:
        return
    if not net:
        yield DoctorCheck("services", "network", "skipped", f"{len(remote)} not tested (add --net)")
        return
    targets = [service for service in remote if service.trusted and service.id not in broken]
    for service in remote:
        if not service.trusted:
            why = "not tested: its layer is not trusted"
            yield DoctorCheck("services", service.id, "skipped", why)
    yield from _check_servers(targets, proxies)


def _check_servers(targets: Sequence[Service], proxies: Mapping[str, str]) -> Iterator[DoctorCheck]:
    """Check several servers at once."""
    from cogcli.base.http import Http, HttpRequest, proxy_for, proxy_without_user

    http = Http(proxies=proxies)

    def find_proxy(url: str) -> str:
        if not proxies:
            return ""
        parts = urlsplit(url)
        return proxy_without_user(proxy_for(proxies, parts.scheme, parts.hostname or ""))

    def check_server(service: Service) -> DoctorCheck:
        url = service.keys.address
        request = HttpRequest("HEAD", url, network=network_of(service))
        return _check_response(http, request, service, find_proxy(url))

    try:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            yield from pool.map(check_server, targets)
    finally:
        http.close()


def _check_response(http: Http, request: HttpRequest, service: Service, proxy: str) -> DoctorCheck:
    """Check whether a server responds. Any HTTP status is a success."""
    address = f"{request.url} through {proxy}" if proxy else request.url
    try:
        reply = http.send(request, time.monotonic() + _SECONDS, Cancellation())
    except RuntimeErrorBase as error:
        fix = error.hint or "is it running, and is its address right?"
        text = f"{address}: {error.message}"
        return DoctorCheck("services", service.id, "error", text, (service.file,), fix)
    return DoctorCheck("services", service.id, "ok", f"{address} answers (HTTP {reply.status})")
