"""Rules that all invokers over HTTP share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from cogcli.protocols.exchange import ReceivedRequest, Responder, ServerReply, json_reply
from cogcli.protocols.invoker_rule import ANY_ERROR, ELSEWHERE, SECRET, RuleCall, RuleCase

SHORT: Final = 0.6
_DRIP: Final = ServerReply(
    200, {"Content-Type": "application/json"}, (b" ",) * 600 + (b"{}",), pause=0.05
)
_UNAVAILABLE: Final = (ServerReply(503),)


def slow(seen: ReceivedRequest) -> ServerReply:
    """Reply as a server that stays silent for half a minute."""
    return json_reply({})._replace(delay=30.0)


def drip(seen: ReceivedRequest) -> ServerReply:
    """Reply as a server that sends bytes slowly and without end."""
    return _DRIP


def typed(media_type: str, *chunks: bytes, status: int = 200) -> Responder:
    """Return a server function that replies with these bytes."""
    return lambda seen: ServerReply(status, {"Content-Type": media_type}, chunks)


def address_case(case: Callable[..., RuleCase], call: RuleCall) -> RuleCase:
    """Return the case of a service with a private address that does not declare it."""
    return case(call=call._replace(network="public"), error="safety.scope", wanted=0)


def secret_case(case: Callable[..., RuleCase], call: RuleCall) -> RuleCase:
    """Return the case of a token from `auth_ref`."""
    call = call._replace(service={"auth_ref": "BENCH_KEY"}, environ={"BENCH_KEY": SECRET})
    sent = lambda seen: seen[0].header("authorization")  # noqa: E731
    return case(call=call, sent=sent, wanted=f"Bearer {SECRET}", hidden=SECRET)


def redirect_case(
    case: Callable[..., RuleCase], elsewhere: Responder, status: int, path: str
) -> RuleCase:
    """Return the case of a redirect to another server."""
    reply = ServerReply(status, {"Location": f"{ELSEWHERE}{path}"})
    return case((reply,), error="call.rejected", says=path, wanted=1, elsewhere=elsewhere)


def retry_cases(
    case: Callable[..., RuleCase], call: RuleCall, wanted: Mapping[str, int]
) -> Iterator[RuleCase]:
    """Yield, by effect class, how often a call is made that the server answers with 503."""
    call = call._replace(metadata={"retry_count": 2, "retry_backoff_base": 0})
    for effect, count in wanted.items():
        yield case(_UNAVAILABLE, call=call._replace(effect=effect), error=ANY_ERROR, wanted=count)
