"""Only a person answers: real processes that are, come from, or only look like an agent."""

import contextlib
import os
import pty
import shutil
import subprocess
import sys

import pytest

from checkrein import agents as agents_module
from checkrein import peers
from checkrein.agents import Agents, Marks, agent_process, is_attended, own_user, user_name
from checkrein.peers import Peer
from checkrein.store.agents import Session as Row
from checkrein.store.agents import get_session, put_session, speaking
from patience import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

CLAUDE = Marks(
    names=("claude",),
    scripts=("claude-code",),
    headless=("-p", "--print"),
    process_fact="CLAUDE_PID",
    attended_fact="CLAUDE_CODE_SESSION_ATTENDED",
)
SHELL = shutil.which("bash") or "/bin/sh"
# Says its own number and stays.
STAY = 'echo "$$"; while :; do sleep 0.2; done'
CLEAN = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}


@pytest.fixture
def program(tmp_path):
    """A shell under another name, as the system shows it."""

    def make(name):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            shutil.copy(SHELL, path)
        return str(path)

    return make


@pytest.fixture
def family(program):
    """Starts processes one below the other (names from the top); their numbers."""
    tops = []

    def start(*names, env=CLEAN):
        script = STAY
        below = [program(name) for name in names[1:]]
        for path in reversed(below):
            script = f'echo "$$"; {path} -c {_quoted(script)}; :'
        top = subprocess.Popen(
            [program(names[0]), "-c", script],
            stdout=subprocess.PIPE,
            text=True,
            env=env,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
        )
        tops.append(top)
        return [int(top.stdout.readline()) for _ in names]

    yield start
    for top in tops:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(top.pid, 9)
        top.wait()
        top.stdout.close()


def _quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


@pytest.fixture
def detached(program):
    """A process in a session of its own whose parents are gone."""
    pids = []

    def start(env=CLEAN, script=STAY, terminal=False):
        code = (
            "import os, sys\n"
            "if os.fork(): os._exit(0)\n"
            "os.setsid()\n"
            "if os.fork(): os._exit(0)\n"
            "if sys.argv[3]:\n"
            "    import fcntl, termios\n"
            "    os.setsid() if os.getsid(0) != os.getpid() else None\n"
            "    ours, theirs = os.openpty()\n"
            "    fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)\n"
            "    os.dup2(theirs, 0)\n"
            "    os.set_inheritable(ours, True)\n"
            "os.execv(sys.argv[1], [sys.argv[1], '-c', sys.argv[2]])\n"
        )
        words = [sys.executable, "-S", "-c", code, program("sh"), script, "1" if terminal else ""]
        first = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=env)
        pid = int(first.stdout.readline())
        first.stdout.close()
        first.wait()
        pids.append(pid)
        return pid

    yield start
    for pid in pids:
        os.kill(pid, 9)


@pytest.fixture
def agents(pipeline, clock):
    return Agents(pipeline.store, pipeline.ledger, clock)


def meet(agents, hook, session="s-1", facts=None, agent="claude-code", project="/p", marks=CLAUDE):
    return agents.meet(agent, session, project, Peer(hook, os.geteuid()), marks, facts or {})


def why_not(agents, pid):
    return agents.not_a_person(Peer(pid, os.geteuid()))


@pytest.mark.invariant("what descends from a gated agent is the agent")
def test_what_descends_from_a_gated_agent_is_the_agent(agents, family):
    _, claude, hook = family("sh", "claude", "sh")
    met = meet(agents, hook)
    assert met.process == claude
    assert "claude-code session s-1" in why_not(agents, claude)
    assert "claude-code session s-1" in why_not(agents, hook)


def test_whoever_started_the_agent_and_whoever_stands_beside_it_is_no_agent(agents, family):
    shell, _, hook = family("sh", "claude", "sh")
    (beside,) = family("sh")
    meet(agents, hook)
    assert why_not(agents, shell) == why_not(agents, beside) == ""


def test_before_any_agent_was_met_everybody_is_a_person(agents, family):
    _, hook = family("claude", "sh")
    assert why_not(agents, hook) == ""


