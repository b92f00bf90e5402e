"""What the tests of conversations share: tools in this process whose calls are counted, models that are
written down word for word, and somebody who follows what happens."""

import asyncio
import threading
import time
from contextlib import asynccontextmanager

import msgspec
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from checkrein.doors.chat.chat import Chat
from checkrein.doors.chat.providers import Providers
from checkrein.doors.chat.scripted import ScriptedModel
from checkrein.ledger.entries import fold
from checkrein.pipeline import Pipeline
from checkrein.settings.sources import state_dir
from checkrein.store.questions import waiting
from checkrein.store.records import of_entries
from checkrein.store.rules import add_rule, delete_rule
from checkrein.store.sqlite import SqliteStore
from patience import PATIENCE, until

OVER = ("end", "error", "aborted")


class Tool(msgspec.Struct, frozen=True):
    name: str
    server: str
    tool: str
    description: str = ""
    schema: dict = msgspec.field(default_factory=lambda: {"type": "object"})
    annotations: dict = {}
    definition: str = "as accepted"
    trusted: bool = True


class Came(msgspec.Struct, frozen=True):
    kind: str = "result"
    content: object = None
    text: str = ""
    failed: bool = False


def tool(name, **more):
    server, _, short = name.partition("__")
    return Tool(name, server, short, **more)


def text_result(text):
    return Came(content={"content": [{"type": "text", "text": text}]})


class Tools:
    """As the gateway's: what the record does not bear out is not carried out."""

    def __init__(self, pipeline, *tools):
        self.pipeline = pipeline
        self.all = {each.name: each for each in tools}
        # What ran, in order; what each tool does instead of answering; what should never have come here.
        self.ran, self.does, self.wrong = [], {}, []
        self.contents, self.messages, self.vouched = [], [], False

    async def tools(self, project=""):
        return list(self.all.values())

    async def tool(self, name):
        return self.all.get(name) or f"There is no tool {name}."

    async def faults(self, name, arguments):
        found = self.all.get(name)
        missing = set(found.schema.get("required", ())) - set(arguments) if found else ()
        return [f"`{each}` is missing." for each in sorted(missing)]

    async def servers(self):
        return [{"name": each, "state": "running"} for each in {one.server for one in self.all.values()}]

    async def resources(self, session=""):
        return []

    async def prompts(self):
        return []

    async def templates(self, session=""):
        return []

    async def read_filled(self, server, template, arguments, session=""):
        uri = template.format(**arguments)
        return {"server": server, "trusted": self.vouched, "contents": self.contents, "uri": uri}

    async def read(self, server, uri, session=""):
        return {"server": server, "trusted": self.vouched, "contents": self.contents}

    async def prompt(self, server, name, arguments, session=""):
        return {"server": server, "trusted": self.vouched, "messages": self.messages}

    async def carry(self, call, name, entry, *, progress):
        if why := self._unbound(call, entry):
            self.wrong.append((name, call.arguments, why))
            return Came("unsent", text=why)
        self.ran.append((name, call.arguments))
        try:
            came = await self.does.get(name, _answers)(call, progress)
        except asyncio.CancelledError:
            self.pipeline.finish(entry, "cancelled", evidence="client")
            raise
        outcome = "failure" if came.failed or came.kind == "error" else "success"
        self.pipeline.finish(entry, "unknown" if came.kind in ("silent", "lost") else outcome)
        return came

    def _unbound(self, call, entry):
        (found,) = fold(of_entries(self.pipeline.store, [entry]))
        bound = found.argument_hash if found.edited is None else found.edited_hash
        if bound != call.argument_hash or found.completed_at is not None:
            return "The record knows another call by this entry."
        if found.verdict == "allow" or (found.answer == "approved" and found.started_at is not None):
            return ""
        return "Nobody allowed it."


async def _answers(call, _progress):
    return text_result(f"ran {call.tool} {call.arguments}")


class Models(Providers):
    """The built-in models, but every request is written down, and `acts` come first: one for each request."""

    def __init__(self, settings=None):
        super().__init__(settings)
        self.sent, self.acts = [], []

    async def model(self, picked):
        self.config(picked.provider)
        return _Noted(self, picked)

    @property
    def last(self):
        return self.sent[-1]

    def said(self, number=-1):
        """Everything of a request, as one text."""
        return "\n".join(str(part) for message in self.sent[number].messages for part in message.parts)

    def results(self, number=-1):
        """What tools answered, as a request has it: by call."""
        parts = (part for message in self.sent[number].messages for part in message.parts)
        return {part.tool_call_id: part for part in parts if part.part_kind == "tool-return"}


class Sent(msgspec.Struct, frozen=True):
    ref: str
    messages: list
    parameters: object


class _Noted(ScriptedModel):
    def __init__(self, models, picked):
        super().__init__()
        self._models, self._picked = models, picked

    async def request(self, messages, settings, parameters):
        self._models.sent.append(Sent(self._picked.ref, messages, parameters))
        return await super().request(messages, settings, parameters)

    @asynccontextmanager
    async def request_stream(self, messages, settings, parameters, run_context=None):
        self._models.sent.append(Sent(self._picked.ref, messages, parameters))
        asked = super().request_stream
        if self._models.acts:
            asked = FunctionModel(stream_function=self._models.acts.pop(0), model_name="act").request_stream
        async with asked(messages, settings, parameters, run_context) as stream:
            yield stream


def says(*pieces):
    """A model that says just this."""

    async def act(_messages, _info):
        for each in pieces:
            yield each

    return act


