"""An HTTP server on loopback that keeps what it is sent; for tests of notifications."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from patience import until


class Received:
    def __init__(self, path, headers, body):
        self.path, self.headers, self.body = path, headers, body

    @property
    def json(self):
        return json.loads(self.body)


class Receiver:
    """Answers with `status`."""

    def __init__(self):
        self.got, self.status, self.headers = [], 200, {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.got.append(Received(self.path, dict(self.headers), body))
                status = outer.status.pop(0) if isinstance(outer.status, list) else outer.status
                self.send_response(status)
                for name, value in outer.headers.items():
                    self.send_header(name, value)
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/in?key=s3cret"

    @property
    def apprise(self):
        return f"json://127.0.0.1:{self.port}/in"

    def wait(self, count=1):
        """What came, once it is so much."""
        until(lambda: len(self.got) >= count, failing=lambda: f"{len(self.got)} of {count} came")
        return self.got

    def stop(self):
        self._server.shutdown()
        self._server.server_close()
