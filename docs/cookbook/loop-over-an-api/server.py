"""A shop with three items. Ends with Ctrl-C."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ITEMS = {"tea": ("Tea", 4.5), "cup": ("Cup", 7), "pot": ("Pot", 21)}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        found = ITEMS.get(self.path.removeprefix("/items/"))
        self.send(200, {"name": found[0], "price": found[1]}) if found else self.send(
            404, {"error": "no such item"}
        )

    def send(self, status: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Say nothing of each request."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 8801), Handler)
    print("ready", flush=True)
    server.serve_forever()
