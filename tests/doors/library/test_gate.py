"""A program's tools behind a gate: wrapped, ruled, asked about, answered, resumed."""

import asyncio
import subprocess
import sys

import pytest

from checkrein import Denied, Gate, Suspended
from checkrein.asking import Remember
from checkrein.errors import InputError, RuleError
from patience import soon


def allow(user_settings, *tools):
    user_settings("".join(f'[[rules]]\naction = "allow"\ntool = "{tool}"\n' for tool in tools))


# -- wrapping ------------------------------------------------------------------------------------------


def test_a_tool_a_rule_allows_runs_and_is_on_the_record(room, user_settings):
    allow(user_settings, "add")
    gate = room.open(agent="calculator")

    @gate.tool
    def add(a: int, b: int = 2) -> int:
        """Adds."""
        return a + b

    assert (add(1), add(a=4, b=5), add.__doc__, add.__name__) == (3, 9, "Adds.", "add")
    first, second = room.entries()
    assert (first.door, first.agent, first.server, first.tool_name) == (
        "library",
        "calculator",
        "python",
        "mcp__python__add",
    )
    assert (first.tool_input, second.tool_input) == ({"a": 1, "b": 2}, {"a": 4, "b": 5})
    assert (first.verdict, first.stage, first.result, first.output) == ("allow", "rules", "success", 3)


def test_a_tool_coding_agents_have_is_judged_as_theirs(room):
    gate = room.open(settings=["doors.library.unmatched=earned"])
    shell = gate.wrap(lambda command: "ran", name="run_shell_command")
    assert shell("ls") == "ran"
    with pytest.raises(Denied) as denied:
        shell("rm -rf /")
    assert (denied.value.verdict.stage, room.last().server) == ("floor", None)
    assert denied.value.entry == room.last().id
    assert denied.value.reason == "Critical risk is always blocked."
    assert str(denied.value).startswith("Checkrein refused this call. run_shell_command: rm -rf /")


def test_asynchronous_tools_alike(room, user_settings):
    allow(user_settings, "add")
    gate = room.open()

    @gate.tool(name="add")
    async def add(a, b):
        await asyncio.sleep(0)
        return a + b

    assert asyncio.run(add(1, b=2)) == 3
    assert room.last().result == "success"


# -- what the program says of its tools ----------------------------------------------------------------


def test_needs_approval_asks_whatever_the_rules_allow(room, user_settings):
    allow(user_settings, "pick", "drop")
    gate = room.open(asks="raise")
    for option in ("needs_approval", "require_approval"):
        with pytest.raises(Suspended):
            gate.wrap(lambda n: n, name="pick", **{option: True})(1)
        dear = gate.wrap(lambda n: n, name="drop", **{option: lambda given: given["n"] > 5})
        assert dear(5) == 5
        with pytest.raises(Suspended):
            dear(6)
    assert room.last().stage == "hold"


def test_needs_no_approval_lets_low_and_medium_risk_run_that_nobody_wrote_about(room, user_settings):
    gate = room.open(asks="raise")
    assert gate.wrap(lambda: "ran", name="water", needs_approval=False)() == "ran"
    assert room.last().stage == "program"
    with pytest.raises(Suspended):
        gate.wrap(lambda: "ran", name="delete_all", needs_approval=False)()
    user_settings('[[rules]]\naction = "ask"\ntool = "water"\n')
    with pytest.raises(Suspended):
        gate.wrap(lambda: "ran", name="water", needs_approval=False)()
    assert room.last().stage == "rules"


def test_an_asynchronous_condition_speaks_for_an_asynchronous_tool(room, user_settings):
    allow(user_settings, "pick")
    gate = room.open(asks="raise")

    async def dear(given):
        await asyncio.sleep(0)
        return given["n"] > 5

    async def buy(n):
        return n

    bought = gate.wrap(buy, name="pick", needs_approval=dear)
    assert asyncio.run(bought(5)) == 5
    with pytest.raises(Suspended):
        asyncio.run(bought(6))
    with pytest.raises(Suspended):
        gate.wrap(lambda n: n, name="pick", needs_approval=dear)(5)
    assert "asynchronous" in room.last().reasons[0]


