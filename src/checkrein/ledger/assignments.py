"""A secret's name and its value in text: `NAME=value`, `"name": "value"`, `--name value`. Pure."""

from __future__ import annotations

import re

from checkrein.ledger.secrets import CREDENTIAL, LOOK, MASK, NOUN, RANDOM, SCHEME, words_of

# What stands between a flag or a name and its value.
_AFTER_FLAG = r"""(?: (?:[ \t]|\\\n)++ (?=[^\s=:|<>&;-]) | \\{0,3}["'],[ \t]* (?=\\{0,3}["'][^-]) )"""
_AFTER_NAME = r"""
      (?P<close>\\{0,7}["'`]?(?:\[\d*\]|\])?) (?P<left>(?:[ ]is)?[ \t]*)
      (?: :[ ]+&?[A-Za-z_][\w.]*+(?:[\[<][\w.,|\ \[\]]{0,60}[\]>])?(?:[ ]\|[ ]\w++)*+[ ](?==[ ][bru]?["']) )?
      (?P<sign>[?+|:]{0,2}=(?![=>~]) | [=!]==? | => | :(?![:/]) | >(?=[^<>\s]+</) | ,(?=[ \t]*["']))"""
# A name, what stands between it and its value, and the ways a value may be written.
HEAD = re.compile(
    r"""(?xa) (?<![\w.-]) (?:
      (?P<flag>--?[A-Za-z][\w.-]*+)"""
    + _AFTER_FLAG
    + r"""
    | (?P<name>(?:(?i:access|account|api|auth|encryption|license|private|secret|session)[ ])?[\w.-]++)"""
    + _AFTER_NAME
    + r"""
      (?P<right>[ \t]*(?:[|>][+-]?[ \t]*\n[ \t]+)?) )"""
)
# From somewhere in a name on: the rest of the word, and whether what follows a name or a flag follows it.
_NAMED = re.compile(
    r"(?xa) (?P<word>[\w.-]++) (?: (?P<name>(?:[ ][\w.-]++)??" + _AFTER_NAME + ") |" + _AFTER_FLAG + ")?"
)
# Up to the last place that no HEAD reaches over. What the first class leaves out is part of none, or is a new
# line: no name, flag or type follows it in one. Signs and quotes are part of one, no letter right after them.
_APART = re.compile(r"""(?sxa) .* (?: [^\w.\-\ \t&<>\[\]|,:=?+!"'`\\] | [\t:=?+!"'`\\](?=[\w.-]) )""")
_WORD_BEGINS = re.compile(r"(?sa).*(?<![\w.-])")
_KEY_POSITION = re.compile(r"""(?:(?:^|\n|\\n)[\s\d>#*+|→:./-]*|["'`{\[(,\\][ \t]*|:\d+[:-][ \t]*)\Z""")
_OPEN = re.compile(r"""(?:[fbruFBRU]{1,2}(?=["'])|[$@&](?=["']))?(\\{0,7})(\"""|'''|["'`])""")
_GLUED_ON = re.compile(r"""(?:[\w./+=@%-]|\\'|"[^"\s]*"|'[^'\s]*')++""")
_TEMPLATE = r"\[masked\] | \$?\{\{[^{}\n]*\}\} | \$\{[^{}\n]*\} | \{[\w.!:]*\}"
_SHELL_WORD = re.compile(rf"""(?xm) (?: {_TEMPLATE} | [^\s"'`;|&<>(){{}}\[\],\\$] | \$(?![({{])
    | \\(?![nrt"'`\s]) | \\[ ] | (?!,[\w.-]+=)[(){{}}\[\],](?=[\w!@\#%^*+/=~-])
    | [;|&](?=[0-9A-Z!@\#%^*?][^\s=;|&<>]*$) )++""")
_LINE_WORD = re.compile(rf"""(?x) (?: {_TEMPLATE} | [^\s"'`\\,;(){{}}\[\]$] | \$(?!\{{) | \\(?![nrt"'`\s])
    | [,;(){{}}\[\]](?=[\w!@\#%^*+/=~&|-]) )++""")
