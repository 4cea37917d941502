"""A server of this machine that gives one answer, for what asks an upstream outside the gateway."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@contextmanager
def answering(body: bytes, *, status: int = 200, key: str = "") -> Iterator[int]:
    """Serve `body` on a free port and yield the port; with `key`, 401 to any other key."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_refused = key and self.headers.get("authorization") != f"Bearer {key}"
            self.send_response(401 if is_refused else status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
