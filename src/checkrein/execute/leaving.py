"""The end of a process in which Python scripts may have run.

The interpreter's own threads let go of what they held a moment after the last script is answered. One that
does so while Python shuts down is unwound from under the library, and the whole process aborts: measured at
1 in 200 on a busy machine. A process that has written everything skips that shutdown instead.
"""

from __future__ import annotations

import logging
import os
import sys


def leave(code: int = 0) -> None:
    """End this process if scripts ran in it; return where none did."""
    if "pydantic_monty" not in sys.modules:
        return
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(code)
