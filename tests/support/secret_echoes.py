"""Ten secrets of different kinds, and the forms in which a service may echo one."""

from __future__ import annotations

import base64
import html
import json
from typing import Final
from urllib.parse import quote, quote_plus

PEM: Final = """-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIPx7QvZ3nT0sWk2LmYh8RjU5dBqXaGcEoKfVzNw9MtHp
u4Jr2XsDq8LgVbTnYw6ZkCe0HmRaFi3PoSx7EjUyBd5NtGvQc1KfMzWl9OhIpAXr
Zk4TnVq7YwBs2LdHj8XcRm0GfPu5EoKi3NtSa9MvQyUzWb6ClJhDxOe1FgTrIpAk
-----END PRIVATE KEY-----"""

SECRETS: Final[dict[str, str]] = {
    "API key": "sk-live-4Jx9QvT2mZ8rWn6LbYc3Hd7K",
    "URL": "https://bot-7Gk2:Wq9xZr4TnV8bLm3YcJ6h@hooks.example.com/services/Tz5Kp8QwXn2RvJ7mLc4HsD9f/in",
    "PEM": PEM,
    "JSON": json.dumps(
        {
            "type": "service_account",
            "project_id": "quay-works",
            "private_key_id": "9f3c1b7e5a2d8046bb71c3e9d5f20a84",
            "client_email": "runner@quay-works.iam.gserviceaccount.com",
            "token_uri": "https://oauth2.googleapis.com/token",
            "refresh_token": "1xPq7ZtVw3KmRn9LsYb5Hc2JdX8gQf",
        }
    ),
    "password": "Tr0ub4dor&3 <\"quoted\"> 100%25 c:\\new\\'x'; +/=?#",
    "unicode": "Пароль-ÆØÅ-straße-密码🔑éΣς",
    "short": "q7#Xv!2z",
    "base64": "kP3vX9zL+Qw7/RtY2mN8bJc5Hs4DfGaEoUiVyTxZ1qA=",
    "JWT": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI0NzExIn0.Zk3Vq8Tn2Wb7Lm9Xc4Rd6Hs1Jf5Gp0QaYeUoIiZxBvN",
    "connection": "Server=tcp:db.example.com,1433;User ID=runner;Password=Vz8QmT4xKp2WnR7LbYc9;Encrypt=True",
}


