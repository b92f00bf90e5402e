"""Little languages in operands: sed, awk, jq and SQL, read far enough to see a write or a command.

Registered as script roles; each finds nothing in a script that only prints.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from checkrein.classify.arguments import SCRIPTS, path
from checkrein.classify.shell import Shell
from checkrein.classify.tables import Spec, data
from checkrein.classify.words import DYNAMIC, HOLE, SECRET, Word

_AWK_TOKEN = re.compile(
    r"(?P<blank>[ \t\r]+|\\\n|\#[^\n]*)"
    r'|(?P<string>"(?:[^"\\\n]|\\[\s\S])*")'
    r"|(?P<number>\d[\w.]*|\.\d+)"
    r"|(?P<name>[A-Za-z_]\w*)"
    rf"|(?P<hole>{HOLE})"
    r"|(?P<operator>>>|\|\||\|&|&&|\+\+|--|[-+*/%^=!<>]=|\*\*=?|[\s\S])"
)
_AWK_REGEX = re.compile(r"/(?:[^/\\\[\n]|\\.|\[\^?\]?(?:\[:\w+:\]|[^\]\n])*\])+/")
_AWK_VALUE = re.compile(rf"^[^{HOLE}]*[=<>!~,(+*/%&|-]\s*{HOLE}")
_AWK_OPENS = frozenset("if while for".split())
_AWK_BEFORE_REGEX = frozenset("print printf return in case do else".split())
_AWK_TELLS_OUT = ("/dev/stdout", "/dev/stderr", "/dev/null", "/dev/tty", "-")
_JQ_BAD = re.compile(
    r"(?<![.\w$])(?:env|input_filename|get_search_list|modulemeta)\b(?!\s*:(?!:))|\$ENV\b|\$__prog_args"
    r"|(?<![.\w$])(?:import|include)\b(?!\s*:)"
)
_YQ_BAD = re.compile(
    r"(?<![.\w])(?:load\w*\s*\(|(?:env|strenv|envsubst|eval|system|filename|split_doc)\b(?!\s*:))|\$ENV\b"
)
_SQL_READS = (
    "select",
    "explain",
    "show",
    "describe",
    "desc",
    "with",
    "pragma",
    "values",
    "use",
    "help",
    "list",
    "summarize",
    "from",
)
_SQL_CHANGES = re.compile(
    r"\b(?:(?:insert|replace|truncate)\b(?!\s*\()|update|delete|drop|alter|create|merge|grant|revoke|attach|detach|copy|export|import|vacuum"
    r"|reindex|load|install|set|call|exec|execute|do|lock|rename|into|kill|shutdown|backup|restore|bulk|dbcc|declare|begin)\b"
)
_SQL_BAD = re.compile(
    r"load_extension|readfile|writefile|edit\s*\(|fts3_tokenizer|pg_read_\w*|pg_ls_dir|pg_terminate|pg_cancel|lo_(?:im|ex)port|dblink"
    r"|outfile|dumpfile|load_file|sys_exec|xp_\w+|sp_\w+|openrowset|opendatasource|openquery|copy_to|program|query_to_xml|nextval|setval"
    r"|read_(?:csv|text|blob|json|parquet)\w*\s*\(|http_get|getenv|pragma\s+\w+\s*=|pg_sleep|benchmark\s*\(|waitfor",
)
_PRAGMA = re.compile(
    r"\s*pragma\s+(?:\w+\.)?(?:(?:table_x?info|index_x?info|\w*_list|\w+_check|show\w*|storage_info)\b(?:\s*\([^()]*\))?"
    r"|(?:version|compile_options|schema_version|user_version|page_count|page_size|journal_mode|encoding|freelist_count"
    r"|cache_size|database_size|metadata_info)\b(?:\s*\(\s*\))?)\s*\Z"
)
_SQL_ESCAPE = re.compile(
    r"\\(?:g|o|w|!|copy|i|e|s|watch|setenv|prompt|\.)|\bfrom\s+'[^']*[/.]", re.IGNORECASE
)
_SQL_LONGEST = 8_000
_SQL_QUOTED = r"`[^`]*+`|(?P<tag>\$\w*\$).*?(?P=tag)"
_SQL_PLAIN = r"'(?:[^']|'')*+'|\"(?:[^\"]|\"\")*+\""
_SQL_BLANKS = {
    "standard": re.compile(
        rf"(?P<comment>--[^\n]*|/\*(?!m?!).*?\*/)|\be'(?:[^'\\]|\\.|'')*+'|{_SQL_PLAIN}|{_SQL_QUOTED}", re.S
    ),
    "mysql": re.compile(
        r"(?P<comment>--(?=\s|\Z)[^\n]*|\#[^\n]*|/\*(?!m?!).*?\*/)"
        r"|'(?:[^'\\]|\\.|'')*+'|\"(?:[^\"\\]|\\.|\"\")*+\"|`[^`]*+`",
        re.S,
    ),
    "brackets": re.compile(rf"(?P<comment>--[^\n]*|/\*.*?\*/)|{_SQL_PLAIN}|`[^`]*+`|\[[^\]]*+\]", re.S),
}
"""Comments and quoted text of each dialect, found in one pass so that neither can hide in the other."""
_SQL_DIALECTS = {
    **dict.fromkeys(("mysql", "mariadb", "mycli"), "mysql"),
    **dict.fromkeys(("sqlite3", "sqlite", "litecli", "sqlcmd"), "brackets"),
}
_SQL_SERVERS = frozenset("psql pgcli mysql mariadb mycli sqlcmd".split())
"""Clients of servers whose settings decide what a backslash or a quote means."""
_DOT_COMMANDS = re.compile(
    r"^\s*\.(?:tables?|schema|indexes|indices|databases|dbinfo|headers?|mode|show|width|help|version|echo|print|nullvalue|fullschema"
    r"|stats|timer|eqp|explain|separator|changes|limit|lint|quit|exit|maxrows|columns|rows)\b"
)
_PSQL_META = re.compile(
    r"\s*\\(?:(?:d\S*|l\+?|z|x|a|t|timing|pset|encoding|q|echo|h|\?|s[fv]\+?|conninfo)(?:\s[^\\`|]*)?|c(?:onnect)?(?:\s+\w*)?)\s*\Z"
)
_SQL_END = re.compile(r"\\[gG](?=\s*(?:;|$))", re.M)
"""`\\G` of mysql and a bare `\\g` of psql end a statement like `;`."""
_SQL_CALL = re.compile(r"(\w+|''|`)\s*\(")
_SQL_NAMED_QUERY = re.compile(
    r"\b(\w+)\s*\([^()]*\)\s*as\s+(?:not\s+)?(?:materialized\s*)?\(|\bas\s+(\w+)\s*\("
)
_DUCKDB_FILE = re.compile(r"(?:\b(?:from|join)|,)\s*(?:'[^']*[/.][^']*'|\"[^\"]*[/.][^\"]*\")")


@cache
def _sql_functions() -> re.Pattern[str]:
    return re.compile(f"(?:{'|'.join(data('_code')['sql']['functions'])})\\Z")


def script(shell: Shell, spec: Spec, word: Word) -> None:
    """The language the command's table entry names."""
    SCRIPTS.get(spec.scope, SCRIPTS["text"])(shell, spec, word)


