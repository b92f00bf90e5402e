"""Masks secrets in everything the ledger is about to store; `events` calls it before anything is written.

Only the secret goes, never the words around it: an auditor must still see what ran. Pure and linear-time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec

from checkrein.errors import ConfigError

MASK = "[masked]"
TOO_DEEP = "[masked: too deep]"
MAX_DEPTH = 64
_LOOK = 64  # Enough of a value to tell what it is.


class Masking(msgspec.Struct, frozen=True):
    """The user's additions: key names in any spelling, RE2 patterns (group 1 if there is one, else all)."""

    keys: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()


# Tokens that give themselves away. A pattern that can fail after a long run starts at a boundary, so that no
# run is read twice. The hints are what a (lower-case) text must hold for a pattern to be worth compiling.
_SHAPE = r"""(?xa)
      (?<![A-Za-z0-9])(?: (?:AKIA|ASIA)[A-Z0-9]{16,} | SG\.[\w-]{16,}\.[\w-]{16,} | hf_[A-Za-z0-9]{30,}
      | sk-(?:proj|svcacct|admin|ant|or|lf)-[\w-]{16,} | sk-(?=[A-Za-z0-9]*\d)[A-Za-z0-9]{20,}
      | (?<![_-])eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]+)* | npm_[A-Za-z0-9]{36,} | key-[0-9a-f]{32}
      | dapi[0-9a-f]{32}(?:-\d)? | dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{32,} | hv[sbr]\.[\w-]{20,}
      | ya29\.[\w-]{20,} | 1//0[\w-]{30,} | r8_[A-Za-z0-9]{37,} | gsk_[A-Za-z0-9]{40,} | xai-[A-Za-z0-9]{40,}
      | [0-9a-f]{32}-us\d{1,2}\b | pat[A-Za-z0-9]{14}\.[0-9a-f]{64} | [A-Za-z0-9]{14}\.atlasv1\.[\w-]{40,} )
    | gh[pousr]_[A-Za-z0-9]{30,} | github_pat_\w{22,} | gl(?:pat|dt|rt|cbt|ptt|soat)-[\w.-]{16,}
    | xox[a-z](?:\.xox[a-z])?-[\w-]{10,} | xapp-\d-[\w-]{10,} | [sr]k_(?:live|test)_[A-Za-z0-9]{10,}
    | whsec_[\w+/=-]{20,} | AIza[\w-]{30,} | GOCSPX-[\w-]{20,} | pypi-AgE[\w-]{16,} | rubygems_[0-9a-f]{48}
    | dckr_[po]at_[\w-]{20,} | do[opr]_v1_[0-9a-f]{40,} | lin_(?:api|oauth)_[A-Za-z0-9]{30,}
    | shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32} | sq0[a-z]{3}-[\w-]{20,} | AGE-SECRET-KEY-1[A-Z0-9]{50,}
    | NRAK-[A-Z0-9]{20,} | PMAK-[0-9a-f-]{50,} | gl(?:sa|c)_[\w+/=]{32,} | ntn_[A-Za-z0-9]{40,}
    | figd_[\w-]{30,} | ATATT3[\w=-]{20,} | HRKU-[\w-]{30,} | pul-[0-9a-f]{40} | sbp_[0-9a-f]{40}
    | sb_secret_[\w-]{20,} | pplx-[A-Za-z0-9]{40,} | tvly-[\w-]{20,} | lsv2_[ps][tk]_[0-9a-f_]{32,}
    | sntry[su]_[\w+/=-]{40,} | pscale_(?:tkn|pw|oauth)_[\w.-]{30,} | nfp_[A-Za-z0-9]{36,}
    | [\w.~-]{3}8Q~[\w.~-]{31,} | (?<!\d)\d{8,10}:AA[\w-]{32,} | \$2[abxy]\$\d\d\$[./\w]{53}
    | \$(?:[156y]|argon2\w+)\$[^\s:$]+\$(?:[^\s:$]+\$){0,4}[./\w+]{20,}
    | (?<=hooks\.slack\.com/services/)[\w/]{20,} | (?<=/api/webhooks/)\d+/[\w-]{20,}"""
