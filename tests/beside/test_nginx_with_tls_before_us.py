"""The nginx recipe, run as it stands but for ports: streams, ids, large bodies, clients gone."""

import http.client
import os
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.beside.tls_upstream import Upstream, certified, gateway, served

RECIPE = Path(__file__).resolve().parents[2] / "examples" / "recipes" / "nginx.conf"
NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed here")


class _Front:
    def __init__(self, port: int, authority: Path, upstream: Upstream) -> None:
        self._port = port
        self._context = ssl.create_default_context(cafile=str(authority))
        self.upstream = upstream

    def ask(self, body: bytes) -> tuple[http.client.HTTPSConnection, http.client.HTTPResponse]:
        client = http.client.HTTPSConnection(
            "127.0.0.1", self._port, timeout=30, context=self._context
        )
        client.request("POST", "/v1/chat/completions", body)
        return client, client.getresponse()


@pytest.fixture(scope="module")
def _running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Front]:
    assert NGINX is not None
    tmp_path = tmp_path_factory.mktemp("nginx")
    authority = certified(tmp_path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    with (
        served() as upstream,
        gateway(
            f"http://127.0.0.1:{upstream.port}/v1", dict(os.environ), "--state", str(tmp_path)
        ) as ours,
    ):
        text = RECIPE.read_text("utf-8")
        changed = text.replace("127.0.0.1:8411", f"127.0.0.1:{ours}")
        (tmp_path / "nginx.conf").write_text(changed.replace("127.0.0.1:8443", f"127.0.0.1:{port}"))
        nginx = subprocess.Popen(
            [NGINX, "-p", tmp_path, "-c", "nginx.conf", "-e", "stderr", "-g",
             "daemon off; master_process off;"],
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            _until_open(port, nginx)
            yield _Front(port, authority, upstream)
        finally:
            nginx.terminate()
            nginx.wait(30)


@pytest.fixture
def front(_running: _Front) -> _Front:
    upstream = _running.upstream
    upstream.go_on.clear()
    upstream.left.clear()
    upstream.bodies.clear()
    upstream.request_ids.clear()
    return _running


def _until_open(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(500):
        assert process.poll() is None, "nginx ended"
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise AssertionError("nginx does not listen")


def test_a_stream_is_not_held_back(front: _Front) -> None:
    client, answer = front.ask(b'{"stream":true}')
    # The upstream goes on only once this has been read: a buffering proxy would wait for ever.
    assert answer.readline() == b"data: first\n"
    front.upstream.go_on.set()
    assert b"data: more" in answer.read()
    client.close()


def test_a_client_that_leaves_is_told_to_the_upstream(front: _Front) -> None:
    client, answer = front.ask(b'{"stream":true}')
    assert answer.readline() == b"data: first\n"
    answer.close()
    client.close()
    assert front.upstream.left.wait(15)


def test_large_bodies_and_request_ids_pass(front: _Front) -> None:
    body = b'{"x":"' + b"a" * (20 * 1024**2) + b'"}'
    client, answer = front.ask(body)
    assert (answer.status, answer.read()) == (200, b"{}")
    client.close()
    assert front.upstream.bodies == [len(body)]
    (request_id,) = front.upstream.request_ids
    assert request_id is not None
    assert len(request_id) == 32