def test_many_tools_under_rules_of_the_program(room):
    """Seed 004: names, patterns, servers and conditions; what no rule names runs up to medium risk."""
    gate = room.open(asks="raise")
    rules = [
        {"toolName": "read_notes", "autoApprove": True},
        {"pattern": "write_*", "autoApprove": False},
        {"toolName": "lend", "serverId": "library", "autoApprove": True, "condition": lambda i: i["n"] < 3},
        {"toolName": "delete_old", "autoApprove": True},
        {"serverId": "bank", "autoApprove": False},
    ]

    def run(name, n=1, server="library", **options):
        tools = gate.wrap_tools({name: lambda n: n}, server=server, rules=rules, **options)
        try:
            return tools[name](n)
        except Suspended:
            return "asks"
        except Denied:
            return "refused"

    assert run("read_notes") == 1
    assert run("write_notes") == "asks"
    assert (run("lend", 2), run("lend", 3), run("lend", 3, default_auto_approve=True)) == (2, "asks", "asks")
    assert (run("lookup"), run("lookup", default_auto_approve=True)) == ("asks", 1)
    assert (run("lookup", server="bank", default_auto_approve=True)) == "asks"
    # High risk stops unless a rule names the tool; the floor stops whatever a rule says.
    assert (run("delete_new", default_auto_approve=True), run("delete_old")) == ("asks", 1)
    assert run("send_mail", default_auto_approve=True) == "refused"


def test_a_tool_rule_that_means_nothing_is_refused(room):
    gate = room.open()
    for rules in (
        [{"toolname": "x", "autoApprove": True}],
        [{"toolName": "x"}],
        [{"toolName": "x", "pattern": "y", "autoApprove": True}],
        [{"serverId": 3, "autoApprove": True}],
        [{"condition": "yes", "autoApprove": True}],
    ):
        with pytest.raises(RuleError):
            gate.wrap_tools({"x": print}, rules=rules)


def test_a_users_rule_outranks_the_default_but_not_a_rule_that_asks(room, user_settings):
    allow(user_settings, "lookup", "write_notes")
    gate = room.open(asks="raise")
    rules = [{"pattern": "write_*", "autoApprove": False}]
    tools = gate.wrap_tools({"lookup": lambda: 1, "write_notes": lambda: 2}, rules=rules)
    assert tools["lookup"]() == 1
    with pytest.raises(Suspended):
        tools["write_notes"]()


def test_a_whole_run_can_require_approval(room, user_settings):
    allow(user_settings, "add")
    gate = room.open(asks="raise")
    add = gate.wrap(lambda a: a, name="add")
    with gate.run(require_approval=True, session="run-7"):
        with pytest.raises(Suspended):
            add(1)
        with gate.run(), pytest.raises(Suspended):
            add(2)
    assert add(3) == 3
    assert [each.session_id for each in room.entries()] == ["run-7", "run-7", gate.session]


# -- asking ----------------------------------------------------------------------------------------------


def test_a_question_is_answered_from_elsewhere_and_the_tool_runs(room, later):
    gate = room.open()
    drop = gate.wrap(lambda table: f"dropped {table}", name="drop")
    coming = later(drop, "old")
    question = room.question()
    assert (question["tool"], question["input"]) == ("mcp__python__drop", {"table": "old"})
    assert gate.answer(question, "yes", actor="grace") == "approved"
    assert coming() == "dropped old"
    entry = room.last()
    assert (entry.answer, entry.actor, entry.channel, entry.result) == (
        "approved",
        "grace",
        "host",
        "success",
    )
    assert room.kinds(entry.id) == ["decided", "asked", "answered", "started", "finished"]


