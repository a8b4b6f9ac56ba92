"""What the latency bench measures against each other, each a process of its own on a free port."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from reflexarc.steps.errors import ConfigError

NGINX_ABSENT = "nginx absent: apt install nginx-light"

_NGINX = """
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log crit;
daemon off;
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_max_body_size 64m;
  client_body_buffer_size 1m;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  keepalive_requests 1000000;
  upstream fixed {{ server 127.0.0.1:{upstream}; keepalive 16; keepalive_requests 1000000; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://fixed;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }}
  }}
}}
"""


@contextmanager
def fixed_upstream() -> Generator[int, None, None]:
    """Its port."""
    command = [sys.executable, "-m", "reflexarc.bench.latency_upstream"]
    with _process(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())


class TlsUpstream(NamedTuple):
    port: int
    counts_port: int

    def counts(self) -> dict[str, int]:
        """Connections `accepted` so far, and `handshakes` completed, counted on its side."""
        with socket.create_connection(("127.0.0.1", self.counts_port), 5) as asked:
            counts: dict[str, int] = json.loads(asked.makefile("rb").read())
        return counts


@contextmanager
def fixed_tls_upstream(cert: Path, key: Path) -> Generator[TlsUpstream, None, None]:
    command = [sys.executable, "-m", "reflexarc.bench.latency_upstream", str(cert), str(key)]
    with _process(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        port, counts_port = process.stdout.readline().split()
        yield TlsUpstream(int(port), int(counts_port))


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1, its own authority, and its key, made by the openssl command.

    Raises `ConfigError`.
    """
    cert, key = folder / "bench.crt", folder / "bench.key"
    command = [
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
        "-keyout", str(key), "-out", str(cert), "-days", "2", "-subj", "/CN=bench",
        "-addext", "subjectAltName=IP:127.0.0.1",
    ]  # fmt: skip
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except OSError as error:
        raise ConfigError(f"openssl cannot be run: {error}") from error
    except subprocess.CalledProcessError as error:
        raise ConfigError(f"openssl made no certificate: {error.stderr}") from error
    return cert, key


@contextmanager
def gateway(
    upstream_port: int, reflex: Path, tls: tuple[Path, Path] | None = None
) -> Generator[int, None, None]:
    """`reflexarc serve` in shadow mode with a reflex loaded, as a user starts it. `tls`:
    certificate and key; it listens with them, and its upstream speaks TLS under the same."""
    port = free_port()
    scheme = "http" if tls is None else "https"
    command = [sys.executable, "-m", "reflexarc", "serve", "--port", str(port)]
    command += ["--upstream", f"{scheme}://127.0.0.1:{upstream_port}/v1", "--reflex", str(reflex)]
    # Not the state of whoever runs the bench.
    command += ["--state", str(reflex.parent / f"state-{port}")]
    environment = dict(os.environ)
    if tls is not None:
        command += ["--tls-cert", str(tls[0]), "--tls-key", str(tls[1])]
        environment["SSL_CERT_FILE"] = str(tls[0])
    with _process(command, subprocess.DEVNULL, environment) as process:
        _wait_for(port, process)
        yield port


@contextmanager
def nginx(upstream_port: int, folder: Path, wanted: bool) -> Generator[int | None, None, None]:
    """nginx with kept-alive connections both ways; None where there is none, or none is
    wanted."""
    binary = _nginx_binary()
    if binary is None or not wanted:
        yield None
        return
    port = free_port()
    path = folder / "nginx.conf"
    path.write_text(_NGINX.format(folder=folder, upstream=upstream_port, port=port))
    command = [binary, "-p", str(folder), "-c", str(path), "-e", str(folder / "error.log")]
    with _process(command, stdout=subprocess.DEVNULL) as process:
        _wait_for(port, process)
        yield port


def install_nginx() -> None:
    """Where it is absent and can be had: by apt, as root. Says so first. Otherwise its figures
    stay missing."""
    if _nginx_binary() is not None:
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        print(f"{NGINX_ABSENT} (needs root and apt-get)", file=sys.stderr)
        return
    print("nginx absent: installing nginx-light with apt-get, as --install-nginx asks for")
    # RUNLEVEL=1: the package's service is not started; the bench runs its own.
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    command = ["apt-get", "install", "-y", "--no-install-recommends", "nginx-light"]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, timeout=120, check=False
        )
    except subprocess.TimeoutExpired:
        print("nginx could not be installed in time", file=sys.stderr)
        return
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        print(f"nginx could not be installed: {said[-1] if said else ''}", file=sys.stderr)


def _nginx_binary() -> str | None:
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")


def counters(port: int) -> dict[str, float]:
    """The gateway's metrics."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        text: str = answer.read().decode()
    pairs = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in pairs}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def _process(
    command: list[str], stdout: int, environment: dict[str, str] | None = None
) -> Generator[subprocess.Popen[bytes], None, None]:
    process = subprocess.Popen(command, stdout=stdout, stdin=subprocess.DEVNULL, env=environment)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _wait_for(port: int, process: subprocess.Popen[bytes], limit_s: float = 30.0) -> None:
    deadline_s = time.monotonic() + limit_s
    while time.monotonic() < deadline_s:
        if process.poll() is not None:
            raise ConfigError(
                f"{process.args!r} ended with {process.returncode}; it said why above"
            )
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise ConfigError(f"nothing listens on port {port} after {limit_s:g} s")
