"""A scripted model on loopback. Each wire format is a subclass that says how a turn is written.

A turn is `{"text": "...", "tools": [{"name": "Bash", "input": {...}}]}`, or a function that returns one: it
is called when the agent asks for that turn, so a test can change the world between two calls.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LAST = {"text": "done"}


class Model:
    """Says the turns of a script, one per answer it has given so far; keeps what it was sent."""

    def __init__(self, turns, agents=None):
        self.turns, self.agents = list(turns), dict(agents or {})
        self.requests = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def get(self, path):
        """(status, JSON) for everything an agent looks up besides the conversation."""
        return 404, {"error": {"message": path}}

    def post(self, path, body):
        """(status, content type, bytes) for one step of the conversation."""
        raise NotImplementedError

    def pick(self, first, said):
        """The turn after `said` answers in a conversation that begins with `first`."""
        turns = next((found for key, found in self.agents.items() if key in first), self.turns)
        turn = turns[said] if said < len(turns) else LAST
        return turn() if callable(turn) else turn


def _handler(model):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_HEAD(self):
            self._answer(200, "text/plain", b"")

        def do_GET(self):
            status, value = model.get(self.path)
            self._answer(status, "application/json", json.dumps(value).encode())

        def do_POST(self):
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            self._answer(*model.post(self.path, json.loads(raw or b"{}")))

        def _answer(self, status, kind, content):
            try:
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)
            except OSError:
                self.close_connection = True

    return Handler