_SHAPE_HINTS = tuple(
    "akia asia sg. hf_ sk- eyj npm_ key- dapi dp. hvs. hvb. hvr. ya29. 1//0 r8_ gsk_ xai- -us pat .atlasv1."
    " ghp_ gho_ ghu_ ghs_ ghr_ gldt- glrt- glcbt- glptt- glsoat- xox xapp- k_live_ k_test_ whsec_ aiza gocspx"
    " pypi-a rubygems_ dckr_ _v1_ lin_ shp sq0 age-secret nrak- pmak- glsa_ glc_ ntn_ figd_ atatt3 hrku- pul-"
    " sbp_ sb_s pplx- tvly- lsv2_ sntry pscale_ nfp_ 8q~ :aa $2 $1$ $5$ $6$ $y$ $argon2 slack webhook".split()
)
# Discord and Twilio have no prefix to look for and are always tried; the first letter keeps that cheap.
_BARE_SHAPE = re.compile(r"""(?xa) S(?<![\w-].)K[0-9a-f]{32}\b
    | [MNO](?<![\w-].)(?=[\w-]*\d)[\w-]{23,27}\.[\w-]{6}\.[\w-]{27,40}""")
_PEM = r"(-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----)((?:(?!-----)[\s\S])*+)"
_PEM_CUT_OFF = re.compile(r"(?:(?:\\+[nr]|[\s\"'+,>|*#])*+[A-Za-z0-9+/=]{16,}+)++")

# Names whose value is a secret, as lower-case words joined by `_` ("X-ApiKey" is read as "x_api_key").
_NOUN = re.compile(r"""(?x) (?:(?P<before>[a-z0-9]+)_)? (?P<glued>[a-z0-9]*?) (?:
      pass_?(?:word|wd|phrase|code)s? | secrets? | token | (?:access|auth|bearer|id|refresh|session)_?tokens
    | authorization | bearer | cookies? | credentials? | secret_?key_?base | access_?key_?id
    | (?:access|account|admin|anthropic|api|app|auth|azure_?storage|client|crypto|decryption|deploy|encryption
        |functions?|hmac|jwt|license|master|openai|private|role|secret|sendgrid|service|session|shared|signing
        |stripe|subscription|supabase|webhook)_?keys?
    | auth(?:orization)?_?code | code_?verifier | (?:seed|recovery)_?phrase | jsessionid | phpsessid
    | docker_?config_?json | (?:ssh|store|key)_?pass | (?<![a-z0-9])(?:pwd|creds?) | (?<=_)(?:pass|pw) )
    (?: _(?:\d+|value|string|str|text|plaintext|raw|data|literal|binary|base64|encoded|confirm|confirmation
        |again|prod|production|dev|development|staging|live|sandbox|local|default|backup|old|new) )*$""")
# Names that hold a secret only where the value looks like one.
_PERHAPS = re.compile(r"(?:^|_)(?:(?:pass|pw)(?:_\d+)?|auth)$")
_NAME_HINTS = tuple("pass pw secret token auth cookie cred key phrase sess code config".split())
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W_A-Za-z0-9]+")
# `next_page_token` is a cursor, `has_password` a fact, `eos_token` a word of a vocabulary.
_HARMLESS_BEFORE = re.compile(r"""(?x) page|next|prev|previous|continuation|cursor|pagination|paging|sync|max
    |min|starting|num|total|special|input|output|change|first|last|eof|eos|bos|pad|unk|sep|cls|mask|stop|start
    |end|has|is|no|with|without|ask|prompt|require[sd]?|use|allow|skip|disable|enable|show|hide|print|forgot""")
_HARMLESS_INSIDE = re.compile("type|title|description|format|name|user|username|email|host|port|path|url")

