"""Database clients: the SQL decides, and a session without SQL is never low."""

from __future__ import annotations

import pytest
from ground import judge

from checkrein.call import Category


@pytest.mark.parametrize(
    "command",
    [
        "sqlite3 a.db 'select 1'",
        "sqlite3 a.db .tables",
        "sqlite3 -readonly a.db 'select * from t'",
        "sqlite3 a.db \"select 'drop table x'\"",
        "sqlite3 a.db 'select deleted_at, updated from t'",
        "psql -c 'select 1'",
        "psql -h localhost -c 'select 1'",
        "psql -l",
        "echo 'select 1' | psql",
        "mysql -e 'show tables'",
        "duckdb -c 'select 1'",
        "redis-cli get k",
        "sqlcmd query 'select 1'",
        "sqlcmd config view",
    ],
)
def test_sql_that_only_reads_is_low(command):
    assert judge(command).category is Category.low


@pytest.mark.parametrize(
    "command",
    [
        "sqlite3 a.db 'drop table x'",
        "sqlite3 a.db 'select 1; delete from t'",
        "sqlite3 a.db 'with x as (select 1) delete from t'",
        "psql -c 'delete from t'",
        "echo 'drop table x' | psql",
        "mysql -e 'truncate t'",
        "redis-cli flushall",
        "sqlcmd delete",
    ],
)
def test_sql_that_changes_something_is_not(command):
    assert judge(command).category > Category.low


@pytest.mark.parametrize(
    "command", ["sqlite3 a.db", "psql", "psql -f x.sql", "redis-cli", "mysql db", "cat x.sql | psql"]
)
def test_a_session_or_script_nobody_can_read_is_never_low(command):
    assert judge(command).category > Category.low


@pytest.mark.parametrize(
    "command",
    [
        "sqlite3 -readonly a.db '.shell id'",
        "sqlite3 a.db '.output x'",
        "sqlite3 a.db \"select load_extension('x')\"",
        "sqlite3 a.db \"select writefile('x', 'y')\"",
        "psql -c '\\! id'",
        "psql -c \"copy t to program 'id'\"",
    ],
)
def test_sql_that_reaches_beyond_the_database_is_never_low(command):
    assert judge(command).category > Category.low


def test_another_machines_database_is_high():
    assert judge("psql -h db.example -c 'select 1'").category is Category.high
    assert judge("psql postgres://u@db.example/x -c 'select 1'").category is Category.high


@pytest.mark.parametrize(
    "command",
    [
        "psql 'host=db.example dbname=x' -c 'select 1'",
        "psql -d 'host=db.example' -c 'select 1'",
        "psql 'postgres:///x?host=db.example' -c 'select 1'",
        "redis-cli -u redis://db.example get x",
        "pg_isready -h db.example",
    ],
)
def test_another_machine_is_seen_in_every_spelling(command):
    assert judge(command).category is Category.high


@pytest.mark.parametrize(
    "command",
    [
        "psql -c '\\echo `id`'",
        "psql -c '\\pset title `id`'",
        "psql -c '\\c db user db.example'",
        "echo '\\x \\! id' | psql",
        "psql -c 'select pg_reload_conf()'",
        "psql -c \"select set_config('a', 'b', false)\"",
        "psql -c 'select lo_unlink(1)'",
        "psql -c 'select a_function_of_theirs(1)'",
        "psql -c 'select \"pg_reload_conf\"()'",
        "sqlite3 a.db 'pragma user_version(7)'",
        "sqlite3 a.db 'pragma journal_mode(wal)'",
        "duckdb -c 'select * from \"secrets.csv\"'",
        "duckdb -c \"select * from t, 'x.parquet'\"",
        "mysql -e 'select 1\\G drop table t'",
    ],
)
def test_what_is_not_known_to_read_is_not_low(command):
    assert judge(command).category > Category.low


@pytest.mark.parametrize(
    "command",
    [
        "psql -c \"select replace(name, 'a', 'b') from t limit 5\"",
        "psql -c 'select pg_size_pretty(pg_database_size(current_database()))'",
        "psql -c 'with t(n) as (select 1) select count(*), max(n) from t where n in (1, 2)'",
        "psql -c '\\d+ users'",
        "psql -c '\\c other'",
        "mysql -e 'show processlist\\G'",
        "sqlite3 a.db 'pragma user_version'",
        "sqlite3 a.db 'pragma table_info(t)'",
        "redis-cli -u redis://localhost:6379 get x",
        "psql postgres://localhost/x -c 'select 1'",
        "pg_isready -h localhost",
    ],
)
def test_reading_functions_and_settings_stay_low(command):
    assert judge(command).category is Category.low


def test_our_own_store_is_not_an_agent_s_to_change():
    store = "~/.local/state/checkrein/checkrein.db"
    assert judge(f"sqlite3 {store} 'delete from rule'").category is Category.critical
    assert judge(f"sqlite3 {store}").category is Category.critical
    assert judge(f"sqlite3 -readonly {store} 'select 1'").category is Category.low


@pytest.mark.parametrize("flag", ["", "-readonly "])
def test_a_secret_database_is_a_secret(flag):
    assert judge(f"sqlite3 {flag}~/.mozilla/firefox/a/cookies.sqlite 'select 1'").category is Category.high
    assert (
        judge(f"sqlite3 {flag}~/.config/google-chrome/Default/Cookies 'select 1'").category is Category.high
    )
