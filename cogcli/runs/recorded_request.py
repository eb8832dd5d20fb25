"""Whether the first event of a log can be a request that a run was begun with. A log that was copied in may hold
anything there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from cogcli.core.errors import EnvironmentRefusal
from cogcli.runs.policy_request import PolicyRequest
from cogcli.specs.capability import CONFORMANCE_RANKS

_MOST_WORKERS: Final = 256


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_texts(value: Any) -> bool:
    return value is None or (isinstance(value, list) and all(map(_is_text, value)))


def _maps_texts(value: Any) -> bool:
    return value is None or (isinstance(value, dict) and all(map(_is_text, value.values())))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _are_seconds(value: Any) -> bool:
    return value is None or (_is_number(value) and 0 < value < float("inf"))


def _are_workers(value: Any) -> bool:
    return _is_number(value) and isinstance(value, int) and 1 <= value <= _MOST_WORKERS


def _is_profile(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value in CONFORMANCE_RANKS)


_OPTIONS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "trust_level": _is_text,
    "confirmed_capabilities": _are_texts,
    "fail_fast": _is_flag,
    "max_workers": _are_workers,
    "timeout_seconds": _are_seconds,
    "step_timeout_seconds": _are_seconds,
    "binds": _maps_texts,
    "prefer": _are_texts,
    "no_fallback": _is_flag,
    "required_conformance_profile": _is_profile,
}


def _is_policy(value: Any) -> bool:
    if not value:
        return value is None or value == {}
    if not isinstance(value, dict) or value.keys() - set(PolicyRequest._fields):
        return False
    budget = value.get("budget", {})
    texts = all(_is_text(each) for name, each in value.items() if name != "budget")
    return texts and isinstance(budget, dict) and all(map(_is_number, budget.values()))


def _are_contracts(value: Any) -> bool:
    if not value:
        return value is None or value == {}
    if not isinstance(value, dict) or not _are_texts(value.get("lenient")):
        return False
    found = value.get("found", [])
    return isinstance(found, list) and all(map(_is_object, found))


def _are_pins(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("specs"), dict)
        and all(_maps_texts(each) for each in _members(value.get("variables")))
    )


def _members(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else [] if value is None else [0]


def _is_agent(value: Any) -> bool:
    if not value:
        return value is None or value == {}
    return isinstance(value, dict) and isinstance(value.get("request"), dict)


_MEMBERS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "inputs": _is_object,
    "frame": _is_object,
    "pins": _are_pins,
    "policy": _is_policy,
    "contracts": _are_contracts,
    "agent": _is_agent,
    "typed": _are_texts,
}


def require_request(payload: Mapping[str, Any]) -> None:
    """Raise EnvironmentRefusal `episode.unreadable` for the payload of `run.started` with a member of another form."""
    options = payload.get("options")
    wrong = [name for name, fits in _MEMBERS.items() if name in payload and not fits(payload[name])]
    if not isinstance(options, dict):
        wrong.append("options")
    else:
        wrong += [
            f"options.{name}"
            for name, fits in _OPTIONS.items()
            if name in options and not fits(options[name])
        ]
    if wrong:
        text = f"its first event has no usable `{wrong[0]}`"
        raise EnvironmentRefusal("episode.unreadable", text, hint="this log was not written by a run")
