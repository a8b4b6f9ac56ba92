"""TLS on both sides of the gateway: what it listens with, and whom it believes upstream."""

import hashlib
import ssl
from pathlib import Path
from typing import NamedTuple

from reflexarc.gateway.config import Tls
from reflexarc.steps.errors import ConfigError

_HTTP = ["http/1.1"]


class Listening(NamedTuple):
    """`fingerprint`: SHA-256, in hex, of the certificate that clients are shown."""

    context: ssl.SSLContext
    fingerprint: str


def listening(tls: Tls) -> Listening | None:
    """What to listen with; None where that is plain HTTP. The files are read once, here.

    Raises `ConfigError`.
    """
    if tls.cert is None and tls.key is None:
        return None
    if tls.cert is None or tls.key is None:
        given, missing = ("cert", "key") if tls.key is None else ("key", "cert")
        raise ConfigError(f"tls.{given} needs tls.{missing} beside it: give both, or none")
    shown = _read("tls.cert", tls.cert, "the certificate, then its intermediates, in PEM")
    _read("tls.key", tls.key, "the certificate's private key in PEM")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.set_alpn_protocols(_HTTP)

    def no_password() -> str:
        # Without this OpenSSL asks a terminal that a service does not have.
        raise ConfigError(
            f"tls.key {tls.key} is encrypted; write it without a password, readable by this user "
            "alone (openssl pkey -in KEY -out PLAIN)"
        )

    try:
        context.load_cert_chain(tls.cert, tls.key, no_password)
        leaf = ssl.PEM_cert_to_DER_cert(shown[shown.index(_BEGIN) : shown.index(_END) + len(_END)])
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(_unusable(tls.cert, tls.key, shown, error)) from error
    return Listening(context, hashlib.sha256(leaf).hexdigest())


_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


def _unusable(cert: str, key: str, shown: str, error: Exception) -> str:
    if getattr(error, "reason", None) == "KEY_VALUES_MISMATCH":
        return f"tls.key {key} is not the key of the certificate in tls.cert {cert}: give its own"
    if _BEGIN not in shown:
        return f"tls.cert {cert} holds no certificate in PEM"
    return f"tls.cert {cert} and tls.key {key} cannot be used ({error}): both must be PEM"


def upstream_context(tls: Tls) -> ssl.SSLContext | None:
    """The usual authorities and the one of `ca_file`; None where only the usual are believed.

    Raises `ConfigError`.
    """
    if tls.ca_file is None:
        return None
    _read("tls.ca_file", tls.ca_file, "an authority's certificates in PEM")
    context = ssl.create_default_context()
    context.set_alpn_protocols(_HTTP)
    try:
        context.load_verify_locations(tls.ca_file)
    except ssl.SSLError as error:
        raise ConfigError(f"tls.ca_file {tls.ca_file} holds no certificate in PEM") from error
    return context


def _read(key: str, path: str, wanted: str) -> str:
    try:
        return Path(path).read_text("latin-1")
    except OSError as error:
        raise ConfigError(
            f"{key} {path} cannot be read ({error.strerror}): name {wanted}"
        ) from error
