"""Commands that reach services: HTTP clients, cloud command lines, databases; reading told from changing.

Handlers; the verbs themselves are in the tables.
"""

from __future__ import annotations

import re
from itertools import pairwise

from checkrein.call import Category
from checkrein.classify import hosts
from checkrein.classify.arguments import delicate, network, path
from checkrein.classify.commands import handler, plain
from checkrein.classify.flags import options, unlisted
from checkrein.classify.options import dry_run, parse
from checkrein.classify.shell import Shell
from checkrein.classify.tables import Spec
from checkrein.classify.words import DYNAMIC, EMPTY, HOLE, NETWORK, OPEN, SECRET, UNKNOWN, Word

_BODY = (
    "-d",
    "--data",
    "--data-raw",
    "--data-binary",
    "--data-urlencode",
    "--json",
    "-F",
    "--form",
    "-T",
    "--upload-file",
)
_FILES = (
    "--post-file",
    "--body-file",
    "-K",
    "--config",
    "-i",
    "--input-file",
    "--netrc-file",
    "-E",
    "--cert",
    "--key",
)
_OUT: tuple[str, ...] = (
    "-o",
    "--output",
    "-O",
    "--output-document",
    "-D",
    "--dump-header",
    "-c",
    "--cookie-jar",
    "--trace",
    "--trace-ascii",
    "--stderr",
)
_OUT += (
    "--libcurl",
    "--output-file",
    "-a",
    "--append-output",
    "-P",
    "--directory-prefix",
    "--output-dir",
    "--save-cookies",
    "--etag-save",
)
_MUTATION = re.compile(r"\bmutation\b")
_LISTS = re.compile(r"-(?:1|verbose|select|help|(?!provider|prop)[a-z]+(?:-[a-z]+)*s)")
"""What `openssl list` lists is a plural; providers it would load first."""
_PINGS = frozenset("ping ping6 fping hping3 traceroute mtr arping".split())
"""Their `-c` counts; that of other talkers runs a program."""
_LOCAL = re.compile(r"(?:^|@|//)(?:localhost|127\.\d+\.\d+\.\d+|\[?::1\]?)(?=[:/]|$)")


