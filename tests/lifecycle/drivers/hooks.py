"""A coding agent's hooks, asked about outside the agent. The agent runs its tool when it is told yes.

A caller that comes back is the hook that was waiting: it sends the same event to the next server.
"""

from checkrein import wire
from checkrein.authority.phase import switch
from doors.hooks.agent import Agent, Line
from lifecycle.drivers import SERVER, TOOL, Caller, Cannot, Driver
from patience import until

NAME = f"mcp__{SERVER}__{TOOL}"


class Mortal(Line):
    """A hook whose server ends when the world says so."""

    def __init__(self, store):
        super().__init__(seconds=86_400)
        self._store = store

    def still_here(self):
        if self._store.dead:
            raise wire.Gone
        return self.open


class Hooks(Driver):
    name = "hooks"

    def __init__(self, world):
        super().__init__(world)
        self.agent, self._numbers = None, 0

    def open(self):
        if self.world.pipeline is None or self.world.store.dead:
            self.world.open()
        self.agent = Agent(self.world.pipeline, self.world.project)
        # Less than this process is old, whose hooks come back.
        self.world.clock.now += 0.01
        if not self._numbers:
            switch(self.world.pipeline, "building", "ada", "test", project=self.world.project)

    def call(self, arguments, *, keeps=False, call_id=None):
        self._numbers += 1
        caller = Caller(arguments)
        caller.id = call_id or f"t{self._numbers}"
        return self._sent(caller)

    def _sent(self, caller):
        caller.line = Mortal(self.world.store)
        agent = self.agent

        def run(each):
            try:
                stdout, _stderr, _ = agent.call(
                    tool=NAME, arguments=each.arguments, call=each.id, line=each.line
                )
            except wire.Gone:
                return "broken"
            said = stdout["hookSpecificOutput"]
            if said["permissionDecision"] != "allow":
                return each.told(said["permissionDecisionReason"])
            each.said = said.get("permissionDecisionReason", "")
            each.ran = said.get("updatedInput", each.arguments)
            self.world.tool(each.ran)
            self._reported(agent, each)
            return "result"

        return caller.start(run)

    def _reported(self, agent, caller):
        agent.done(tool=NAME, arguments=caller.ran, call=caller.id)
        caller.ran = None

    def put_away(self, arguments):
        caller = self.call(arguments)
        self.world.question()
        self.world.die()
        assert caller.heard() == "broken"
        self.world.shut()
        self.killed()
        self.world.open()
        return caller

    def keep(self, scene):
        # Only a hook that waits can be given other arguments.
        return scene.ask()

    def unheard(self, scene, word, **more):
        caller = scene.ask()
        scene.answer_that_kills(word, **more)
        assert caller.heard() == "broken"
        return caller

    def back(self, caller):
        if self.agent is None:
            self.open()
        if getattr(caller, "ran", None) is not None:
            # The agent ran the tool already: what it has left to say is how that ended.
            return caller.start(lambda each: self._reported(self.agent, each) or "result")
        return self._sent(caller)

    def replay(self, caller):
        return self.call(caller.arguments, call_id=caller.id)

    def needs_schema(self):
        raise Cannot("the agent knows what fits its tools")

    def needs_claim(self):
        raise Cannot("the agent runs the tool, so nobody takes the approval")

    def needs_return(self):
        raise Cannot("a hook that was answered has ended")

    def switch_phase(self, phase):
        self.open()
        switch(self.world.pipeline, phase, "ada", "test", project=self.world.project)

    def cancel(self, caller):
        caller.line.open = False
        self.world.wake(*(each.entry for each in self.world.questions()))

    def leave(self, caller):
        self.cancel(caller)
        until(lambda: caller.done)
        self.agent.send("SessionEnd", reason="exit")

    def killed(self):
        self.agent = None

    def close(self):
        self.agent = None
