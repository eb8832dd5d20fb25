"""The API of a service that takes forms and plain text, as somebody writes one with FastAPI. It
answers with what it read.
"""

# FastAPI reads the annotations, so they are values here: no `from __future__ import annotations`.

from typing import Annotated, Any

from fastapi import FastAPI, Form, Request

TEXT_BODY = {
    "requestBody": {"required": True, "content": {"text/plain": {"schema": {"type": "string"}}}}
}
MULTIPART = {
    "requestBody": {
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {
                        "name": {"type": "string"},
                        "tags": {"type": "array", "items": {"type": "string"}},
                        "address": {"type": "object", "properties": {"city": {"type": "string"}}},
                        "picture": {"type": "string", "format": "binary"},
                    },
                }
            }
        }
    }
}
NESTED = {
    "requestBody": {
        "required": True,
        "content": {
            "application/x-www-form-urlencoded": {
                "schema": {
                    "type": "object",
                    "required": ["email"],
                    "properties": {
                        "email": {"type": "string"},
                        "address": {"type": "object", "properties": {"city": {"type": "string"}}},
                        "ids": {"type": "array", "items": {"type": "integer"}},
                    },
                },
                "encoding": {
                    "address": {"style": "deepObject", "explode": True},
                    "ids": {"explode": False},
                },
            }
        },
    }
}

app = FastAPI(title="Messages")


@app.post("/messages", operation_id="create")
def create(
    to: Annotated[str, Form()],
    body: Annotated[str, Form()],
    count: Annotated[int, Form()] = 1,
    media: Annotated[list[str] | None, Form()] = None,
) -> dict[str, Any]:
    return {"to": to, "body": body, "count": count, "media": media or []}


@app.post("/notes", operation_id="note", openapi_extra=TEXT_BODY)
async def note(request: Request) -> dict[str, Any]:
    return {"text": (await request.body()).decode(), "type": request.headers["content-type"]}


@app.post("/people", operation_id="person", openapi_extra=MULTIPART)
async def person(request: Request) -> dict[str, Any]:
    return await fields_of(request)


@app.post("/customers", operation_id="customer", openapi_extra=NESTED)
async def customer(request: Request) -> dict[str, Any]:
    return await fields_of(request)


async def fields_of(request: Request) -> dict[str, Any]:
    form = await request.form()
    found = [[name, value] for name, value in form.multi_items()]
    return {"fields": found, "type": request.headers["content-type"].partition(";")[0]}
