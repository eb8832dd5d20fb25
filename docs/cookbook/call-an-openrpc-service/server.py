"""A ledger that speaks JSON-RPC. Ends with Ctrl-C."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

balances = {"ada": 100}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        call = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        account, amount = call["params"]["account"], call["params"]["amount"]
        if account in balances:
            balances[account] += amount
            self.answer(call, result={"balance": balances[account]})
        else:
            self.answer(call, error={"code": -32602, "message": "no such account"})

    def answer(self, call: dict, **said: object) -> None:
        self.send(200, {"jsonrpc": "2.0", "id": call["id"], **said})

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
    server = ThreadingHTTPServer(("127.0.0.1", 8811), Handler)
    print("ready", flush=True)
    server.serve_forever()
