"""A little web server of our own that misbehaves on demand, and data directories apart from the user's."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class Server(ThreadingHTTPServer):
    """Keeps what it serves and what it was asked."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.requests: list[tuple[str, str | None]] = []

    def url(self, behaviour, name):
        return f"http://127.0.0.1:{self.server_port}/{behaviour}/{name}"


NO_ADDRESSES = {"no-host": "http://[::1", "no-label": f"http://{'a' * 70}.org/", "no-letters": "http://\u00e9..org/"}
"""Where a mirror leads that is broken."""


class Handler(BaseHTTPRequestHandler):
    """Serves `server.files`; behaves as the first part of the path says."""

    server: Server  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self):
        behaviour, _, name = self.path[1:].partition("/")
        self.server.requests.append((behaviour, self.headers.get("Range")))
        body = self.server.files.get(name)
        if body is None:
            self.send_error(404)
            return
        if behaviour in NO_ADDRESSES:
            self.send_response(302)
            self.send_header("Location", NO_ADDRESSES[behaviour])
            self.end_headers()
            return
        if behaviour == "less-than-nothing":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nabc\r\n")
            return
        if behaviour == "corrupt":
            body = bytes(len(body))
        start = self._start(body) if behaviour != "no-ranges" else 0
        if start is None:
            return
        self.send_response(206 if start else 200)
        if behaviour == "endless":
            body += bytes(1 << 20)
        length = "a lot" if behaviour == "unnumbered" else str(len(body) - start)
        self.send_header("Content-Length", length)
        self.end_headers()
        sent = body[start : start + 1000] if behaviour == "breaks" else body[start:]
        self.wfile.write(sent)

    def _start(self, body):
        asked = self.headers.get("Range")
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        if start and start >= len(body):
            self.send_error(416)
            return None
        return start

    def log_message(self, *arguments):
        pass


@pytest.fixture
def web():
    """A server on this machine with `files`, the list of `requests`, and `url(behaviour, name)`."""
    server = Server()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """An empty data directory and an empty cache, in place of the user's."""
    data, cache = tmp_path / "data", tmp_path / "cache"
    data.mkdir()
    monkeypatch.setenv("REMANENCE_DATA", str(data))
    monkeypatch.setenv("REMANENCE_CACHE", str(cache))
    return data, cache