# Values that are no secret, whatever their name: words, references, templates, patterns, paths, addresses.
_PLAIN = re.compile(r"""(?xsi)
      (?:none|null|nil|undefined|true|false|yes|no|on|off|str|strings?|bytes|int|integer|float|number|bool
        |boolean|any|object|text|char|varchar|unknown|never|void|required|optional|missing|invalid|expired
        |empty|unset|disabled|enabled|prompt|stdin|inherit|include|omit|same-origin|read|write|redacted|masked
        |hidden|n/a|todo|tbd|files|sensitive|failed|passed|ok|oauth2?)[?!]? | (?:bearer|basic|token)\ +
    | \d{1,3} | \#[0-9a-f]{6} | [*•·]+/? | x{3,} | \[masked(?::\ too\ deep)?\] | <[^<>\n]*> | your[_-][\w-]+
    | (?:\$[a-z_]\w*+ | \$\{[^{}\n]*\} | \$?\{\{[^{}\n]*\}\} | [\#$]?\{[\w.()\[\]'":!]*\} | %\w*%
        | %(?:\(\w+\))?[sdrv] | [:/@.\-\ "'])++
    | [\w-]+[_-]here | \$[\d@*\#?$!] | \$\(.*\) | `.*` | \$env:\w+ | (?:env|file|fd|op|vault|arn|ssm):\S*
    | [:@][a-z_]+ | \? | (?:id|type|src|source|name)=\S* | [\w=,:-]+:latest
    | projects/\S+ | ssh-\w+\ .* | (?:~|\.\.?)/\S* | /(?:Users|Library)/.* | /(?:tmp|home|root|app|work|src)
    | /[a-z_.]{2,12}(?:/[\w.@+-]+)+/? | [a-z]:\\\S* | [a-z][a-z0-9+.-]*://\S* | [\w./@~-]+\.(?:pem|key|json
        |txt|ya?ml|env|crt|cer|p12|pfx|toml|ini|jks|gpg|asc|pub|conf|cfg|enc|log|py|[jt]sx?)""")
_RANDOM = re.compile(r"(?:(?i:bearer|basic|token)[ \t]+|\\[ ])?(?=\S*[A-Za-z])(?=\S*[0-9!@#$%^&*])\S{6}")
_SCHEME = re.compile(r"(?i)(?:bearer|basic|token|digest|negotiate|apikey|ssws|aws4-hmac-sha256)[ \t]+(?=\S)")
_CREDENTIAL = re.compile(r"""[^\s"'`\\,;]++(?:,[ ]*\w+=[^\s"'`\\,]++)*+(?![ \t]+[A-Za-z]+\b[^=])""")
_COOKIE_PAIR = re.compile(r"""(?xi) ((?:^|;)\s*+(?!(?:path|domain|expires|max-age|samesite)=)[^\s;=]+=)
    (?!\[masked\])[^;=][^;]*""")

# A name, what stands between it and its value, and the ways a value may be written.
_HEAD = re.compile(r"""(?xa) (?<![\w.-]) (?:
      (?P<flag>--?[A-Za-z][\w.-]*+)
      (?: (?:[ \t]|\\\n)++ (?=[^\s=:|<>&;-]) | \\{0,3}["'],[ \t]* (?=\\{0,3}["'][^-]) )
    | (?P<name>(?:(?i:access|account|api|auth|encryption|license|private|secret|session)[ ])?[\w.-]++)
      (?P<close>\\{0,7}["'`]?(?:\[\d*\]|\])?) (?P<left>(?:[ ]is)?[ \t]*)
      (?: :[ ]+&?[A-Za-z_][\w.]*+(?:[\[<][\w.,|\ \[\]]{0,60}[\]>])?(?:[ ]\|[ ]\w++)*+[ ](?==[ ][bru]?["']) )?
      (?P<sign>[?+|:]{0,2}=(?![=>~]) | [=!]==? | => | :(?![:/]) | >(?=[^<>\s]+</) | ,(?=[ \t]*["']))
      (?P<right>[ \t]*(?:[|>][+-]?[ \t]*\n[ \t]+)?) )""")
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


def _table(rows: str) -> Iterator[list[str]]:
    """Rows of `a :: b :: pattern`; an indented line continues its row, `{word}` is one word of a command."""
    word = r"""(?P<secret>"(?:[^"\\\n]|\\.)*+"|'[^'\n]*'|(?!-)(?:[^\s"'`|;&<>()$]|\$(?!\())+)"""
    for row in re.split(r"\n(?=\S)", rows.strip()):
        yield re.sub(r"\n\s+", "", row).replace("{word}", word).split(" :: ")


