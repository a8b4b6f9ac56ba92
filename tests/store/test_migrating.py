"""A store of an earlier release is brought up to date, and what it holds stays."""

import sqlite3
from importlib.resources import files
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine

from reflexarc.store.reading import kept_sessions
from reflexarc.store.store import Store


def first_release(path: Path) -> None:
    config = Config()
    config.set_main_option("script_location", str(files("reflexarc.store") / "migrations"))
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
    engine.dispose()
    connection = sqlite3.connect(path)
    connection.execute(
        "insert into sessions (id, tenant, route, task, task_from, model, began_s, last_s,"
        " messages, asked, head, attempt) values ('s', 't', '/', 'k', 'header', 'm', 1, 1, 2,"
        " 'a', 'h', 0)"
    )
    for at, role in enumerate(("user", "assistant")):
        connection.execute(
            "insert into messages (session, at, role, digest, size, calls, by_system1, content)"
            " values ('s', ?, ?, 'd', 1, '[]', 0, ?)",
            (at, role, f'{{"role": "{role}", "content": "x"}}'),
        )
    connection.execute(
        "insert into steps (session, gateway, number, request_id, at, attempt, began_s, route,"
        " mode, record, tenant, task, model, decided_by, status, complete, request_bytes,"
        " prompt_tokens, cached_tokens, completion_tokens, tokens_estimated, cost_usd, total_ms,"
        " action, reason, tool, confidence, max_error, head) values ('s', 'g', 1, 'r', 1, 0, 1,"
        " '/', 'shadow', 'full', 't', 'k', 'm', 'system2', 200, 1, 1, 1, 0, 1, 0, 0.000107, 1,"
        " '', '', '', 0, 0, 'h')"
    )
    connection.commit()
    connection.close()


def test_a_store_of_the_first_release_is_migrated_where_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "reflexarc.db"
    first_release(path)
    store = Store.open(path)
    with store.reading() as connection:
        [kept], _ = kept_sessions(connection)
        assert connection.exec_driver_sql("select count(*) from purges").scalar() == 0
        step = connection.exec_driver_sql("select * from steps").one()
        assert (step.cost_micro_usd, step.cache_write_tokens, step.partial) == (107, 0, 0)
        assert connection.exec_driver_sql("select count(*) from attempts").scalar() == 0
    store.close()
    assert b"decided_by" not in kept.line
