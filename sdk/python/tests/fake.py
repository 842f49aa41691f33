"""A server that answers as a test says, and remembers what it was asked."""

from __future__ import annotations

import logging
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Optional

from ringi import Client, exact

logging.getLogger("ringi").setLevel(logging.CRITICAL)  # what goes wrong here is meant to

Answer = Optional[tuple[int, Any]]  # None: close the connection without one


class Fake:
    def __init__(self, answer: Callable[[str, Any], Answer]) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.lock = threading.Lock()
        self.clients: list[Client] = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = exact.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.respond(body)

            def do_GET(self) -> None:
                self.respond(None)

            def respond(self, body: Any) -> None:
                with fake.lock:
                    fake.asked.append((self.path, body))
                said = answer(self.path, body)
                if said is None:
                    self.close_connection = True
                    return
                text = exact.dumps(said[1]).encode()
                self.send_response(said[0])
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # a client that hung up

        self.http = Quiet(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,))
        self.thread.start()

    def client(self, patience: float = 5.0) -> Client:
        self.clients.append(Client(f"http://127.0.0.1:{self.http.server_address[1]}", "key", patience=patience))
        return self.clients[-1]

    def bodies(self, path: str) -> list[Any]:
        with self.lock:
            return [body for asked, body in self.asked if asked == path]

    def close(self) -> None:
        for client in self.clients:
            client.close()
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


def task(n: int, **more: Any) -> dict[str, Any]:
    return {
        "tenant": 1, "run": f"r{n}", "step": "s", "attempt": 1, "token": 65536 * n + 1, "activity": "a", "queue": "default",
        "definition": "d", "version": 1, "input": n, "key": f"k{n}", "effect": "pure", "begin": False,
        "leaseMs": 5000, "heartbeatMs": 30000, "timeoutMs": 30000, **more,
    }


def accepted(body: Any) -> dict[str, Any]:
    return {"items": [{"outcome": "accepted"} for _ in body["items"]]}