# Programs, what their arguments start with (if it matters), and where the secret stands.
_PROGRAMS: dict[str, list[tuple[str, str]]] = {}
for _names, _start, _pattern in _table(r"""
mysql mysqldump mysqladmin mysqlimport mysqlcheck mysqlsh mariadb mariadb-dump mycli ::  :: \s-p{word}
sshpass ::  :: ^(?:\s+-[ev]\S*)*\s+-p\s*{word}
docker podman nerdctl buildah skopeo helm az oc :: \s+(?:\w+\s+)?login\b :: \s-p\s*{word}
mongo mongosh mongodump mongorestore mongoexport mongoimport cqlsh twine useradd ::  :: \s-p\s+{word}
redis-cli ::  :: \s-a\s+{word}
unzip zip sqlcmd bcp mosquitto_pub mosquitto_sub ::  :: \s-P\s*{word}
7z 7za 7zr 7zz rar unrar ::  :: \s-h?p{word}
ldapsearch ldapadd ldapmodify ldapdelete ldapwhoami ::  :: \s-w\s+{word}
smbclient rpcclient ::  :: \s(?:-U|--user)[\s=]*+["']?[^\s%"']+%(?P<secret>[^\s"']+)
curl ::  :: \s(?:-u|-U|--user|--proxy-user)[\s=]*+(["'])?[^\s:"']+:(?P<secret>(?(1)[^"'\n]+|[^\s"']+))
curl ::  :: \s-b\s*["']?[^\s=;"']+=(?P<secret>[^"'\n\s;]+(?:;[^"'\n]+)?)
http https xh ::  :: \s(?:-a|--auth)[\s=]*+["']?[^\s:"']+:(?P<secret>[^\s"']+)
openssl ::  :: (?:\bpass:|\s-k\s+){word}
openssl :: \s+passwd :: \s-(?:1|5|6|apr1)\s+{word}
security :: \s+add-\w+-password|\s+unlock :: \s-[wp]\s+{word}
gh :: \s+secret\s+set :: \s(?:-b|--body)[\s=]+{word}
fly flyctl doppler supabase heroku :: \s+(?:secrets\s+set|config:set)\s :: \s(?!-)[\w.-]+={word}
ssh-keygen ::  :: \s-[NP]\s*{word}
lftp ::  :: \s-u\s+[^\s,]+,(?P<secret>[^\s"']+)
sqlplus ::  :: \s[\w$]+/(?P<secret>[^\s@/"']+)@
vault cargo :: \s+(?:operator\s+)?(?:login|unseal) :: \s(?:login|unseal)\s+(?P<secret>(?=\S*\d)[^\s"'=-]{6,})
"""):
    for _name in _names.split():
        _PROGRAMS.setdefault(_name, []).append((_start, _pattern))
_PROGRAM = rf"(?<![\w.-])(?:{'|'.join(sorted(_PROGRAMS, reverse=True))})(?=\s)"
_COMMAND = rf"""{_PROGRAM}(?:[^\n|;&\\"'()$]|\$(?!\()|\\[\s\S]|"(?:[^"\\]|\\.)*+"|'[^']*')*+"""

# Secrets that no name announces: what the (lower-case) text must hold, and the place.
_PLACES = [
    (tuple(hints.split()), pattern)
    for hints, pattern in _table(r"""
:// :: ://[^\s/?#@"'`<>\\:]*:(?!\d{1,5}[/?#])(?P<secret>[^\s/"'`<>\\]+)@(?!sha\d+:)
:// :: (?:sql|gres|redis|mqp|ongodb)[\w+]{0,24}://[^\s/?#@"':]*:(?!\d+[/?#])(?P<secret>[^\s"'@]{1,200})@
:// :: ://(?P<secret>(?=[A-Za-z_-]*\d)[\w-]{20,})@
= :: [?&](?:code|key|sid|sig|signature|X-Amz-Signature)=(?P<secret>(?=[^\s&?]*\d)[^\s"'`&?#<>\\;]{8,})
thin: :: thin:[\w$]+/(?P<secret>[^\s@/"']+)@
:5432: :: :5432:[^\s:]+:[^\s:]+:(?P<secret>[^\s:"']+)
bearer :: (?i:bearer)\s+(?P<secret>(?=[\w.~+/-]*\d)[\w.~+/-]{16,}=*)
identified :: (?:IDENTIFIED|(?i:user\s+\S+\s+identified))(?i:(?:\s+with\s+\S+)?\s+by(?:\s+password)?)\s+'
    (?P<secret>[^'\n]+)
from-literal :: --from-literal[= ]["']?[\w.-]+=(?P<secret>[^\s"']+)
password :: (?:PASSWORD|(?i:(?:with|encrypted|login|root|(?:role|user)\s+[\w"]+)\s+password))(?:\s+|\s*\(\s*)'
    (?P<secret>[^'\n]+)
password :: \b(?:(?:machine\s+\S+|default)\s+login|wifi\s+connect)\s+\S+\s+password\s+(?P<secret>\S+)
${ :: \$\{(?=\w*(?i:pass|pwd|secret|token|key))\w++:?[-=+](?P<secret>[^${}\n]+)\}
auth :: (?i:auth)\s*+=?\s*+\(\s*["'][^"'\n]*["']\s*,\s*["'](?P<secret>[^"'\n]+)
securestring :: ConvertTo-SecureString\s+(?:-String\s+)?{word}
<<< :: (?:chpasswd|--with-token|--password-stdin|--passphrase-fd\s+\d)[ \t]*<<<[ \t]*{word}
| :: \b(?:echo|printf)[ \t]+(?:-\w+[ \t]+|['"]%s(?:\\n)?['"][ \t]+)?{word}[ \t]*+\|[ \t]*+
    (?:sudo[ \t]+(?:-\w+[ \t]+)*-\w*S|(?:sudo[ \t]+)?(?:chpasswd|passwd)\b
    |[^|;&\n]{0,120}--(?:password-stdin|with-token|passphrase-fd))
setx setenv set env config :: \b(?:set(?:x|env|[ \t]+-\w+)|ENV|config(?:ure)?(?:[ \t]+(?:set|--\w+))*+)[ \t]+
    (?=\S*[._:])[\w./:-]*?(?i:password|secret|token|api_?key|access_?key|_auth)[\w.]*[ \t]+{word}
value :: (?i:name\\{0,3}["']?\s*[:=]\s*\\{0,3}["']?[\w.-]*
    (?:password|passwd|secret|token|api[_-]?key|authorization|cookie)\\{0,3}["']?\s*+,?\s*+
    \\{0,3}["']?value\\{0,3}["']?\s*[:=]\s*\\{0,3}["']?(?:bearer\s+|basic\s+)?)(?P<secret>[^\s"'\\,}]+)
""")
]
_NO_ADDITIONS = Masking()


