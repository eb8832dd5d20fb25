"""All pages of one call, collected into one reply (docs/reference/binding.md#page).

1. A page is one request with its own deadline; the attempt ends with the last page.
2. A reply decides whether there is another page, and names it: by a cursor, or by a link that keeps origin and base
   path. It decides nothing else.
3. A page that is named twice, and a bound that is reached while pages are left, is `response.pages`: a part of the
   rows never passes for all of them.
4. An attempt that repeats a failed one continues with the page that failed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from cogcli.base.calls import PageNotice
from cogcli.base.errors import ResponseMappingError, RuntimeErrorBase
from cogcli.base.json_pointer import with_value_at
from cogcli.base.jsonvalue import kind_of, object_of, preview
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.refs import MISSING
from cogcli.declarations.binding_spec import Paging
from cogcli.declarations.value_types import Json
from cogcli.protocols.invoker import (
    CallLimits,
    InvocationRequest,
    InvocationResponse,
    InvokerContext,
)
from cogcli.specs.response_headers import header_of
from cogcli.state.namespaces import walk

Invoke = Callable[[InvocationRequest], InvocationResponse]
_LINK: Final = re.compile(r"<([^<>]{0,8000})>([^<]{0,1000})")
_REL_NEXT: Final = re.compile(r";\s*rel\s*=\s*(?:\"(?:[^\"]*\s)?next(?:\s[^\"]*)?\"|next\b)", re.I)


class PageRequest(NamedTuple):
    """The additions to the call's request that select one page: a link, or a value for `send`."""

    link: str = ""
    value: object = MISSING

    @property
    def name(self) -> str:
        """The part that distinguishes the page from the others."""
        return self.link or f"{kind_of(self.value)} {self.value}"


class PageCollector:
    """The collected pages of one call, and the request of the next page."""

    def __init__(self, paging: Paging, source: str, payload: Json) -> None:
        """`source` is the path of the collected list in a reply."""
        self.payload = payload
        self._paging = paging
        self._path = tuple(source.split(".")[1:])
        self._rows: list[object] = []
        self._pages = 0
        self._next: PageRequest | None = _first_page(paging)
        self._named: set[str] = set()

    def collect(
        self, request: InvocationRequest, invoke: Invoke, note: Callable[[PageNotice], None]
    ) -> InvocationResponse:
        """Return the last reply with the rows of all pages. `note` gets each page.

        Raise ResponseMappingError `response.pages` or `response.type`, and the errors of `invoke`."""
        while True:
            response = invoke(self._request_of(request))
            rows = self._rows_in(response.body)
            self._rows += rows
            self._pages += 1
            note(self._build_notice(request, response, len(rows)))
            following = self._next_request(response, len(rows))
            if following is None:
                body = with_value_at(response.body, self._path, self._rows)
                return response._replace(body=body, meta=response.meta._replace(pages=self._pages))
            self._require_room(following)
            self._next = following

    def _request_of(self, request: InvocationRequest) -> InvocationRequest:
        """Return the request of the next page."""
        page = self._next
        if page is None or (not page.link and page.value is MISSING):
            return request
        if page.link:
            return request._replace(link=page.link)
        return request._replace(payload={**self.payload, self._paging.send or "": page.value})

    def _rows_in(self, body: object) -> list[object]:
        rows = walk(body, self._path)
        if not isinstance(rows, list):
            found = "nothing" if rows is MISSING else preview(rows)
            text = f"page {self._pages + 1}: `{'.'.join(('response', *self._path))}` is {found}, expected a list"
            raise ResponseMappingError("response.type", text, left=True)
        return rows

    def _next_request(self, response: InvocationResponse, count: int) -> PageRequest | None:
        """Return the request of the page after this one; None after the last."""
        paging = self._paging
        if paging.link is not None:
            link = _link_in(paging.link, _read_source(paging.link, response))
            return PageRequest(link) if link else None
        if paging.cursor is not None:
            return _page_at_cursor(paging.cursor, _read_source(paging.cursor, response))
        if paging.more is not None and _read_source(paging.more, response) is not True:
            return None
        if paging.more is None and count < (paging.size or 1):
            return None
        step = 1 if paging.by == "number" else count
        return PageRequest(value=self._last_position() + step)

    def _last_position(self) -> int:
        """Return the number or the offset of the last requested page."""
        before = self._next.value if self._next is not None else None
        return before if isinstance(before, int) else self._paging.start

    def _require_room(self, following: PageRequest) -> None:
        """Raise ResponseMappingError `response.pages` if the next page may not be requested."""
        paging = self._paging
        if following.name in self._named:
            raise _pages_error(f"page {self._pages} names a page again that was read before")
        self._named.add(following.name)
        for bound, count, noun in (
            (paging.max_pages, self._pages, "pages"),
            (paging.max_items, len(self._rows), "items"),
        ):
            if count >= bound:
                hint = f"raise `page.max_{noun}` of the binding, or ask for less"
                raise _pages_error(f"{count:,} {noun} were read, and more are left", hint)

    def _build_notice(
        self, request: InvocationRequest, response: InvocationResponse, count: int
    ) -> PageNotice:
        meta = response.meta
        return PageNotice(
            request.run_id,
            request.step_id,
            request.attempt,
            self._pages,
            count,
            len(self._rows),
            meta.url,
            meta.status,
            meta.response_bytes,
            meta.duration_ms,
        )