def sed(shell: Shell, _spec: Spec, word: Word) -> None:
    """Only `e` runs, only `w` and `r` touch files; an unknown part could be any of them."""
    if word.kind == DYNAMIC and HOLE in word.text:
        shell.find("exec", "script", word.shown, "the sed script cannot be known")
        return
    for command, argument in _sed_commands(word.text):
        if command == "e":
            shell.find("exec", "shell", argument[:60], "its sed script runs a command")
        elif command in ("w", "W"):
            path(shell, "write", _named_file(argument))
        elif command in ("r", "R"):
            path(shell, "read", _named_file(argument))
        elif command == "?":
            shell.find("exec", "script", argument[:60], "part of the sed script is not understood")


def _named_file(argument: str) -> Word:
    name = argument.strip()
    return Word(name) if name and HOLE not in name else Word(name or HOLE, DYNAMIC)


_SED_ADDRESS = re.compile(rf"\s*(?:[\d{HOLE}]+(?:~[\d{HOLE}]+)?|\$|[+~][\d{HOLE}]+)")


def _sed_commands(text: str) -> list[tuple[str, str]]:
    """The commands of a sed script with their arguments; `?` for what does not fit the grammar."""
    found: list[tuple[str, str]] = []
    at, size = 0, len(text)
    while at < size and len(found) < 200:
        start, at = at, _sed_addresses(text, at)
        if at >= size:
            if HOLE in text[start:]:
                found.append(("?", text[start:]))
            break
        letter = text[at]
        at += 1
        if letter in "{}; \t\n!":
            continue
        if letter == "#":
            at = _line_end(text, at)
        elif letter in "sy":
            at = _sed_substitute(text, at, letter, found)
        elif letter in "aic":
            end = _line_end(text, at)
            while end < size and text[end - 1 : end] == "\\":
                end = _line_end(text, end + 1)
            at = end
        elif letter in "rRwWe":
            end = _line_end(text, at)
            found.append((letter, text[at:end]))
            at = end
        elif letter in ":btTqQlL":
            match = re.compile(r"[^;}\n]*").match(text, at)
            at = match.end() if match else at
        elif letter in "=dDgGhHnNpPxzF":
            continue
        else:
            found.append(("?", text[at - 1 :]))
            break
    return found


