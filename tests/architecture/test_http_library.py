"""One module imports the HTTP library, and it is handed our own sockets there."""

from __future__ import annotations

from support.sources import PACKAGE, modules, said

LIBRARIES = {"httpx", "httpx2", "httpcore", "httpcore2", "h11", "requests", "aiohttp", "urllib3"}


def test_one_module_imports_the_http_library() -> None:
    users = {
        path.relative_to(PACKAGE)
        for path in modules()
        for name in said(path).modules
        if name.split(".")[0] in LIBRARIES
    }
    assert {str(path) for path in users} == {"base/http.py"}


def test_nothing_opens_urls_behind_its_back() -> None:
    names = {"http.client", "urllib.request", "ftplib", "smtplib", "telnetlib", "xmlrpc.client"}
    users = {
        str(path.relative_to(PACKAGE))
        for path in modules()
        for name in said(path).modules
        if name in names
    }
    # Mail is no HTTP: it goes to the one server that the host names.
    assert users <= {"base/http.py", "official/email_sending.py"}
