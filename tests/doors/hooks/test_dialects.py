"""The tables of the agents: complete, consistent, and the only place that knows an agent."""

import re
import tomllib
from pathlib import Path

import msgspec
import pytest

from checkrein.doors.hooks import dialects, events, replies
from checkrein.doors.hooks.dialects import AGENTS, GUESTS, Dialect, dialect
from checkrein.errors import InputError

TABLES = Path(dialects.__file__).parent / "tables"
every_agent = pytest.mark.parametrize("agent", AGENTS)


def answers(table: Dialect):
    return [(kind, saying, one) for kind, said in table.replies.items() for saying, one in said.items()]


def words_in(part):
    for value in part.values():
        if isinstance(value, dict):
            yield from words_in(value)
        elif isinstance(value, str) and value.startswith("$"):
            yield value


def test_every_agent_has_a_table_and_every_table_an_agent():
    known = (*AGENTS, *GUESTS)
    assert {path.stem for path in TABLES.glob("*.toml")} == set(known)
    assert [dialect(agent).agent for agent in known] == list(known)


def test_a_table_is_read_once():
    assert dialect("codex") is dialect("codex")


@pytest.mark.parametrize("agent", ["", "claude", "../codex", "Codex", "codex\n", "x" * 5000])
def test_an_unknown_agent_is_told_which_are_known(agent):
    with pytest.raises(InputError) as refused:
        dialect(agent)
    assert "claude-code, codex, gemini-cli, copilot-cli, cursor" in str(refused.value)
    assert len(str(refused.value)) < 300


def test_a_misspelt_key_is_refused():
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"separator": "_", "prefics": "mcp_"}, dialects.Mcp)


@every_agent
def test_only_the_tables_know_agents(agent):
    for module in (events, replies):
        assert agent not in Path(module.__file__).read_text("utf-8")


@every_agent
def test_every_placeholder_is_one_we_fill_in(agent):
    for _, _, answer in answers(dialect(agent)):
        said = {*words_in(answer.stdout), answer.stderr, answer.needs} - {""}
        assert said <= {"$event", "$reason", "$context", "$updated"}


@every_agent
def test_a_call_can_be_allowed_and_denied(agent):
    table = dialect(agent)
    assert table.events[table.gate] == "call"
    assert {"allow", "deny"} <= set(table.replies["call"])


@every_agent
def test_what_stops_something_says_why_on_stderr_and_exits_with_2(agent):
    for kind, saying, answer in answers(dialect(agent)):
        stops = saying == "block" or (saying == "deny" and kind == "call")
        assert (answer.exit, answer.stderr) == ((2, "$reason") if stops else (0, "")), (kind, saying)


@every_agent
def test_ask_is_spelled_only_where_the_agent_understands_it(agent):
    table = dialect(agent)
    assert ("ask" in table.replies["call"]) == table.has_dialog


@pytest.mark.parametrize("agent", (*AGENTS, *GUESTS))
def test_the_meaning_of_every_word_for_a_call_is_given(agent):
    """What a table leaves out is unknown; a guest may, an agent of ours says so."""
    text = (TABLES / f"{agent}.toml").read_text("utf-8")
    rows = tomllib.loads(text)["means"]
    words = {"deny"} if agent in GUESTS else {"allow", "rewrite", "ask", "deny"}
    assert all(words <= row.keys() for row in rows if row["kind"] == "call")
    # Two rows never answer for the same mode.
    modes = [mode for row in rows if row["kind"] == "call" for mode in row.get("modes", ["*"])]
    assert len(modes) == len(set(modes)) and ("*" not in modes or len(modes) == 1)


def _rows():
    """The table of meanings in the documentation, from the agents' own tables."""
    for table in map(dialect, (*AGENTS, *GUESTS)):
        for row in table.means:
            modes = [f"`{mode}`" for mode in row.modes or () if mode]
            modes += ["none named"] if row.modes and "" in row.modes else []
            words = (row.of("allow"), row.of("rewrite"), row.of("ask"), row.of("deny"))
            yield f"| {' | '.join((table.title, row.kind, ', '.join(modes) or 'every', *words))} |"


def test_the_documentation_shows_what_our_words_mean():
    page = (Path(__file__).parents[3] / "docs" / "hooks.md").read_text("utf-8").splitlines()
    shown = [line for line in page if line.startswith("|") and line.count("|") == 8]
    assert shown[2:] == list(_rows())


@pytest.mark.parametrize("guest", GUESTS)
def test_a_guest_is_told_by_its_payload_and_installed_nowhere(guest):
    table = dialect(guest)
    hosts = [agent for agent in AGENTS for shape in dialect(agent).shapes if shape.agent == guest]
    assert hosts and table.guest_remedy and table.experimental
    assert not table.hooks.user and not table.hooks.register.gate
    assert {each.ask for each in table.means} == {"unknown"}


def test_the_shapes_of_an_agent_end_with_its_own():
    for agent in AGENTS:
        shapes = [shape.agent for shape in dialect(agent).shapes]
        assert not shapes or (shapes[-1] == agent and agent not in shapes[:-1])


@every_agent
def test_only_a_rewrite_carries_a_changed_input(agent):
    table = dialect(agent)
    for _, saying, answer in answers(table):
        assert ("$updated" in set(words_in(answer.stdout))) == (saying == "rewrite")
    assert ("rewrite" in table.replies["call"]) == (table.rewrite != "none")


@every_agent
def test_what_is_registered_is_known(agent):
    table = dialect(agent)
    register = table.hooks.register
    kinds = {name: table.events[name] for name in (*register.gate, *register.permission, *register.tell)}
    assert table.gate in register.gate
    assert {kinds[name] for name in register.gate} <= {"call", "config", "expansion"}
    assert {kinds[name] for name in register.permission} <= {"permission"}
    assert not {kinds[name] for name in register.tell} & {"call", "config", "permission"}


@every_agent
def test_clues_name_events_and_the_most_telling_comes_first(agent):
    seen: list[set[str]] = []
    for clue in dialect(agent).unnamed:
        keys = set(clue.has)
        assert not any(earlier <= keys for earlier in seen), f"{clue.event} can never be found"
        seen.append(keys)


@every_agent
def test_every_sign_says_something(agent):
    for sign in dialect(agent).outcomes:
        if sign.text:
            assert sign.outcome or "code" in re.compile(sign.text).groupindex
        else:
            assert sign.outcome
        # A success that nothing in the payload shows would be a guess, unless the event itself is the report.
        if sign.outcome in ("success", "failure", "cancelled"):
            assert sign.evidence


@every_agent
def test_typed_commands_are_described_where_they_come_in_prompts(agent):
    table = dialect(agent)
    assert bool(table.typed) == (table.slash == "prompt")
    assert bool(table.fields.command) == (table.slash == "expansion")
    assert all("command" in re.compile(pattern).groupindex for pattern in table.typed)


@every_agent
def test_timeouts_are_in_the_unit_of_the_agent(agent):
    hooks = dialect(agent).hooks
    seconds = hooks.default_timeout / (1000 if hooks.timeout_unit == "ms" else 1)
    assert 10 <= seconds <= 600


def test_cursor_is_marked_as_untried():
    assert [agent for agent in AGENTS if dialect(agent).experimental] == ["cursor"]
