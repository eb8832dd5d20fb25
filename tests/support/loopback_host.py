"""A host that has all that the registry may need, on loopback: a language model, a search server, a mail server, a
webhook, an agent, and a web behind a proxy. Of what is shipped nothing is replaced."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import NamedTuple

from support.loopback_servers import MailServer, reply, running, served
from support.tinymodel import TinyModel

PAGE = b"<title>Harbour</title><p>The domain of the harbour opens at six. Ships wait until it opens.</p>"
SENDERS = ("agent.task.delegate", "email.message.send", "message.notification.send")
"""What acts outside, and so is never called but where it is named."""
_KEY = "a-key-of-the-tests"
_MODELS = ("OPENAI_MODEL", "OPENAI_VISION_MODEL", "OPENAI_AUDIO_MODEL", "OPENAI_EMBEDDING_MODEL")


class LoopbackHost(NamedTuple):
    """The variables that a user of this host has, and what came in at its servers."""

    environ: dict[str, str]
    model: TinyModel
    mail: MailServer
    requests: list[str]
    """Method and address, of all but the model."""


@contextmanager
def loopback_host(home: Path) -> Iterator[LoopbackHost]:
    """The host until the block ends; its user's home is this folder."""
    requests: list[str] = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        requests.append(f"{handler.command} {handler.path}")
        if handler.command == "POST":
            task = {"result": {"kind": "task", "id": "t-1", "status": {"state": "submitted"}}}
            reply(body=json.dumps(task).encode(), kind="application/json")(handler)
        elif "/search?" in handler.path:
            hit = {
                "title": "Harbour",
                "url": "http://example.org/",
                "content": "The harbour opens at six.",
            }
            reply(body=json.dumps({"results": [hit]}).encode(), kind="application/json")(handler)
        else:
            reply(body=PAGE)(handler)

    mail = MailServer()
    with served(answer) as url, running(mail), TinyModel(key=_KEY) as model:
        receivers = json.dumps({"ops": url})
        environ = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "COGCLI_TRUST_PROJECT": "1",
            "COGCLI_TEST_NETWORK": "1",
            "COGCLI_USE_ENV_PROXY": "1",
            "HTTP_PROXY": url,
            "NO_PROXY": "127.0.0.1",
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": _KEY,
            **dict.fromkeys(_MODELS, "schema:valid"),
            "SEARXNG_URL": url,
            "SMTP_HOST": "127.0.0.1",
            "SMTP_PORT": mail.port,
            "SMTP_USER": "me",
            "SMTP_FROM": "me@example.org",
            "SMTP_PASSWORD": "pass-word-1",
            "NOTIFY_WEBHOOKS": receivers,
            "AGENT_ADDRESSES": receivers,
        }
        yield LoopbackHost(environ, model, mail, requests)