class Redactor:
    """Masks values and text. It holds the user's own names and patterns, and no state."""

    def __init__(self, masking: Masking = _NO_ADDITIONS) -> None:
        self._keys = tuple(filter(None, map(_words, masking.keys)))
        self._hints = (*_NAME_HINTS, *(max(key.split("_"), key=len) for key in self._keys))
        always = ("",)
        # The user's patterns come first: they were written for what is really there.
        self._passes: tuple[tuple[tuple[str, ...], Callable[[str], str]], ...] = (
            *((always, partial(_apply, _user_pattern(pattern))) for pattern in masking.patterns),
            (_SHAPE_HINTS, partial(re.sub, _SHAPE, MASK)),
            (("private key",), partial(re.sub, _PEM, _pem)),
            *((hints, partial(re.sub, pattern, _place)) for hints, pattern in _PLACES),
            (self._hints, self._assignments),
            (tuple(_PROGRAMS), partial(re.sub, _COMMAND, _command)),
            (always, partial(_BARE_SHAPE.sub, MASK)),
        )

    def value(self, value: Any) -> Any:
        """A deep copy with its secrets masked; what hangs under a secret name is masked whatever it is."""
        return self._copy(value, "", MAX_DEPTH)

    def text(self, text: str) -> str:
        """Text, a command line or an output with its secrets masked."""
        lowered = text.lower()
        for hints, mask in self._passes:
            for hint in hints:
                if hint in lowered:
                    text = mask(text)
                    break
        return text

    def _copy(self, value: Any, secret: str, depth: int) -> Any:
        """`secret` is the secret name this value hangs under, or nothing."""
        if isinstance(value, str):
            return self.text(_masked(value, secret) if secret else value)
        if isinstance(value, dict | list | tuple):
            if depth == 0:
                return TOO_DEEP
            if isinstance(value, dict):
                return self._copy_dict(value, secret, depth - 1)
            copies = self._copy_list(value, secret, depth - 1)
            return tuple(copies) if isinstance(value, tuple) else copies
        return MASK if secret and value is not None and not isinstance(value, bool) else value

    def _copy_dict(self, value: dict[Any, Any], above: str, depth: int) -> dict[Any, Any]:
        copy: dict[Any, Any] = {}
        for key, item in value.items():
            if not isinstance(key, str):
                copy[key] = self._copy(item, above, depth)
                continue
            secret = key if self._is_secret(key) else "" if _HARMLESS_INSIDE.fullmatch(key.lower()) else above
            if not secret and key in ("value", "Value"):
                # `{"name": "DB_PASSWORD", "value": …}` names its secret next to it.
                labels = (value.get(label) for label in ("name", "Name", "key", "Key", "header"))
                secret = next((x for x in labels if isinstance(x, str) and self._is_secret(x)), "")
            masked = self.text(key) if len(key) > 16 else key
            copy[f"{masked} {len(copy)}" if masked in copy else masked] = self._copy(item, secret, depth)
        return copy

    def _copy_list(self, value: list[Any] | tuple[Any, ...], above: str, depth: int) -> list[Any]:
        copies = [self._copy(item, above, depth) for item in value]
        for index, item in enumerate(value):
            if isinstance(item, str) and (copies[index] == item or "=" in item):
                copies[index] = self._argument(value, index)
        return copies

    def _argument(self, words: list[Any] | tuple[Any, ...], index: int) -> str:
        """One word of a command line given as a list: whole, spaces and all, and with its flag before it."""
        word: str = words[index]
        name, sign, rest = word.partition("=")
        if sign and " " not in name and self._is_secret(name):
            return self.text(f"{name}={_masked(rest, name)}")
        before = words[index - 1] if index else ""
        if isinstance(before, str) and "-" in (before[:1], word[:1]):
            lead = (each for each in words[: min(3, max(index - 1, 0))] if isinstance(each, str))
            start = " ".join([*lead, before, ""])
            quote = "'" if re.search(r"[\s\"'`|;&<>()$]", word) else ""
            line = start + quote + word.replace("'", "_") + quote
            masked = self.text(line)
            if masked != line and masked.startswith(start):
                return masked.removeprefix(start).strip("'")
        return self.text(word)

    def _is_secret(self, name: str) -> bool:
        lowered = name.lower()
        return any(hint in lowered for hint in self._hints) and self._strength(_words(name)) == 2

    def _strength(self, words: str) -> int:
        """2: the name of a secret, 1: of a secret if the value looks like one, 0: of anything else."""
        if any(words == key or words.endswith(f"_{key}") for key in self._keys):
            return 2
        found = _NOUN.search(words)
        if found is None:
            return 1 if _PERHAPS.search(words) else 0
        return 0 if _HARMLESS_BEFORE.fullmatch(found["glued"] or found["before"] or "") else 2

    def _assignments(self, text: str) -> str:
        pieces: list[str] = []
        kept = at = 0
        while head := _HEAD.search(text, at):
            at = head.end()
            words = _words(head["flag"] or head["name"])
            strength = self._strength(words)
            if strength and (span := _span(head, words, strength)):
                value = text[slice(*span)]
                masked = _masked(value, words)
                if masked != value:
                    pieces += (text[kept : span[0]], masked)
                    kept = span[1]
                # A reference may hold secrets further in (`$(curl -H …)`): reading goes on inside it.
                if masked != value or MASK in value:
                    at = span[1]
        return "".join([*pieces, text[kept:]])