class Pages:
    """The pages of the calls of one run."""

    def __init__(self, context: InvokerContext) -> None:
        self._note = context.note or (lambda notice: None)
        self._kept: dict[tuple[str, str, str], PageCollector] = {}
        """The pages of attempts that failed: the next attempt continues with them."""

    def invoke(
        self,
        request: InvocationRequest,
        limits: CallLimits,
        exchange: Callable[[InvocationRequest, CallLimits], InvocationResponse],
    ) -> InvocationResponse:
        """Make the request of a call, or those of all its pages, each by `exchange` and within the
        time limit of a call."""
        paging = request.binding.page
        if paging is None:
            return exchange(request, limits)
        key = request.run_id, request.step_id, request.binding.id
        payload = object_of(request.payload)
        collector = self._kept.pop(key, None)
        if collector is None or collector.payload != payload:
            collector = PageCollector(paging, request.binding.response[paging.items], payload)

        def invoke(page: InvocationRequest) -> InvocationResponse:
            return exchange(page, limits._replace(deadline=limits.within(limits.seconds)))

        try:
            return collector.collect(request, invoke, self._note)
        except RuntimeErrorBase:
            # An attempt that was given up may still run: the next one begins anew.
            if not limits.cancel.is_set:
                self._kept[key] = collector
            raise


def _first_page(paging: Paging) -> PageRequest | None:
    return PageRequest(value=paging.start) if paging.by is not None else None


def _read_source(source: str, response: InvocationResponse) -> object:
    """Return the value of a path in a reply, or of one of its headers; MISSING without one."""
    if header := header_of(source):
        return response.headers.get(header, MISSING)
    return walk(response.body, tuple(source.split(".")[1:]))


def _link_in(source: str, value: object) -> str:
    """Return the link to the next page; empty without one. A header may contain several links by relation (RFC
    8288).
    """
    if value in (MISSING, None, "", False):
        return ""
    if not isinstance(value, str):
        raise _pages_error(f"`{source}` is {preview(value)}, expected a link")
    if not header_of(source) or not value.lstrip().startswith("<"):
        return value.strip()
    found = (match[1] for match in _LINK.finditer(value) if _REL_NEXT.search(match[2]))
    return next(found, "")


def _page_at_cursor(name: str, cursor: object) -> PageRequest | None:
    """Return the request of the page at a cursor, which `name` read. None without a cursor."""
    if cursor in (MISSING, None, "", False):
        return None
    if isinstance(cursor, list | dict):
        raise _pages_error(f"`{name}` is {preview(cursor)}, expected a cursor")
    return PageRequest(value=cursor)


def _pages_error(text: str, hint: str = "") -> ResponseMappingError:
    return ResponseMappingError("response.pages", text, hint=hint, left=True)
