"""Little languages in operands: sed, awk, jq and SQL, read far enough to see a write or a command.

Registered as script roles; each finds nothing in a script that only prints.
"""

from __future__ import annotations

import re

from checkrein.classify.arguments import SCRIPTS, path
from checkrein.classify.shell import Shell
from checkrein.classify.tables import Spec
from checkrein.classify.words import DYNAMIC, HOLE, SECRET, Word

_AWK_EXEC = re.compile(
    r"\bsystem\s*\(|\|\s*getline|\|&|(?:print|printf)[^;{}\n]*\|\s*[\"(A-Za-z]|@load|@include|/inet/"
)
_AWK_VALUE = re.compile(rf"^[^{HOLE}]*[=<>!~,(+*/%&|-]\s*{HOLE}")
_AWK_WRITE = re.compile(r"(?:print|printf)\b([^;}\n]*)")
_AWK_READ = re.compile(r"getline\b[^;}\n]*<\s*(\"[^\"]*\"|\w+)")
_JQ_BAD = re.compile(r"(?<![.\w$])env\b|\$ENV\b|(?<![.\w])(?:import|include)\b|\$__prog_args")
_YQ_BAD = re.compile(r"(?<![.\w])(?:load\w*\s*\(|(?:env|strenv|envsubst|eval|system)\b)")
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
    r"\b(?:insert|update|delete|drop|alter|create|truncate|replace|merge|grant|revoke|attach|detach|copy|export|import|vacuum"
    r"|reindex|load|install|set|call|exec|execute|do|lock|rename|into|kill|shutdown|backup|restore|bulk|dbcc|declare|begin)\b"
)
_SQL_BAD = re.compile(
    r"load_extension|readfile|writefile|edit\s*\(|fts3_tokenizer|pg_read_\w*|pg_ls_dir|pg_terminate|pg_cancel|lo_(?:im|ex)port|dblink"
    r"|outfile|dumpfile|load_file|sys_exec|xp_\w+|sp_\w+|openrowset|opendatasource|openquery|copy_to|program|query_to_xml|nextval|setval"
    r"|read_(?:csv|text|blob|json|parquet)\w*\s*\(|http_get|getenv|pragma\s+\w+\s*=|pg_sleep|benchmark\s*\(|waitfor",
)
_PRAGMA = re.compile(
    r"\s*pragma\s+(?:\w+\.)?(?:table_x?info|index_x?info|index_list|foreign_key_list|database_list|\w*_list|show\w*|version|\w+_check|compile_options"
    r"|schema_version|user_version|page_count|page_size|journal_mode|encoding|freelist_count|cache_size|storage_info|database_size|metadata_info)\b"
)
_SQL_ESCAPE = re.compile(
    r"\\(?:g|o|w|!|copy|i|e|s|watch|setenv|prompt|\.)|\bfrom\s+'[^']*[/.]", re.IGNORECASE
)
_SQL_STRING = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\$\$.*?\$\$", re.S)
_SQL_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.S)
_DOT_COMMANDS = re.compile(
    r"^\s*\.(?:tables?|schema|indexes|indices|databases|dbinfo|headers?|mode|show|width|help|version|echo|print|nullvalue|fullschema"
    r"|stats|timer|eqp|explain|separator|changes|limit|lint|quit|exit|maxrows|columns|rows)\b"
)
_PSQL_META = re.compile(
    r"^\s*\\(?:d\S*|l\+?|z|c(?:onnect|onninfo)?|x|a|t|timing|pset|encoding|q|echo|h|\?|sf\+?|sv\+?|dt\S*|du\S*|dn\S*)(?:\s|$)"
)


def script(shell: Shell, spec: Spec, word: Word) -> None:
    """The language the command's table entry names."""
    SCRIPTS.get(spec.scope, SCRIPTS["text"])(shell, spec, word)


def sed(shell: Shell, _spec: Spec, word: Word) -> None:
    """Only `e` runs, only `w` and `r` touch files; an unknown part could be any of them."""
    if word.kind == DYNAMIC and not word.known:
        shell.find("exec", "script", word.shown, "the sed script cannot be known")
        return
    for command, argument in _sed_commands(word.text.replace(HOLE, "0")):
        if command == "e":
            shell.find("exec", "shell", argument[:60], "its sed script runs a command")
        elif command in ("w", "W"):
            path(shell, "write", Word(argument.strip()) if argument.strip() else Word(HOLE, DYNAMIC))
        elif command in ("r", "R"):
            path(shell, "read", Word(argument.strip()) if argument.strip() else Word(HOLE, DYNAMIC))
        elif command == "?":
            shell.find("exec", "script", argument[:60], "part of the sed script is not understood")


