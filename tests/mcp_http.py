"""The HTTP front over real sockets, before a hub that plays along; and a client that can be rude."""

import asyncio
import http.client
import json
import socket
import threading
import time

from checkrein.doors.gateway.clients import Client, Flight, Visit, read_envelope
from checkrein.doors.gateway.front_http import HttpFront
from checkrein.doors.gateway.messages import (
    CAPABILITIES_KEY,
    HANDSHAKE,
    STATELESS,
    STATELESS_VERSIONS,
    VERSION_KEY,
    RpcError,
    notification,
    request,
    response,
)
from checkrein.doors.gateway.tokens import Tokens
from checkrein.store.gateway_clients import CLIENTS, GatewayClient
from checkrein.store.tokens import hash_of
from patience import PATIENCE

BOTH = "application/json, text/event-stream"
META = {VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: {}}


class PlayingHub:
    """Answers by the method it is asked for, and remembers everything it saw."""

    def __init__(self):
        self.met, self.left, self.heard, self.cancelled, self.handled = [], [], [], [], []
        self.schemas = {}
        self.gates = {}

    def meet(self, *, era, agent, label, owner, send):
        made = Client(era=era, agent=agent, label=label, owner=owner, visit=Visit("s"), send=send)
        self.met.append(made)
        return made

    def passing(self, *, agent, label, owner, meta):
        made = Client(
            era=STATELESS, agent=agent, label=label, owner=owner, visit=Visit("s"), send=lambda message: None
        )
        read_envelope(made, {"_meta": meta}, STATELESS_VERSIONS)
        self.met.append(made)
        return made

    def leave(self, client):
        self.left.append(client.id)
        client.gone()

    def hear(self, client, message):
        self.heard.append(message)
        if "method" not in message:
            client.answered(message)
        elif message["method"] == "notifications/cancelled":
            client.flights[message["params"]["requestId"]].cancel()

    def input_schema(self, name):
        return self.schemas.get(name)

    def gate(self, name):
        """Opened by the test, waited for by a request."""
        return self.gates.setdefault(name, threading.Event())

    async def handle(self, client, message, exchange):
        self.handled.append(message)
        method, known = message["method"], message["id"]
        act = getattr(self, "do_" + method.replace("/", "_"), None)
        if act is None:
            raise RpcError(-32601, f"No method {method[:40]}.")
        flight = client.flights[known] = Flight(client, known, exchange)
        try:
            return response(known, await act(client, message.get("params", {}), exchange))
        except asyncio.CancelledError:
            self.cancelled.append(known)
            if not flight.cancelled:
                raise
            asyncio.current_task().uncancel()
            return None
        finally:
            del client.flights[known]

    async def do_initialize(self, client, params, exchange):
        if params.get("refuse"):
            raise RpcError(-32602, "Not you.")
        client.version = params.get("protocolVersion", "2025-11-25")
        return {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "us"}}

    async def do_echo(self, client, params, exchange):
        return params

    async def do_tools_call(self, client, params, exchange):
        return {"content": []}

    async def do_say(self, client, params, exchange):
        for number in range(params["times"]):
            exchange.send(notification("notifications/progress", {"progress": number}))
        return {"said": params["times"]}

    async def do_flood(self, client, params, exchange):
        for _ in range(params["times"]):
            exchange.send(notification("notifications/message", {"data": "x" * params["size"]}))
            await asyncio.sleep(0)
        return {}

    async def do_ask(self, client, params, exchange):
        future = asyncio.get_running_loop().create_future()
        client._asked["q1"] = future
        exchange.send(request("q1", "elicitation/create", {}))
        return (await future)["result"]

    async def do_wait(self, client, params, exchange):
        if params.get("first_say"):
            exchange.send(notification("notifications/first"))
        gate = self.gate(params["gate"])
        while not gate.is_set():
            await asyncio.sleep(0.005)
        for _ in range(params.get("then_say", 0)):
            exchange.send(notification("notifications/progress"))
        if params.get("then_ask"):
            exchange.send(request("late", "elicitation/create", {}))
        return {"waited": True}

    async def do_break(self, client, params, exchange):
        raise ZeroDivisionError("secret inside")


