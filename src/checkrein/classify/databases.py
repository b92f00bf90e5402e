"""Database clients: the SQL decides; without SQL on the line a session opens that can do anything.

Handlers for psql, mysql, sqlite3, duckdb, sqlcmd and redis-cli.
"""

from __future__ import annotations

from checkrein.classify import hosts
from checkrein.classify.arguments import SCRIPTS
from checkrein.classify.commands import handler, operands, options
from checkrein.classify.options import Parsed, parse
from checkrein.classify.scripts import reaches_out
from checkrein.classify.shell import Shell
from checkrein.classify.tables import Spec
from checkrein.classify.words import DYNAMIC, HOLE, Word


@handler("database")
def database(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word:
    """What the SQL does decides; without SQL on the line a session opens."""
    if spec.name == "sqlcmd" and words and words[0].literal and not words[0].text.startswith("-"):
        return _go_sqlcmd(shell, spec, words)
    if spec.name == "sqlcmd" and [w.text for w in words] == ["-h"]:
        return Word(HOLE, DYNAMIC)
    parsed = parse(spec, words)
    readonly = parsed.has("-readonly", "-safe")
    if (
        readonly
        and not any(_escapes(g.value) for g in parsed.given if g.role == "sql")
        and not any(map(_escapes, parsed.operands))
    ):
        statements = [
            g.value for g in parsed.given if g.role == "sql" and g.value is not None
        ] + parsed.operands[1:]
        for word in statements:
            reaches_out(shell, word)
        options(shell, spec, parsed._replace(given=[g for g in parsed.given if g.role != "sql"]))
        return _session(shell, spec, stdin) if stdin is not None else Word(HOLE, DYNAMIC)
    options(shell, spec, parsed)
    _database_host(shell, spec, parsed)
    operands(shell, spec, parsed, stdin, dry=False)
    informed = (
        parsed.role("sql")
        or parsed.role("scriptfile")
        or parsed.has("-l", "--list", "-V", "--version", "-version", "-help", "--help", "-?", "-L")
    )
    if not informed and len(parsed.operands) < 2:
        return _session(shell, spec, stdin)
    return Word(HOLE, DYNAMIC)


def _escapes(word: Word | None) -> bool:
    return word is not None and (
        word.text.lstrip().startswith((".", "\\"))
        or not word.literal
        or "load_extension" in word.text.lower()
    )


def _session(shell: Shell, spec: Spec, stdin: Word | None) -> Word:
    if stdin is not None and stdin.literal:
        SCRIPTS["sql"](shell, spec, stdin)
    else:
        shell.find(
            "exec", "database", spec.name, f"`{spec.name}` opens a session that can change the database"
        )
    return Word(HOLE, DYNAMIC)


def _go_sqlcmd(shell: Shell, spec: Spec, words: list[Word]) -> Word:
    verb, rest = words[0].text, words[1:]
    named = [w for w in rest if not w.text.startswith("-")]
    if verb == "query":
        parsed = parse(spec, rest)
        for word in parsed.operands or [
            g.value for g in parsed.given if g.name in ("-q", "-Q", "--query", "-t") and g.value
        ]:
            SCRIPTS["sql"](shell, spec, word)
    elif (
        verb == "config"
        and named
        and named[0].text
        in (
            "view",
            "get-contexts",
            "get-users",
            "get-endpoints",
            "current-context",
            "connection-strings",
            "cs",
        )
    ):
        pass
    elif verb not in ("help", "completion"):
        shell.find("exec", "database", f"sqlcmd {verb}", f"`sqlcmd {verb}` changes something")
    return Word(HOLE, DYNAMIC)


def _database_host(shell: Shell, spec: Spec, parsed: Parsed) -> None:
    for given in parsed.given:
        if (
            given.name in ("-h", "--host", "-S", "--server")
            and given.value is not None
            and not given.value.text.startswith("/")
        ):
            scope, host = hosts.scope_of(given.value, shell.tables.known_hosts)
            if scope != "loopback":
                shell.find("network", "known", host, f"`{spec.name}` talks to the database at {host}")
    for word in parsed.operands[:1]:
        if "://" in word.text:
            scope, host = hosts.scope_of(word, shell.tables.known_hosts)
            if scope != "loopback":
                shell.find("network", "known", host, f"`{spec.name}` talks to the database at {host}")


@handler("redis")
def redis(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    parsed = parse(spec, words, stop=True)
    options(shell, spec, parsed)
    _database_host(shell, spec, parsed)
    verb = parsed.operands[0].text.lower() if parsed.operands else ""
    reads = (
        "get",
        "mget",
        "keys",
        "scan",
        "info",
        "ping",
        "ttl",
        "type",
        "exists",
        "llen",
        "lrange",
        "hgetall",
        "hget",
        "smembers",
        "dbsize",
    )
    if parsed.has("--version", "-v", "--stat", "--scan", "--bigkeys") or verb in (
        *reads,
        "zrange",
        "xlen",
        "strlen",
        "hlen",
        "scard",
        "time",
    ):
        return Word(HOLE, DYNAMIC)
    shell.find("exec", "database", verb or spec.name, f"`{spec.name} {verb}` can change the database")
    return Word(HOLE, DYNAMIC)
