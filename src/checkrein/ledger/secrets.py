"""What a secret looks like: token shapes, names that announce one, places that hold one. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter

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
    | (?:access|account|admin|anthropic|api|app|application|auth|azure_?storage|client|crypto|decryption
        |deploy|encryption
        |functions?|hmac|jwt|license|master|openai|private|role|secret|sendgrid|service|session|shared|signing
        |stripe|subscription|supabase|webhook)_?keys?
    | auth(?:orization)?_?code | code_?verifier | (?:seed|recovery)_?phrase | jsessionid | phpsessid
    | docker_?config_?json | (?:ssh|store|key)_?pass | (?<![a-z0-9])(?:pwd|creds?|otp)
    | (?<=_)(?:pass|pw|pat) )
    (?: _(?:\d+|value|string|str|text|plaintext|raw|data|literal|binary|base64|encoded|confirm|confirmation
        |again|prod|production|dev|development|staging|live|sandbox|local|default|backup|old|new) )*$""")
# Names that hold a secret only where the value looks like one.
PERHAPS = re.compile(r"(?:^|_)(?:(?:pass|pw)(?:_\d+)?|auth)$")
NAME_HINTS = tuple(
    "pass pw secret token auth bearer cookie cred key phrase sess code config _pat otp".split()
)
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


# Variables whose values stay on the record: they decide what runs, what it loads and where it looks.
KEPT_NAME = r"""(?:PATH|[A-Z]+PATH|\w+_PATH|LD_\w+|DYLD_\w+|GLIBC_TUNABLES|MALLOC_\w+
    |GIT_(?:\w+_COMMAND|SSH\w*|\w*EDITOR|\w*PAGER|ASKPASS|DIR|WORK_TREE|EXTERNAL_DIFF|CONFIG\w*
    |TEMPLATE_DIR|INDEX_FILE|OBJECT_DIRECTORY|\w+_(?:NAME|EMAIL|DATE|PROMPT|LOCKS))
    |PYTHON(?!_)\w+|PYTEST_(?:ADDOPTS|PLUGINS|DISABLE_PLUGIN_AUTOLOAD)
    |NODE_(?:OPTIONS|ENV)|PERL5(?:OPT|LIB|DB)|PERLLIB|RUBY(?:OPT|LIB)|BASH_ENV
    |BASH_FUNC_\w+|ENV|SHELL|SHELLOPTS|BASHOPTS|PROMPT_COMMAND|PS[0-4]|IFS|HOME|ZDOTDIR
    |INPUTRC
    |(?:\w+_)?(?:PAGER|EDITOR|BROWSER|ASKPASS|COMMAND|CMD|WRAPPER|OPTS|OPTIONS|FLAGS|ARGS)
    |MANPAGER|VISUAL|[A-Z]+(?:FLAGS|OPTS|OPTIONS)|LESS(?:OPEN|CLOSE)|RSYNC_RSH|CVS_RSH
    |SVN_SSH|RSH|CC|CXX|LD|AR|MAKE|RUSTC\w*|CARGO
    |GO(?:OS|ARCH|PROXY|ENV|BIN|ROOT|TOOLCHAIN|GC|MAXPROCS|DEBUG)|CGO_ENABLED|JAVA_HOME
    |VIRTUAL_ENV|(?i:https?_proxy|all_proxy|ftp_proxy|no_proxy)|LANG|LANGUAGE|LC_[A-Z]+
    |TZ|CI|TERM|COLORTERM|NO_COLOR|FORCE_COLOR|CLICOLOR\w*|COLUMNS|LINES|DEBUG|VERBOSE
    |QUIET|(?:RAILS|RACK|APP|FLASK|MIX)_ENV|RUST_(?:LOG|BACKTRACE)|LOG_?LEVEL
    |CARGO_(?:TERM_COLOR|INCREMENTAL)
    |AWS_(?:REGION|DEFAULT_REGION|PROFILE|DEFAULT_OUTPUT)|DEBIAN_FRONTEND
    |HOMEBREW_NO_\w+|GH_REPO|DO_NOT_TRACK|\w+_TELEMETRY_(?:DISABLED|OPTOUT)|PORT|SEED
    |TIMEOUT|SOURCE_DATE_EPOCH|COMPOSE_PROJECT_NAME)"""
