"""A script that calls the tool, handed in by an MCP client whose profile asks about every call.

Its caller is the run in the store: the next server takes it up by itself, and the client asks for its end.
"""

import json

from checkrein.settings.sources import user_file
from checkrein.store.runs import get_run
from javascript_ground import ready_made
from lifecycle.drivers import Caller, Cannot
from lifecycle.drivers.gateway import NAME, Gateway
from patience import until

SETTINGS = f"""
[evaluation]
wait_seconds = 0.02

[evaluation.profiles.supervised]
asklist = ["{NAME}"]
"""
CODE = """
try { return (await codemode.%s(%s)).content[0].text; }
catch (e) { return "reason:" + e.reason + ": " + e.message; }
"""


class Eval(Gateway):
    name, settings, asks_each = "eval", SETTINGS, True

    def open(self):
        ready_made()
        super().open()

    def wake(self):
        """Scripts that wait go on."""

        async def wake():
            self.house.hub.scripts.wake()

        self.loop.do(wake())

    def call(self, arguments, *, keeps=False, guest=None):
        caller = Caller(arguments)
        caller.guest, caller.run = guest or self.loop.do(self._entered()), ""
        house, code = (self.loop, self.world.store), CODE % (NAME, json.dumps(arguments))

        def run(each):
            said = self._told(house[0], each, "codemode_eval_supervised", code=code)
            each.run = said.get("run_id", "")
            if keeps:
                return "pending"
            return self._followed(house, each, said)

        return caller.start(run)

    def _told(self, loop, caller, name, **arguments):
        return loop.do(caller.guest.call(name, arguments))["structuredContent"]

    def _followed(self, house, caller, said=None):
        loop, store = house
        if said is None or said.get("status") in ("running", "paused"):
            until(lambda: get_run(store, caller.run).state in ("done", "failed"))
            said = self._told(loop, caller, "resume_run", run_id=caller.run)
        caller.said = str(said.get("result", said))
        if caller.said.startswith("ran with"):
            return "result"
        return caller.told(caller.said) if "reason:" in caller.said else "answered"

    def same_session(self, caller, arguments=None):
        return self.call(caller.arguments if arguments is None else arguments, guest=caller.guest)

    def put_away(self, arguments):
        caller = self.call(arguments, keeps=True)
        self.world.question()
        assert caller.heard() == "pending"
        self.close()
        return caller

    def back(self, caller):
        away = self.house is None
        if away:
            self.open()
        caller.guest = self.loop.do(self._entered())
        if away:
            # Last, for the server may die of it.
            self.wake()
        house = self.loop, self.world.store
        return caller.start(lambda each: self._followed(house, each))

    def define(self, description, *, accept=False):
        # A server that starts with another tool than was accepted.
        self.server.offered, self.server.description = description is not None, description
        if accept:
            raise Cannot("a script goes on as soon as its server is up, before anybody accepts the tool")

    def refuse_in_profile(self):
        path = user_file()
        path.write_text(self.settings.replace("asklist", "denylist"), encoding="utf-8")

    def cancel(self, caller):
        raise Cannot("a script outlives the request it came with")

    def leave(self, caller):
        raise Cannot("a script outlives the client it came from")
