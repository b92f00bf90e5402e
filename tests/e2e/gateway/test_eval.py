"""Scripts before the gateway: the MCP SDK's own client, real servers, the installed program."""

import asyncio
import itertools
import os
import signal
import statistics
import time
from pathlib import Path

import pytest

from e2e.clients.processes import is_alive
from e2e.gateway import parts
from e2e.gateway.gate import Gate
from e2e.gateway.guests import Guest, connected, soon, words
from e2e.gateway.suites import free_port
from patience import until

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.timeout(180),
]
NAME = "everything__"
SECONDS = 2.0
SETTINGS = f"""
[evaluation]
seconds = {SECONDS}
wait_seconds = 20

[evaluation.profiles.open]

[evaluation.profiles.careful]
denylist = ["{NAME}test_error_handling"]
asklist = ["{NAME}echo"]

[evaluation.profiles.kind]
asklist = ["{NAME}echo"]
elicitationFallback = "allow"
"""
PATIENT = SETTINGS.replace("wait_seconds = 20", "wait_seconds = 0.5")
CAREFUL = "codemode_eval_careful"
LANGUAGES = ("javascript", "python")
both = pytest.mark.parametrize(("way", "language"), [*itertools.product(("stdio", "http"), LANGUAGES)])


def house(settings):
    """With a port nobody else has: a server that starts anew is found where it was."""
    made = Gate(f"{settings}\n[gateway]\nhttp_port = {free_port()}\n")
    made.add("everything", parts.everything())
    made.token = made.client()
    return made


@pytest.fixture(scope="module")
def gate():
    made = house(SETTINGS)
    with made.entered():
        yield made


@pytest.fixture
def patient():
    """A house of its own, where clients are told soon to come back."""
    made = house(PATIENT)
    with made.entered():
        yield made


def run(work):
    return asyncio.run(work)


async def evaluate(client, code, tool="eval", **more):
    """Hand a script in and come back until it does not run any more."""
    said = await client.call_tool(tool, {"code": code, **more})
    while (found := said.structured_content or {}).get("status") == "running":
        said = await client.call_tool("resume_run", {"run_id": found["run_id"]})
    return said


def outcome(result):
    assert not result.is_error, words(result)
    return result.structured_content["result"]


# What a script calls runs, or is refused

ADDS = {
    "javascript": f"""
const sums = await Promise.all([1, 2, 3].map((n) => codemode.{NAME}add({{a: n, b: n}})));
console.log("added", sums.length);
return sums.map((each) => each.sum);""",
    "python": f"""
import asyncio
sums = await asyncio.gather(*[codemode.{NAME}add(a=n, b=n) for n in (1, 2, 3)])
print("added", len(sums))
[each["sum"] for each in sums]""",
}


@both
def test_calls_that_are_allowed_run(gate, way, language):
    async def work():
        async with connected(gate, Guest(), way, "legacy") as client:
            listed = {each.name for each in (await client.list_tools()).tools}
            result = await evaluate(client, ADDS[language], language=language)
        assert {"eval", CAREFUL, "search_tools", "get_tools", "resume_run"} <= listed
        assert outcome(result) == [2, 4, 6] and "added 3" in result.structured_content["output"]
        calls = result.structured_content["calls"]
        assert [(each["tool"], each["verdict"]) for each in calls] == [(f"{NAME}add", "allow")] * 3

    run(work())


REFUSED = {
    "javascript": f"""
try {{ await codemode.{NAME}test_error_handling({{}}); }}
catch (e) {{ return [e.name, e.toolName, e.reason]; }}""",
    "python": f"""
try:
    await codemode.{NAME}test_error_handling()
except PermissionError as e:
    said = str(e)
said""",
}
HEARD = {
    "javascript": ["ToolCallDeniedError", f"{NAME}test_error_handling", "denied"],
    "python": f"ToolCallDenied: {NAME}test_error_handling: denied",
}


@both
def test_a_call_the_profile_denies_never_reaches_the_server(gate, way, language):
    async def work():
        async with connected(gate, Guest(), way, "legacy") as client:
            assert (
                outcome(await evaluate(client, REFUSED[language], CAREFUL, language=language))
                == HEARD[language]
            )
            # Without that profile the tool runs, and its own error is what the script reads.
            allowed = await evaluate(client, REFUSED[language], "codemode_eval_open", language=language)
        heard = words(allowed) if allowed.is_error else str(outcome(allowed))
        assert "denied" not in heard

    run(work())


