"""A protected MCP server with the authorization server people sign in at, and a browser to do so with."""

import base64
import hashlib
import http.client
import json
import secrets
from urllib.parse import parse_qs, urlencode, urlsplit

from doors.gateway.site import Site
from patience import PATIENCE, until


class Provider(Site):
    """Registers clients, checks PKCE, gives codes that work once and tokens that are renewed once."""

    def __init__(self, *, expires=3600, **more):
        super().__init__(token="-", **more)
        self.expires, self.refused, self.changes, self.registers, self.broken = expires, "", {}, True, 0
        self.clients, self.codes, self.tokens, self.renewals = {}, {}, set(), {}
        self.metadata["issued"] = {"authorization_response_iss_parameter_supported": True}

    def entry(self):
        return {"url": self.url, "oauth": True}

    def asked(self, path):
        return [each for each in self.seen if urlsplit(each[1]).path == path]

    def _mcp(self, http_, headers, body):
        given = headers.get("authorization", "").removeprefix("Bearer ")
        self.token = given if given in self.tokens else "-"
        super()._mcp(http_, headers, body)

    def _do_initialize(self, http_, answer):
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "p"}}
        self._put(http_, 200, answer | {"result": result}, mcp_session_id=self.session)

    def _sign_in(self, http_, body):
        parts = urlsplit(http_.path)
        if parts.path == "/register":
            self._register(http_, json.loads(body))
        elif parts.path == "/authorize":
            self._authorize(http_, _single(parts.query))
        elif parts.path == "/token":
            self._token(http_, _single(body.decode()))
        else:
            super()._sign_in(http_, body)

    def _register(self, http_, wanted):
        if not self.registers:
            return self._put(http_, 403, {"error": "access_denied"})
        name = f"client-{len(self.clients) + 1}"
        self.clients[name] = wanted["redirect_uris"]
        return self._put(http_, 201, wanted | {"client_id": name})

    def _authorize(self, http_, asked):
        known = self.clients.get(asked.get("client_id"), ())
        right = asked.get("redirect_uri") in known and asked.get("response_type") == "code"
        right = right and asked.get("code_challenge_method") == "S256" and asked.get("resource") == self.url
        if not right:
            return self._put(http_, 400, {"error": "invalid_request"})
        answer = {"state": asked["state"], "iss": self.origin}
        if self.refused:
            answer |= {"error": self.refused, "error_description": "no\x1b[31m <b>way</b>"}
        else:
            answer["code"] = secrets.token_urlsafe(16)
            self.codes[answer["code"]] = asked
        answer = {name: value for name, value in (answer | self.changes).items() if value is not None}
        return self._put(http_, 302, location=f"{asked['redirect_uri']}?{urlencode(answer)}")

    def _token(self, http_, form):
        if self.broken:
            return self._put(http_, self.broken)
        if form["grant_type"] == "authorization_code":
            asked = self.codes.pop(form["code"], {})
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            right = base64.urlsafe_b64encode(digest).decode().rstrip("=") == asked.get("code_challenge")
            right = right and all(
                form[name] == asked[name] for name in ("client_id", "redirect_uri", "resource")
            )
        else:
            right = self.renewals.pop(form["refresh_token"], None) == form["client_id"]
        if not right:
            return self._put(http_, 400, {"error": "invalid_grant"})
        token, renewal = f"token-{len(self.tokens) + 1}", secrets.token_urlsafe(8)
        self.tokens.add(token)
        self.renewals[renewal] = form["client_id"]
        given = {"access_token": token, "token_type": "Bearer", "expires_in": self.expires}
        return self._put(http_, 200, given | {"refresh_token": renewal})


def _single(query):
    return {name: values[0] for name, values in parse_qs(query).items()}


def get(url, *, method="GET", headers=None):
    """One request of a browser: the status, the headers and the text."""
    parts = urlsplit(url)
    line = http.client.HTTPConnection(parts.hostname, parts.port, timeout=PATIENCE)
    try:
        line.request(
            method, f"{parts.path}?{parts.query}" if parts.query else parts.path, headers=headers or {}
        )
        found = line.getresponse()
        return found.status, found.headers, found.read().decode()
    finally:
        line.close()


def ended(gateway, name="mail"):
    """The state of signing in, once it is not waiting any more."""
    until(lambda: gateway.sign_in_state(name)["state"] != "waiting", failing="it still waits")
    return gateway.sign_in_state(name)


def way_back(url):
    """A person says yes at the sign-in page: where it sends their browser."""
    status, headers, text = get(url)
    assert status == 302, text
    return headers["location"]


def signs_in(url):
    """A person says yes, and their browser goes back."""
    return get(way_back(url))
