"""A service as somebody writes one with FastAPI: forms, files, a cookie and clients of OAuth 2. It answers with what it
read, so that a test sees what was sent.
"""

# FastAPI reads the annotations, so they are values here: no `from __future__ import annotations`.

import hashlib
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Form, HTTPException, Request, UploadFile
from fastapi.security import APIKeyCookie, OAuth2
from fastapi.security.http import HTTPBasic, HTTPBasicCredentials

CONTENT = {"schema": {"type": "string", "format": "binary"}}
OCTETS = {"requestBody": {"required": True, "content": {"application/octet-stream": CONTENT}}}
PICTURE = {"requestBody": {"required": True, "content": {"image/*": CONTENT}}}
CLIENT = OAuth2(
    flows={"clientCredentials": {"tokenUrl": "token", "scopes": {}}}, scheme_name="client"
)
COOKIE = APIKeyCookie(name="session", scheme_name="cookie")

app = FastAPI(title="Service")
tokens: list[str] = []
photos: list[str] = []
"""The names of the files that a form brought."""


async def described(file: UploadFile) -> dict[str, Any]:
    data = await file.read()
    photos.append(file.filename or "")
    return {
        "name": file.filename,
        "type": file.content_type,
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }


@app.post("/orders", operation_id="order")
def order(item: Annotated[str, Form()], count: Annotated[int, Form()] = 1) -> dict[str, Any]:
    return {"item": item, "count": count}


@app.post("/photos", operation_id="photo")
async def photo(
    picture: UploadFile, title: Annotated[str, Form()], more: list[UploadFile] | None = None
) -> dict[str, Any]:
    others = [await described(each) for each in more or []]
    return {"title": title, "picture": await described(picture), "more": others}


@app.put("/blobs/{key}", operation_id="blob", openapi_extra=OCTETS)
async def blob(key: str, request: Request) -> dict[str, Any]:
    return {"key": key, **await received(request)}


@app.post("/pictures", operation_id="image", openapi_extra=PICTURE)
async def image(request: Request) -> dict[str, Any]:
    return await received(request)


@app.get("/profile", operation_id="profile")
def profile(session: Annotated[str, Depends(COOKIE)]) -> dict[str, Any]:
    if session != "cookie-5e55":
        raise HTTPException(403)
    return {"user": "ana"}


@app.get("/report", operation_id="report")
def report(bearer: Annotated[str, Depends(CLIENT)]) -> dict[str, Any]:
    if bearer.removeprefix("Bearer ") not in tokens:
        raise HTTPException(401)
    return {"rows": 3}


@app.post("/token", include_in_schema=False)
def token(
    basic: Annotated[HTTPBasicCredentials, Depends(HTTPBasic())],
    grant_type: Annotated[str, Form()],
) -> dict[str, Any]:
    if (basic.username, basic.password, grant_type) != (
        "shop",
        "s3cr3t-b2f1",
        "client_credentials",
    ):
        raise HTTPException(401)
    tokens.append(f"access-71c9e0a4-{len(tokens)}")
    return {"access_token": tokens[-1], "token_type": "bearer", "expires_in": 600}


async def received(request: Request) -> dict[str, Any]:
    """The body as it came, piece by piece."""
    digest, size = hashlib.sha256(), 0
    async for chunk in request.stream():
        digest.update(chunk)
        size += len(chunk)
    headers = request.headers
    return {
        "type": headers.get("content-type", ""),
        "length": headers.get("content-length", ""),
        "bytes": size,
        "sha256": digest.hexdigest(),
    }