def _sed_addresses(text: str, at: int) -> int:
    for _ in range(4):
        while at < len(text) and text[at] in " \t\n;,!":
            at += 1
        match = _SED_ADDRESS.match(text, at)
        if match and match.end() > at:
            at = match.end()
        elif at < len(text) and text[at] in "/\\":
            mark = text[at]
            if mark == "\\":
                at += 1
                mark = text[at : at + 1]
            at = _delimited(text, at + 1, mark)
            while at < len(text) and text[at] in "IM":
                at += 1
        else:
            break
    return at


def _delimited(text: str, at: int, mark: str) -> int:
    bracket = False
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 2
            continue
        if char == "[" and mark != "[":
            bracket = True
        elif char == "]":
            bracket = False
        elif char == mark and (not bracket or mark != "/"):
            return at + 1
        at += 1
    return at


def _sed_substitute(text: str, at: int, letter: str, found: list[tuple[str, str]]) -> int:
    mark = text[at : at + 1]
    at = _delimited(text, at + 1, mark)
    at = _delimited(text, at, mark)
    if letter == "y":
        return at
    while at < len(text) and text[at] not in ";}\n ":
        if text[at] == "e":
            found.append(("e", text))
        elif text[at] == "w":
            end = _line_end(text, at)
            found.append(("w", text[at + 1 : end]))
            return end
        elif text[at] not in "gpiImM0123456789":
            found.append(("?", text[at:]))
            return len(text)
        at += 1
    return at


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


class _Token(NamedTuple):
    kind: str
    text: str


def awk(shell: Shell, _spec: Spec, word: Word) -> None:
    """INVARIANT: an awk program is low only when every part of it is known to print or compute."""
    if word.kind == DYNAMIC and HOLE in word.text:
        shell.find("exec", "script", word.shown, "the awk program cannot be known")
        return
    tokens = _awk_tokens(word.text)
    if tokens is None:
        shell.find("exec", "script", "awk", "part of the awk program is not understood")
        return
    if any(t.kind == "hole" for t in tokens) and not _AWK_VALUE.search(word.text):
        shell.find("exec", "script", "awk", "part of the awk program cannot be known")
    _awk_words(shell, tokens)
    _awk_files(shell, tokens)


def _awk_tokens(text: str) -> list[_Token] | None:
    """The program's tokens without blanks and comments; None when a string or pattern never ends."""
    tokens: list[_Token] = []
    parentheses: list[bool] = []
    conditional = False
    at = 0
    while at < len(text):
        if text[at] == "/" and _awk_expects_regex(tokens, conditional):
            match = _AWK_REGEX.match(text, at)
            if match is None:
                return None
            tokens.append(_Token("regex", match.group()))
            at = match.end()
            continue
        match = _AWK_TOKEN.match(text, at)
        if match is None or match.group() == '"':
            return None
        at = match.end()
        if match.lastgroup == "blank":
            continue
        token = _Token(match.lastgroup or "", match.group())
        if token.text == "(":
            parentheses.append(bool(tokens) and tokens[-1].text in _AWK_OPENS)
        elif token.text == ")":
            conditional = parentheses.pop() if parentheses else False
        tokens.append(token)
    return tokens


