import subprocess
import sys

import pytest

PROGRAM = """
import atexit, logging, sys
{scripts}
from checkrein.execute.leaving import leave
atexit.register(lambda: print("shut down"))
sys.stdout.write("written")
leave(3)
print(", went on")
"""


@pytest.mark.parametrize(
    ("scripts", "said", "code"),
    [("import pydantic_monty", "written", 3), ("", "written, went on\nshut down\n", 0)],
)
def test_a_process_in_which_scripts_ran_ends_without_a_shutdown(scripts, said, code):
    made = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(scripts=scripts)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (made.stdout, made.stderr, made.returncode) == (said, "", code)
