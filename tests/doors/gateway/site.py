"""A server that listens: raw HTTP, in both eras, well and badly, with a sign-in of its own."""

import gzip
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

from checkrein.doors.gateway.messages import LARGEST
from patience import PATIENCE

INFO = "io.modelcontextprotocol/serverInfo"


class Site:
    """Answers at `url`; remembers every request as (method, path, headers, body)."""

    def __init__(self, *, eras=("handshake", "stateless"), token="", kind="json", metadata=None):
        self.eras, self.token, self.kind, self.metadata = eras, token, kind, metadata or {}
        self.seen, self.redirect, self.session, self.quiet = [], "", "s-1", threading.Event()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                site.answer(self, b"")

            def do_DELETE(self):
                site.answer(self, b"")

            def do_POST(self):
                site.answer(self, self.rfile.read(int(self.headers["content-length"])))

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.origin = f"http://127.0.0.1:{self._server.server_port}"
        self.url = f"{self.origin}/mcp"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.quiet.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def posted(self, method):
        """Headers of the message with this method."""
        return next(
            headers
            for verb, path, headers, body in self.seen
            if verb == "POST" and path == "/mcp" and json.loads(body).get("method") == method
        )

    def answer(self, http, body):
        headers = {name.lower(): value for name, value in http.headers.items()}
        self.seen.append((http.command, http.path, headers, body))
        if http.path.startswith("/mcp"):
            self._mcp(http, headers, body)
        else:
            self._sign_in(http, body)

    def _put(self, http, status, found=None, kind="application/json", **headers):
        raw = found if isinstance(found, bytes) else b"" if found is None else json.dumps(found).encode()
        http.send_response(status)
        for name, value in ({"content-type": kind, "content-length": str(len(raw))} | headers).items():
            http.send_header(name.replace("_", "-"), value)
        http.end_headers()
        http.wfile.write(raw)

    def _mcp(self, http, headers, body):
        if self.token and headers.get("authorization") != f"Bearer {self.token}":
            where = f'Bearer resource_metadata="{self.origin}/.well-known/oauth-protected-resource"'
            return self._put(http, 401, {"error": "who?"}, www_authenticate=where)
        if self.redirect:
            return self._put(http, 307, location=self.redirect)
        if http.command == "GET":
            return self._stream(http)
        if http.command == "DELETE":
            return self._put(http, 200)
        message = json.loads(body)
        if "id" not in message or "method" not in message:
            return self._put(http, 202)
        return self._message(http, headers, message)

    def _stream(self, http):
        if self.kind == "json":
            self._put(http, 405)
            return
        http.send_response(200)
        http.send_header("content-type", "text/event-stream")
        http.end_headers()
        note = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        http.wfile.write(f"event: message\ndata: {json.dumps(note)}\n\n".encode())
        http.wfile.flush()
        self.quiet.wait(PATIENCE)
        http.close_connection = True

    def _message(self, http, headers, message):
        method, params = message["method"], message.get("params", {})
        extra = {}
        result = {"method": method, "params": params, "unknown": {"x": 1}}
        if method == "initialize" and "handshake" in self.eras:
            result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "site"}}
            extra = {"mcp_session_id": self.session}
        elif method == "server/discover" and "stateless" in self.eras:
            result = {
                "supportedVersions": ["2026-07-28"],
                "capabilities": {},
                "_meta": {INFO: {"name": "site"}},
            }
        elif method in ("initialize", "server/discover"):
            error = {"code": -32601, "message": "Method not found"}
            return self._put(http, 404, {"jsonrpc": "2.0", "id": message["id"], "error": error})
        elif headers.get("mcp-session-id", self.session) != self.session:
            return self._put(http, 404)
        elif method == "tools/list":
            region = {"type": "string", "x-mcp-header": "Region"}
            result = {
                "tools": [{"name": "go", "inputSchema": {"type": "object", "properties": {"r": region}}}]
            }
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        special = getattr(self, f"_do_{method}", None)
        if special is not None:
            return special(http, answer)
        if self.kind == "sse":
            return self._events(http, [{"jsonrpc": "2.0", "method": "notifications/x"}, answer], **extra)
        return self._put(http, 200, answer, **extra)

    def _events(self, http, messages, **headers):
        raw = "".join(f"event: message\ndata: {json.dumps(each)}\n\n" for each in messages).encode()
        self._put(http, 200, raw, "text/event-stream", **headers)

    def _do_raw(self, http, answer):
        """What the request says the result is, as it stands there."""
        raw = json.dumps(answer | {"result": "RAW"}).replace('"RAW"', answer["result"]["params"]["raw"])
        if self.kind == "json":
            self._put(http, 200, raw.encode())
        else:
            self._put(http, 200, f"id: 1\r\ndata: {raw}\r\n\r\n".encode(), "text/event-stream")

    def _do_lost(self, http, answer):
        self._events(http, [{"jsonrpc": "2.0", "method": "notifications/x"}])

    def _do_huge(self, http, answer):
        self._put(http, 200, json.dumps(answer | {"result": {"x": "x" * LARGEST}}).encode())

    def _do_huge_event(self, http, answer):
        self._events(http, [answer | {"result": {"x": "x" * LARGEST}}])

    def _do_packed(self, http, answer):
        self._put(http, 200, gzip.compress(json.dumps(answer).encode()), content_encoding="gzip")

    def _do_nonsense(self, http, answer):
        self._put(http, 200, b"{]")

    def _do_page(self, http, answer):
        self._put(http, 200, b"<h1>hello</h1>", "text/html")

    def _do_error(self, http, answer):
        self._put(http, 500, b"oops", "text/plain")

    def _do_silent(self, http, answer):
        self.quiet.wait(PATIENCE)
        http.close_connection = True

    def _do_broken(self, http, answer):
        http.send_response(200)
        http.send_header("content-type", "application/json")
        http.send_header("content-length", "1000")
        http.end_headers()
        http.wfile.write(b"{")
        http.close_connection = True

    def _sign_in(self, http, body):
        if http.path.startswith("/.well-known/oauth-protected-resource"):
            servers = [self.metadata.get("server", self.origin)]
            self._put(http, 200, {"resource": self.url, "authorization_servers": servers})
        elif http.path.startswith("/.well-known/"):
            found = {
                "issuer": self.origin,
                "authorization_endpoint": f"{self.origin}/authorize",
                "token_endpoint": f"{self.origin}/token",
                "registration_endpoint": f"{self.origin}/register",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
            }
            self._put(http, 200, found | self.metadata.get("issued", {}))
        elif http.path == "/register":
            self._put(http, 201, json.loads(body) | {"client_id": "client-1"})
        elif http.path == "/token":
            form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
            self.token = f"token-for-{form.get('code') or form.get('refresh_token')}"
            given = {"access_token": self.token, "token_type": "Bearer", "expires_in": 3600}
            self._put(http, 200, given | {"refresh_token": "refresh-1"})
        else:
            self._put(http, 404)
