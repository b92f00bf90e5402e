"""Database clients: the SQL decides; without SQL on the line a session opens that can do anything.

Handlers for psql, mysql, sqlite3, duckdb, sqlcmd and redis-cli.
"""

from __future__ import annotations

import re

from checkrein.classify import hosts
from checkrein.classify.arguments import SCRIPTS, path
from checkrein.classify.commands import handler, operands
from checkrein.classify.flags import options
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
        for word in parsed.operands[:1]:
            path(shell, "read", word)
        for word in statements:
            reaches_out(shell, spec, word)
        options(shell, spec, parsed._replace(given=[g for g in parsed.given if g.role != "sql"]))
        return _session(shell, spec, stdin) if stdin is not None else Word(HOLE, DYNAMIC)
    for word in parsed.operands[:1]:
        place = shell.places.place(word, shell.cwd)
        if place.scope in ("self", "self-secret"):
            shell.find(
                "write", "self", place.path, f"it opens {word.shown}, which is Checkrein's own, to change it"
            )
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


_HOST_OPTIONS = ("-h", "--host", "-S", "--server")
_TARGET_OPTIONS = ("-d", "--dbname", "-u", "--uri", "-D", "--database")
_CONNINFO = re.compile(r"(?:^|\s)(?:host|hostaddr|service)\s*=\s*'?([^\s']+)")


def _database_host(shell: Shell, spec: Spec, parsed: Parsed) -> None:
    """Every spelling of another machine: a host option, a URL, a connection string."""
    given = [g for g in parsed.given if g.value is not None]
    named = [g.value for g in given if g.name in _HOST_OPTIONS and g.value is not None]
    targets = [g.value for g in given if g.name in _TARGET_OPTIONS and g.value is not None]
    for word in [*targets, *parsed.operands[:1]]:
        if "://" in word.text:
            named.append(word)
        named += [word._replace(text=host) for host in _CONNINFO.findall(word.text)]
        named += [word._replace(text=host) for host in re.findall(r"[?&]host(?:addr)?=([^&]+)", word.text)]
    for word in named:
        scope, host = hosts.scope_of(word, shell.tables.known_hosts)
        if scope != "loopback" and not word.text.startswith("/") and not _local_socket(word.text):
            shell.find("network", "known", host, f"`{spec.name}` talks to the database at {host}")


def _local_socket(text: str) -> bool:
    return bool(re.match(r"(?:postgres(?:ql)?|redis|unix|mysql|sqlite|duckdb):///", text))


@handler("database-ping")
def ping(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word | None:
    """Asking whether a server answers: low here, a connection elsewhere."""
    _database_host(shell, spec, parse(spec, words))
    return None


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
