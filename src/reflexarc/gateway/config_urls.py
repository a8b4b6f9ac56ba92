"""Whether a URL of the configuration may be an upstream's."""

import ipaddress

import yarl

from reflexarc.steps.errors import ConfigError


def check_url(text: str, here: str, others: str = "", name: str = "upstream") -> None:
    """Raises `ConfigError` for what is no base URL. `others`: words that may stand instead; `name`:
    of the key."""
    try:
        url = yarl.URL(text)
        fits = url.scheme in ("http", "https") and bool(url.host) and url.port is not None
        more = [
            name
            for name, given in (
                ("a user name or password", url.raw_user or url.raw_password),
                ("a query", "?" in text),
                ("a fragment", "#" in text),
            )
            if given
        ]
    except ValueError:
        fits, more = False, []
    if more:
        # The text is not repeated: what is wrong with it may be a secret.
        hint = "; keys belong in the variable that api_key_env names" if "@" in text else ""
        raise ConfigError(f"{here}: {name} must not hold {' or '.join(more)}{hint}")
    if not fits:
        shown = "what is given" if "@" in text else repr(text)
        raise ConfigError(
            f"{here}: {name} must be a URL such as http://127.0.0.1:9100/v1"
            f"{f', or {others}' if others else ''}, not {shown}"
        )


def is_private(url: str) -> bool | None:
    """Whether a URL leads into a private network; None where only its name's address tells."""
    host = yarl.URL(url).host or ""
    if host == "localhost" or host.endswith((".localhost", ".local", ".internal")):
        return True
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return None


def replica_of(url: str) -> str:
    """The short name of a replica: no other of its provider's has it, whatever is said of `/v1`."""
    parsed = yarl.URL(url)
    return f"{parsed.authority}{parsed.path.rstrip('/').removesuffix('/v1')}"