def _words(name: str) -> str:
    """A name in one spelling: "DB-Password", "dbPassword" and "DB_PASSWORD" are "db_password"."""
    return "_".join(_WORD.findall(name[-96:])).lower()


def _is_plain(value: str) -> bool:
    return value.startswith("-----BEGIN") or (len(value) <= 1024 and _PLAIN.fullmatch(value) is not None)


def _masked(value: str, name: str) -> str:
    """A secret's value, masked: a reference stays, cookies keep their names, `Bearer` stays a word."""
    if not value or _is_plain(value):
        return value
    if "cookie" in name.lower() and "=" in value:
        masked = _COOKIE_PAIR.sub(rf"\1{MASK}", value)
        return masked if MASK in masked else MASK
    scheme = _SCHEME.match(value)
    secret = value[scheme.end() :] if scheme else value
    return value[: len(value) - len(secret)] + (secret if _is_plain(secret) else MASK)


def _before(head: re.Match[str]) -> str:
    return head.string[head.start() - 1 : head.start()]


def _is_key(head: re.Match[str]) -> bool:
    """Whether a name stands where keys stand: first on its line, or after a quote, a brace or a comma."""
    return _KEY_POSITION.search(head.string[max(0, head.start() - 40) : head.start()]) is not None


def _span(head: re.Match[str], words: str, strength: int) -> tuple[int, int] | None:
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
        return span if span and (sure or _RANDOM.match(text, *span)) else None
    sure = sure and strength == 2 and (sign != ":" or bool(head["right"] or head["close"]))
    word = _bare(head, words, at, sign, sure)
    return word.span() if word else None


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
    if "authorization" in words and (scheme := _SCHEME.match(text, at)):
        return _CREDENTIAL.match(text, scheme.end())
    if colon and sure and ("phrase" in words or ("cookie" in words and _COOKIE.match(text, at))):
        return _REST_OF_LINE.match(text, at)
    pattern = _LINE_WORD if colon and head["right"] else _SHELL_WORD
    # INVARIANT: what is read and then left alone is bounded, or repeated names would cost quadratic time.
    word = pattern.match(text, at, at + _LOOK)
    if word is None or _is_code(head, words, word, sign) or not (sure or _RANDOM.match(text, *word.span())):
        return None
    return pattern.match(text, at) if word.end() == at + _LOOK else word


