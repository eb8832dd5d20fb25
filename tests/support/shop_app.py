"""The API of a shop, as somebody writes one with FastAPI: enums, nested models, optional values, a key, a cookie, an
upload. Its document names no server."""

# FastAPI reads the annotations, so they are values here: no `from __future__ import annotations`.

from enum import StrEnum
from typing import Annotated, Any

from fastapi import Cookie, Depends, FastAPI, Header, HTTPException, Query, Response, UploadFile
from fastapi.security import APIKeyHeader, HTTPBearer
from pydantic import BaseModel, Field

app = FastAPI(title="Shop: orders # and more", description="Not read: only the title is.")
KEY, TOKEN = APIKeyHeader(name="X-API-Key", auto_error=False), HTTPBearer(auto_error=False)

Token, Key = Annotated[Any, Depends(TOKEN)], Annotated[Any, Depends(KEY)]


class Status(StrEnum):
    open = "open"
    paid = "paid"


class Address(BaseModel):
    street: str
    city: str | None = None


class Line(BaseModel):
    sku: str = Field(pattern="^[A-Z]{2}-[0-9]+$", examples=["AB-1"])
    qty: int = Field(1, ge=1, le=99, description="How many: at least 1 # really")


class NewOrder(BaseModel):
    customer: str = Field(min_length=1, max_length=50, examples=["ana"])
    lines: list[Line] = Field(examples=[[{"sku": "AB-1"}]])
    address: Address | None = None
    note: str | None = None


class Order(NewOrder):
    id: int
    status: Status
    total: float


def order(id: int, given: NewOrder | None = None) -> Order:
    given = given or NewOrder(customer="ana", lines=[Line(sku="AB-1")])
    return Order(**given.model_dump(), id=id, status=Status.open, total=1.5 * len(given.lines))


@app.get("/orders/{order_id}")
def read_order(order_id: int, x_request_id: Annotated[str | None, Header()] = None) -> Order:
    """Read one order: all of it."""
    if order_id > 1000:
        raise HTTPException(404, "no such order")
    return order(order_id).model_copy(update={"note": x_request_id})


@app.get("/orders", operation_id="listOrders")
def list_orders(
    status: Status | None = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 10,
    tag: Annotated[list[str], Query()] = [],  # noqa: B006 - what FastAPI's own pages write
) -> list[Order]:
    return (
        [order(number) for number in range(min(limit, 3))][: 1 if status else 3]
        if "none" not in tag
        else []
    )


@app.post("/orders", operation_id="addOrder", status_code=201)
def add_order(given: NewOrder, dry: bool = False, token: Token = None) -> Order:
    if token is None or token.credentials != "the-token-of-the-shop":
        raise HTTPException(403, "who are you?")
    return order(0 if dry else 7, given)


@app.put("/orders/{order_id}", operation_id="replaceOrder")
def replace_order(order_id: int, given: NewOrder, key: Key = None) -> Order:
    if key != "the-key-of-the-shop":
        raise HTTPException(403, "who are you?")
    return order(order_id, given)


@app.delete("/orders/{order_id}", operation_id="dropOrder", status_code=204)
def drop_order(order_id: int) -> None: ...


@app.post("/upload", operation_id="upload")
def upload(file: UploadFile) -> dict[str, str]:
    return {}


@app.get("/me", operation_id="me")
def me(session: Annotated[str | None, Cookie()] = None) -> dict[str, str]:
    return {"name": "ana"}


@app.get(
    "/plain",
    operation_id="plain",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}},
)
def plain() -> Response:
    return Response("some text", media_type="text/plain")


@app.get(
    "/photo",
    operation_id="photo",
    response_class=Response,
    responses={200: {"content": {"image/png": {}}}},
)
def photo() -> Response:
    return Response(b"\x89PNG", media_type="image/png")


@app.get("/old", operation_id="old", deprecated=True)
def old() -> list[int]:
    return [1]
