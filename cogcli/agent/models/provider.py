"""Models of providers over HTTP (docs/reference/models.md#providers).

A model makes one attempt; its caller repeats it. It follows no redirects, keeps no cookies, and uses a proxy only if a
setting names one. The address may be private. The key is resolved for each request and masked in each response.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from typing import Final

import orjson

from cogcli import __version__
from cogcli.agent.models.anthropic import ANTHROPIC
from cogcli.agent.models.openai import DONE, OPENAI
from cogcli.agent.models.port import (
    Delta,
    ModelError,
    ModelInfo,
    ModelReply,
    ModelRequest,
    TokenUsage,
    estimate_usage,
)
from cogcli.agent.models.provider_api import (
    MAX_REPLY,
    Outgoing,
    ProviderApi,
    ProviderFailure,
    ProviderReply,
    StreamFold,
    parse_error,
    parse_json,
    sent_names,
)
from cogcli.agent.models.provider_errors import (
    ADDRESS_HINT,
    kind_of,
    model_error,
    refused_member,
    status_error,
)
from cogcli.agent.models.server_events import EventParser, ServerEvent
from cogcli.agent.models.settings import ModelContext, ModelSettings
from cogcli.base.calls import Cancellation
from cogcli.base.connections import GIVEN_UP
from cogcli.base.errors import ModelAccessError, RuntimeErrorBase
from cogcli.base.http import Http, HttpReply, HttpRequest, HttpStream
from cogcli.declarations.value_types import Json
from cogcli.protocols.http.failures import quote
from cogcli.specs.id_grammar import is_sendable

_OF_CODE: Final = {
    "call.timeout": "timeout",
    "call.transport": "unreachable",
    "response.size": "protocol",
    "response.not-json": "protocol",
    "env.missing": "auth",
    "env.extra": "auth",
    "model.auth": "auth",
}
"""Kinds of failed requests by status code. Any other code is an invalid request."""
_LONGEST_ID: Final = 128


def open_adapter(settings: ModelSettings, context: ModelContext) -> ProviderModel:
    """Return the model of a provider. No request is sent, but its key must exist. Raise ServiceResolutionError
    `env.missing`, `env.extra`.
    """
    model = ProviderModel(APIS[settings.adapter], settings, context)
    model.key()
    return model


APIS: Final[dict[str, ProviderApi]] = {"openai": OPENAI, "anthropic": ANTHROPIC}
"""The API of each adapter."""


class ProviderModel:
    """A model behind an address."""

    def __init__(self, api: ProviderApi, settings: ModelSettings, context: ModelContext) -> None:
        self._api = api
        self._settings = settings
        self._context = context
        self._own = not settings.base_url
        self._base = (settings.base_url or api.base_url).rstrip("/")
        self._name = f"the model {settings.name} at {self._base}"
        self._proxies = context.environ if settings.use_env_proxy else {}
        self._refused: set[str] = set()
        """Members of bodies that this server refused."""

    def describe(self) -> ModelInfo:
        adapter, name, tokens = (
            self._settings.adapter,
            self._settings.name,
            self._settings.context_tokens,
        )
        return ModelInfo(adapter, name, tokens, False, self._api.features)

    def generate(self, request: ModelRequest, cancel: Cancellation) -> ModelReply:
        with self._our_errors(cancel), self._open_reply(request, cancel, stream=False) as reply:
            return self._read_whole_reply(request, reply.whole())

    def stream(
        self, request: ModelRequest, cancel: Cancellation
    ) -> Generator[Delta, None, ModelReply]:
        pieces: list[str] = []
        try:
            with self._our_errors(cancel), self._open_reply(request, cancel, stream=True) as reply:
                if "json" in reply.head.header("content-type"):  # a server that does not stream
                    finished = self._read_whole_reply(request, reply.whole())
                    yield Delta(finished.text)
                    return finished
                fold = self._api.fold()
                for words in _split_at_spaces(self._text_pieces(reply, fold), pieces):
                    yield Delta(self._context.secrets.mask_text(words))
                return self._read_reply(request, fold.value, reply.head)
        except ModelError as error:
            raise self._stream_error(error, "".join(pieces)) from error

    def _text_pieces(self, reply: HttpStream, fold: StreamFold) -> Iterator[str]:
        """Yield the pieces of the text. Raise ModelError for a stream that ends before the answer is whole."""
        parser, began = EventParser(), False
        for chunk in reply.chunks():
            for event in parser.feed(chunk):
                began = True
                if piece := self._apply_event(fold, event):
                    yield piece
            if fold.done:
                return
        if not began:
            kind = reply.head.header("content-type").partition(";")[0] or "nothing of a known kind"
            raise ModelError("protocol", f"no stream of events came, but {kind}", hint=ADDRESS_HINT)
        if not fold.whole:
            raise ModelError("protocol", "the answer breaks off")

    def _apply_event(self, fold: StreamFold, event: ServerEvent) -> str:
        try:
            return fold.apply(event, None if event.data == DONE else parse_json(event.data))
        except ProviderFailure as failure:
            raise model_error(kind_of(failure.error), failure.error) from failure

    def _stream_error(self, error: ModelError, text: str) -> ModelError:
        """Return the error of a stream. After the first text a lost connection is a broken answer, which is not
        retried.
        """
        if text and error.kind == "unreachable":
            error = ModelError(
                "protocol", f"the answer breaks off: {error.message}", hint=error.hint
            )
        error.partial = self._context.secrets.mask_text(text)
        return error

    def _read_whole_reply(self, request: ModelRequest, reply: HttpReply) -> ModelReply:
        value = self._parse_body(reply)
        if error := parse_error(value):  # some servers report it with status 200
            raise model_error(kind_of(error), error)
        return self._read_reply(request, value, reply)

    def _parse_body(self, reply: HttpReply) -> object:
        try:
            return parse_json(reply.body)
        except ModelError as error:
            if "json" not in reply.header("content-type"):
                error.hint = ADDRESS_HINT
            raise

    def _read_reply(self, request: ModelRequest, value: object, head: HttpReply) -> ModelReply:
        """Return the reply in a complete body, with secrets masked and the names of tools as cogcli
        declares them."""
        found = self._api.reply(self._context.secrets.mask_known(value))
        if found is None:
            raise ModelError("protocol", "an answer of no known form")
        names = {wire: name for name, wire in sent_names(request.tools).items()}
        calls = tuple(
            {**call, "name": names.get(call["name"], call["name"])} for call in found.tool_calls
        )
        usage = self._usage_of_reply(request, found, calls)
        id = head.header("x-request-id") or head.header("request-id") or found.id
        id, model = (
            self._context.secrets.mask_text(each)[:_LONGEST_ID] for each in (id, found.model)
        )
        return ModelReply(found.text, calls, found.finish, usage, model, id)

    def _usage_of_reply(
        self, request: ModelRequest, reply: ProviderReply, calls: tuple[Json, ...]
    ) -> TokenUsage:
        tokens_in, tokens_out = reply.tokens_in, reply.tokens_out
        if tokens_in is not None and tokens_out is not None:
            return TokenUsage(tokens_in, tokens_out)
        own = estimate_usage(self._context.count, request, reply.text, calls)
        tokens_in = own.tokens_in if tokens_in is None else tokens_in
        return TokenUsage(tokens_in, own.tokens_out if tokens_out is None else tokens_out, True)

    @contextmanager
    def _open_reply(
        self, request: ModelRequest, cancel: Cancellation, *, stream: bool
    ) -> Iterator[HttpStream]:
        """Send a request, and yield the reply with its body unread. Raise ModelError for a failure.

        A member that the server refuses is omitted from this request and all later ones.
        """
        seconds = min(request.timeout_ms / 1000, self._settings.timeout_s)
        deadline = time.monotonic() + seconds  # the clock of sockets, not that of records
        while True:
            body = self._api.body(Outgoing(request, self._settings.name, stream, self._own))
            body = {name: value for name, value in body.items() if name not in self._refused}
            # Connections are not kept: servers close them between two answers of a model.
            http = Http(proxies=self._proxies)
            with closing(http), http.stream(self._http_request(body), deadline, cancel) as reply:
                if 200 <= reply.head.status < 300:
                    yield reply
                    return
                failed = reply.whole()
            error = status_error(failed)
            member = refused_member(error, body, self._api.optional)
            if not member:
                raise error
            self._refused.add(member)

    def _http_request(self, body: Json) -> HttpRequest:
        headers = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "User-Agent": f"cogcli/{__version__}",
            **self._api.headers(self.key()),
        }
        url, sent = self._base + self._api.path, orjson.dumps(body)
        return HttpRequest("POST", url, tuple(headers.items()), sent, "private", MAX_REPLY)

    def key(self) -> str:
        """Return the API key; empty without a key. A key from the default variable is sent only to the provider's own
        address. Raise ServiceResolutionError `env.missing`, `env.extra`, ModelAccessError `model.auth`.
        """
        ref = self._settings.auth_ref or (self._api.auth_ref if self._own else "")
        found = self._context.secrets.resolve(ref).strip() if ref else ""
        if (ref and not found) or not is_sendable(found):
            wrong = "holds more than visible ASCII characters" if found else "is empty"
            text = f"the key that auth_ref `{ref}` gives {wrong}"
            raise ModelAccessError(
                "model.auth", text, hint="look at what is stored there", left=False
            )
        return found

    @contextmanager
    def _our_errors(self, cancel: Cancellation) -> Iterator[None]:
        """Raise the body's errors as errors of models, without secrets."""
        try:
            yield
        except RuntimeErrorBase as error:
            kind, code = _OF_CODE.get(error.code, "bad_request"), ""
            if kind == "auth" or error.code == "safety.scope":
                code = error.code
            text = GIVEN_UP if cancel.is_set else error.message
            again = False if cancel.is_set else None
            raise ModelError(
                kind, self._quote_masked(text), code=code, hint=error.hint, retryable=again
            ) from error
        except ModelError as error:
            error.message = self._quote_masked(error.message)
            error.args = (error.message,)
            raise

    def _quote_masked(self, text: str) -> str:
        return quote(f"{self._name}: {text}", self._context.secrets)


def _split_at_spaces(pieces: Iterator[str], seen_pieces: list[str]) -> Iterator[str]:
    """Yield the text of pieces in whole words, so that no key is split: keys contain no space.

    Each piece is added to `seen_pieces`.
    """
    held: list[str] = []
    for piece in pieces:
        seen_pieces.append(piece)
        last = piece[_find_last_word(piece) :]
        if last == piece:
            held.append(piece)
            continue
        yield "".join([*held, piece[: len(piece) - len(last)]])
        held = [last]
    if any(held):
        yield "".join(held)


def _find_last_word(text: str) -> int:
    """Return the offset after the last space of a text."""
    return next((place for place in range(len(text), 0, -1) if text[place - 1].isspace()), 0)