def test_a_process_that_has_gone_is_no_person(agents, run_and_gone):
    assert why_not(agents, run_and_gone) == "its process has gone already"


@pytest.fixture
def run_and_gone():
    done = subprocess.Popen(["true"])
    done.wait()
    return done.pid


def test_the_number_of_a_dead_agent_does_not_count(agents, pipeline, family):
    (now,) = family("sh")
    row = Row(agent="claude-code", id="old", project="/p", started_at=1.0, process=now, process_started="1")
    pipeline.store.write(lambda tx: put_session(tx, row))
    assert why_not(agents, now) == ""
    assert speaking(pipeline.store) == []
    assert get_session(pipeline.store, "claude-code", "old").process == 0


def test_an_ended_session_s_process_still_counts(agents, pipeline, family):
    from checkrein.store.agents import end_session

    _, hook = family("claude", "sh")
    meet(agents, hook)
    pipeline.store.write(lambda tx: end_session(tx, "claude-code", "s-1", 2.0))
    assert why_not(agents, hook)


def test_another_server_knows_what_an_earlier_one_met(agents, pipeline, clock, family):
    _, hook = family("claude", "sh")
    met = meet(agents, hook)
    again = Agents(pipeline.store, pipeline.ledger, clock)
    assert again.known("claude-code", "s-1") == met
    assert why_not(again, hook)


@pytest.mark.invariant("ancestors nobody can follow to the end are no person's")
def test_ancestors_nobody_can_follow_to_the_end_are_no_person_s(agents, family, monkeypatch):
    """Hiding behind a long row of processes must not help."""
    _, *between = family("claude", *["sh"] * 5)
    meet(agents, between[0])
    monkeypatch.setattr(peers, "_MOST_ANCESTORS", 4)
    assert "cannot be followed" in why_not(agents, between[-1])


def test_the_longest_row_we_follow_is_longer_than_any_person_s():
    assert peers._MOST_ANCESTORS >= 256
    assert peers.is_whole(peers.lineage(os.getpid()))


@pytest.mark.parametrize("terminal", [False, True])
def test_a_detached_process_that_carries_the_agent_s_variable_is_the_agent(
    agents, family, detached, terminal
):
    _, hook = family("claude", "sh")
    meet(agents, hook)
    loose = detached({**CLEAN, "CLAUDECODE": "1"}, terminal=terminal)
    assert peers.process(loose).terminal is terminal
    assert "cut loose" in why_not(agents, loose)
    assert "CLAUDECODE" in why_not(agents, loose)


def test_a_detached_process_that_waits_for_the_agent_s_end_is_still_the_agent(
    agents, pipeline, clock, family, detached
):
    agent, hook = family("claude", "sh")
    meet(agents, hook)
    loose = detached({**CLEAN, "CLAUDECODE": "1"})
    os.kill(agent, 9)
    os.waitpid(agent, 0)
    assert "cut loose" in why_not(agents, loose)
    # Another server, which has never seen that agent alive, knows it too.
    assert "cut loose" in why_not(Agents(pipeline.store, pipeline.ledger, clock), loose)


def test_a_variable_dropped_at_the_last_step_still_counts(agents, family, detached):
    _, hook = family("claude", "sh")
    meet(agents, hook)
    script = f"env -i {SHELL} -c {_quoted(STAY)}; :"
    last = detached({**CLEAN, "CLAUDECODE": "1"}, script=script)
    assert peers.environment_names(last).isdisjoint({"CLAUDECODE"})
    assert "cut loose" in why_not(agents, last)


def test_a_detached_process_without_the_variable_counts_as_a_person(agents, family, detached):
    """A limit, named in docs/security.md: nothing is left that tells such a process from a person's."""
    _, hook = family("claude", "sh")
    meet(agents, hook)
    assert why_not(agents, detached()) == ""


