"""Jobs: the number of one is how often it has to be asked. Ends with Ctrl-C."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

asked: dict[str, int] = {}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        job = self.path.removeprefix("/jobs/")
        asked[job] = asked.get(job, 0) + 1
        self.send(200, {"state": "done" if asked[job] >= int(job) else "running"})

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
    server = ThreadingHTTPServer(("127.0.0.1", 8808), Handler)
    print("ready", flush=True)
    server.serve_forever()
