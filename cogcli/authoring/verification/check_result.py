"""The results of verification: checks with reasons, and the location in a reply that a failed check
refers to.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Final, TypeVar

from cogcli.base.errors import CogcliError
from cogcli.base.jsonvalue import kind_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.output_diff import MISSING, OutputDifference
from cogcli.base.redact import Redactor
from cogcli.declarations.value_types import Json
from cogcli.protocols.exchange_checks import Check, Frame, NotRunnable

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
_WAKES: Final = 0.2
"""Seconds until a signal is noticed."""
_MAX_LENGTH: Final = 300
_Item = TypeVar("_Item")


class CheckResult(NamedTuple):
    """The result of one case, or of several related ones.

    `reason` is empty if it passed. `code` is the code of the reason; for a scenario it is that of
    its failed call.
    """

    id: str
    status: str
    subject: str = ""
    checks: tuple[Check, ...] = ()
    outputs: Json | None = None
    reason: str = ""
    code: str = ""
    ms: int | None = None
    curl: str = ""
    episode: str = ""
    file: str = ""
    called: str = ""
    """The server or service that answered the call of a scenario; empty without a call."""

    @property
    def frame(self) -> Frame | None:
        """The location of the first failed check that has one; None without one."""
        return next(
            (check.frame for check in self.checks if check.frame and not check.passed), None
        )

    def to_payload(self) -> Json:
        """Return the check result as a JSON object."""
        passed = None if self.status == SKIPPED else self.status == PASSED
        checks = [check.to_payload() for check in self.checks]
        return {"id": self.id, "passed": passed, **self._asdict(), "checks": checks}


def conclude(base: CheckResult, checks: Sequence[Check]) -> CheckResult:
    """Return the result with these checks. The first failed one determines reason and code."""
    failed = next((check for check in checks if not check.passed), None)
    if failed is None:
        return base._replace(status=PASSED, checks=tuple(checks), reason="", code="")
    return base._replace(
        status=FAILED, checks=tuple(checks), reason=failed.reason, code=failed.code
    )


def run_check(base: CheckResult, check: Callable[[], CheckResult]) -> CheckResult:
    """Return the result of a check with its milliseconds. If the check cannot run, the result
    contains the reason.
    """
    begun = time.monotonic()
    try:
        result = check()
    except NotRunnable as error:
        result = base._replace(
            status=SKIPPED if error.skipped else FAILED,
            checks=(error.check,) if error.check else (),
            reason=error.reason,
            code=error.code,
        )
    except CogcliError as error:
        reason = f"{error.code}: {error.message}"
        result = base._replace(status=FAILED, reason=reason, code=error.code)
    return result._replace(ms=round((time.monotonic() - begun) * 1000))


class CheckResults(NamedTuple):
    """The results in order, and the total seconds."""

    results: tuple[CheckResult, ...]
    seconds: float


def verify_all(
    items: Iterable[_Item],
    verify: Callable[[_Item], CheckResult],
    jobs: int,
    listener: Callable[[CheckResult], None] | None,
) -> CheckResults:
    """Verify each item, `jobs` at a time, and return the results. `listener` gets each result, in
    the order of the items."""
    begun, results = time.monotonic(), []
    with ThreadPoolExecutor(max_workers=max(1, jobs)) as pool:
        for future in [pool.submit(verify, item) for item in items]:
            while not wait((future,), _WAKES).done:
                pass  # a signal just before a wait is noticed after the wait
            results.append(future.result())
            if listener:
                listener(results[-1])
    return CheckResults(tuple(results), time.monotonic() - begun)


def join_differences(differences: list[OutputDifference], match: str) -> str:
    """Return differences as one line: `- "errors": []   + "errors": null`."""
    parts = []
    for path, expected, found in differences[:3]:
        if match == "shape" and expected is not MISSING and found is not MISSING:
            parts.append(f"{path}: expected {kind_of(expected)}, found {kind_of(found)}")
            continue
        key = path.rpartition(".")[2]
        parts += [
            f'{sign} "{path}": {shorten_json(Redactor().mask({key: value})[key])}'
            for sign, value in (("-", expected), ("+", found))
            if value is not MISSING
        ]
    if len(differences) > 3:
        parts.append(f"and {len(differences) - 3} more")
    return "   ".join(parts)


def shorten_json(value: object, limit: int = _MAX_LENGTH) -> str:
    """Return a JSON value as text of at most `limit` characters."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
