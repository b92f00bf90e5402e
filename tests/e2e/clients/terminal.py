"""A terminal with a program in it: what it shows can be read, what a person would type can be typed."""

import contextlib
import fcntl
import os
import signal
import struct
import subprocess
import sys
import termios
import threading
import time

from e2e.clients.processes import as_user
from patience import until

ROWS, COLUMNS = 50, 140
# The program must have the terminal for its own, or nothing typed reaches it.
_OWN = (
    "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execvp(sys.argv[1], sys.argv[1:])"
)


class Terminal:
    def __init__(self, words, *, env, cwd, uid=None):
        import pyte

        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)
        self._lock = threading.Lock()
        self._hand, other = os.openpty()
        fcntl.ioctl(self._hand, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-c", _OWN, *as_user(words, uid)],
            env=env | {"TERM": "xterm-256color"},
            cwd=cwd,
            stdin=other,
            stdout=other,
            stderr=other,
        )
        os.close(other)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(3)
        self._reader.join(3)
        os.close(self._hand)

    def _read(self):
        while True:
            try:
                data = os.read(self._hand, 65536)
            except OSError:
                return
            if not data:
                return
            # A sequence the emulator does not know is not shown, and that is all.
            with self._lock, contextlib.suppress(Exception):
                self._stream.feed(data)

    @property
    def text(self):
        with self._lock:
            return "\n".join(line.rstrip() for line in self._screen.display if line.strip())

    def shows(self, *texts):
        """The screen once it shows all of the texts."""
        until(
            lambda: all(each in self.text for each in texts),
            failing=lambda: f"not on the screen: {texts}\n{self.text}",
        )
        return self.text

    def no_longer_shows(self, text):
        until(lambda: text not in self.text, failing=lambda: f"still on the screen: {text}\n{self.text}")
        return self.text

    def type(self, keys):
        os.write(self._hand, keys.encode())
        time.sleep(0.1)
