"""`reflexarc serve` with TLS: it answers, streams, hears clients leave, and can be switched off."""

import http.client
import json
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from reflexarc.gateway.config import Tls
from reflexarc.gateway.tls import listening, upstream_context
from reflexarc.steps.errors import ConfigError
from tests.beside.tls_upstream import Upstream, certified, gateway, served


class Front(NamedTuple):
    port: int
    authority: Path
    state: Path
    upstream: Upstream

    def client(self) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cafile=str(self.authority))
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30, context=context)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    certified(folder)
    return folder


@pytest.fixture(scope="module")
def front(folder: Path) -> Iterator[Front]:
    state = folder / "state"
    files = ("--tls-cert", str(folder / "tls.crt"), "--tls-key", str(folder / "tls.key"))
    with (
        served() as upstream,
        gateway(
            f"http://127.0.0.1:{upstream.port}/v1", dict(os.environ), *files, "--state", str(state)
        ) as port,
    ):
        yield Front(port, folder / "tls.crt", state, upstream)


def test_a_request_is_answered_over_a_connection_that_stays(front: Front) -> None:
    client = front.client()
    for _ in range(3):
        client.request("POST", "/v1/chat/completions", b"{}")
        answer = client.getresponse()
        assert (answer.status, answer.read()) == (200, b"{}")
        assert answer.headers["x-reflexarc-decision"].startswith("shadow; ")
    assert isinstance(client.sock, ssl.SSLSocket)
    client.close()


def test_what_clients_offer_as_protocols_ends_in_http_1_1(front: Front) -> None:
    context = ssl.create_default_context(cafile=str(front.authority))
    context.set_alpn_protocols(["h2", "http/1.1"])
    with (
        socket.create_connection(("127.0.0.1", front.port)) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as tls,
    ):
        assert tls.selected_alpn_protocol() == "http/1.1"


def test_head_and_first_bytes_share_a_record(front: Front) -> None:
    context = ssl.create_default_context(cafile=str(front.authority))
    with (
        socket.create_connection(("127.0.0.1", front.port), 30) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as tls,
    ):
        tls.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\n{}")
        # One read gives what one record holds.
        assert tls.recv(65536).endswith(b"\r\n\r\n{}")


def test_a_stream_is_not_held_back(front: Front) -> None:
    front.upstream.go_on.clear()
    client = front.client()
    client.request("POST", "/v1/chat/completions", b'{"stream":true}')
    answer = client.getresponse()
    assert answer.readline() == b"data: first\n"
    front.upstream.go_on.set()
    assert b"data: more" in answer.read()
    client.close()


def test_a_client_that_leaves_is_told_to_the_upstream(front: Front) -> None:
    front.upstream.go_on.clear()
    front.upstream.left.clear()
    client = front.client()
    client.request("POST", "/v1/chat/completions", b'{"stream":true}')
    answer = client.getresponse()
    assert answer.readline() == b"data: first\n"
    answer.close()
    client.close()
    assert front.upstream.left.wait(15)


def test_a_large_body_passes(front: Front) -> None:
    body = b'{"x":"' + b"a" * (8 * 1024**2) + b'"}'
    client = front.client()
    client.request("POST", "/v1/chat/completions", body)
    answer = client.getresponse()
    assert (answer.status, answer.read()) == (200, b"{}")
    client.close()
    assert front.upstream.bodies[-1] == len(body)


def test_a_client_without_tls_is_turned_away_and_nobody_else(front: Front) -> None:
    with socket.create_connection(("127.0.0.1", front.port), 30) as plain:
        plain.sendall(b"GET /healthz HTTP/1.1\r\nhost: h\r\n\r\n")
        assert not plain.recv(65536).startswith(b"HTTP/1.1 200")
    client = front.client()
    client.request("GET", "/healthz")
    assert client.getresponse().status == 200
    client.close()


@pytest.mark.parametrize("word", ["off", "on"])
def test_off_and_on_are_confirmed_by_it(word: str, front: Front) -> None:
    command = [sys.executable, "-m", "reflexarc", word, "--state", str(front.state), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    (confirmed,) = json.loads(done.stdout)["confirmed"]
    assert confirmed["url"] == f"https://127.0.0.1:{front.port}"


def test_another_server_at_its_address_confirms_nothing(front: Front, tmp_path: Path) -> None:
    (listed,) = (front.state / "gateways").glob("*.json")
    said = json.loads(listed.read_bytes())
    (tmp_path / "gateways").mkdir(mode=0o700)
    said["certificate_sha256"] = "0" * 64
    (tmp_path / "gateways" / listed.name).write_text(json.dumps(said))
    command = [sys.executable, "-m", "reflexarc", "on", "--state", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "did not confirm" in done.stderr


# --- files that cannot be used --------------------------------------------------------------


def _refused(tls: Tls) -> str:
    with pytest.raises(ConfigError) as caught:
        listening(tls)
    return str(caught.value)


def test_both_files_or_none(folder: Path) -> None:
    cert, key = str(folder / "tls.crt"), str(folder / "tls.key")
    assert listening(Tls()) is None
    assert "tls.cert needs tls.key" in _refused(Tls(cert=cert))
    assert "tls.key needs tls.cert" in _refused(Tls(key=key))


def test_a_file_that_is_not_there_or_no_pem_is_named(folder: Path, tmp_path: Path) -> None:
    cert, key = str(folder / "tls.crt"), str(folder / "tls.key")
    none = str(tmp_path / "none.pem")
    assert f"tls.cert {none} cannot be read" in _refused(Tls(cert=none, key=key))
    assert f"tls.key {none} cannot be read" in _refused(Tls(cert=cert, key=none))
    Path(none).write_text("not PEM")
    assert f"tls.cert {none} holds no certificate" in _refused(Tls(cert=none, key=key))
    assert "both must be PEM" in _refused(Tls(cert=cert, key=none))
    with pytest.raises(ConfigError, match=r"tls.ca_file .* holds no certificate"):
        upstream_context(Tls(ca_file=none))
    with pytest.raises(ConfigError, match=r"tls.ca_file .* cannot be read"):
        upstream_context(Tls(ca_file=str(tmp_path / "nowhere.pem")))


def test_another_certificates_key_is_told(folder: Path, tmp_path: Path) -> None:
    certified(tmp_path)
    said = _refused(Tls(cert=str(folder / "tls.crt"), key=str(tmp_path / "tls.key")))
    assert "is not the key of the certificate" in said


def test_an_encrypted_key_asks_no_terminal(folder: Path, tmp_path: Path) -> None:
    locked = tmp_path / "locked.key"
    command = ["openssl", "pkey", "-in", folder / "tls.key", "-aes256", "-passout", "pass:word"]
    subprocess.run([*command, "-out", locked], check=True, capture_output=True)
    assert "is encrypted" in _refused(Tls(cert=str(folder / "tls.crt"), key=str(locked)))


def test_the_command_ends_with_2_and_says_why(folder: Path) -> None:
    command = [sys.executable, "-m", "reflexarc", "serve", "--upstream", "http://127.0.0.1:9/v1"]
    done = subprocess.run(
        [*command, "--port", "0", "--tls-cert", str(folder / "tls.crt")],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert "tls.cert needs tls.key beside it" in done.stderr
