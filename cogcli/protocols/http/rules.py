"""What the rules of the invokers over HTTP share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from cogcli.protocols.exchange import Answering, Reply, Seen, json_reply
from cogcli.protocols.invoker_rule import SECRET, RuleBench, RuleCase, require, require_error

SHORT: Final = 0.6
_DRIP: Final = Reply(
    200, {"Content-Type": "application/json"}, (b" ",) * 600 + (b"{}",), pause=0.05
)


def slow(seen: Seen) -> Reply:
    """The answer of a server that is silent for half a minute."""
    return json_reply({})._replace(delay=30.0)


def drip(seen: Seen) -> Reply:
    """The answer of a server that never pauses for long, and never ends."""
    return _DRIP


def typed(media_type: str, *chunks: bytes, status: int = 200) -> Answering:
    """A server that answers with these bytes."""
    return lambda seen: Reply(status, {"Content-Type": media_type}, chunks)


def address_case(case: Callable[..., RuleCase]) -> RuleCase:
    """A private address of a service that does not say so."""
    return case(call={"network": "public"}, error="safety.scope", wanted=0)


def secret_case(case: Callable[..., RuleCase], **call: Any) -> RuleCase:
    """A token by `auth_ref`."""
    call = {"service": {"auth_ref": "BENCH_KEY"}, "environ": {"BENCH_KEY": SECRET}, **call}
    sent = lambda seen: seen[0].headers.get("authorization")  # noqa: E731
    return case(call=call, sent=sent, wanted=f"Bearer {SECRET}", hidden=SECRET)


def redirect_check(
    answering: Answering,
    path: str,
    status: int,
    target: str,
    call: Mapping[str, Any],
    *,
    says: bool = False,
) -> Callable[[RuleBench], None]:
    """A redirect to another server."""

    def check(bench: RuleBench) -> None:
        with bench.serve(answering) as other:
            ran, seen = bench.call(
                lambda asked: Reply(status, {"Location": f"{other.url}{target}"}), path, **call
            )
            error = require_error(ran, "call.rejected")
            require((len(seen), len(other.seen)), (1, 0), "requests here, at the target")
            require(target in error.message or not says, True, "the target in the message")

    return check


def retry_check(path: str, wanted: Mapping[str, int], **call: Any) -> Callable[[RuleBench], None]:
    """By effect class, how often a call is made that is answered with 503."""

    def check(bench: RuleBench) -> None:
        again = {"retry_count": 2, "retry_backoff_base": 0}
        for effect, count in wanted.items():
            _, seen = bench.call(
                lambda asked: Reply(503), path, metadata=again, effect=effect, **call
            )
            require(len(seen), count, f"requests of class {effect}")

    return check