_COOKIE = re.compile(r"[\w.%-]+=\S")
_REST_OF_LINE = re.compile(r"""(?:[^\n\r"'`\\]|(?<==)"[^"\n]*")++""")
# What follows the sign is an expression, a type or a sentence, not a literal.
_CODE = re.compile(r"""(?xm)
      (?:await|new|yield|not|typeof|lambda|function|async|if|match|case|class|def|return|func|fn)\b(?=[ \t(])
    | [A-Za-z_$][\w$]*+(?:(?:\?\.|\.|::|->)[\w$]++)*+[!?]?[(\[<](?:["']|[^\n]{0,120}?(?:[)\]>]|[(,%+]$)|$)
    | (?=[\w$]*(?:\?\.|\.|::|->))[A-Za-z_$]*+(?:(?:\?\.|\.|::|->)[A-Za-z_$]++)++[!?]?(?=[\s,;)}\]]|$)
    | [\w$.]++[ \t]+(?:[-+*/%|&?<>=]+|or|and|if|else|in|is|as|instanceof)(?=[ \t])
    | (?!\{[A-Z\d]{3,12}\}\S)[(\[{<&|] | !\w+[ \t]""")
_NO_VALUE = (MASK, ".*", ".+", "[^", "\\s", "\\S", "\\w", "\\d")
_ROOTED = re.compile(r"(?:os|process|self|this|settings|config|env|args|System|std)(?:\.|::)[A-Za-z_]")
_VARIABLE = re.compile(r"[A-Za-z_$]+(?=[ \t]*[,;)}])")
_PROSE = re.compile(r"[A-Za-z][A-Za-z'’]*[,.:;]?[ \t]+[A-Za-z(]")
_ABOUT_A_FLAG = re.compile("is|or|and|flags?|options?|to|for|must|in|not|was|if|when|as|from|via|the")


def rest_of_word(text: str, at: int, place: int) -> tuple[int, bool]:
    """Where the word at this place ends, and whether it may be the name in a HEAD from `at` on."""
    found = _NAMED.match(text, place)
    if found is None:
        return place, False
    if found["name"] is None and found.end() > found.end("word"):
        begins = _WORD_BEGINS.match(text, at, place)
        return found.end("word"), begins is not None and text[begins.end()] == "-"
    return found.end("word"), found["name"] is not None


def last_gap(text: str, at: int, place: int) -> int:
    """The last place from `at` to `place` from where on every HEAD is found, and no other."""
    gap = _APART.match(text, at, place + 1)
    return gap.end() if gap else at


def value_span(head: re.Match[str], words: str, strength: int) -> tuple[int, int] | None:
    """Where the value after this name begins and ends; None when what stands there is no secret."""
    text, at, sign = head.string, head.end(), head["sign"] or " "
    if sign == _before(head) == ":" or (sign == ">" and _before(head) != "<"):
        return None
    if sign == "," and text[head.start() - 2 : head.start() - 1] != "(":
        return None
    sure = sign not in ("==", "===", "!=", "!==", ",") and (sign != ":" or _is_key(head))
    if opening := _OPEN.match(text, at):
        span = _quoted(head, opening, sign)
        sure = sure and (strength == 2 or "pass" in words)
        return span if span and (sure or RANDOM.match(text, *span)) else None
    sure = sure and strength == 2 and (sign != ":" or bool(head["right"] or head["close"]))
    word = _bare(head, words, at, sign, sure)
    return word.span() if word else None


def _before(head: re.Match[str]) -> str:
    return head.string[head.start() - 1 : head.start()]


def _is_key(head: re.Match[str]) -> bool:
    """Whether a name stands where keys stand: first on its line, or after a quote, a brace or a comma."""
    return _KEY_POSITION.search(head.string[max(0, head.start() - 40) : head.start()]) is not None


