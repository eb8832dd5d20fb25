"""A board for notes. Ends with Ctrl-C."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

notes: list[str] = []


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        notes.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"])
        self.send(200, {"number": len(notes)})

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
    server = ThreadingHTTPServer(("127.0.0.1", 8815), Handler)
    print("ready", flush=True)
    server.serve_forever()