def _awk_expects_regex(tokens: list[_Token], conditional: bool) -> bool:
    """A slash divides behind an operand and opens a pattern elsewhere."""
    if not tokens:
        return True
    kind, text = tokens[-1]
    if kind == "operator":
        return conditional if text == ")" else text not in ("]", "++", "--", "$")
    return kind == "name" and text in _AWK_BEFORE_REGEX


def _awk_words(shell: Shell, tokens: list[_Token]) -> None:
    """Names and operators that run a command or reach for more than the program's input."""
    rules = data("_code")["awk"]
    defined = {t.text for before, t in pairwise(tokens) if before.text in ("function", "func")}
    for index, (kind, text) in enumerate(tokens):
        before = tokens[index - 1].text if index else ""
        after = tokens[index + 1].text if index + 1 < len(tokens) else ""
        if text in ("|", "|&") or (text == "@" and not after.startswith("/")):
            shell.find("exec", "shell", "awk", "its awk program runs a command")
        elif kind == "string" and text.startswith('"/inet'):
            shell.find("network", "outside", "awk", "its awk program opens a connection")
        elif kind != "name":
            continue
        elif text == "ENVIRON":
            shell.find("secret", "environment", "awk", "its awk program reads the environment")
        elif text in rules["inner"] and not (
            before in rules["compares"] or tokens[index + 1 : index + 3] == _AWK_SORTING
        ):
            shell.find("exec", "script", "awk", f"its awk program uses {text}")
        elif after == "(" and text not in defined and text not in rules["functions"]:
            scope = "shell" if text == "system" else "script"
            shell.find("exec", scope, "awk", f"its awk program calls {text}")


_AWK_SORTING = [_Token("operator", "["), _Token("string", '"sorted_in"')]


def _awk_files(shell: Shell, tokens: list[_Token]) -> None:
    """Files the program itself writes (`print > x`) or reads (`getline < x`)."""
    verb, depth = "", 0
    for index, (kind, text) in enumerate(tokens):
        if kind == "name" and text in ("print", "printf", "getline"):
            verb, depth = text, 0
        elif kind != "operator":
            continue
        elif text in ("(", "["):
            depth += 1
        elif text in (")", "]"):
            depth -= 1
            verb = verb if depth >= 0 else ""
        elif text in ("\n", ";", "{", "}"):
            verb = ""
        elif depth == 0 and verb == "getline" and text == "<":
            _awk_file(shell, "read", tokens[index + 1 : index + 3])
        elif depth == 0 and verb.startswith("print") and text in (">", ">>"):
            _awk_file(shell, "write", tokens[index + 1 : index + 3])


def _awk_file(shell: Shell, role: str, target: list[_Token]) -> None:
    ends = len(target) == 1 or (
        target[1].kind == "operator" and target[1].text not in ("$", "(", "-", "+", "[")
    )
    if target and target[0].kind == "string" and ends and "\\" not in target[0].text:
        name = target[0].text[1:-1]
        if name in _AWK_TELLS_OUT:
            return
        path(shell, role, Word(name))
    elif role == "write":
        shell.find("write", "unknown", "awk", "its awk program writes a file it computes")
    if role == "read":
        shell.find("exec", "script", "awk", "its awk program reads other files")


def jq(shell: Shell, spec: Spec, word: Word) -> None:
    """Strings are text, but what stands in `\\(...)` inside them is program again."""
    bad = _YQ_BAD if spec.name == "yq" else _JQ_BAD
    if word.kind == DYNAMIC and not word.known:
        shell.find("exec", "script", word.shown, f"the {spec.name} program cannot be known")
    elif match := bad.search(_outside_strings(word.text)):
        shell.find(
            "secret", "environment", match.group(), f"its {spec.name} program reads more than its input"
        )