def _quoted(head: re.Match[str], opening: re.Match[str], sign: str) -> tuple[int, int] | None:
    text, start, (slashes, quote) = head.string, opening.end(), opening.groups()
    shell = sign == "=" and not head["left"] and not head["right"]
    if (quote == "`" and shell) or _closes(head, opening):
        return None
    body = rf"(?:[^\\\n{quote[0]}]|\\.)*+"
    if slashes:
        body = r"[^\n]*?(?<!\\)" + re.escape(slashes)
    elif quote == "'" and (head["flag"] or head["name"].upper() == head["name"]):
        body = r"[^'\n]*+"  # In a shell's single quotes a backslash is only a backslash.
    closing = re.compile(body + quote).match(text, start)
    if closing is None:
        word = _LINE_WORD.match(text, start)
        return word.span() if word else None
    end = closing.end() - len(slashes + quote)
    if quote == '"' and (runs := re.compile(r"\$\(|`").search(text, start, end)):
        end = runs.start()  # What a command substitution runs stays readable.
    elif shell and not slashes and (more := _GLUED_ON.match(text, closing.end())):
        start, end = opening.start(), more.end()
    return (start, end) if start < end else None


def _closes(head: re.Match[str], opening: re.Match[str]) -> bool:
    """Whether the quote ends the text its name stands in (`grep "TOKEN=" .env`) and opens no value."""
    text, at = head.string, head.start()
    following = text[opening.end() : opening.end() + 1]
    quote = opening[1] + opening[2]
    if following.isalnum() or (following and following in "_/!@#%^*(<{[~-$") or head["close"] == quote:
        return False
    line = text[max(text.rfind("\n", max(0, at - 400), at) + 1, at - 400, 0) : at]
    return (line.count(quote) - line.count("\\" + quote)) % 2 == 1


def _bare(head: re.Match[str], words: str, at: int, sign: str, sure: bool) -> re.Match[str] | None:
    text, colon = head.string, sign == ":"
    if sign in ("=>", "+=") or head["close"] == "]" or text.startswith(_NO_VALUE, at):
        return None
    if "authorization" in words and (scheme := SCHEME.match(text, at)):
        return CREDENTIAL.match(text, scheme.end())
    if colon and sure and ("phrase" in words or ("cookie" in words and _COOKIE.match(text, at))):
        return _REST_OF_LINE.match(text, at)
    pattern = _LINE_WORD if colon and head["right"] else _SHELL_WORD
    # INVARIANT: what is read and then left alone is bounded, or repeated names would cost quadratic time.
    word = pattern.match(text, at, at + LOOK)
    if word is None or _is_code(head, words, word, sign) or not (sure or RANDOM.match(text, *word.span())):
        return None
    return pattern.match(text, at) if word.end() == at + LOOK else word


def _is_code(head: re.Match[str], words: str, word: re.Match[str], sign: str) -> bool:
    """Whether a bare word is an expression, a type or prose: `token = get_token()`, `password: str`."""
    text, at, name = head.string, word.start(), head["flag"] or head["name"]
    if name.startswith("-"):
        metavar = word[0].isupper() and NOUN.search(words_of(word[0])) is not None
        return bool(head["flag"]) and (metavar or _ABOUT_A_FLAG.fullmatch(word[0]) is not None)
    tight = sign != ":" and not head["left"] and not head["right"]
    variable, like_env = _VARIABLE.match(text, at) is not None, name.upper() == name
    if tight and like_env:
        return _ROOTED.match(text, at) is not None
    if tight and _before(head) in ("'", '"', "&", "?", "<"):
        return False
    if _CODE.match(text, at) or (not tight and _PROSE.match(text, at)):
        return True
    spelled, noun = words_of(word[0]), words.rpartition("_")[2]
    if not word[0].replace("_", "").isalpha():
        return False
    if tight:
        return variable and NOUN.search(spelled) is not None
    if variable or name.startswith(("self.", "this.")):
        return not like_env
    if sign == ":":  # `token: accessToken` names a variable, `password: my_password` does not.
        return spelled.endswith(f"_{noun}") and "_" not in word[0]
    return f"_{spelled}".endswith(f"_{noun}")