def test_a_detached_process_from_before_any_agent_is_a_person_s(agents, family, detached):
    loose = detached({**CLEAN, "CLAUDECODE": "1"})
    # The system counts the starts of processes in ticks.
    until(lambda: peers.age(peers.process(loose)) > 0.05)
    _, hook = family("claude", "sh")
    meet(agents, hook)
    assert why_not(agents, loose) == ""


@pytest.mark.invariant("nothing an agent runs can say that somebody else, below it, is the agent")
def test_nothing_an_agent_runs_can_say_that_somebody_below_it_is_the_agent(agents, pipeline, clock, family):
    claude, tool, fake, hook = family("claude", "sh", "claude", "sh")
    meet(agents, tool)
    assert meet(agents, hook, facts={"CLAUDE_PID": str(fake)}).process == claude
    later = Agents(pipeline.store, pipeline.ledger, clock)
    assert "s-1" in why_not(later, tool)


@pytest.mark.invariant("a later word about a session, whoever says it, makes no living agent a person")
def test_a_later_word_about_a_session_makes_no_living_agent_a_person(agents, family):
    """Another process goes on with the session, or says so: the one that began it is the agent still."""
    _, hook = family("claude", "sh")
    other, other_hook = family("claude", "sh")
    meet(agents, hook)
    assert meet(agents, other_hook).process == other
    assert "s-1" in why_not(agents, hook)
    assert "s-1" in why_not(agents, other_hook)


def test_a_report_that_comes_late_changes_nothing_about_who_speaks(agents, pipeline, family):
    _, hook = family("claude", "sh")
    met = meet(agents, hook)
    late = agents.meet("claude-code", "s-1", "/other", Peer(0, os.geteuid()), CLAUDE, {})
    assert late == met
    assert why_not(agents, hook)


def test_a_session_first_heard_of_from_the_spool_is_met_again_when_it_speaks(agents, family):
    _, hook = family("claude", "sh")
    late = agents.meet("claude-code", "s-1", "/p", Peer(0, os.geteuid()), CLAUDE, {})
    assert late.process == 0
    assert agents.known("claude-code", "s-1") is None
    assert meet(agents, hook, project="/elsewhere").project == "/p"
    assert why_not(agents, hook)


def test_a_session_whose_process_has_ended_is_met_again(agents, pipeline, clock, family):
    claude, hook = family("claude", "sh")
    meet(agents, hook)
    assert Agents(pipeline.store, pipeline.ledger, clock).known("claude-code", "s-1") is not None
    os.killpg(claude, 9)
    os.waitpid(claude, 0)
    assert Agents(pipeline.store, pipeline.ledger, clock).known("claude-code", "s-1") is None


def test_the_project_and_the_begin_stay_what_they_first_were(agents, clock, family):
    _, hook = family("claude", "sh")
    first = meet(agents, hook, project="/first")
    clock.now += 100
    second = meet(agents, hook, project="/second")
    assert (second.project, second.started_at) == ("/first", first.started_at)


def test_many_sessions_do_not_fill_the_memory(agents, family, monkeypatch):
    monkeypatch.setattr(agents_module, "_KEPT", 3)
    claude, hook = family("claude", "sh")
    for number in range(6):
        meet(agents, hook, session=f"s-{number}")
    assert len(agents._known) == 3
    assert len(agents._spoken) == 1
    assert agents.known("claude-code", "s-0").process == claude


def test_the_nearest_that_bears_the_marks_is_the_agent(family):
    _, _, inner, hook = family("claude", "sh", "claude", "sh")
    assert agent_process(hook, CLAUDE, {}).pid == inner


@pytest.mark.invariant("no process without an agent's marks becomes an agent")
def test_a_variable_names_no_process_without_an_agents_marks(family, run_and_gone):
    """Else everything below it, the person's terminal too, would count as the agent."""
    above, claude, hook = family("sh", "claude", "sh")
    for said in (str(above), str(os.getpid()), "1", "0", "x", ""):
        assert agent_process(hook, CLAUDE, {"CLAUDE_PID": said}).pid == claude
    shell, other, hook = family("sh", "other", "sh")
    for said in (str(shell), str(other), "1", str(hook), str(run_and_gone), ""):
        assert agent_process(hook, CLAUDE, {"CLAUDE_PID": said}) is None


