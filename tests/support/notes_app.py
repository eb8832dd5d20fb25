"""A small web API whose document FastAPI writes itself."""

from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, HTTPException, Query, Response
from fastapi.security import HTTPBearer
from pydantic import BaseModel

app = FastAPI(title="Notes", version="1")


class Note(BaseModel):
    text: str
    stars: int = 0
    tags: list[str] = []


@app.get("/notes/{id}", operation_id="getNote")
def get_note(
    id: str,
    tag: Annotated[list[str] | None, Query()] = None,
    lang: str = "en",
    x_mode: Annotated[str, Header()] = "",
) -> dict[str, Any]:
    if id == "none":
        raise HTTPException(404, "no such note")
    return {"id": id, "lang": lang, "tags": tag or [], "mode": x_mode}


@app.post("/notes", operation_id="addNote", dependencies=[Depends(HTTPBearer())])
def add_note(note: Note) -> Note:
    return Note(text=note.text.upper(), stars=note.stars + 1, tags=note.tags)


@app.delete("/notes/{id}", operation_id="dropNote", status_code=204)
def drop_note(id: int) -> Response:
    return Response(status_code=204)


@app.get("/plain", operation_id="plain")
def plain() -> Response:
    return Response("some text", media_type="text/plain; charset=utf-8")