def test_a_person_can_answer_for_the_tool(room, later):
    gate = room.open()
    ran = []
    coming = later(gate.wrap(ran.append, name="drop"), 1)
    gate.answer(room.question(), "answer: it is dropped already")
    assert (coming(), ran) == ("it is dropped already", [])


def test_edited_arguments_are_the_ones_that_run(room, later):
    gate = room.open()
    coming = later(gate.wrap(lambda table, *, force=False: (table, force), name="drop"), "all")
    gate.answer(room.question(), "yes", edited={"table": "old", "force": True})
    assert coming() == ("old", True)


def test_an_answer_is_remembered_as_far_as_it_was_given(room, later):
    gate = room.open()
    pick = gate.wrap(lambda n: n, name="pick", needs_approval=True)
    coming = later(pick, 1)
    gate.answer(room.question(), "yes", remember=Remember(what="tool"))
    assert coming() == 1
    assert (pick(2), room.last().stage) == (2, "grant")


def test_a_remembered_yes_counts_its_uses_for_what_the_program_holds(room, later, user_settings):
    allow(user_settings, "pick")
    gate = room.open(asks="raise")
    waits = gate.wrap(lambda n: n, name="pick", needs_approval=True, asks="wait")
    coming = later(waits, 1)
    gate.answer(room.question(), "yes", remember=Remember(what="tool", span="uses", uses=1))
    assert coming() == 1
    pick = gate.wrap(lambda n: n, name="pick", needs_approval=True)
    assert pick(2) == 2
    with pytest.raises(Suspended):
        pick(3)


def test_parallel_calls_are_answered_one_by_one(room):
    gate = room.open()

    @gate.tool(name="pick")
    async def pick(n):
        return n

    async def main():
        tasks = [asyncio.create_task(pick(n)) for n in range(4)]
        await soon(lambda: len(gate.pending()) == 4)
        for each in gate.pending():
            n = each["input"]["n"]
            edited = {"n": 30} if n == 3 else None
            gate.answer(each, "yes" if n % 2 else "no", edited=edited)
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, second, third, fourth = asyncio.run(main())
    assert isinstance(first, Denied) and isinstance(third, Denied)
    assert (second, fourth) == (1, 30)


def test_whoever_the_program_has_answers_its_questions(room):
    asked = []

    def person(question):
        asked.append(question["arguments"])
        return "no: ask me tomorrow" if question["arguments"]["n"] else True

    gate = room.open(answer_with=person)
    pick = gate.wrap(lambda n: n, name="pick")
    assert pick(0) == 0
    with pytest.raises(Denied, match="ask me tomorrow"):
        pick(1)
    assert asked == [{"n": 0}, {"n": 1}]


# -- suspending and resuming ------------------------------------------------------------------------------


def test_a_question_is_kept_as_json_and_resumed_by_another_gate(room):
    ran = []
    gate = room.open(asks="raise")
    with pytest.raises(Suspended) as suspended:
        gate.wrap(ran.append, name="pick")("a")
    kept = suspended.value.pending.json()
    gate = room.open(asks="raise")
    gate.wrap(ran.append, name="pick")
    with pytest.raises(Suspended):
        gate.resume(kept)
    gate.answer(suspended.value.pending, "yes")
    assert ran == []
    gate = room.open(asks="raise")
    gate.wrap(ran.append, name="pick")
    gate.resume(kept)
    assert ran == ["a"]
    with pytest.raises(Denied, match="used before") as denied:
        gate.resume(kept)
    assert (ran, denied.value.verdict.stage) == (["a"], "state")


def test_edited_arguments_survive_the_program(room):
    gate = room.open(asks="raise")
    with pytest.raises(Suspended) as suspended:
        gate.wrap(lambda n: n, name="pick")(1)
    kept = suspended.value.pending
    gate.answer(kept, "yes", edited={"n": 5})
    gate = room.open(asks="raise")
    gate.wrap(lambda n: n, name="pick")
    assert gate.resume(kept) == 5