def test_a_variable_names_one_of_several_that_bear_the_marks(family):
    outer, _, inner, hook = family("claude", "sh", "claude", "sh")
    assert agent_process(hook, CLAUDE, {"CLAUDE_PID": str(outer)}).pid == outer
    assert agent_process(hook, CLAUDE, {}).pid == inner


def test_an_agent_whose_thread_has_another_name_is_known_by_its_program():
    """Copilot CLI is called `MainThread`."""
    marks = Marks(names=("copilot",))
    words = ["/opt/agent/copilot", "-c", f'echo "$$"; sh -c {_quoted(STAY)}; :']
    top = subprocess.Popen(
        words, executable="/bin/sh", stdout=subprocess.PIPE, text=True, start_new_session=True, env=CLEAN
    )
    try:
        agent, hook = (int(top.stdout.readline()) for _ in range(2))
        assert peers.process(agent).name != "copilot"
        assert agent_process(hook, marks, {}).pid == agent
        assert agent_process(hook, CLAUDE, {}) is None
    finally:
        os.killpg(top.pid, 9)
        top.wait()
        top.stdout.close()


def test_an_interpreter_that_runs_the_agent_s_script_is_the_agent(family, program, tmp_path):
    script = tmp_path / "claude-code" / "cli.js"
    script.parent.mkdir()
    script.write_text(f'echo "$$"; {program("sh")} -c {_quoted(STAY)}; :')
    top = subprocess.Popen(
        [program("node"), str(script)], stdout=subprocess.PIPE, text=True, start_new_session=True, env=CLEAN
    )
    try:
        node, hook = (int(top.stdout.readline()) for _ in range(2))
        assert agent_process(hook, CLAUDE, {}).pid == node
        assert agent_process(hook, Marks(scripts=("other",)), {}) is None
    finally:
        os.killpg(top.pid, 9)
        top.wait()
        top.stdout.close()


def test_a_session_started_by_another_agent_speaks_for_no_person(agents, family):
    _, outer_hook, _, inner_hook = family("codex", "sh", "claude", "sh")
    codex = meet(agents, outer_hook, session="outer", agent="codex", marks=Marks(names=("codex",)))
    claude = meet(agents, inner_hook)
    assert "codex session outer" in agents.begun_by_another(claude)
    assert agents.begun_by_another(codex) == ""


def test_a_session_a_person_started_is_begun_by_nobody_else(agents, family):
    _, _, first = family("sh", "claude", "sh")
    _, _, second = family("sh", "claude", "sh")
    one, two = meet(agents, first), meet(agents, second, session="s-2")
    assert agents.begun_by_another(one) == agents.begun_by_another(two) == ""


def chain(agents, met, pid):
    found = agents.chain_to(met, Peer(pid, os.getuid()))
    return found if isinstance(found, str) else [each.pid for each in found]


def test_a_chain_leads_from_a_hook_to_its_agent(agents, family):
    claude, shell, client = family("claude", "sh", "checkrein-hook")
    met = meet(agents, shell)
    assert chain(agents, met, shell) == [shell, claude]
    assert chain(agents, met, client) == [client, shell, claude]


def test_no_chain_leads_to_an_agent_from_elsewhere(agents, family):
    _, hook = family("claude", "sh")
    met = meet(agents, hook)
    _, stranger = family("sh", "checkrein-hook")
    assert "own process" in chain(agents, met, stranger)
    assert "own process" in chain(agents, met, 0)
    assert "own process" in chain(agents, met, met.process)
    _, unknown = family("sh", "sh")
    assert "not known" in chain(agents, meet(agents, unknown, session="s-2"), unknown)


def test_an_agent_s_name_on_what_it_runs_does_not_shorten_its_chain(agents, family):
    _, tool, _, shell, client = family("claude", "sh", "claude", "sh", "checkrein-hook")
    meet(agents, tool)
    later = meet(agents, shell)
    assert len(chain(agents, later, client)) == 5