class Running:
    """A front that listens, on a loop in a thread of its own."""

    def __init__(self, store, limits=None, per_minute=100_000, loop_factory=asyncio.new_event_loop, **more):
        self.hub, self.said, self.store, self.clients = PlayingHub(), [], store, []
        self.tokens = Tokens(store, per_minute, time.monotonic)
        self.loop = loop_factory()
        self.front = HttpFront(self.hub, self.tokens, self.said.append, limits, **more)
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self.port = self.run(self.front.open(0))

    def run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE)

    def call(self, function, *given):
        async def inside():
            return function(*given)

        return self.run(inside())

    def close(self):
        for each in self.clients:
            each.close()
        self.run(self.front.close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(PATIENCE)
        self.loop.close()

    def token(self, name="laptop"):
        made_id, token = CLIENTS.new()
        made = GatewayClient(id=made_id, name=name, hash=hash_of(token), made_at=1.0, made_by="ada")
        self.store.write(lambda tx: CLIENTS.add(tx, made))
        return token

    def client(self, token=None):
        made = HttpClient(self.port, token or self.token(f"client-{time.monotonic_ns()}"))
        self.clients.append(made)
        return made

    def beside(self, client):
        """Another connection in the same session."""
        made = self.client(client.token)
        made.session = client.session
        return made


class Reply:
    def __init__(self, response):
        self.status, self.headers = response.status, response.headers
        self.raw = response.read()

    @property
    def json(self):
        return json.loads(self.raw)

    @property
    def events(self):
        return events(self.raw)


def events(raw):
    return [json.loads(line[6:]) for line in raw.decode().split("\n") if line.startswith("data: {")]


class HttpClient:
    """One connection at a time, with everything right unless told otherwise."""

    def __init__(self, port, token):
        self.port, self.token, self.session = port, token, None
        self.line = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)

    def close(self):
        self.line.close()

    def headers(self, **more):
        made = {"Authorization": f"Bearer {self.token}", "Accept": BOTH, "Content-Type": "application/json"}
        if self.session:
            made["Mcp-Session-Id"] = self.session
        made |= {name.replace("_", "-"): value for name, value in more.items()}
        return {name: value for name, value in made.items() if value is not None}

    def begin(self, method="POST", body=b"", path="/mcp", **headers):
        """Send, and give the response as it comes."""
        self.line.request(method, path, body, self.headers(**headers))
        return self.line.getresponse()

    def send(self, body, method="POST", path="/mcp", **headers):
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return Reply(self.begin(method, raw, path, **headers))

    def ask(self, method, params=None, id=1, **headers):
        return self.send(request(id, method, params or {}), **headers)

    def open(self, version="2025-11-25"):
        info = {"name": "test", "version": "1"}
        can = {"elicitation": {}}
        reply = self.ask("initialize", {"clientInfo": info, "protocolVersion": version, "capabilities": can})
        assert reply.status == 200, reply.raw
        self.session = reply.headers["Mcp-Session-Id"]
        return reply

    def alone(self, method, params=None, id=1, **headers):
        """A stateless request, its headers as they should be."""
        params = {"_meta": META, **(params or {})}
        made = {"MCP_Protocol_Version": "2026-07-28", "Mcp_Method": method}
        if "name" in params:
            made["Mcp_Name"] = params["name"]
        return self.ask(method, params, id, **(made | headers))


def raw(port, data):
    """Whatever comes back for these bytes until the other side closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as line:
        line.sendall(data)
        return drained(line)


def drained(line):
    parts = []
    try:
        while part := line.recv(65536):
            parts.append(part)
    except (TimeoutError, ConnectionResetError):
        pass
    return b"".join(parts)


__all__ = ["HANDSHAKE", "HttpClient", "PlayingHub", "Reply", "Running", "drained", "events", "raw"]
