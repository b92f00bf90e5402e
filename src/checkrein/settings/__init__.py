"""Every setting, its default, its bounds and which way is tighter: one frozen value for the whole product.

`settings.check` lays a file over a value, `settings.tighten` does so for untrusted projects, and
`settings.sources` finds the files. Nothing here decides anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_type_hints

import msgspec


class Key(msgspec.Struct, frozen=True):
    """What a setting means and what it may hold; `tighter` is the direction that restricts the agent."""

    doc: str
    at_least: float | None = None
    at_most: float | None = None
    below: float | None = None
    tighter: Literal["lower", "higher", ""] = ""
    choices: tuple[str, ...] = ()
    # INVARIANT: the value of a secret is never shown, not in an error either.
    secret: bool = False


class Trust(msgspec.Struct, frozen=True):
    hibernation_days: Annotated[
        int, Key("Idle days before a score starts to decay.", at_least=0, at_most=36500)
    ] = 14
    boost_threshold: Annotated[
        int, Key("Operations of a domain that learn at the faster first rate.", at_least=0, tighter="lower")
    ] = 20
    initial_score: Annotated[
        float, Key("Score of a domain nobody has used yet.", at_least=0, at_most=0.5, tighter="lower")
    ] = 0.3
    warmup_operations: Annotated[
        int, Key("Operations that learn at double rate after a long pause.", at_least=0, tighter="lower")
    ] = 5
    failure_decay: Annotated[
        float, Key("What a score is multiplied by at a failure.", at_least=0.5, below=1.0, tighter="lower")
    ] = 0.85


class RiskWeights(msgspec.Struct, frozen=True):
    lambda1: Annotated[
        float, Key("Weight of the risk category.", at_least=0, at_most=10, tighter="higher")
    ] = 0.6
    lambda2: Annotated[float, Key("Weight of the complexity.", at_least=0, at_most=10, tighter="higher")] = (
        0.4
    )


class Autonomy(msgspec.Struct, frozen=True):
    auto_approve_threshold: Annotated[
        float, Key("Above this autonomy a call runs unasked.", at_least=0, at_most=1, tighter="higher")
    ] = 0.8
    human_required_threshold: Annotated[
        float, Key("Below this autonomy a person is asked.", at_least=0, at_most=1, tighter="higher")
    ] = 0.4
    trust_gate_threshold: Annotated[
        float, Key("A trust-gated domain asks up to this score.", at_least=0, at_most=1, tighter="higher")
    ] = 0.8


class Audit(msgspec.Struct, frozen=True):
    log_dir: Annotated[
        str,
        Key(
            "Where the daily JSON lines go; relative paths are inside the project, "
            "empty means the state directory."
        ),
    ] = ""


class Model(msgspec.Struct, frozen=True):
    opus_aot_threshold: Annotated[
        int, Key("Decision points from which the largest model is recommended.", at_least=1)
    ] = 2


class Approval(msgspec.Struct, frozen=True):
    timeout_seconds: Annotated[
        int, Key("How long a question waits before it counts as no.", at_least=1, tighter="lower")
    ] = 300
    most_waiting: Annotated[
        int,
        Key("Questions of one session that may wait at once; more are refused.", at_least=1, tighter="lower"),
    ] = 20
    repeat_seconds: Annotated[
        int,
        Key("How long a no to a call answers the same call again by itself.", at_least=0, tighter="higher"),
    ] = 300
    claim_seconds: Annotated[
        int,
        Key(
            "How long an approval waits for its caller to come back; then it ends unused.",
            at_least=1,
            tighter="lower",
        ),
    ] = 604_800
    remember_native: Annotated[
        Literal["once", "session"],
        Key("How far a yes in an agent's own dialog reaches: once, or its family for the session."),
    ] = "once"
    release_seconds: Annotated[
        int,
        Key(
            "How long the release of one blocked critical call stays usable.",
            at_least=1,
            at_most=3600,
            tighter="lower",
        ),
    ] = 300


class Retention(msgspec.Struct, frozen=True):
    mirror_days: Annotated[
        int,
        Key("Days the daily JSON lines are kept; 0 keeps them. The ledger itself is never cut.", at_least=0),
    ] = 0
    input_bytes: Annotated[
        int,
        Key("How much of a call's arguments the ledger keeps, after masking.", at_least=0, at_most=1 << 24),
    ] = 65536
    output_bytes: Annotated[
        int, Key("How much of a tool's output the ledger keeps, after masking.", at_least=0, at_most=1 << 20)
    ] = 4096


class MaskingSettings(msgspec.Struct, frozen=True):
    keys: Annotated[tuple[str, ...], Key("More argument names whose values are secret.")] = ()
    patterns: Annotated[tuple[str, ...], Key("More secret shapes, as RE2 patterns.")] = ()


class Network(msgspec.Struct, frozen=True):
    known_hosts: Annotated[
        tuple[str, ...], Key("Hosts you vouch for: talking to them is high risk instead of critical.")
    ] = ()


class Console(msgspec.Struct, frozen=True):
    port: Annotated[
        int,
        Key(
            "Loopback port of the web console; another is taken when it is in use.", at_least=0, at_most=65535
        ),
    ] = 7331


class Server(msgspec.Struct, frozen=True):
    http_port: Annotated[
        int,
        Key(
            "Loopback port for agents' own HTTP hooks, guarded by a token; 0 keeps it closed.",
            at_least=0,
            at_most=65535,
        ),
    ] = 0


class Gateway(msgspec.Struct, frozen=True):
    call_seconds: Annotated[
        float,
        Key("How long a tool call may take before it counts as unanswered.", at_least=0.1, at_most=86400),
    ] = 30.0
    start_seconds: Annotated[
        float, Key("How long a server may take to start and greet.", at_least=0.1, at_most=600)
    ] = 30.0
    idle_seconds: Annotated[
        float, Key("A connection only one client uses ends after this long without a call.", at_least=1)
    ] = 600.0
    most_private: Annotated[
        int, Key("Connections of one server that each serve one client only, at most.", at_least=1)
    ] = 16
    no_person: Annotated[
        Literal["deny", "wait"],
        Key("A call that must ask when nobody can be asked: deny it, or answer that it waits."),
    ] = "deny"
    taint: Annotated[
        Literal["ask", "off"],
        Key("Once untrusted results were read, outward and destructive calls ask; off: as rules say."),
    ] = "ask"
    http_port: Annotated[
        int,
        Key(
            "Loopback port of /mcp, open while a client has a token; 0 keeps it closed.",
            at_least=0,
            at_most=65535,
        ),
    ] = 7330
    calls_per_minute: Annotated[int, Key("Requests one HTTP client may send in a minute.", at_least=1)] = 6000


class Evaluation(msgspec.Struct, frozen=True):
    enabled: Annotated[
        bool, Key("Offer `eval` and one tool for each profile; on as soon as this section says anything.")
    ] = False
    seconds: Annotated[
        float, Key("How long a script may compute; waiting costs nothing.", at_least=0.1, at_most=600)
    ] = 30.0
    memory_mb: Annotated[int, Key("Memory of one script, in MB.", at_least=8, at_most=4096)] = 64
    calls: Annotated[int, Key("Calls one script may make.", at_least=1, at_most=10_000)] = 100
    output_kb: Annotated[
        int, Key("How much of what a script prints is kept, in KB.", at_least=1, at_most=1024)
    ] = 64
    result_kb: Annotated[int, Key("How large a script's result may be, in KB.", at_least=1, at_most=1024)] = (
        256
    )
    wait_seconds: Annotated[
        float,
        Key("How long a client waits for a script before it is told to come back.", at_least=0, at_most=3600),
    ] = 55.0
    most_asks: Annotated[int, Key("Questions one script may cause; more are refused.", at_least=0)] = 20
    asks_per_minute: Annotated[
        int, Key("Questions all scripts of one client may cause in a minute; more are refused.", at_least=0)
    ] = 30
    fatal_denials: Annotated[
        int, Key("Refusals after which a script is ended; 0: it may catch every one.", at_least=0)
    ] = 0
    keep_days: Annotated[
        float, Key("Days a script may wait for answers, and its result is kept.", at_least=0.01, at_most=365)
    ] = 7.0
    summaries: Annotated[
        Literal["off", "sampling"],
        Key("Long arguments: have the client's model sum them up beside the question, never instead."),
    ] = "off"


class Chat(msgspec.Struct, frozen=True):
    model: Annotated[
        str, Key("The model a new conversation begins with: PROVIDER/MODEL; empty: as chosen.")
    ] = ""
    system: Annotated[str, Key("What every model is told first; a conversation may say otherwise.")] = ""
    answer_hours: Annotated[
        float, Key("Hours a question of a conversation waits for you.", at_least=0.01, at_most=8760)
    ] = 24.0
    most_rounds: Annotated[
        int, Key("Times a model may go on after its tools answered, for one message.", at_least=1)
    ] = 40
    threshold: Annotated[
        float,
        Key("Share of a model's input from which a conversation is compressed.", at_least=0.7, at_most=1),
    ] = 0.95
    retention_tokens: Annotated[
        int,
        Key(
            "Tokens kept as they were said; -1: an eighth of the model's input, at most 8000.",
            at_least=-1,
        ),
    ] = -1
    auto_compress: Annotated[bool, Key("Compress by itself at the threshold; off: only by hand.")] = True
    template: Annotated[str, Key("How summaries are asked for; empty: our own words.")] = ""
    routing: Annotated[
        Literal["off", "on"], Key("Choose the model for each message by what it asks for.")
    ] = "off"
    architect: Annotated[str, Key("With routing: the model that designs; empty: the usual one.")] = ""
    analyst: Annotated[str, Key("With routing: the model that finds out; empty: the usual one.")] = ""
    worker: Annotated[str, Key("With routing: the model that carries out; empty: the usual one.")] = ""
    reporter: Annotated[str, Key("With routing: the model that tells; empty: the usual one.")] = ""


class Connections(msgspec.Struct, frozen=True):
    proxy: Annotated[
        Literal["environment", "custom", "none"],
        Key("Proxy to reach models through: as HTTPS_PROXY and the like say, `proxy_url`, or none."),
    ] = "environment"
    proxy_url: Annotated[
        str,
        Key("The custom proxy, http://[USER:PASSWORD@]HOST:PORT; may hold ${keyring:NAME}.", secret=True),
    ] = ""
    no_proxy: Annotated[
        tuple[str, ...],
        Key("Hosts reached without a proxy: names with their subdomains, addresses, networks, or *."),
    ] = ()
    certificates: Annotated[
        Literal["system", "files"],
        Key("Who is believed: this machine's certificates and `ca_files`, or only those files."),
    ] = "system"
    ca_files: Annotated[tuple[str, ...], Key("Files (PEM) with further certificate authorities.")] = ()
    connect_seconds: Annotated[
        float, Key("How long a connection to a model may take.", at_least=0.1, at_most=600)
    ] = 10.0
    timeout_seconds: Annotated[
        float, Key("How long a model may be silent before it counts as gone.", at_least=0.1, at_most=3600)
    ] = 60.0


class Notify(msgspec.Struct, frozen=True):
    urls: Annotated[
        tuple[str, ...],
        Key(
            "Where you are told of questions: Apprise URLs, shown masked. Needs `checkrein[notify]`.",
            secret=True,
        ),
    ] = ()
    webhook_urls: Annotated[
        tuple[str, ...],
        Key("Addresses that get each notice as signed JSON: https, or http on this machine.", secret=True),
    ] = ()
    events: Annotated[
        tuple[str, ...],
        Key(
            "What you are told of: asked, expiring (a minute before), blocked (critical calls).",
            choices=("asked", "expiring", "blocked"),
        ),
    ] = ("asked", "expiring")


class Phase(msgspec.Struct, frozen=True):
    allowed: Annotated[tuple[str, ...], Key("Domains this phase is for.")] = ()
    denied: Annotated[tuple[str, ...], Key("Domains this phase blocks.")] = ()
    trust_gated: Annotated[tuple[str, ...], Key("Domains that ask until trust is above the gate.")] = ()


class ProfileSettings(msgspec.Struct, frozen=True):
    allow: Annotated[tuple[str, ...] | None, Key("Only these tools may run; a match needs no question.")] = (
        None
    )
    ask: Annotated[tuple[str, ...], Key("These tools always ask.")] = ()
    deny: Annotated[tuple[str, ...], Key("These tools never run.")] = ()
    extends: Annotated[tuple[str, ...], Key("Profiles this one adds to.")] = ()
    fallback: Annotated[
        Literal["deny", "allow"], Key("What an ask becomes when no person can be reached.")
    ] = "deny"


class Door(msgspec.Struct, frozen=True):
    unmatched: Annotated[
        Literal["ask", "earned", "allow"],
        Key("A call no rule or profile names: ask, decide by earned trust, or (eval only) allow."),
    ] = "ask"
    profile: Annotated[str, Key("The profile that applies to this door.")] = ""


PHASES: dict[str, Phase] = {
    "planning": Phase(
        allowed=("file_read", "git_read", "docs_write", "web_read"),
        denied=("file_write_src", "shell_exec", "git_remote"),
    ),
    "building": Phase(
        allowed=(
            "file_read",
            "file_write",
            "git_read",
            "git_local",
            "shell_exec",
            "test_run",
            "web_read",
        ),
        denied=("git_remote",),
        trust_gated=("shell_exec", "git_local"),
    ),
    "auditing": Phase(
        allowed=("file_read", "git_read", "web_read"),
        denied=("file_write", "shell_exec", "git_local", "git_remote"),
    ),
}

DOORS: dict[str, Door] = {
    "hooks": Door(unmatched="earned"),
    "gateway": Door(),
    "chat": Door(),
    "eval": Door(unmatched="allow"),
    "library": Door(),
}

# A kind of write is also a write: what holds for the parent holds for the kind.
PARENT_DOMAIN = {"file_write_src": "file_write", "docs_write": "file_write"}
DOMAINS = (
    "file_read",
    "file_write",
    "file_write_src",
    "docs_write",
    "test_run",
    "shell_exec",
    "git_read",
    "git_local",
    "git_remote",
    "network",
    "package",
    "web_read",
    "_global",
)


class Settings(msgspec.Struct, frozen=True):
    """All settings in force. Rules and command tables stay raw here; their stages compile and judge them."""

    trust: Trust = Trust()
    risk: RiskWeights = RiskWeights()
    autonomy: Autonomy = Autonomy()
    audit: Audit = Audit()
    model: Model = Model()
    approval: Approval = Approval()
    retention: Retention = Retention()
    masking: MaskingSettings = MaskingSettings()
    network: Network = Network()
    server: Server = Server()
    console: Console = Console()
    gateway: Gateway = Gateway()
    evaluation: Evaluation = Evaluation()
    chat: Chat = Chat()
    connections: Connections = Connections()
    notify: Notify = Notify()
    phases: dict[str, Phase] = msgspec.field(default_factory=lambda: dict(PHASES))
    doors: dict[str, Door] = msgspec.field(default_factory=lambda: dict(DOORS))
    profiles: dict[str, ProfileSettings] = {}
    rules: tuple[dict[str, Any], ...] = ()
    commands: dict[str, Any] = {}


SECTIONS: dict[str, type[msgspec.Struct]] = {
    "trust": Trust,
    "risk": RiskWeights,
    "autonomy": Autonomy,
    "audit": Audit,
    "model": Model,
    "approval": Approval,
    "retention": Retention,
    "masking": MaskingSettings,
    "network": Network,
    "server": Server,
    "console": Console,
    "gateway": Gateway,
    "evaluation": Evaluation,
    "chat": Chat,
    "connections": Connections,
    "notify": Notify,
}
# No project has a say in these, accepted or not: they say where a person is, how to get there, whether there
# are scripts at all, which models are asked and over which wires.
USER_ONLY = ("notify", "gateway", "evaluation", "chat", "connections")
TABLES: dict[str, type[msgspec.Struct]] = {"phases": Phase, "doors": Door, "profiles": ProfileSettings}


@cache
def keys_of(struct: type[msgspec.Struct]) -> Mapping[str, tuple[Any, Key]]:
    """Each key of a section with its type and meaning."""
    # Read from the annotations once: every file laid over the settings asks for each section again.
    hints = get_type_hints(struct, include_extras=True)
    return MappingProxyType({name: (hint.__origin__, hint.__metadata__[0]) for name, hint in hints.items()})


def lineage(name: str, profiles: Mapping[str, ProfileSettings]) -> tuple[str, ...]:
    """The profile and all it extends, each once, however often they meet again."""
    found = {name: None}
    waiting = [name]
    while waiting:
        for parent in profiles[waiting.pop()].extends:
            if parent not in found:
                found[parent] = None
                waiting.append(parent)
    return tuple(found)


def documented_keys() -> dict[str, Key]:
    """Every setting a user can write, by its dotted name."""
    scalar = {
        f"{section}.{name}": key
        for section, struct in SECTIONS.items()
        for name, (_, key) in keys_of(struct).items()
    }
    tables = {
        f"{table}.NAME.{name}": key
        for table, struct in TABLES.items()
        for name, (_, key) in keys_of(struct).items()
    }
    return scalar | tables