def test_no_chain_leads_through_another_agent(agents, family):
    _, outer, _, shell, client = family("codex", "sh", "claude", "sh", "checkrein-hook")
    meet(agents, outer, session="outer", agent="codex", marks=Marks(names=("codex",)))
    inner = meet(agents, shell)
    assert "another agent" in chain(agents, inner, client)


def test_a_refused_request_is_on_the_record(agents, pipeline):
    agents.refused("phase.set", "it comes from inside")
    ((body,),) = pipeline.store.query("SELECT body FROM record WHERE kind = 'request_refused'")
    assert "phase.set" in body
    assert "it comes from inside" in body


@pytest.mark.parametrize(("said", "attended"), [("1", True), ("0", False), ("", False), ("false", False)])
def test_the_agent_itself_says_whether_somebody_is_there(said, attended):
    assert is_attended(None, CLAUDE, {"CLAUDE_CODE_SESSION_ATTENDED": said}) is attended


def test_where_it_does_not_say_a_terminal_and_the_command_line_tell(program):
    ours, theirs = pty.openpty()
    started = [
        subprocess.Popen(
            [program("claude"), "-c", STAY, *words], stdin=stdin, stdout=subprocess.PIPE, env=CLEAN
        )
        for stdin, words in (
            (theirs, ()),
            (theirs, ("-p",)),
            (theirs, ("--print=x",)),
            (subprocess.DEVNULL, ()),
        )
    ]
    try:
        for each in started:
            each.stdout.readline()
        seen = [is_attended(peers.process(each.pid), CLAUDE, {}) for each in started]
    finally:
        for each in started:
            each.kill()
            each.wait()
            each.stdout.close()
        os.close(ours)
        os.close(theirs)
    assert seen == [True, False, False, False]
    assert not is_attended(None, CLAUDE, {})


def test_a_user_without_a_name_is_still_told():
    assert own_user() == user_name(os.geteuid())
    assert user_name(4_000_000_001) == "uid 4000000001"


def run_by(agents, pid):
    return agents.run_by_agent(Peer(pid, os.geteuid()))


def test_a_program_the_agent_itself_starts_speaks_for_its_person(agents, family):
    """As an MCP client does: it starts the programs of its configuration without anything in between."""
    _, claude, pump = family("sh", "claude", "sh")
    meet(agents, pump)
    assert run_by(agents, pump) == ""
    assert why_not(agents, pump) != "", "though it is no person itself"
    assert run_by(agents, claude) != ""


@pytest.mark.invariant("a command that took its shell's place (`exec`) is no program of the configuration")
def test_a_command_in_its_shells_place_speaks_for_nobody(agents, family):
    """`exec` makes it look like a program of the agent's configuration; but the agent does not talk to it."""
    _, claude, pump = family("sh", "claude", "sh")
    meet(agents, pump)
    asked = []

    def talks_to(pid):
        asked.append(pid)
        return False

    peer = Peer(pump, os.geteuid())
    assert "does not talk to it" in agents.run_by_agent(peer, talks_to=talks_to) and asked == [claude]
    assert agents.run_by_agent(peer, talks_to=lambda pid: pid == claude) == ""


def test_a_program_that_something_in_the_agent_starts_speaks_for_nobody(agents, family):
    _, _, tool, pump = family("sh", "claude", "sh", "sh")
    meet(agents, tool)
    assert "claude-code session s-1" in run_by(agents, pump)


def test_a_client_inside_another_agent_speaks_for_nobody(agents, family):
    _, outer, shell, inner, pump = family("sh", "claude", "sh", "claude", "sh")
    meet(agents, shell, "s-outer")
    meet(agents, pump, "s-inner")
    assert outer != inner and run_by(agents, pump) == "it comes from inside another agent"


def test_a_client_no_hook_was_heard_of_speaks_for_its_person(agents, family):
    _, pump = family("editor", "sh")
    assert run_by(agents, pump) == ""


def test_a_program_that_has_gone_speaks_for_nobody(agents, run_and_gone):
    assert run_by(agents, run_and_gone) == "its process has gone already"