def _is_code(head: re.Match[str], words: str, word: re.Match[str], sign: str) -> bool:
    """Whether a bare word is an expression, a type or prose: `token = get_token()`, `password: str`."""
    text, at, name = head.string, word.start(), head["flag"] or head["name"]
    if name.startswith("-"):
        metavar = word[0].isupper() and _NOUN.search(_words(word[0])) is not None
        return bool(head["flag"]) and (metavar or _ABOUT_A_FLAG.fullmatch(word[0]) is not None)
    tight = sign != ":" and not head["left"] and not head["right"]
    variable, like_env = _VARIABLE.match(text, at) is not None, name.upper() == name
    if tight and like_env:
        return _ROOTED.match(text, at) is not None
    if tight and _before(head) in ("'", '"', "&", "?", "<"):
        return False
    if _CODE.match(text, at) or (not tight and _PROSE.match(text, at)):
        return True
    spelled, noun = _words(word[0]), words.rpartition("_")[2]
    if not word[0].replace("_", "").isalpha():
        return False
    if tight:
        return variable and _NOUN.search(spelled) is not None
    if variable or name.startswith(("self.", "this.")):
        return not like_env
    if sign == ":":  # `token: accessToken` names a variable, `password: my_password` does not.
        return spelled.endswith(f"_{noun}") and "_" not in word[0]
    return f"_{spelled}".endswith(f"_{noun}")


def _pem(found: re.Match[str]) -> str:
    """Between BEGIN and END all is key; without an END only what looks like it, as in a cut-off output."""
    begin, body = found.groups()
    if body.startswith(MASK) or not re.search(r"[A-Za-z0-9+/]{16}", body):
        return found[0]
    cut_off = None if found.string.startswith("-----END", found.end()) else _PEM_CUT_OFF.match(body)
    return f"{begin}{MASK}{body[cut_off.end() :] if cut_off else ''}"


def _command(found: re.Match[str]) -> str:
    """A command's secrets by the rules of each program in it, as in `docker exec db mysql -p…`."""
    command = found[0]
    for name in reversed(list(re.finditer(_PROGRAM, command))[:4]):
        arguments = command[name.end() :]
        for start, pattern in _PROGRAMS[name[0]]:
            if re.match(start, arguments):
                arguments = re.sub(pattern, _place, arguments)
        command = command[: name.end()] + arguments
    return command


def _place(found: re.Match[str]) -> str:
    """The match with its `secret` group masked, quotes kept."""
    word, (start, end), at = found["secret"], found.span("secret"), found.start()
    quote = word[0] if word[0] in "\"'" and word[-1] == word[0] else ""
    if _is_plain(word.strip(quote or None)):
        return found[0]
    return f"{found[0][: start - at]}{quote}{MASK}{quote}{found[0][end - at :]}"


def _user_pattern(pattern: str) -> Any:
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0].decode(errors="replace")
        raise ConfigError("masking.patterns", pattern, reason, "Write it in RE2 syntax.") from None


def _apply(pattern: Any, text: str) -> str:
    """A user's pattern, kept away from what is masked already and from lone surrogates (RE2 refuses them)."""

    def masked(found: Any) -> str:
        (start, end), at, whole = found.span(1 if found.re.groups else 0), found.start(), str(found.group())
        return f"{whole[: start - at]}{MASK if start < end else ''}{whole[end - at :]}"

    pieces = re.split(r"(\[masked\]|[\ud800-\udfff]+)", text)
    pieces[::2] = [pattern.sub(masked, piece) for piece in pieces[::2]]
    return "".join(pieces)