def test_edited_arguments_that_are_lost_or_changed_do_not_run(room):
    gate = room.open(asks="raise")
    pick = gate.wrap(lambda n: n, name="pick")

    def changed():
        write = "UPDATE question SET sealed_edit = '{\"n\": 500}'"
        room.pipeline.store.write(lambda tx: tx.execute(write))

    for lost in (changed, (room.folder / "questions.key").unlink):
        with pytest.raises(Suspended) as suspended:
            pick(1)
        kept = suspended.value.pending
        gate.answer(kept, "yes", edited={"n": 5})
        lost()
        gate = room.open(asks="raise")
        pick = gate.wrap(lambda n: n, name="pick")
        with pytest.raises(Denied, match="cannot be read any more"):
            gate.resume(kept)
        found = next(each for each in room.entries() if each.id == kept.entry)
        assert (found.result, found.evidence) == ("cancelled", "arguments")


def test_a_yes_binds_to_the_exact_call(room):
    gate = room.open(asks="raise")
    gate.wrap(lambda n: n, name="pick")
    with pytest.raises(Suspended) as suspended:
        gate.wrap(lambda n: n, name="pick")(1)
    kept = suspended.value.pending
    gate.answer(kept, "yes")
    changed = kept.json().replace('"n":1', '"n":9')
    with pytest.raises(InputError, match="no question about this call"):
        gate.resume(changed)
    assert gate.resume(kept) == 1


def test_a_rule_that_came_after_the_yes_outranks_it(room, user_settings):
    gate = room.open(asks="raise")
    pick = gate.wrap(lambda n: n, name="pick")
    with pytest.raises(Suspended) as suspended:
        pick(1)
    gate.answer(suspended.value.pending, "yes")
    user_settings('[[rules]]\naction = "deny"\ntool = "pick"\n')
    with pytest.raises(Denied) as denied:
        gate.resume(suspended.value.pending)
    assert denied.value.verdict.stage == "rules"
    assert {each.result for each in room.entries()} == {"cancelled", "denied"}


def test_a_call_judged_in_one_folder_does_not_go_on_in_another(room, tmp_path, monkeypatch):
    gate = room.open(asks="return")
    write = gate.wrap(lambda path: path, name="write_file")
    kept = write("notes.txt").pending
    gate.answer(kept, "yes")
    before = gate.cwd
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="was judged in"):
        gate.resume(kept)
    with pytest.raises(InputError, match="was judged in"):
        asyncio.run(gate.resume_async(kept, run=print))
    gate = room.open(cwd=before)
    gate.wrap(lambda path: path, name="write_file")
    assert gate.resume(kept) == "notes.txt"


# -- the gate itself --------------------------------------------------------------------------------------


def test_importing_a_gate_brings_in_no_framework():
    code = "import sys; from checkrein import Denied, Gate, Suspended, suspend; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    frameworks = {"pydantic", "pydantic_ai", "langchain", "langgraph", "agents", "google", "mcp"}
    assert not loaded & (frameworks | {"claude_agent_sdk", "starlette", "uvicorn", "asyncio", "pytest"})


def test_outcomes_earn_and_cost_trust(room):
    gate = room.open(settings=["doors.library.unmatched=earned"], asks="raise")
    water = gate.wrap(lambda: 1, name="water", needs_approval=False)
    for _ in range(3):
        water()
    scores = [each.trust_score_after for each in room.entries()]
    assert scores == sorted(scores) and scores[0] > 0.3

    def broken():
        raise OSError("no water")

    with pytest.raises(OSError, match="no water"):
        gate.wrap(broken, name="water", needs_approval=False)()
    assert room.last().trust_score_after < scores[-1]
    assert (room.last().result, room.last().evidence) == ("failure", "exception")


def test_a_gate_has_one_authority(tmp_path):
    with pytest.raises(InputError, match="not both"):
        Gate(tmp_path, server=True)