@handler("curl")
def curl(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    """Who it talks to, what it sends, where it writes."""
    parsed = parse(spec, words)
    version = parsed.has("--version", "-V") and spec.name == "curl"
    if version or (parsed.has("-h", "--help", "--manual", "-M", "-V", "--version") and not parsed.operands):
        return Word(HOLE, OPEN)
    options(shell, spec, parsed)
    urls = list(parsed.operands)
    for given in parsed.given:
        if (
            given.name
            in ("--url", "--connect-to", "--resolve", "-x", "--proxy", "--preproxy", "--socks5", "--doh-url")
            and given.value
        ):
            urls.append(
                given.value
                if "resolve" not in given.name and "connect" not in given.name
                else Word("outside.invalid")
            )
        _curl_files(shell, given.name, given.value, spec)
    if not urls:
        shell.find("network", "outside", spec.name, f"`{spec.name}` talks to a host it does not name")
    for word in urls:
        network(shell, spec, word)
    secret = SECRET if any(f.effect.scope == "secret" for f in shell.part.findings) else 0
    return Word(HOLE, DYNAMIC, NETWORK | secret)


def _curl_files(shell: Shell, name: str, value: Word | None, spec: Spec) -> None:
    if value is None:
        if (
            name in ("-O", "--remote-name", "-J", "--remote-header-name", "--remote-name-all")
            and spec.name == "curl"
        ):
            shell.find("download", "project", "", "it saves what it downloads")
        return
    if name in _BODY:
        text = value.text.partition("=")[2] if name in ("-F", "--form") else value.text
        if name in ("-T", "--upload-file"):
            path(shell, "read", value)
        elif text.startswith(("@", "<")):
            path(shell, "read", value._replace(text=text[1:]))
        if value.taint & SECRET:
            shell.find("read", "secret", "environment", "it sends a secret")
    elif name in _FILES and not (spec.name == "curl" and name == "-i"):
        path(shell, "read", value)
    elif (
        name in _OUT
        and not (spec.name == "curl" and name in ("-O", "-a", "-P"))
        and value.text not in ("-", "/dev/null")
    ):
        place = shell.places.place(value, shell.cwd)
        if place.scope != "null":
            shell.find("download", place.scope, place.path, f"it saves what it downloads as {value.shown}")
            path(shell, "write", value)
    elif name in ("-w", "--write-out") and "%output" in value.text:
        shell.find("write", "unknown", value.shown, "its output format writes a file")
    elif name in ("--unix-socket", "--abstract-unix-socket"):
        shell.find("network", "loopback", value.shown, f"it talks to the socket {value.shown}")
        if "docker.sock" in value.text:
            shell.find("privilege", "", value.shown, "it commands the container daemon")


@handler("talker")
def talker(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word:
    """Anything else that connects: loopback only when every address it names is."""
    if len(words) == 1 and words[0].text in ("--version", "-V", "--help", "-h"):
        return Word(HOLE, OPEN)
    if spec.effect == "message":
        if not words and stdin is None:
            shell.find("exec", "unknown", spec.name, f"what `{spec.name}` is to do is not said")
            return UNKNOWN
        # INVARIANT: a sender that is fed something sends it
        shell.find("message", "outside", spec.name, f"`{spec.name}` sends something to people, or pays")
        delicate(shell, words)
        return UNKNOWN
    named = [w for w in words if not w.text.startswith("-")]
    local = bool(named) and all(w.literal for w in named) and any(_LOCAL.search(w.text) for w in named)
    others = [w for w in named if _remote_like(w) and not _LOCAL.search(w.text)]
    scope = "loopback" if local and not others else "outside"
    if scope == "outside":
        known = [w for w in named if hosts.scope_of(w, shell.tables.known_hosts)[0] == "known"]
        scope = "known" if known and len(known) == len(others) else scope
    target = (others or named or [Word(spec.name)])[0].shown
    shell.find("network", scope, target, f"`{spec.name}` talks to {target} ({scope})")
    if spec.name not in _PINGS and any(
        w.text.startswith(("-e", "-c", "--exec", "--sh-exec")) or "EXEC:" in w.text or "SYSTEM:" in w.text
        for w in words
    ):
        shell.find("exec", "shell", spec.name, f"`{spec.name}` connects a program to the network")
    delicate(shell, words)
    return Word(HOLE, DYNAMIC, NETWORK)


def _remote_like(word: Word) -> bool:
    return bool(re.search(r"\w\.\w|://|@|:\d|\w:", word.text)) or not word.literal


@handler("gh-api")
def gh_api(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    """GET unless a method or fields say otherwise; a GraphQL query reads unless it is a mutation."""
    parsed = parse(spec, words)
    options(shell, spec, parsed)
    method = next(
        (g.value.text.upper() for g in parsed.given if g.name in ("-X", "--method") and g.value is not None),
        "",
    )
    fields = [
        g.value.text
        for g in parsed.given
        if g.name in ("-f", "-F", "--field", "--raw-field") and g.value is not None
    ]
    endpoint = parsed.operands[0].text if parsed.operands else ""
    if endpoint == "graphql":
        queries = [f for f in fields if f.startswith("query=")]
        unknown = not queries or any(f.startswith("query=@") for f in queries) or parsed.has("--input")
        changes = unknown or any(_MUTATION.search(f) for f in queries)
    else:
        changes = (method or ("POST" if fields or parsed.has("--input") else "GET")) not in ("GET", "HEAD")
    if any(g.name == "--hostname" for g in parsed.given):
        shell.find("network", "outside", "gh api", "it talks to another host")
    for field in fields:
        text = field.partition("=")[2]
        if text.startswith("@"):
            path(shell, "read", Word(text[1:]))
    scope = "service-write" if changes else "service"
    shell.find(
        "network",
        scope,
        f"gh api {endpoint}",
        f"`gh api {endpoint}` {'changes something' if changes else 'only looks'}",
    )
    return Word(HOLE, OPEN)


@handler("auth0-api")
def auth0_api(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    parsed = parse(spec, words)
    options(shell, spec, parsed)
    first = parsed.operands[0].text.lower() if parsed.operands else ""
    changes = first in ("post", "put", "patch", "delete") or parsed.has("-d", "--data")
    scope = "service-write" if changes else "service"
    shell.find(
        "network",
        scope,
        f"{spec.name} {first}",
        f"`{spec.name}` {'changes something' if changes else 'only looks'}",
    )
    return Word(HOLE, OPEN)


@handler("aws")
def aws(shell: Shell, _spec: Spec, words: list[Word], _stdin: Word | None) -> Word | None:
    """The operation is the second operand; paginated input read from files is a read."""
    for word in words:
        if "file://" in word.text:
            path(shell, "read", word._replace(text=word.text.partition("file://")[2]))
    if dry_run(words):
        shell.find("network", "service", "aws", "it only asks whether it could")
        return Word(HOLE, OPEN)
    return None


@handler("aws-configure-get")
def aws_configure_get(shell: Shell, _spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    if any(re.search(r"secret|token|key", w.text) for w in words):
        shell.find("secret", "service", "aws configure get", "it shows a credential")
        return Word(HOLE, DYNAMIC, SECRET)
    return Word(HOLE, OPEN)


@handler("upload")
def upload(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    """`aws s3 cp A B`: local files read or written, and data that moves."""
    parsed = parse(spec, words)
    dry = options(shell, spec, parsed)
    local = [w for w in parsed.operands if not w.text.startswith("s3://")]
    target = parsed.operands[-1].shown if parsed.operands else ""
    for word in local:
        leaving = parsed.operands and word is parsed.operands[0]
        path(shell, "list" if dry else "read" if leaving else "write", word)
    shell.find(
        "network",
        "service" if dry else "service-write",
        target,
        f"`{spec.name}` {'would move' if dry else 'moves'} data ({target})",
    )
    if not dry and any(f.effect.scope == "secret" for f in shell.part.findings):
        shell.find("network", "outside", target, "it uploads a secret")
    return EMPTY


_KUBE_SECRET = re.compile(r"(?i)^(?:[^-].*,)?secrets?(?:[./,]|$)|^/.*/secrets(?:/|$)")
_KUBE_SHOWS = re.compile(
    r"-o(?!=?(?:name|wide)$)|--output(?!=(?:name|wide)$)|--template|--raw|-\w*o(?:yaml|json)"
)


@handler("kubectl")
def kubectl(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word | None:
    """Client-side dry runs only print; anything about secrets shows them."""
    if dry_run(words):
        parsed = parse(spec, words)
        options(shell, spec, parsed._replace(unknown=[]))
        for given in parsed.given:
            if given.name in ("-f", "--filename") and given.value is not None:
                path(shell, "read", given.value)
        shell.find("network", "service", "kubectl", "it only says what it would do")
        return Word(HOLE, OPEN)
    named = [w.text for w in parse(spec, words).operands]
    if named[:1] in (["get"], ["describe"]) and any(map(_KUBE_SECRET.search, [w.text for w in words])):
        shows = named[0] == "get" and any(map(_KUBE_SHOWS.match, [w.text for w in words]))
        shell.find(
            "secret" if shows else "network",
            "service",
            "kubectl secrets",
            "it looks at the cluster's secrets",
        )
        return Word(HOLE, DYNAMIC, SECRET if shows else 0)
    return None


_SHOWS_ENVIRONMENT = re.compile(r"\.Env\b|json\s+\.(?:Config\b|Spec\b|\s*\}\})")


@handler("containers")
def containers(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word | None:
    """`docker inspect` shows a container's environment, unless a format picks something else."""
    parsed = parse(spec, words)
    named = [w.text for w in parsed.operands[:2]]
    if named[:1] == ["inspect"] or named in (["container", "inspect"], ["service", "inspect"]):
        formats = [w.text for w in words if "{{" in w.text]
        kinds = [b.text for a, b in pairwise(words) if a.text == "--type"]
        kinds += [w.text[7:] for w in words if w.text.startswith("--type=")]
        picked = formats and not any(map(_SHOWS_ENVIRONMENT.search, formats))
        if not picked and (not kinds or kinds == ["container"]):
            why = f"`{spec.name} inspect` shows a container's environment, secrets among it"
            shell.find("secret", "environment", " ".join(named), why, None if formats else Category.medium)
    if "config" in named and any(w.text == "--environment" for w in words):
        shell.find("secret", "environment", f"{spec.name} config", "it prints the environment")
    return None


@handler("openssl")
def openssl(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word | None:
    """Looking at certificates and digests is reading; keys, encryption and connections are not."""
    if not words:
        return UNKNOWN
    verb = words[0].text
    rest = words[1:]
    flags = {w.text for w in rest}
    if flags == {"-help"} or (verb == "list" and all(map(_LISTS.fullmatch, flags))):
        return Word(HOLE, OPEN)
    if verb in ("s_client", "s_server", "s_time", "ocsp", "ts", "cmp"):
        target = next(
            (
                rest[i + 1]
                for i, w in enumerate(rest[:-1])
                if w.text in ("-connect", "-host", "-url", "-server")
            ),
            Word("outside"),
        )
        network(shell, spec, target)
        return Word(HOLE, DYNAMIC, NETWORK)
    parsed = parse(spec, rest)
    options(shell, spec, parsed)
    quiet = verb in (
        "version",
        "list",
        "ciphers",
        "dgst",
        "asn1parse",
        "verify",
        "crl",
        "help",
        "errstr",
        "rand",
        "prime",
        "speed",
        "info",
    )
    quiet = quiet or verb in ("sha1", "sha256", "sha512", "md5", "sess_id", "crl2pkcs7", "nseq")
    quiet = quiet or (
        verb in ("x509", "req", "pkcs7", "cms")
        and not flags & {"-signkey", "-CA", "-new", "-newkey", "-CAkey", "-key"}
    )
    quiet = quiet or (verb == "enc" and "-base64" in flags) or verb in ("base64",)
    quiet = quiet or (verb in ("pkey", "rsa", "ec", "ecparam") and "-noout" in flags and "-text" not in flags)
    if (not quiet and not flags & {"-pubin", "-list_curves"}) or "-sign" in flags:
        shell.find("exec", "unknown", f"openssl {verb}", f"`openssl {verb}` makes or uses keys")
    unlisted(shell, spec, parsed)
    for word in parsed.operands:
        path(shell, "read", word)
    return Word(HOLE, DYNAMIC)


@handler("colon-verbs")
def colon_verbs(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word | None:
    """`heroku apps:destroy`: the verb is behind the colon; a bare topic lists."""
    named = [w.text for w in words if not w.text.startswith("-")]
    if named and ":" in named[0]:
        topic, _, verb = named[0].partition(":")
        reading = verb in (
            "list",
            "info",
            "status",
            "show",
            "view",
            "index",
            "versions",
            "output",
            "wait",
            "diagnose",
            "outliers",
            "ps",
            "locks",
        )
        secret = topic in ("config", "env", "credentials", "keys", "authorizations") and verb == "get"
        secret = secret or (topic in ("config", "env") and verb == "list")
        scope = "service" if reading else "service-write"
        kind = "secret" if secret else "network"
        shell.find(
            kind,
            scope,
            f"{spec.name} {named[0]}",
            f"`{spec.name} {named[0]}` {'only looks' if reading else 'changes something'}",
        )
        return Word(HOLE, OPEN)
    if named in (
        ["apps"],
        ["releases"],
        ["regions"],
        ["domains"],
        ["ps"],
        ["teams"],
        ["spaces"],
        ["pipelines"],
        ["addons"],
        ["plugins"],
    ):
        return Word(HOLE, OPEN)
    return None


@handler("daemon")
def daemon(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word | None:
    """Server programs: a flag that only reports, or a verb the table knows."""
    from checkrein.classify.tables import matches_verb

    if len(words) == 1 and words[0].literal and matches_verb(words[0].text, spec.verbs[0]):
        return Word(HOLE, OPEN)
    if any("checkrein" in w.text for w in words):
        # INVARIANT: our name in what a detached terminal is told is critical
        shell.find("self", "command", spec.name, f"`{spec.name}` would run it where nobody sees who asks")
    if any(w.text == ";" or w.text.endswith(("\\;", ";")) for w in words):
        shell.find("exec", "shell", spec.name, f"`{spec.name}` is given a second command")
    flags = {w.text for w in words}
    changes = {"--delete", "--alter", "--create", "--add", "--remove", "--reset-offsets", "--execute"}
    if spec.name.startswith("kafka-") and flags & {"--list", "--describe"} and not flags & changes:
        unlisted(shell, spec, parse(spec, words))
        return Word(HOLE, OPEN)
    if not words or words[0].text.startswith("-"):
        return plain(shell, spec, words, stdin)
    return None
