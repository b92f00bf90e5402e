"""A program that imports its framework once and takes every step in a process of its own."""

import contextlib
import json
import subprocess
import sys

# Importing a framework takes seconds. A step runs in a fork of a process that did only that, so nothing
# but the folder is known to the next one.
STEPS = """
import os
for step in iter(sys.stdin.readline, ""):
    child = os.fork()
    if not child:
        told = asyncio.run(main(step.strip()))
        (folder / "told").write_text(json.dumps(told))
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@contextlib.contextmanager
def stepping(program, folder, *arguments):
    """Calling what it gives takes a step and gives what the program's `main` returned for it."""
    path = folder / "program.py"
    path.write_text(program + STEPS, encoding="utf-8")
    command = [sys.executable, path, folder, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:

        def take(step):
            running.stdin.write(f"{step}\n")
            running.stdin.flush()
            assert running.stdout.readline() == "0\n"
            return json.loads((folder / "told").read_text(encoding="utf-8"))

        yield take
    assert running.returncode == 0
