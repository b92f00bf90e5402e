"""A program with the user's server is an agent from its beginning, also for questions of another process."""

import subprocess
import sys

import pytest

from patience import PATIENCE
from server.conftest import Serving

ASKS = """
import sys
from checkrein import Gate, Suspended
try:
    Gate(server=True, asks="raise", project=sys.argv[1]).wrap(lambda: 1, name="pick")()
except Suspended as waiting:
    print(waiting.entry)
"""
ANSWERS = """
import sys
from checkrein import Gate
Gate(server=True, project=sys.argv[1]).answer(sys.argv[2], "yes")
"""
ANSWERS_BELOW = """
import subprocess, sys
from checkrein import Gate
gate = Gate(server=True, project=sys.argv[1])
sys.exit(subprocess.run([sys.executable, "-m", "checkrein", "approve", sys.argv[2]]).returncode)
"""


@pytest.mark.parametrize("code", [ANSWERS, ANSWERS_BELOW])
def test_a_program_answers_no_question_that_another_process_of_it_asked(code, home, tmp_path):
    serving = Serving().start()
    try:
        asked = [sys.executable, "-c", ASKS, str(tmp_path)]
        waiting = subprocess.run(asked, check=True, capture_output=True, text=True, timeout=PATIENCE)
        entry = waiting.stdout.strip()
        command = [sys.executable, "-c", code, str(tmp_path), entry]
        tried = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert tried.returncode != 0 and "Only a person may do this" in tried.stderr
        assert serving.records("answered") == []
        [question] = serving.ask("question.list")
        assert question["id"] == entry
    finally:
        serving.kill(15)