ONE = {
    "javascript": """
try { return (await codemode.everything__echo({text: "%s"})).content[0].text; }
catch (e) { return e.reason; }""",
    "python": """
try:
    said = (await codemode.everything__echo(text="%s"))["content"][0]["text"]
except PermissionError as e:
    said = str(e).split(": ")[-1]
said""",
}


@both
def test_a_yes_lets_it_run_and_a_no_does_not(gate, way, language):
    async def work():
        said = {"action": "accept", "content": {"call_1": True}}
        async with connected(gate, willing := Guest(says=said), way, "legacy") as client:
            assert outcome(await evaluate(client, ONE[language] % "yes", CAREFUL, language=language)) == "yes"
        asked = willing.asked[0].message
        assert "Checkrein asks" in asked and '{"text":"yes"}' in asked and "> " in asked
        async with connected(gate, Guest(says={"action": "decline"}), way, "legacy") as client:
            text = f"no, {way} {language}"
            result = await evaluate(client, ONE[language] % text, CAREFUL, language=language)
        assert outcome(result) == "elicitation_declined"

    run(work())


@both
def test_a_client_that_cannot_ask_is_refused_unless_the_profile_falls_back(gate, way, language):
    async def work():
        async with connected(gate, Guest(asks=False), way, "legacy") as client:
            code = ONE[language] % "unasked"
            result = await evaluate(client, code, CAREFUL, language=language)
            assert outcome(result) == "elicitation_unsupported"
            assert outcome(await evaluate(client, code, "codemode_eval_kind", language=language)) == "unasked"

    run(work())


@both
def test_two_at_once_ask_their_own_person(gate, way, language):
    async def one(name, said):
        guest = Guest(
            name, says={"action": said, "content": {"call_1": True}} if said == "accept" else {"action": said}
        )
        async with connected(gate, guest, way, "legacy") as client:
            result = await evaluate(client, ONE[language] % f"{name} {way}", CAREFUL, language=language)
        return guest, outcome(result)

    async def work():
        (ada, hers), (bob, his) = await asyncio.gather(one("ada", "accept"), one("bob", "decline"))
        assert (hers, his) == (f"ada {way}", "elicitation_declined")
        for guest, name in ((ada, "ada"), (bob, "bob")):
            (asked,) = guest.asked
            assert f'"text":"{name} {way}"' in asked.message

    run(work())


BATCH = {
    "javascript": """
const all = await Promise.allSettled(["a", "b", "c"].map((text) => codemode.everything__echo({text})));
return all.map((each) => each.status === "fulfilled" ? each.value.content[0].text : each.reason.reason);""",
    "python": """
import asyncio
async def one(text):
    try:
        return (await codemode.everything__echo(text=text))["content"][0]["text"]
    except PermissionError as e:
        return str(e).split(": ")[-1]
await asyncio.gather(one("a"), one("b"), one("c"))""",
}


@both
def test_three_at_once_are_one_question_and_one_is_refused(gate, way, language):
    async def work():
        said = {"action": "accept", "content": {"call_1": True, "call_2": False, "call_3": True}}
        async with connected(gate, guest := Guest(says=said), way, "legacy") as client:
            result = await evaluate(client, BATCH[language], CAREFUL, language=language)
        assert outcome(result) == ["a", "elicitation_declined", "c"]
        assert len(guest.asked) == 1

    run(work())


def test_tools_are_found_and_read(gate):
    async def work():
        async with connected(gate, Guest(), "stdio", "auto") as client:
            found = await client.call_tool("search_tools", {"query": "add two numbers"})
            read = await client.call_tool("get_tools", {"names": [f"{NAME}add"], "language": "python"})
        assert found.structured_content["tools"][0] == f"{NAME}add"
        assert "def everything__add" in words(read)

    run(work())


# What waits survives the server


async def waits(client, code, tool=CAREFUL, **more):
    """What is said once a script waits for a person."""
    said = (await evaluate(client, code, tool, **more)).structured_content
    assert said["status"] == "paused", said
    return said


def killed(house):
    """The server ends as if the machine had lost power."""
    pid = house.server()
    os.kill(pid, signal.SIGKILL)
    until(lambda: not is_alive(pid))
    return pid


