"""What a secret looks like: token shapes, names that announce one, places that hold one. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

MASK = "[masked]"
LOOK = 64  # Enough of a value to tell what it is.

# Tokens that give themselves away. A pattern that can fail after a long run starts at a boundary, so that no
# run is read twice. The hints are what a (lower-case) text must hold for a pattern to be worth compiling.
SHAPE = r"""(?xa)
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
SHAPE_HINTS = tuple(
    "akia asia sg. hf_ sk- eyj npm_ key- dapi dp. hvs. hvb. hvr. ya29. 1//0 r8_ gsk_ xai- -us pat .atlasv1."
    " ghp_ gho_ ghu_ ghs_ ghr_ gldt- glrt- glcbt- glptt- glsoat- xox xapp- k_live_ k_test_ whsec_ aiza gocspx"
    " pypi-a rubygems_ dckr_ _v1_ lin_ shp sq0 age-secret nrak- pmak- glsa_ glc_ ntn_ figd_ atatt3 hrku- pul-"
    " sbp_ sb_s pplx- tvly- lsv2_ sntry pscale_ nfp_ 8q~ :aa $2 $1$ $5$ $6$ $y$ $argon2 slack webhook".split()
)
# Many words hold "pat"; these are the ones that may belong to a shape.
SHAPE_PAT = re.compile(r"pat(?:[A-Za-z0-9]{14}\.|[_-])")
# A shape lies within one run of such letters and is no shorter than this, unless it is a password's hash.
SHAPE_RUN = re.compile(r"(?a)(?<![\w.~+/=:$-])[\w.~+/=:$-]{15,}")
RUN_BEGINS = re.compile(r"(?sa).*(?<![\w.~+/=:$-])")
HASH_HINTS = ("$1$", "$5$", "$6$", "$y$", "$argon2")
# Discord and Twilio have no prefix to look for and are always tried, where something like their end stands.
BARE_ENDS = (re.compile("SK[0-9a-f]{32}"), re.compile(r"(?a)\.[\w-]{6}\.[\w-]{27}"))
BARE_SHAPE = re.compile(r"""(?xa) S(?<![\w-].)K[0-9a-f]{32}\b
    | [MNO](?<![\w-].)(?=[\w-]*\d)[\w-]{23,27}\.[\w-]{6}\.[\w-]{27,40}""")
PEM = r"(-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----)((?:(?!-----)[\s\S])*+)"
PEM_CUT_OFF = re.compile(r"(?:(?:\\+[nr]|[\s\"'+,>|*#])*+[A-Za-z0-9+/=]{16,}+)++")

