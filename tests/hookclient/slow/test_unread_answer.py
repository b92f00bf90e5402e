"""An answer that nobody reads: the shortest limit of a hook is a second, and failing takes another."""

import subprocess

from hookclient.servers import frame
from patience import PATIENCE, until


def test_an_answer_nobody_reads_does_not_hang(client, door, serve):
    serve(frame(0, b"x" * 500_000))

    def said():
        with subprocess.Popen(
            door.words(client, seconds=1),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.wait(PATIENCE) == 2
            return process.stderr.read()

    # On a machine that stands still the second may be over before the answer comes.
    until(lambda: b"did not take" in said())