def _outside_strings(text: str) -> str:
    """A jq program with its strings blanked and what they interpolate kept."""
    kept: list[str] = []
    inside: list[int] = []  # one entry per open string; how deep its interpolation is, 0 for its text
    at = 0
    while at < len(text):
        char, pair = text[at], text[at : at + 2]
        at += 1
        if inside and inside[-1] == 0:
            if pair == "\\(":
                inside[-1] = 1
                kept.append("(")
                at += 1
            elif char == "\\":
                at += 1
            elif char == '"':
                inside.pop()
                kept.append('"')
            continue
        kept.append(char)
        if char == '"':
            inside.append(0)
        elif inside and char in "()":
            inside[-1] += 1 if char == "(" else -1
    return "".join(kept)


def _only_reads(words: list[str], statement: str) -> bool:
    if words[0] in ("pragma", "show", "describe", "desc", "explain", "help", "use") and "=" not in statement:
        return words[0] != "explain" or "analyze" not in words[:3] or not _SQL_CHANGES.search(statement)
    return words[0] in _SQL_READS and not _SQL_CHANGES.search(statement)


def reaches_out(shell: Shell, spec: Spec, word: Word) -> bool:
    """SQL that calls a function which reads, writes or runs something outside the database."""
    lines = [line for line in word.text.splitlines() if not _PSQL_META.match(line)]
    text = word.text.lower()
    outside = _SQL_BAD.search(text) or (spec.name == "duckdb" and _DUCKDB_FILE.search(text))
    if not outside and not _SQL_ESCAPE.search("\n".join(lines)):
        return False
    shell.find("exec", "sql", word.shown, "its SQL calls a function that reaches beyond the database")
    return True


def _unknown_call(statement: str) -> str:
    """A function in it that is not known to only compute."""
    named = {name for pair in _SQL_NAMED_QUERY.findall(statement) for name in pair}
    calls = (match.group(1) for match in _SQL_CALL.finditer(statement))
    return next((name for name in calls if name not in named and not _sql_functions().match(name)), "")


def sql(shell: Shell, spec: Spec, word: Word) -> None:
    """Reads are low; anything else, or anything unknown, is a change to a database."""
    word = word._replace(text=_SQL_END.sub(";", word.text))
    text = word.text.strip()
    if (word.kind == DYNAMIC and not word.known) or len(text) > _SQL_LONGEST:
        shell.find("exec", "sql", word.shown, "the SQL cannot be known, or is too long to follow")
        return
    for line in text.splitlines():
        if line.lstrip().startswith((".", "\\")) and not (
            _DOT_COMMANDS.match(line) or _PSQL_META.match(line)
        ):
            shell.find(
                "exec",
                "shell",
                line[:60],
                f"`{line.strip()[:40]}` is a command of `{spec.name}` that can do more than read",
            )
            return
    bare = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith((".", "\\")))
    lower = bare.replace(HOLE, "0").lower()
    if reaches_out(shell, spec, word):
        return
    blanks = _SQL_BLANKS[_SQL_DIALECTS.get(spec.name, "standard")]
    # INVARIANT: SQL behind a quote or a comment is read as the dialect reads it
    statements = blanks.sub(lambda match: " " if match["comment"] else "''", lower).split(";")
    if spec.name in _SQL_SERVERS and sum(map(bool, map(str.strip, statements))) > 1:
        why = f"where the server sees one statement of its SQL end is its own affair: {text[:60]}"
        shell.find("exec", "sql", text[:60], why)
    for statement in statements:
        if why := _sql_change(statement):
            shell.find("write", "database", text[:60], f"its SQL {why}: {text[:60]}")
            return
    if re.search(r"\b(?:password|passwd|pg_shadow|pg_authid|mysql\.user)\b", lower) and word.taint & SECRET:
        shell.find("secret", "database", text[:60], "its SQL reads credentials")


def _sql_change(statement: str) -> str:
    """What a statement changes, as the end of a sentence; nothing when it only reads."""
    words = statement.replace("(", " ").split()
    if not words:
        return ""
    if words[0] == "pragma":
        return "" if _PRAGMA.match(statement) else "changes a setting"
    if not _only_reads(words, statement):
        return "changes the database"
    unknown = _unknown_call(statement)
    return f"calls {unknown}, which may change something" if unknown else ""


SCRIPTS.update({"script": script, "sed": sed, "awk": awk, "jq": jq, "sql": sql})