def echoes(secret: str) -> dict[str, str]:
    """The forms by name, more than forty. Each holds the whole secret, some inside a longer text."""
    raw = secret.encode()
    once = base64.b64encode(raw)
    hexed = raw.hex()
    units = secret.encode("utf-16-be").hex()
    escaped = "".join(f"\\u{units[n : n + 4]}" for n in range(0, len(units), 4))
    dumped = json.dumps(secret)[1:-1]
    wrapped = "\n".join(once.decode()[n : n + 20] for n in range(0, len(once), 20))
    return {
        "plain": secret,
        "upper": secret.upper(),
        "lower": secret.lower(),
        "swapped case": secret.swapcase(),
        "reversed": secret[::-1],
        "reversed upper": secret.upper()[::-1],
        "unicode escapes": escaped,
        "unicode escapes, capital": "".join(f"\\u{units[n : n + 4].upper()}" for n in range(0, len(units), 4)),
        "unicode escapes of some": _some(secret, lambda each: json.dumps(each)[1:-1]),
        "braced escapes": "".join(f"\\u{{{ord(each):x}}}" for each in secret),
        "long escapes": "".join(f"\\U{ord(each):08x}" for each in secret),
        "byte escapes": "".join(f"\\x{each:02x}" for each in raw),
        "JSON": dumped,
        "JSON, not ASCII": json.dumps(secret, ensure_ascii=False)[1:-1],
        "JSON twice": json.dumps(dumped)[1:-1],
        "Python": repr(secret)[1:-1],
        "Python bytes": repr(raw)[2:-1],
        "percent": "".join(f"%{each:02X}" for each in raw),
        "percent, small": "".join(f"%{each:02x}" for each in raw),
        "percent of what must be": quote(secret, safe=""),
        "percent of a path": quote(secret),
        "percent of a form": quote_plus(secret),
        "percent of some": _some(secret, lambda each: "".join(f"%{byte:02X}" for byte in each.encode())),
        "percent, mixed digits": quote(secret, safe="").swapcase().swapcase().replace("%2", "%2").lower(),
        "percent twice": quote(quote(secret, safe=""), safe=""),
        "HTML": html.escape(secret),
        "HTML twice": html.escape(html.escape(secret)),
        "entities": "".join(f"&#{ord(each)};" for each in secret),
        "entities with zeros": "".join(f"&#{ord(each):06d};" for each in secret),
        "hex entities": "".join(f"&#x{ord(each):x};" for each in secret),
        "hex entities, capital": "".join(f"&#X{ord(each):X};" for each in secret),
        "entities of some": _some(secret, lambda each: f"&#{ord(each)};"),
        "base64": once.decode(),
        "base64 without padding": once.decode().rstrip("="),
        "base64 for URLs": base64.urlsafe_b64encode(raw).decode(),
        "base64 for URLs without padding": base64.urlsafe_b64encode(raw).decode().rstrip("="),
        "base64 wrapped": wrapped,
        "base64 in JSON": json.dumps(once.decode()).replace("/", "\\/")[1:-1],
        "base64 in a URL": quote(once.decode(), safe=""),
        "base64 twice": base64.b64encode(once).decode(),
        "base64 twice for URLs": base64.urlsafe_b64encode(base64.urlsafe_b64encode(raw)).decode(),
        "base32": base64.b32encode(raw).decode(),
        "base32 small, without padding": base64.b32encode(raw).decode().rstrip("=").lower(),
        "hex": hexed,
        "hex, capital": hexed.upper(),
    }  # fmt: skip


def shifted_echoes(secret: str) -> dict[str, tuple[str, str]]:
    """By name: a longer text that is encoded with the secret inside, and the part of it that tells the secret."""
    raw = secret.encode()
    found = {}
    for shift in range(3):
        around = b"u" * shift + raw + b"@"
        first, last = (shift * 8 + 5) // 6, (shift + len(raw)) * 8 // 6
        for name, encode in (("", base64.b64encode), (" for URLs", base64.urlsafe_b64encode)):
            text = encode(around).decode()
            found[f"base64{name} after {shift}"] = text, text[first:last]
            twice = base64.b64encode(b"x" * shift + text.encode()).decode()
            begin, end = shift + first, shift + last
            found[f"base64{name} twice after {shift}"] = (
                twice,
                twice[(begin * 8 + 5) // 6 : end * 8 // 6],
            )
    for shift in range(5):
        text = base64.b32encode(b"u" * shift + raw + b"@").decode()
        found[f"base32 after {shift}"] = (
            text,
            text[(shift * 8 + 4) // 5 : (shift + len(raw)) * 8 // 5],
        )
    return found


def _some(secret: str, escape: object) -> str:
    """The secret with every second character escaped."""
    assert callable(escape)
    return "".join(escape(each) if number % 2 else each for number, each in enumerate(secret))


HALVES: Final[dict[str, list[str]]] = {
    "API key": ["4Jx9QvT2mZ8r", "n6LbYc3Hd7K"],
    "URL": ["Wq9xZr4TnV8b", "Tz5Kp8QwXn2R"],
    "PEM": ["MC4CAQAwBQYD", "u4Jr2XsDq8Lg", "Zk4TnVq7YwBs", "Oe1FgTrIpAk"],
    "JSON": ["9f3c1b7e5a2d", "1xPq7ZtVw3Km"],
    "password": ["Tr0ub4dor&3", "100%25 c:"],
    "unicode": ["Пароль-Æ", "密码🔑"],
    "short": [],
    "base64": ["kP3vX9zL+Qw7", "UiVyTxZ1qA"],
    "JWT": ["Zk3Vq8Tn2Wb7", "YeUoIiZxBvN"],
    "connection": ["Vz8QmT4xKp2W"],
}
"""Pieces that a text shows where it was cut before it was masked."""
