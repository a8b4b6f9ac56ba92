"""A System 2 behind HTTP or TLS that counts its connections, and a real gateway before it."""

import re
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Upstream(ThreadingHTTPServer):
    """`go_on` lets a streamed answer go past its first piece; `left` is set where its reader left.
    Each connection costs one handshake: TLS 1.3 knows no second one."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.connections = 0
        self.bodies: list[int] = []
        self.request_ids: list[str | None] = []
        self.go_on = threading.Event()
        self.left = threading.Event()

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Upstream  # pyright: ignore[reportIncompatibleVariableOverride] - always made by one

    def setup(self) -> None:
        self.server.connections += 1
        super().setup()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.bodies.append(len(body))
        self.server.request_ids.append(self.headers.get("X-Request-Id"))
        self.send_response(200)
        if b'"stream":true' not in body:
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")
            return
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self._piece(b"data: first\n\n")
        # Waits for its reader to go on or to leave; a reader that leaves closes the connection.
        self.connection.settimeout(0.02)
        while not self.server.go_on.is_set():
            try:
                if self.connection.recv(1) == b"":
                    self.server.left.set()
                    self.close_connection = True
                    return
            except TimeoutError:
                continue
        self.connection.settimeout(None)
        self._piece(b"data: more\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _piece(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def log_message(self, format: str, *args: object) -> None:
        del format, args


@contextmanager
def served(tls: ssl.SSLContext | None = None) -> Iterator[Upstream]:
    with Upstream() as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.go_on.set()
            server.shutdown()
            thread.join()


@contextmanager
def gateway(upstream: str, environment: dict[str, str], *more: str) -> Iterator[int]:
    """Its port; a process of its own."""
    with serving("--upstream", upstream, *more, environment=environment) as port:
        yield port


@contextmanager
def serving(*options: str, environment: dict[str, str] | None = None) -> Iterator[int]:
    """`reflexarc serve` on a free port with these options; its port."""
    command = [sys.executable, "-u", "-m", "reflexarc", "serve", "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        line = next(line for line in process.stdout if "listens on" in line)
        found = re.search(r":(\d+)$", line.strip())
        assert found is not None
        yield int(found.group(1))
    finally:
        process.terminate()
        process.communicate(timeout=30)


def certified(directory: Path) -> Path:
    """Makes `tls.key` and `tls.crt`, valid for 127.0.0.1; the certificate is its own authority."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-keyout", "tls.key", "-out", "tls.crt", "-days", "90", "-subj", "/CN=test",
         "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True, cwd=directory,
    )  # fmt: skip
    return directory / "tls.crt"
