"""Weather for those who bring a key. Ends with Ctrl-C."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.headers["Authorization"] != "Bearer a-long-token-of-yours":
            self.send(401, {"error": "no key"})
        elif self.path == "/cities/Kiel/weather?unit=C":
            self.send(200, {"degrees": 17, "wind": "west"})
        else:
            self.send(404, {"error": "no such city"})

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
    server = ThreadingHTTPServer(("127.0.0.1", 8810), Handler)
    print("ready", flush=True)
    server.serve_forever()