# Names whose value is a secret, as lower-case words joined by `_` ("X-ApiKey" is read as "x_api_key").
NOUN = re.compile(r"""(?x) (?:(?P<before>[a-z0-9]+)_)? (?P<glued>[a-z0-9]*?) (?:
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
PERHAPS = re.compile(r"(?:^|_)(?:(?:pass|pw)(?:_\d+)?|auth)$")
NAME_HINTS = tuple("pass pw secret token auth bearer cookie cred key phrase sess code config".split())
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W_A-Za-z0-9]+")
# `next_page_token` is a cursor, `has_password` a fact, `eos_token` a word of a vocabulary.
HARMLESS_BEFORE = re.compile(r"""(?x) page|next|prev|previous|continuation|cursor|pagination|paging|sync|max
    |min|starting|num|total|special|input|output|change|first|last|eof|eos|bos|pad|unk|sep|cls|mask|stop|start
    |end|has|is|no|with|without|ask|prompt|require[sd]?|use|allow|skip|disable|enable|show|hide|print|forgot""")
HARMLESS_INSIDE = re.compile("type|title|description|format|name|user|username|email|host|port|path|url")

# Values that are no secret, whatever their name: words, references, templates, patterns, paths, addresses.
PLAIN = re.compile(r"""(?xsi)
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
RANDOM = re.compile(r"(?:(?i:bearer|basic|token)[ \t]+|\\[ ])?(?=\S*[A-Za-z])(?=\S*[0-9!@#$%^&*])\S{6}")
SCHEME = re.compile(r"(?i)(?:bearer|basic|token|digest|negotiate|apikey|ssws|aws4-hmac-sha256)[ \t]+(?=\S)")
CREDENTIAL = re.compile(r"""[^\s"'`\\,;]++(?:,[ ]*\w+=[^\s"'`\\,]++)*+(?![ \t]+[A-Za-z]+\b[^=])""")
COOKIE_PAIR = re.compile(r"""(?xi) ((?:^|;)\s*+(?!(?:path|domain|expires|max-age|samesite)=)[^\s;=]+=)
    (?!\[masked\])[^;=][^;]*""")


def _table(rows: str) -> Iterator[list[str]]:
    """Rows of `a :: b :: pattern`; an indented line continues its row, `{word}` is one word of a command."""
    word = r"""(?P<secret>"(?:[^"\\\n]|\\.)*+"|'[^'\n]*'|(?!-)(?:[^\s"'`|;&<>()$]|\$(?!\())+)"""
    for row in re.split(r"\n(?=\S)", rows.strip()):
        yield re.sub(r"\n\s+", "", row).replace("{word}", word).split(" :: ")


# Programs, what their arguments start with (if it matters), and where the secret stands.
PROGRAMS: dict[str, list[tuple[str, str]]] = {}
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
        PROGRAMS.setdefault(_name, []).append((_start, _pattern))
PROGRAM = rf"(?<![\w.-])(?:{'|'.join(sorted(PROGRAMS, reverse=True))})(?=\s)"
COMMAND = rf"""{PROGRAM}(?:[^\n|;&\\"'()$]|\$(?!\()|\\[\s\S]|"(?:[^"\\]|\\.)*+"|'[^']*')*+"""

# Secrets that no name announces: what the (lower-case) text must hold, what the place begins with (one of
# these, in any case), and the place.
PLACES = [
    (tuple(hints.split()), tuple(starts.split()), pattern)
    for hints, starts, pattern in _table(r"""
:// :: :// :: ://[^\s/?#@"'`<>\\:]*:(?!\d{1,5}[/?#])(?P<secret>[^\s/"'`<>\\]+)@(?!sha\d+:)
:// :: sql gres redis mqp ongodb :: (?:sql|gres|redis|mqp|ongodb)[\w+]{0,24}
    ://[^\s/?#@"':]*:(?!\d+[/?#])(?P<secret>[^\s"'@]{1,200})@
:// :: :// :: ://(?P<secret>(?=[A-Za-z_-]*\d)[\w-]{20,})@
= :: ? & :: [?&](?:code|key|sid|sig|signature|X-Amz-Signature)=(?P<secret>(?=[^\s&?]*\d)[^\s"'`&?#<>\\;]{8,})
thin: :: thin: :: thin:[\w$]+/(?P<secret>[^\s@/"']+)@
:5432: :: :5432: :: :5432:[^\s:]+:[^\s:]+:(?P<secret>[^\s:"']+)
bearer :: bearer :: (?i:bearer)\s+(?P<secret>(?=[\w.~+/-]*\d)[\w.~+/-]{16,}=*)
identified :: identified user :: (?:IDENTIFIED|(?i:user\s+\S+\s+identified))
    (?i:(?:\s+with\s+\S+)?\s+by(?:\s+password)?)\s+'
    (?P<secret>[^'\n]+)
from-literal :: --from-literal :: --from-literal[= ]["']?[\w.-]+=(?P<secret>[^\s"']+)
password :: password with encrypted login root role user :: (?:PASSWORD
    |(?i:(?:with|encrypted|login|root|(?:role|user)\s+[\w"]+)\s+password))(?:\s+|\s*\(\s*)'
    (?P<secret>[^'\n]+)
password :: machine default wifi :: \b(?:(?:machine\s+\S+|default)\s+login|wifi\s+connect)
    \s+\S+\s+password\s+(?P<secret>\S+)
${ :: ${ :: \$\{(?=\w*(?i:pass|pwd|secret|token|key))\w++:?[-=+](?P<secret>[^${}\n]+)\}
auth :: auth :: (?i:auth)\s*+=?\s*+\(\s*["'][^"'\n]*["']\s*,\s*["'](?P<secret>[^"'\n]+)
securestring :: convertto-securestring :: ConvertTo-SecureString\s+(?:-String\s+)?{word}
<<< :: chpasswd --with-token --password-stdin --passphrase-fd :: (?:
    chpasswd|--with-token|--password-stdin|--passphrase-fd\s+\d)[ \t]*<<<[ \t]*{word}
| :: echo printf :: \b(?:echo|printf)[ \t]+(?:-\w+[ \t]+|['"]%s(?:\\n)?['"][ \t]+)?{word}[ \t]*+\|[ \t]*+
    (?:sudo[ \t]+(?:-\w+[ \t]+)*-\w*S|(?:sudo[ \t]+)?(?:chpasswd|passwd)\b
    |[^|;&\n]{0,120}--(?:password-stdin|with-token|passphrase-fd))
setx setenv set env config :: set env config :: \b(?:set(?:x|env|[ \t]+-\w+)|ENV
    |config(?:ure)?(?:[ \t]+(?:set|--\w+))*+)[ \t]+
    (?=\S*[._:])[\w./:-]*?(?i:password|secret|token|api_?key|access_?key|_auth)[\w.]*[ \t]+{word}
value :: name :: (?i:name\\{0,3}["']?\s*[:=]\s*\\{0,3}["']?[\w.-]*
    (?:password|passwd|secret|token|api[_-]?key|authorization|cookie)\\{0,3}["']?\s*+,?\s*+
    \\{0,3}["']?value\\{0,3}["']?\s*[:=]\s*\\{0,3}["']?(?:bearer\s+|basic\s+)?)(?P<secret>[^\s"'\\,}]+)
""")
]


def words_of(name: str) -> str:
    """A name in one spelling: "DB-Password", "dbPassword" and "DB_PASSWORD" are "db_password"."""
    return "_".join(_WORD.findall(name[-96:])).lower()


def is_plain(value: str) -> bool:
    return value.startswith("-----BEGIN") or (len(value) <= 1024 and PLAIN.fullmatch(value) is not None)


def masked_value(value: str, name: str) -> str:
    """A secret's value, masked: a reference stays, cookies keep their names, `Bearer` stays a word."""
    if not value or is_plain(value):
        return value
    if "cookie" in name.lower() and "=" in value:
        masked = COOKIE_PAIR.sub(rf"\1{MASK}", value)
        return masked if MASK in masked else MASK
    scheme = SCHEME.match(value)
    secret = value[scheme.end() :] if scheme else value
    return value[: len(value) - len(secret)] + (secret if is_plain(secret) else MASK)