KEPT_NAME = re.sub(r"\s+", "", KEPT_NAME)


def _table(rows: str) -> Iterator[list[str]]:
    """Rows of `a :: b :: pattern`; an indented line continues its row, `{word}` is one word of a command."""
    # Quoted as a whole, or letters and escapes with short quotations glued on, as a shell reads one word.
    letter = r"""(?:[^\s"'`|;&<>()$\\]|\$(?![('])|\\[^\n])"""
    glued = r"""(?:"[^"\s,:;&|)}\]][^"\s]*+"|'[^'\s,:;&|)}\]][^'\s]*+')"""
    word = rf"""(?P<secret>"(?:[^"\\\n]|\\.)*+"|\$?'[^'\n]*'|(?!-){letter}(?:{letter}|{glued})*+)"""
    for row in re.split(r"\n(?=\S)", rows.strip()):
        names, rest = row.split("::", 1)
        whole = " ".join(names.split()) + " ::" + re.sub(r"\n\s*", "", re.sub(r"\n\s+(?=::)", " ", rest))
        yield whole.replace("{word}", word).replace("{kept}", KEPT_NAME).split(" :: ")


# Programs, what their arguments start with (if it matters), and where the secret stands.
PROGRAMS: dict[str, list[tuple[str, str]]] = {}
for _names, _start, _pattern in _table(r"""
mysql mysqldump mysqladmin mysqlimport mysqlcheck mysqlsh mariadb mariadb-dump mycli ::  :: \s-p{word}
sshpass ::  :: ^(?:\s+-[ev]\S*)*\s+-p\s*{word}
docker podman nerdctl buildah skopeo helm az oc :: \s+(?:\w+\s+)?login\b :: \s-p\s*{word}
mongo mongosh mongodump mongorestore mongoexport mongoimport cqlsh twine useradd usermod snowsql cypher-shell
    beeline steghide veracrypt rdesktop crackmapexec netexec evil-winrm hydra medusa yt-dlp youtube-dl
    gallery-dl ncftp ncftpput aescrypt couchbase-cli elasticsearch-users smbmap rabbitmqadmin altool
    ::  :: \s-p\s+{word}
redis-cli ::  :: \s(?:-a|--pass|(?i:auth(?:\s+default)?|config\s+set\s+(?:requirepass|masterauth)))\s+{word}
unzip zip sqlcmd bcp mosquitto_pub mosquitto_sub osql tsql freebcp ipmitool ::  :: \s-P\s*{word}
7z 7za 7zr 7zz rar unrar ::  :: \s-h?p{word}
ldapsearch ldapadd ldapmodify ldapdelete ldapwhoami ldapcompare ldapmodrdn ldapexop ldapvi dsconf kadmin vsql
    ::  :: \s-w\s*{word}
ldappasswd ::  :: \s-[wsa]\s*{word}
smbclient rpcclient smbget winexe smbtree net ::  :: \s(?:-U|--user)[\s=]*+["']?[^\s%"']+%(?P<secret>[^\s"']+)
curl ::  :: \s(?:-u|-U|--user|--proxy-user)[\s=]*+(["'])?[^\s:"']+:(?P<secret>(?(1)[^"'\n]+|[^\s"']+))
curl http https xh wget httpie ::  :: \s(?:-H|--header)[=\s]*["'][\w-]*(?i:key|token|secret|auth|password):\s*
    (?P<secret>[^\s"']+)
curl ::  :: \s--(?:pass|proxy-pass)[\s=]+{word}
curl ::  :: \s(?:-E|--cert|--proxy-cert)[\s=]+["']?[^\s:"']+:(?P<secret>[^\s"']+)
curl ::  :: \s-b\s*["']?[^\s=;"']+=(?P<secret>[^"'\n\s;]+(?:;[^"'\n]+)?)
http https xh ::  :: \s(?:-a|--auth)[\s=]*+["']?[^\s:"']+:(?P<secret>[^\s"']+)
openssl apksigner ::  :: (?:\bpass:|\b(?:hex)?key:){word}
openssl ::  :: \s-(?:k|K|hmac|psk)\s+{word}
openssl :: \s+passwd :: \s-(?:1|5|6|apr1)\s+(?:-salt\s+\S+\s+)?{word}
openssl :: \s+passwd :: ^\s+passwd\s+{word}
security :: \s+(?:add-\w+-password|unlock|create-keychain|import|set-keychain|set-key-partition)
    :: \s-[wpPok]\s+{word}
gh :: \s+secret\s+set :: \s(?:-b|--body)[\s=]+{word}
fly flyctl doppler supabase heroku :: \s+(?:secrets\s+set|config:set)\s :: \s(?!-)[\w.-]+={word}
ssh-keygen ::  :: \s-[NP]\s*{word}
plink pscp psftp putty ::  :: \s-pw\s+{word}
htpasswd :: (?:\s+-C\s+\d+|\s+-\w+)*?\s+-\w*n
    :: ^(?:\s+-C\s+\d+|\s+-\w+)+\s+[^\s-]\S*\s+{word}
htpasswd :: (?:\s+-C\s+\d+|\s+-[^\sn]+)*\s+-[^\sn]*b
    :: ^(?:\s+-C\s+\d+|\s+-\w+)+\s+[^\s-]\S*\s+\S+\s+{word}
mysqladmin ::  :: \spassword\s+{word}
rabbitmqctl ::  :: \s(?:add_user|change_password|authenticate_user)\s+\S+\s+{word}
neo4j-admin ::  :: \s(?:dbms\s+)?set-initial-password\s+{word}
pdftk ::  :: \s(?:user_pw|owner_pw|input_pw)\s+(?:\w+=)?{word}
qpdf ::  :: \s--encrypt\s+{word}
qpdf ::  :: \s--encrypt\s+\S+\s+{word}
pdftotext pdfimages pdfinfo pdftoppm ::  :: \s-[uo]pw\s+{word}
ccrypt ccencrypt ccdecrypt swift pk12util ::  :: \s-[KW]\s+{word}
mcrypt mdecrypt ::  :: \s-k\s+{word}
ansible-vault ::  :: \sencrypt_string\s+(?:-[\w-]+(?:[= ][^\s'"-]\S*)?\s+)*{word}
rclone ::  :: \s(?:obscure|pass|password2?)\s+{word}
mount mount.cifs mount_smbfs sshfs ::  :: [\s,]pass=(?P<secret>[^\s,"']+)
samba-tool ::  :: \suser\s+(?:create|add)\s+\S+\s+{word}
net :: \s+user\s :: ^\s+user\s+[^\s/]\S*\s+(?![/-]){word}
dscl ::  :: \s-passwd\s+\S+\s+{word}
sshpass ::  :: ^(?:\s+-[ev]\S*)*\s+-p{word}
mkpasswd grub-mkpasswd-pbkdf2 ::  :: ^(?:\s+(?:-m|-S|-R|--method|--salt)[= ]\S+|\s+-s)*\s+{word}
wpa_passphrase ::  :: ^\s+(?:"[^"]*"|'[^']*'|\S+)\s+{word}
iwconfig ::  :: \skey\s+(?:s:)?{word}
nmcli ::  :: \s(?:wifi-sec|802-11-wireless-security|vpn\.secrets)\.?\w*\s+{word}
networksetup ::  :: \s-setairportnetwork\s+\S+\s+(?:"[^"]*"|'[^']*'|\S+)\s+{word}
sqlldr expdp impdp rman ::  :: [\s=][\w$]+/(?P<secret>[^\s@/"']+)
db2 ::  :: \susing\s+{word}
etcdctl ::  :: \s(?:--user[= ]|user\s+add\s+)[^\s:]+:(?P<secret>[^\s"']+)
poetry composer ::  :: \shttp-basic\.\S+\s+\S+\s+{word}
poetry composer ::  :: \s(?:pypi-token|github-oauth|gitlab-token|bearer)\.\S+\s+{word}
poetry ibmcloud :: \s+(?:publish|login)\b :: \s-p\s+{word}
nuget dotnet ::  :: \s(?:-k\s+|setapikey\s+|-ApiKey\s+){word}
conan xcrun racadm ::  :: \s-p\s+{word}
vault :: \s+(?:kv\s+(?:put|patch)|write)\s :: \s(?!-)[\w.-]+=(?!@){word}
consul :: \s+kv\s+put :: ^\s+kv\s+put\s+\S+\s+{word}
aws :: \s+ssm\s+put-parameter :: \s--value[= ]+{word}
keyvault :: \s+secret\s+set :: \s--value[= ]+{word}
chamber ::  :: \swrite\s+\S+\s+\S+\s+{word}
netlify glab ::  :: \s(?:env:set|variable\s+set)\s+[\w.-]+\s+{word}
railway infisical travis :: \s+(?:variables?|secrets|encrypt)\s :: \s(?!-)[A-Za-z_][\w.-]*={word}
firebase :: \s+functions:config:set :: \s(?!-)[\w.-]+={word}
pulumi ::  :: \sconfig\s+set\s+(?:--(?:secret|path|plaintext)\s+)*\S+\s+{word}
knife ::  :: \s-P\s+{word}
ngrok ::  :: \s(?:config\s+add-)?authtoken\s+{word}
wandb ::  :: \slogin\s+(?:--relogin\s+)?(?!-){word}
doctl ::  :: \s-t\s+{word}
aliyun ::  :: \s--(?:access-key-secret|sts-token)\s+{word}
s3cmd ::  :: \s--secret_key[= ]{word}
snmpget snmpwalk snmpset snmpbulkwalk snmpgetnext ::  :: \s-[AXc]\s*{word}
xfreerdp wlfreerdp xfreerdp3 mstsc ::  :: \s/p:{word}
radtest ::  :: ^\s+\S+\s+{word}
radtest ::  :: \s\d+\s+{word}
swaks sendemail ::  :: \s-(?:ap|xp)\s+{word}
impacket-secretsdump impacket-psexec impacket-wmiexec impacket-smbexec secretsdump.py psexec.py wmiexec.py
    ::  :: \s["']?(?:[\w.-]+/)?[\w.-]+:(?P<secret>[^\s"']+)@
sqlmap hey nikto lynx ::  :: \s(?:--auth-cred|-a|-id|-auth)[= ]+["']?[^\s:"']+:(?P<secret>[^\s"']+)
drush ::  :: \suser:password\s+\S+\s+{word}
caddy ::  :: \s--plaintext[= ]+{word}
oathtool ::  :: ^(?:\s+(?:--?(?:totp|base32|hotp|verbose)(?:=\w+)?|-b|-v))+\s+{word}
osslsigncode signtool ::  :: \s[-/]p(?:ass)?\s+{word}
mc ::  :: \salias\s+set\s+\S+\s+\S+\s+\S+\s+{word}
cf :: \s+login\s :: \s-p\s+{word}
cf ::  :: ^\s+(?:auth\s+\S+|set-env\s+\S+\s+\S+)\s+{word}
bw ::  :: ^\s+(?:unlock|login\s+\S+)\s+(?!-){word}
b2 ::  :: ^\s+(?:account\s+authorize|authorize-account)\s+\S+\s+{word}
p4 ::  :: \s-P\s+{word}
docker podman nerdctl ::  :: \s(?:-e|--env)[= ](?!{kept}=)[A-Za-z_]\w*={word}
wrangler gh glab vercel netlify supabase fly flyctl docker podman nerdctl helm doppler heroku railway chpasswd
    passwd cryptsetup gpg openssl keyctl smbpasswd kinit vault security kubectl twine pass
    ::  :: <<<\s*{word}
lftp ::  :: \s-u\s+[^\s,]+,(?P<secret>[^\s"']+)
sqlplus ::  :: \s[\w$]+/(?P<secret>[^\s@/"']+)@
vault cargo :: \s+(?:operator\s+)?(?:login|unseal) :: \s(?:login|unseal)\s+(?:token=)?(?!\w+=){word}
"""):
    for _name in _names.split():
        PROGRAMS.setdefault(_name, []).append((_start, _pattern))
