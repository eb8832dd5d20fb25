"""The functions behind the services of this project."""


def echo(text: str, style: str = "") -> dict[str, object]:
    return {"text": text, "note": style}


def count(text: str) -> dict[str, object]:
    return {"n": len(text), "words": text.split()}


def judge(text: str) -> dict[str, object]:
    return {"allowed": bool(text), "reason": ""}
