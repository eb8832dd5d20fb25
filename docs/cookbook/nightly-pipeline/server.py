"""A shop and a ledger on this machine: orders in pages of two, and a POST that books them."""

import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit

ORDERS = [
    {"order": number, "customer": customer, "amount": amount}
    for number, (customer, amount) in enumerate([("c1", 40), ("c2", 12), ("c3", 90)], start=1)
]


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        start = int(query.get("cursor", ["0"])[0])
        end = start + 2
        following = str(end) if end < len(ORDERS) else None
        self.answer({"data": ORDERS[start:end], "next": following})

    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer({"receipt": f"booked {len(sent['rows'])} orders, {sent['total']} in all"})

    def answer(self, value: object) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(value).encode())

    def log_message(self, *_: object) -> None:
        pass


server = HTTPServer(("127.0.0.1", 8842), Handler)
print("ready", flush=True)
server.serve_forever()