@both
def test_a_kill_while_a_person_thinks_loses_nothing(patient, way, language):
    async def begin():
        async with connected(patient, Guest(asks=False), way, "auto") as client:
            return await waits(client, ONE[language] % "kept", language=language)

    async def come_back():
        async with connected(patient, Guest(asks=False), way, "auto") as client:
            while True:
                result = await client.call_tool("resume_run", {"run_id": run_id})
                if result.is_error or result.structured_content["status"] not in ("paused", "running"):
                    return result

    with patient.inbox():
        said = run(begin())
    assert said["waiting"][0]["tool"] == f"{NAME}echo"
    run_id = said["run_id"]
    killed(patient)
    patient.checkrein("approve", said["waiting"][0]["question"])
    patient.server()
    # It goes on by itself, whoever asks.
    until(lambda: patient.json("eval", "show", run_id)["state"] == "done")
    assert patient.json("eval", "resume", run_id)["result"] == "kept"
    if way == "http":
        assert outcome(run(come_back())) == "kept"
    else:
        # Over a pipe a client is its process, and that one is gone: nobody else reads what it asked for.
        assert run(come_back()).is_error
    calls = [each for each in patient.entries() if "kept" in str(each["tool_input"])]
    found = [(each["door"], each["answer"], each["result"]) for each in calls]
    assert found == [("eval", "approved", "success")]
    assert patient.verifies()


STEPS = """
const first = (await codemode.everything__echo({text: "one"})).content[0].text;
try { return [first, (await codemode.everything__add({a: 1, b: 1})).sum]; }
catch (e) { return [first, e.reason]; }"""


def test_a_profile_that_changes_is_met_at_the_next_call(patient):
    stricter = (
        PATIENT.replace(f'denylist = ["{NAME}test_error_handling"]', f'denylist = ["{NAME}add"]')
        + "\n[evaluation.profiles.fresh]\n"
    )

    async def work():
        guest = Guest(asks=False)
        async with connected(patient, guest, "http", "legacy") as client:
            said = await waits(client, STEPS)
            patient.settings(stricter)
            await asyncio.to_thread(patient.checkrein, "approve", said["waiting"][0]["question"])
            for _ in range(100):
                result = await client.call_tool("resume_run", {"run_id": said["run_id"]})
                if result.structured_content["status"] == "done":
                    break
            assert outcome(result) == ["one", "denied"]
            # A session that was open before has the new profile's tool.
            listed = {each.name for each in (await client.list_tools()).tools}
            assert "codemode_eval_fresh" in listed
            await soon(lambda: "notifications/tools/list_changed" in guest.heard)
            assert outcome(await evaluate(client, "return 1;", "codemode_eval_fresh")) == 1

    with patient.inbox():
        run(work())


# A script that loops for ever harms nobody

FOREVER = {"javascript": "for (;;) {}", "python": "while True:\n    pass"}
CALLS, TRIES = 120, 4


async def neighbour(client, calls, until_done=None):
    """Seconds of each call of another session."""
    taken = []
    while len(taken) < calls if until_done is None else not until_done.done():
        begin = time.perf_counter()
        await client.call_tool(f"{NAME}add", {"a": 1, "b": 2})
        taken.append(time.perf_counter() - begin)
        await asyncio.sleep(0.01)
    return taken


def slow(taken):
    return statistics.quantiles(taken, n=20)[-1]


def family(pid):
    """A process and all it started."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        found += [each for child in task.read_text().split() for each in family(int(child))]
    return found


def cpu_seconds(pids):
    total = 0.0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        except OSError:
            continue
        total += sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
    return total


def is_idle(pid):
    before, begin = cpu_seconds(family(pid)), time.monotonic()
    time.sleep(0.5)
    return cpu_seconds(family(pid)) - before < 0.1 * (time.monotonic() - begin)


@pytest.mark.parametrize("way", ["stdio", "http"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_script_that_loops_for_ever(gate, way, language):
    async def once():
        async with (
            connected(gate, Guest("looping"), way, "legacy") as client,
            connected(gate, Guest("next door"), way, "legacy") as other,
        ):
            await evaluate(client, "1", language=language)
            await neighbour(other, 20)
            alone = await neighbour(other, CALLS)
            begin = time.perf_counter()
            looping = asyncio.ensure_future(evaluate(client, FOREVER[language], language=language))
            beside = await neighbour(other, 0, looping)
            result, seconds = await looping, time.perf_counter() - begin
            assert result.is_error and result.structured_content["error"]["kind"] == "time"
            assert outcome(await evaluate(client, ADDS[language], language=language)) == [2, 4, 6]
            return seconds, slow(beside) / slow(alone)

    # A busy machine slows one round or another; a gateway that were held up would be so in every one.
    for _ in range(TRIES):
        seconds, ratio = run(once())
        if seconds < SECONDS + 1 and ratio < 2:
            break
    assert seconds < SECONDS + 1 and ratio < 2, (seconds, ratio)
    pid = gate.server()
    until(lambda: is_idle(pid))
