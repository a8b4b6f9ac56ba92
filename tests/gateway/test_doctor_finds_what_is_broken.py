"""Doctor names what is broken and what to do, on real files, ports, certificates and clocks."""

import json
import socket
import sqlite3
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner

from reflexarc.cli.doctor import command
from reflexarc.gateway.config import GatewayConfig, Route, StoreLimits, Tls
from reflexarc.gateway.doctor import examine_database, examine_route, examine_state, examine_tls
from reflexarc.gateway.doctor_upstream import examine_upstream
from reflexarc.gateway.finding import Finding

_KEY = "sk-this-is-secret"


class _Models(BaseHTTPRequestHandler):
    """Lists its models to who has the key, by a clock that may be wrong."""

    clock_off_s = 0.0
    path_here = "/v1/models"

    def do_GET(self) -> None:
        keyed = self.headers.get("Authorization") == f"Bearer {_KEY}"
        self.send_response((200 if keyed else 401) if self.path == self.path_here else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def date_time_string(self, timestamp: float | None = None) -> str:
        del timestamp
        return formatdate(time.time() + self.clock_off_s, usegmt=True)

    def log_message(self, format: str, *args: object) -> None:
        del format, args


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up in the handshake is what a test here is about."""


@contextmanager
def _served(tls: ssl.SSLContext | None = None, clock_off_s: float = 0.0) -> Iterator[str]:
    class Handler(_Models):
        pass

    Handler.clock_off_s = clock_off_s
    with _Server(("127.0.0.1", 0), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            scheme = "http" if tls is None else "https"
            yield f"{scheme}://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()
            thread.join()


def _certified(directory: Path, days: int) -> tuple[ssl.SSLContext, Path]:
    """A server's context with a self-signed certificate for 127.0.0.1, and its file."""
    key, certificate = directory / "tls.key", directory / "tls.crt"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-keyout", key, "-out", certificate, "-days", str(days), "-subj", "/CN=test",
         "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context, certificate


def _asked(upstream: str, key: str | None = _KEY, limit_s: float = 5.0) -> list[Finding]:
    environment = {} if key is None else {"KEY": key}
    route = Route(upstream=upstream, api_key_env="KEY")
    return examine_upstream(route, environment, time.time(), limit_s)


def _only(findings: list[Finding], level: str) -> Finding:
    (one,) = [finding for finding in findings if finding.level == level]
    return one


def test_an_upstream_that_answers_the_key_is_well() -> None:
    with _served() as upstream:
        found = _asked(upstream)
    assert [one.level for one in found] == ["ok", "ok"]
    assert "200" in found[0].found


def test_a_refused_key_a_missing_key_and_a_wrong_path_are_told_apart() -> None:
    with _served() as upstream:
        refused = _only(_asked(upstream, "sk-old"), "fail")
        missing = _only(_asked(upstream, None), "warn")
        wrong = _only(_asked(upstream.removesuffix("/v1")), "warn")
    assert "the key in KEY is refused" in refused.do
    assert "sk-old" not in repr(refused)
    assert "without a key" in missing.found
    assert "404" in wrong.found
    assert "/v1" in wrong.do


@pytest.mark.parametrize(("off_s", "side"), [(3600.0, "behind"), (-3600.0, "ahead of")])
def test_a_clock_that_differs_is_named_with_its_side(off_s: float, side: str) -> None:
    with _served(clock_off_s=off_s) as upstream:
        said = _only(_asked(upstream), "warn")
    assert side in said.found


def test_a_closed_port_is_named() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    said = _only(_asked(f"http://127.0.0.1:{port}/v1"), "fail")
    assert "refused" in said.found


def test_an_upstream_that_never_answers_does_not_hold_doctor() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        said = _only(_asked(f"http://127.0.0.1:{mute.getsockname()[1]}/v1", limit_s=0.2), "fail")
    assert "model server" in said.do


def test_a_certificate_of_an_unknown_authority_is_refused_and_of_a_named_one_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, authority = _certified(tmp_path, days=90)
    with _served(context) as upstream:
        unknown = _only(_asked(upstream), "fail")
        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        named = _asked(upstream)
    assert "not verified" in unknown.found
    assert "tls.ca_file" in unknown.do
    assert [one.level for one in named] == ["ok", "ok", "ok"]


def test_a_certificate_about_to_expire_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, authority = _certified(tmp_path, days=3)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    with _served(context) as upstream:
        said = _only(_asked(upstream), "warn")
    assert "renewed" in said.do


def test_files_of_tls_are_tried(tmp_path: Path) -> None:
    context, authority = _certified(tmp_path, days=60)
    files = Tls(str(authority), str(tmp_path / "tls.key"), str(authority))
    believed, found = examine_tls(files)
    assert [one.level for one in found] == ["ok"]
    with _served(context) as upstream:
        route = Route(upstream=upstream)
        verified = examine_upstream(route, {}, time.time(), tls=believed)
    assert "certificate valid for" in verified[0].found
    broken = Tls(str(authority), None, str(tmp_path / "nowhere.crt"))
    assert [one.level for one in examine_tls(broken)[1]] == ["fail", "fail"]


def test_a_port_without_tls_is_not_taken_for_a_bad_certificate() -> None:
    with _served() as upstream:
        said = _only(_asked(upstream.replace("http:", "https:")), "fail")
    assert "https on this port" in said.do


def test_a_variable_that_is_not_set_fails_and_one_that_is_set_is_not_shown() -> None:
    route = Route(upstream="http://127.0.0.1:1/v1", api_key_env="KEY")
    assert "KEY is not set" in _only(examine_route(route, {}), "fail").found
    found = examine_route(route, {"KEY": _KEY})
    assert {one.level for one in found} == {"ok"}
    assert _KEY not in repr(found)


def test_a_damaged_reflex_fails_and_a_whole_one_says_what_it_may(
    reflex_path: Path, tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged.reflex"
    data = bytearray(reflex_path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    damaged.write_bytes(data)
    route = Route(upstream="http://127.0.0.1:1/v1", reflex=str(damaged))
    assert str(damaged) in _only(examine_route(route, {}), "fail").what
    whole = Route(upstream="http://127.0.0.1:1/v1", reflex=str(reflex_path))
    assert "certificate" in examine_route(whole, {})[-1].found
    strict = Route(upstream="http://127.0.0.1:1/v1", reflex=str(reflex_path), max_error=1e-6)
    assert "no certificate" in _only(examine_route(strict, {}), "warn").found


def test_what_is_open_to_others_fails_with_the_command_that_closes_it(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    (state / "secret.key").write_text("00" * 32)
    (state / "secret.key").chmod(0o644)
    said = _only(examine_state(state, 2**40), "fail")
    assert said.do == f"chmod 600 {state / 'secret.key'}"
    (state / "secret.key").chmod(0o600)
    state.chmod(0o755)
    assert _only(examine_state(state, 2**40), "fail").do == f"chmod 700 {state}"
    state.chmod(0o700)
    assert {one.level for one in examine_state(state, 2**40)} == {"ok"}


def test_a_file_where_the_directory_should_be_and_a_full_disk_fail(tmp_path: Path) -> None:
    blocked = tmp_path / "state"
    blocked.write_text("")
    assert "not a directory" in _only(examine_state(blocked, 2**40), "fail").found
    assert "full disk" in _only(examine_state(tmp_path / "new", 0), "fail").do


def test_a_damaged_store_fails_and_an_overlong_one_is_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "reflexarc.db"
    connection = sqlite3.connect(path)
    connection.execute("create table t (x)")
    connection.executemany("insert into t values (?)", [("x" * 1000,)] * 2000)
    connection.commit()
    connection.close()
    assert examine_database(path, None).level == "ok"
    assert examine_database(path, GatewayConfig(route=())).level == "ok"
    small = GatewayConfig(route=(), store=StoreLimits(max_bytes=1000))
    assert examine_database(path, small).level == "warn"
    data = bytearray(path.read_bytes())
    data[8192:40960] = b"\x5a" * (40960 - 8192)
    path.write_bytes(data)
    assert examine_database(path, None).level == "fail"
    path.write_bytes(b"no database" * 1000)
    assert examine_database(path, None).level == "fail"


def test_it_runs_with_nothing_configured_and_changes_nothing(state_dir: Path) -> None:
    result = CliRunner().invoke(command, ["--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["ok"] is True
    assert list(state_dir.iterdir()) == []


def test_a_configuration_with_an_unknown_key_fails_with_status_1(tmp_path: Path) -> None:
    config = tmp_path / "reflexarc.toml"
    config.write_text('prot = 1\n[[route]]\nupstream = "http://127.0.0.1:1/v1"\n')
    result = CliRunner().invoke(command, ["--config", str(config)])
    assert result.exit_code == 1
    assert "did you mean port?" in result.output


def test_a_port_that_someone_else_has_fails(tmp_path: Path) -> None:
    config = tmp_path / "reflexarc.toml"
    with _served() as upstream, socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        config.write_text(f'port = {port}\n[[route]]\nupstream = "{upstream}"\n')
        result = CliRunner().invoke(command, ["--config", str(config)])
    assert result.exit_code == 1
    assert f"cannot listen on 127.0.0.1:{port}" in result.output
