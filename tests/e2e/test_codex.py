"""What only Codex does: it skips hooks nobody trusted, hears `/auditing` as a prompt, types into programs."""

import json
import re
import time

import pytest

from e2e.clients.codex import Codex
from e2e.clients.terminal import Terminal
from patience import until

MADE = "touch made"
REVIEW = "Hooks need review"


@pytest.fixture
def codex(house):
    return Codex(house)


@pytest.fixture
def installed(codex, house):
    house.install(codex.agent)
    return codex


@pytest.fixture
def made(house):
    return house.project / "made"


def trust(codex):
    """A person starts Codex in the project and trusts our hooks, in its own screen."""
    pytest.importorskip("pyte", reason="reading the agent's screen needs pyte")
    house = codex.house
    with codex.model([]) as model:
        env = house.environment | codex.environment(model.url)
        with Terminal([codex.program, *codex.provider(model.url)], env=env, cwd=house.project) as screen:
            screen.shows(REVIEW, "2. Trust all and continue")
            until(lambda: _picks_the_second(screen))
            screen.type("\r")
            screen.no_longer_shows(REVIEW)
            until(lambda: "trusted_hash" in (codex.home / "config.toml").read_text())


def _picks_the_second(screen):
    """Whether it does by now: what is typed before it listens is lost."""
    screen.type("2")
    time.sleep(0.3)
    return "› 2. Trust all" in screen.text


def doctor(house, *, code):
    said = json.loads(house.run("checkrein", "doctor", "codex", "--json", code=code).stdout)
    return [each["text"] for each in said["checks"] if not each["ok"]]


def test_hooks_nobody_trusted_are_skipped_and_we_say_so(codex, house, made):
    said = house.install(codex.agent)
    assert "skips" in said and "/hooks" in said
    house.checkrein("rules", "add", "deny", "--tool", "Bash")
    codex.trusting = ()
    codex.run(codex.shell(MADE))
    # Nothing stopped it, nothing was heard of it: only the doctor can tell.
    assert made.exists()
    assert house.entries() == []
    (wrong,) = doctor(house, code=1)
    assert "skips our PreToolUse hook until you trust it" in wrong and "/hooks" in wrong


def test_trusted_in_its_own_screen_they_run_and_the_doctor_is_content(installed, house, made):
    codex = installed
    trust(codex)
    assert doctor(house, code=0) == []
    house.checkrein("rules", "add", "deny", "--tool", "Bash", "--reason", "not in this house")
    codex.trusting = ()
    ran = codex.run(codex.shell(MADE))
    assert "not in this house" in ran[0].told
    assert not made.exists()
    kinds = {each["kind"] for each in house.records()}
    assert {"session_started", "decided", "session_ended"} <= kinds


def test_a_hook_changed_after_it_was_trusted_is_skipped_again_and_the_doctor_sees_it(installed, house):
    trust(installed)
    path = house.project / ".codex" / "hooks.json"
    hooks = json.loads(path.read_text())
    hooks["hooks"]["PreToolUse"][0]["hooks"][0]["timeout"] += 1
    path.write_text(json.dumps(hooks))
    (wrong,) = doctor(house, code=1)
    assert "until you trust it" in wrong
    installed.trusting = ()
    installed.run(installed.shell("ls"))
    assert [each for each in house.entries() if each["session_id"] != "checkrein-doctor"] == []


def test_in_a_project_nobody_trusted_no_hook_runs_and_the_doctor_sees_it(installed, house, made):
    trust(installed)
    config = installed.home / "config.toml"
    config.write_text(config.read_text().replace('trust_level = "trusted"', 'trust_level = "untrusted"'))
    house.checkrein("rules", "add", "deny", "--tool", "Bash")
    installed.trusting = ()
    installed.run(installed.shell(MADE))
    assert made.exists()
    assert any("does not trust this folder" in each for each in doctor(house, code=1))