WORD_OF_COMMAND = re.compile(r"(?<![\w.-])[\w.-]++(?=\s)")


def _any_of(names: Iterable[str]) -> str:
    """A pattern for one of these names, by their first letters: most are then never tried."""
    by_letter = {letter: [*group] for letter, group in groupby(sorted(names, reverse=True), itemgetter(0))}
    groups = (
        rf"{re.escape(letter)}(?:{'|'.join(re.escape(each[1:]) for each in group)})"
        for letter, group in by_letter.items()
    )
    return f"(?:{'|'.join(groups)})"


PROGRAM = rf"(?<![\w.-]){_any_of(PROGRAMS)}(?=\s)"
COMMAND = rf"""{PROGRAM}(?:[^\n|;&\\"'()$]|\$(?!\()|\\[\s\S]|"(?:[^"\\]|\\.)*+"|'[^']*')*+"""

# What a secret is not: masked elsewhere in a call, these would take away what the call does.
PROGRAM_NAMES = frozenset(PROGRAMS) | frozenset(
    """bash dash fish node deno python python3 ruby perl java cargo rustc make cmake ninja gcc clang pytest
    tox grep sed awk gawk find xargs tail head sort uniq less more touch mkdir rmdir chmod chown ln dd
    tee tar gzip zstd rsync scp sftp ssh curl wget nc ncat socat git svn apt yum dnf brew pacman pip
    pipx poetry conda npm npx pnpm yarn bun gem bundle composer gradle mvn docker podman kubectl helm
    terraform ansible systemctl service crontab kill pkill reboot shutdown sudo doas eval exec source
    export alias psql sqlite3 redis-server nginx checkrein""".split()
)
COMMON_WORDS = frozenset(
    """admin root user guest login default main master origin head develop development staging production
    prod test tests testing debug release build dist docs src lib libs bin data temp local localhost
    project server client database public private shared secret secrets password passwd token tokens
    username registry index config settings service services example sample demo none null true false
    stdin stdout file files name value key keys read write delete remove update create install deploy
    publish push pull clone commit checkout merge status list show help version info warn error trace
    verbose high medium low critical masked command this that with from into call tool runs talks
    network outside changes something unknown""".split()
)
HOST = re.compile(
    r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.){1,8}"
    r"(?:com|org|net|io|dev|app|ai|co|de|eu|uk|fr|nl|ch|jp|cn|ru|us|ca|au|in|br|info|biz|me|sh|xyz|cloud|tech"
    r"|site|online|example|test|invalid|local|localhost|internal|lan|home|corp)(?::\d{1,5})?"
    r"|\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?|localhost:\d{1,5}"
)

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
:pserver: :: :pserver: :: :pserver:[^\s:@]+:(?P<secret>[^\s:@"']+)@
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
    (?:sudo[ \t]+(?:-\w+[ \t]+)*-\w*S|(?:sudo[ \t]+)?(?:chpasswd|passwd|smbpasswd|kinit|vncpasswd|cryptsetup
    |argon2|openconnect|keyctl|ssh-add|wrangler|(?:gh|fly|flyctl|docker|podman)[ \t]+(?:secrets?|auth)
    |vercel[ \t]+env|vault[ \t]+(?:kv|write|login)|heroku|security|pass[ \t]+insert)\b
    |[^|;&\n]{0,120}(?:--(?:password-stdin|with-token|passphrase-fd|stdin|passwd-on-stdin|password-file[= ]-
    |from-file=[\w.-]+=/dev/stdin)|-pass(?:in|out)?[ \t]+stdin))
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
