"""The rules of `verify-invoker` and `verify-errors`: a named rule, and the function that checks it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from cogcli.core.errors import CogcliError, RuntimeErrorBase
from cogcli.verification.harness import Bench, Ran
from cogcli.verification.verdict import FAILED, PASSED, SKIPPED, Verdict


class RuleBroken(Exception):
    """A rule does not hold: a value differs from the expected one."""


class RuleSkipped(Exception):
    """A rule that cannot be checked on this machine; the message is the reason."""


class InvokerRule(NamedTuple):
    """A rule as a short text, and the function that checks it on a bench. It raises RuleBroken or RuleSkipped."""

    rule: str
    shown_by: Callable[[Bench], None]


InvokerRules = Mapping[str, InvokerRule]


def require(found: Any, wanted: Any, what: str) -> None:
    """Raises RuleBroken unless the two are equal."""
    if found != wanted:
        raise RuleBroken(f"{what}: found {_short(found)}, expected {_short(wanted)}")


def require_error(ran: Ran, code: str, *, left: bool | None = None) -> RuntimeErrorBase:
    """The run's error, which must have this code. Raises RuleBroken."""
    error = ran.error
    if error is None:
        raise RuleBroken(f"no error, expected {code}; outputs {_short(ran.outputs)}")
    if error.code != code:
        raise RuleBroken(f"found {error.code} ({error.message}), expected {code}")
    if left is not None and error.left is not left:
        raise RuleBroken(f"{code}: found left {error.left}, expected {left}")
    return error


def require_ok(ran: Ran) -> dict[str, Any]:
    """The outputs of a run, which must have succeeded. Raises RuleBroken."""
    if ran.error is not None:
        raise RuleBroken(f"{ran.error.code}: {ran.error.message}")
    return ran.outputs


def verdict_of(id: str, line: InvokerRule, bench: Bench) -> Verdict:
    """The verdict of checking one rule."""
    begun = time.monotonic()
    base = Verdict(id, PASSED, subject=line.rule)
    try:
        line.shown_by(bench)
    except RuleBroken as wrong:
        base = base._replace(status=FAILED, reason=str(wrong), code="verify.failed")
    except RuleSkipped as absent:
        base = base._replace(status=SKIPPED, reason=str(absent))
    except CogcliError as error:
        base = base._replace(status=FAILED, reason=f"{error.code}: {error.message}", code=error.code)
    except Exception as bug:  # one rule that cannot even be asked must not hide the others
        base = base._replace(status=FAILED, reason=f"{type(bug).__name__}: {bug}", code="internal")
    return base._replace(ms=round((time.monotonic() - begun) * 1000))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:199]}…"