def test_hooks_switched_off_are_seen_by_the_doctor(installed, house, made):
    trust(installed)
    config = installed.home / "config.toml"
    config.write_text(config.read_text().replace("[features]", "[features]\nhooks = false"))
    house.checkrein("rules", "add", "deny", "--tool", "Bash")
    installed.run(installed.shell(MADE))
    assert made.exists()
    assert any("features.hooks" in each for each in doctor(house, code=1))


def test_a_typed_phase_command_holds_from_the_first_call_on(installed, house, made):
    ran = installed.run(installed.shell(MADE), installed.shell("ls"), prompt="/auditing")
    assert "auditing" in ran[0].told and "README.md" in ran[1].told
    assert house.entries()[0]["stage"] == "phase"
    assert not made.exists()
    (changed,) = house.records("phase_changed")[1:]
    assert changed["data"]["phase"] == "auditing" and changed["data"]["session"]
    # For this session only.
    assert house.json("phase")["name"] == "building"


def test_a_patch_over_several_files_is_judged_by_the_worst_of_them(installed, house):
    patch = (
        "*** Begin Patch\n*** Add File: docs/note.md\n+a note\n*** Update File: .codex/hooks.json\n"
        "@@\n-{\n+{}\n*** End Patch\n"
    )
    before = (house.project / ".codex" / "hooks.json").read_bytes()
    ran = installed.run({"name": "apply_patch", "input": patch})
    assert "Checkrein refused" in ran[0].told and ".codex/hooks.json" in ran[0].told
    assert (house.project / ".codex" / "hooks.json").read_bytes() == before
    assert not (house.project / "docs").exists()


def test_a_patch_that_is_run_as_a_command_is_judged_as_a_patch(installed, house):
    patch = "*** Begin Patch\n*** Delete File: .codex/hooks.json\n*** End Patch"
    ran = installed.run(installed.shell(f"apply_patch <<'EOF'\n{patch}\nEOF\n"))
    assert "Checkrein refused" in ran[0].told, ran[0].told
    assert (house.project / ".codex" / "hooks.json").exists()
    assert house.entries()[0]["verdict"] == "deny"


def test_a_program_that_takes_commands_is_not_started_unasked(installed, house):
    programs = ("bash", "sh -i", "python3", "node", "vi README.md")
    ran = installed.run(*(installed.shell(each) for each in programs))
    verdicts = {each: found["verdict"] for each, found in zip(programs, house.entries(), strict=True)}
    assert verdicts == dict.fromkeys(programs, "ask")
    assert all("nobody can be reached" in used.told for used in ran.tools)


@pytest.mark.parametrize("switched_off", [True, False])
def test_what_the_model_types_into_a_program_reaches_no_hook_unless_it_is_switched_off(
    switched_off, installed, house, made
):
    """`less` only reads, and runs by itself; in a terminal of Codex it runs whatever its model types."""
    config = installed.home / "config.toml"
    if not switched_off:
        config.write_text(config.read_text().replace("unified_exec_tty = false", ""))
    told = []

    class Listening(installed.model):
        def post(self, path, body):
            told[:] = [each["output"] for each in body["input"] if each["type"] == "function_call_output"]
            return super().post(path, body)

    def typing():
        seen = re.search(r"session ID (\d+)", str(told[0]))
        given = {"session_id": int(seen[1]) if seen else 1, "chars": f"\n!{MADE}\n"}
        return {"tools": [{"name": "write_stdin", "input": given}]}

    installed.model = Listening
    reading = {"name": "exec_command", "input": {"cmd": "less README.md", "tty": True, "yield_time_ms": 500}}
    installed.run(reading, typing)
    wrong = doctor(house, code=1)
    if switched_off:
        assert "TTY execution is disabled" in str(told[0])
        assert not made.exists()
    else:
        # The one call on record is `less`; this is why the doctor insists.
        until(made.exists)
        assert len([each for each in house.entries() if each["verdict"] == "allow"]) == 1
    assert any("unified_exec_tty" in each for each in wrong) == (not switched_off)
