from typing import Any


def cut(text: str, size: int, *, mark: "str | None" = None, **more: Any) -> dict[str, str]:
    return {"text": text[:size]}


def plain(text: str, count: int = 3, words: list[str] | None = None) -> dict[str, str]:
    return {"text": text}


def placed(text, /, size=1):
    return {"text": text}


@staticmethod
def wrapped(nothing_known):
    return {"text": ""}