_SED_ADDRESS = re.compile(r"\s*(?:\d+(?:~\d+)?|\$|[+~]\d+|0)")


def _sed_commands(text: str) -> list[tuple[str, str]]:
    """The commands of a sed script with their arguments; `?` for what does not fit the grammar."""
    found: list[tuple[str, str]] = []
    at, size = 0, len(text)
    while at < size and len(found) < 200:
        at = _sed_addresses(text, at)
        if at >= size:
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


def awk(shell: Shell, _spec: Spec, word: Word) -> None:
    if word.kind == DYNAMIC and not word.known:
        shell.find("exec", "script", word.shown, "the awk program cannot be known")
        return
    text = re.sub(r"/(?:[^/\\\n]|\\.)+/", "//", re.sub(r'"(?:[^"\\]|\\.)*"', _awk_string, word.text))
    if _AWK_EXEC.search(text):
        shell.find("exec", "shell", "awk", "its awk program runs a command")
    if HOLE in text and not _AWK_VALUE.search(text):
        shell.find("exec", "script", "awk", "part of the awk program cannot be known")
    if "ENVIRON" in text:
        shell.find("secret", "environment", "awk", "its awk program reads the environment")
    for statement in _AWK_WRITE.findall(text):
        _, mark, target = _without_parentheses(statement).partition(">")
        target = target.lstrip("> ")[:60]
        if mark and not target.startswith('"/dev/std'):
            shell.find("write", "unknown", target, f"its awk program writes {target or 'a file it computes'}")
    if _AWK_READ.search(text):
        shell.find("exec", "script", "awk", "its awk program reads other files")


def _awk_string(match: re.Match[str]) -> str:
    """String contents blanked, except where they name a target that matters."""
    text = match.group()
    return text if text.startswith(('"/', '"~', '".')) and "|" not in text and ">" not in text else '"s"'


def _without_parentheses(text: str) -> str:
    """awk's `>` inside parentheses compares; outside it writes."""
    previous = None
    while previous != text:
        previous, text = text, re.sub(r"\([^()]*\)", "", text)
    return text


def jq(shell: Shell, spec: Spec, word: Word) -> None:
    bad = _YQ_BAD if spec.name == "yq" else _JQ_BAD
    text = re.sub(r'"(?:[^"\\]|\\.)*"', '""', word.text)
    if word.kind == DYNAMIC and not word.known:
        shell.find("exec", "script", word.shown, f"the {spec.name} program cannot be known")
    elif match := bad.search(text):
        shell.find(
            "secret", "environment", match.group(), f"its {spec.name} program reads more than its input"
        )


def _only_reads(words: list[str], statement: str) -> bool:
    if words[0] in ("pragma", "show", "describe", "desc", "explain", "help", "use") and "=" not in statement:
        return words[0] != "explain" or "analyze" not in words[:3] or not _SQL_CHANGES.search(statement)
    return words[0] in _SQL_READS and not _SQL_CHANGES.search(statement)


def reaches_out(shell: Shell, word: Word) -> bool:
    """SQL that calls a function which reads, writes or runs something outside the database."""
    lines = [line for line in word.text.splitlines() if not _PSQL_META.match(line)]
    if not _SQL_BAD.search(word.text.lower()) and not _SQL_ESCAPE.search("\n".join(lines)):
        return False
    shell.find("exec", "sql", word.shown, "its SQL calls a function that reaches beyond the database")
    return True


def sql(shell: Shell, spec: Spec, word: Word) -> None:
    """Reads are low; anything else, or anything unknown, is a change to a database."""
    text = word.text.strip()
    if word.kind == DYNAMIC and not word.known:
        shell.find("exec", "sql", word.shown, "the SQL cannot be known")
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
    lower = _SQL_COMMENT.sub(" ", bare.replace(HOLE, "0")).lower()
    if reaches_out(shell, word):
        return
    for statement in _SQL_STRING.sub("''", lower).split(";"):
        words = statement.replace("(", " ").split()
        if not words:
            continue
        if words[0] == "pragma" and not _PRAGMA.match(statement):
            shell.find("write", "database", text[:60], f"its SQL changes a setting: {text[:60]}")
            return
        if _only_reads(words, statement):
            continue
        shell.find("write", "database", text[:60], f"its SQL changes the database: {text[:60]}")
        return
    if re.search(r"\b(?:password|passwd|pg_shadow|pg_authid|mysql\.user)\b", lower) and word.taint & SECRET:
        shell.find("secret", "database", text[:60], "its SQL reads credentials")


SCRIPTS.update({"script": script, "sed": sed, "awk": awk, "jq": jq, "sql": sql})
