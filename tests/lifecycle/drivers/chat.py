"""A conversation: its model calls the tool, and its run waits for the answer.

Its caller is the run in the store: the next server takes it up by itself. Chat's tools are in this process.
"""

import asyncio
import json

import msgspec

from chat_ground import Talk, Tools, kill, text_result, tool
from lifecycle.drivers import SERVER, TOOL, Caller, Cannot, Driver
from patience import soon, until

NAME = f"{SERVER}__{TOOL}"
FINAL = ("completed", "error", "denied", "cancelled")
OFFERED = tool(NAME, schema={"type": "object", "required": ["text"]})


class Held(Tools):
    """Tools that are there once the door is open: no run goes on while it is opened."""

    def __init__(self, driver, *tools):
        super().__init__(driver.world.pipeline, *tools)
        self._driver = driver

    async def tool(self, name):
        await soon(lambda: self._driver.is_open)
        return await super().tool(name)


class Chat(Driver):
    name = "chat"

    def __init__(self, world):
        super().__init__(world)
        self.talk, self.session, self.offered = None, "", OFFERED
        self.is_open = False

    def open(self):
        self.is_open = False
        self.begin()
        self.is_open = True

    def begin(self):
        if self.world.pipeline is None or self.world.store.dead:
            self.world.open()
        tools = Held(self, *([self.offered] if self.offered else []))
        tools.does[NAME] = self._carried
        self.talk = Talk(self.world.pipeline, tools, session=self.session)
        if not self.session:
            self.session = self.talk.chat.create(project=self.world.project)["id"]
            self.talk.id, self.talk.last = self.session, self.talk.chat.session(id=self.session)["last"]

    async def _carried(self, call, _progress):
        return text_result(await asyncio.to_thread(self.world.tool, call.arguments))

    def call(self, arguments, *, keeps=False):
        caller = Caller(arguments)
        caller.run = self.say(f"/call {NAME} {json.dumps(arguments)}\n/then\n/say done")
        return self._followed(caller)

    def say(self, text):
        return self.talk.say(text)

    def _followed(self, caller):
        talk = self.talk

        def over():
            # Where the disk was full, the run ends before its call, or without one.
            ended = talk.chat.session(id=talk.id)["run"] is None
            found = [each for each in talk.calls(caller.run) if ended or each.status in FINAL]
            return found or ([None] if ended else [])

        def run(each):
            (call,) = until(over, failing="the call is not over")
            until(lambda: talk.chat.session(id=talk.id)["run"] is None)
            if call is None or call.status not in FINAL:
                return "broken"
            if call.status == "completed":
                each.said = str(call.output)
                return "answered" if call.verdict == "answered" else "result"
            return each.told(call.error)

        return caller.start(run)

    def put_away(self, arguments):
        caller = self.call(arguments)
        self.world.question()
        self.talk.chat.close()
        self.talk = None
        self.world.wake(*(each.entry for each in self.world.questions()))
        return caller

    def back(self, caller):
        if self.talk is None:
            self.open()
        return self._followed(caller)

    def define(self, description, *, accept=False):
        self.offered = None
        if description is not None:
            self.offered = msgspec.structs.replace(OFFERED, definition=description)

    def nobody(self):
        raise Cannot("a conversation's question waits until it is answered")

    def same_session(self, caller, arguments=None):
        if not caller.done:
            raise Cannot("a conversation goes on when its last answer is over")
        return super().same_session(caller, arguments)

    def leave(self, caller):
        raise Cannot("a conversation has no client that could end")

    def cancel(self, caller):
        self.talk.chat.abort(run=caller.run)

    def killed(self):
        if self.talk is not None:
            kill(self.talk)
            self.talk = None

    def close(self):
        if self.talk is not None:
            self.talk.chat.close()
            self.talk = None