def calls(*wanted):
    """A model that calls: (name, arguments as JSON, id)."""

    async def act(_messages, _info):
        for number, (name, arguments, call_id) in enumerate(wanted):
            yield {number: DeltaToolCall(name, arguments, tool_call_id=call_id)}

    return act


class Talk:
    """One server's chat and a session in it."""

    def __init__(self, pipeline, tools, models=None, session=""):
        self.pipeline, self.tools, self.models = pipeline, tools, models or Models()
        self.complaints, self.killed = [], False
        self.chat = Chat(pipeline, lambda: self.tools, self.complaints.append, providers=self.models)
        self.chat.open()
        self.id = session or self.chat.create()["id"]
        self.seen, self.last = [], self.chat.session(id=self.id)["last"]

    @property
    def store(self):
        return self.chat._sessions

    def say(self, *lines, **more):
        return self.chat.send(session=self.id, text="\n".join(lines), **more)["run"]

    def look(self, wait=0.0):
        """What happened since the last look."""
        found = self.chat.events(session=self.id, after=self.last, wait=wait)
        self.last = found["last"]
        self.seen += found["events"]
        return found["events"]

    def until(self, *kinds, run="", since=None, count=1):
        """Follow until that many such events came; the last one's data."""
        begun, since = time.monotonic(), len(self.seen) if since is None else since
        while True:
            found = [
                each
                for each in self.seen[since:]
                if each["kind"] in kinds and (not run or each["run"] == run)
            ]
            if len(found) >= count:
                return found[count - 1]
            assert time.monotonic() - begun < PATIENCE, f"never {kinds}: {self.kinds(since)}"
            self.look(wait=1.0)

    def kinds(self, since=0):
        return [each["kind"] for each in self.seen[since:]]

    def over(self, run):
        """Follow to the end of a run; what it ended with."""
        found = self.until(*OVER, run=run, since=0)
        until(lambda: not self.chat._runs.of_session(self.id))
        self.look()
        return found["kind"]

    def ended(self, run):
        """What the store says of a run once it is over, whoever began it."""
        over = ("done", "failed", "aborted", "interrupted")
        until(lambda: self.store.get_run(run).state in over and run not in self.chat._runs.live)
        return self.store.get_run(run).state

    def finish(self, *lines, **more):
        return self.over(self.say(*lines, **more))

    def messages(self):
        return self.chat.session(id=self.id, limit=1000)["messages"]

    def answer(self):
        """The text of the last message."""
        return "".join(part["text"] for part in self.messages()[-1]["parts"] if part["kind"] == "text")

    def calls(self, run=""):
        return [each for each in self.store.calls_of_session(self.id) if not run or each.run == run]

    def asked(self, count=1):
        """The calls that wait for a person, once there are that many."""

        def found():
            views = self.chat.session(id=self.id)["calls"].values()
            return [each for each in views if each.get("question")]

        until(lambda: len(found()) >= count)
        return found()

    def approve(self, call, **more):
        return self.chat.approve(run=call["run"], call=call["call_id"], actor="ada", **more)

    def decline(self, call, reason=""):
        return self.chat.decline(run=call["run"], call=call["call_id"], reason=reason, actor="ada")

    def entry(self, call):
        (found,) = fold(of_entries(self.pipeline.store, [call.entry]))
        return found

    def check(self):
        """What is true of every session nobody works on."""
        assert self.chat._runs.of_session(self.id) is None
        self.chat._runs.check_free(self.id)
        assert waiting(self.pipeline.store) == [], "a question is left over"
        final = ("completed", "error", "denied", "cancelled")
        assert {each.status for each in self.calls()} <= set(final)
        assert self.tools.wrong == []
        path = self.store.path(self.id)
        assert all(each.state != "streaming" for each in path)
        parts = [part for each in path for part in each.parts if part.kind == "tool_invocation"]
        assert all(part.status in final for part in parts)
        unfinished = [each for each in self.store.unfinished_runs() if each.session == self.id]
        assert unfinished == []
        for each in self.calls():
            assert each.completed_at is not None
            if each.entry:
                entry = self.entry(each)
                over = entry.verdict == "deny" or entry.answer in ("denied", "expired", "cancelled")
                assert over or entry.completed_at is not None, (each, entry)

    def close(self):
        if not self.killed:
            self.chat.close()
            self.pipeline.close()


class Rules:
    """Writes rules as a person does."""

    def __init__(self, pipeline):
        self._pipeline = pipeline

    def add(self, action, name, server="notes", **more):
        named = "pattern" if "*" in name else "tool"
        body = {"action": action, named: name, "server": server, **more}
        rule = f"{action}-{server}-{name}".replace("*", "any")
        self._pipeline.store.write(lambda tx: add_rule(tx, rule, body, 1.0))
        return rule

    def drop(self, rule):
        self._pipeline.store.write(lambda tx: delete_rule(tx, rule))


def opened():
    """A pipeline over the store of this test, as a server that begins has it."""
    state_dir().mkdir(parents=True, exist_ok=True)
    return Pipeline(SqliteStore.open(state_dir()), state_dir())


def kill(talk):
    """As if the server were killed: nothing of its chat goes on, nothing is tidied up."""
    gate, stopped = threading.Event(), threading.Event()

    def freeze():
        stopped.set()
        gate.wait()

    talk.chat._own.loop.call_soon_threadsafe(freeze)
    assert stopped.wait(PATIENCE)
    talk.killed = True
    talk.pipeline.store.close()


def told(talk, kind):
    """What was told of a kind, in order."""
    return [each["data"] for each in talk.seen if each["kind"] == kind]
