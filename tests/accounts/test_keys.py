"""Virtual keys: what they may do, and that nobody can read them back."""

import base64
import random
import sqlite3
from pathlib import Path

import msgspec
import pytest

from reflexarc.accounts.database import FILE, Database
from reflexarc.accounts.keyring import Keyring
from reflexarc.accounts.keys import VirtualKey, hash_of, is_secret, new_secret, session_hash
from reflexarc.steps.errors import BookError, ConfigError, KeyRefusedError, NotAllowedError
from tests.accounts.booking import NOON, SECRET, Clock, key


def ring(directory: Path) -> Keyring:
    return Keyring(Database(directory / FILE), SECRET, Clock())


def wanted(name: str, **more: object) -> VirtualKey:
    return msgspec.structs.replace(VirtualKey("", name, ""), **more)


def test_a_secret_is_rx_and_43_characters_of_256_random_bits() -> None:
    drawn = random.Random(1)
    secrets = {new_secret(drawn.randbytes) for _ in range(100)}
    assert len(secrets) == 100
    for secret in secrets:
        assert is_secret(secret)
        assert len(base64.urlsafe_b64decode(secret.removeprefix("rx-") + "=")) == 32


@pytest.mark.parametrize("text", ["", "rx-", "sk-" + "a" * 43, "rx-" + "a" * 42, "rx-" + "é" * 43])
def test_what_has_another_form_is_no_key_of_ours(text: str) -> None:
    assert not is_secret(text)


def test_only_a_keyed_hash_of_a_secret_is_kept(tmp_path: Path) -> None:
    made, secret = ring(tmp_path).create(wanted("agent"))
    files = b"".join(path.read_bytes() for path in tmp_path.glob(f"{FILE}*"))
    assert secret.encode() not in files
    assert secret[3:].encode() not in files
    assert ring(tmp_path).by_hash() == {hash_of(SECRET, secret): made}
    assert hash_of(b"another secret", secret) != hash_of(SECRET, secret)


def test_a_hash_of_a_session_is_none_of_a_key() -> None:
    assert session_hash(SECRET, "x") != hash_of(SECRET, "x")[:16]
    assert session_hash(SECRET, "") == ""


def test_a_key_is_a_tenant_of_its_own_unless_one_is_named(tmp_path: Path) -> None:
    keys = ring(tmp_path)
    one, _ = keys.create(wanted("one"))
    other, _ = keys.create(wanted("other"))
    shared, _ = keys.create(wanted("shared", tenant="team"))
    assert one.tenant == one.id != other.tenant
    assert shared.tenant == "team"
    assert one.created_unix_s == NOON


def test_keys_are_found_by_name_and_by_id_and_keep_both(tmp_path: Path) -> None:
    keys = ring(tmp_path)
    made, _ = keys.create(wanted("agent", models=("coder",)))
    assert keys.named("agent") == keys.named(made.id) == made
    changed = keys.change(
        "agent", lambda was: msgspec.structs.replace(was, name="x", id="y", local_only=True)
    )
    assert (changed.name, changed.id, changed.local_only) == ("agent", made.id, True)
    assert keys.all() == [changed]
    for missing in (lambda: keys.named("none"), lambda: keys.change("none", lambda was: was)):
        with pytest.raises(ConfigError, match="there is no key 'none'"):
            missing()


def test_a_name_is_taken_once_even_by_a_revoked_key(tmp_path: Path) -> None:
    keys = ring(tmp_path)
    keys.create(wanted("agent"))
    keys.change("agent", lambda was: msgspec.structs.replace(was, revoked=True))
    with pytest.raises(ConfigError, match="there is a key 'agent' already"):
        keys.create(wanted("agent"))


@pytest.mark.parametrize("name", ["", "-x", "a b", "é", "x" * 65])
def test_a_name_that_could_be_mistaken_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="cannot name a key"):
        ring(tmp_path).create(wanted(name))


def test_a_key_that_another_release_wrote_is_not_half_read(tmp_path: Path) -> None:
    keys = ring(tmp_path)
    keys.create(wanted("agent"))
    connection = sqlite3.connect(tmp_path / FILE)
    connection.execute("update keys set settings = json_insert(settings, '$.weekdays', 1)")
    connection.commit()
    connection.close()
    with pytest.raises(BookError, match="weekdays"):
        keys.all()


def test_a_revoked_or_expired_key_is_refused() -> None:
    key().check_alive(NOON)
    key(expires_unix_s=NOON + 1).check_alive(NOON)
    with pytest.raises(KeyRefusedError, match="expired"):
        key(expires_unix_s=NOON).check_alive(NOON)
    with pytest.raises(KeyRefusedError, match="revoked"):
        key(revoked=True).check_alive(NOON)


def test_a_key_may_use_what_it_names_and_all_where_it_names_none() -> None:
    some = key(models=("coder", "gpt-5*"), tiers=("batch",), reflexes=("/v1",))
    some.check("coder", "batch")
    some.check("gpt-5.1-mini", "batch")
    with pytest.raises(NotAllowedError, match="model 'gpt-4'; it may use coder, gpt-5") as caught:
        some.check("gpt-4", "batch")
    assert caught.value.param == "model"
    with pytest.raises(NotAllowedError, match="tier 'interactive'; it may use batch"):
        some.check("coder", "interactive")
    assert some.may_use_reflex("/v1")
    assert not some.may_use_reflex("/v2")
    key().check("anything", "interactive")
    assert key().may_use_reflex("/v2")
    assert not key(reflexes=()).may_use_reflex("/v1")
    with pytest.raises(NotAllowedError, match="it may use none"):
        key(models=()).check("coder", "batch")


def test_only_a_star_stands_for_other_characters() -> None:
    assert not key(models=("gpt-[45]",)).may_use_model("gpt-5")
    assert key(models=("gpt-[45]",)).may_use_model("gpt-[45]")
    assert not key(models=("gpt-?",)).may_use_model("gpt-5")
    assert not key(models=("CODER",)).may_use_model("coder")
