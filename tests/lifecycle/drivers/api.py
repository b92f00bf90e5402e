"""A program before the HTTP API of chat (`/api/v1`): it says what is to be done, and answers, over a socket.

Where the server is away, the answer comes from elsewhere, as in every other door.
"""

import msgspec

from checkrein.agents import Agents
from checkrein.authority import Asked, myself, perform
from checkrein.console.serving import Console
from checkrein.errors import ConflictError, InputError, StoreError
from console.api.conftest import Program
from lifecycle.drivers.chat import Chat

_ERRORS = {400: InputError, 409: ConflictError, 503: StoreError}


class Api(Chat):
    name = "api"

    def __init__(self, world):
        super().__init__(world)
        self._console, self._token = None, ""

    def begin(self):
        super().begin()
        pipeline, talk = self.world.pipeline, self.talk
        agents = Agents(pipeline.store, pipeline.ledger, pipeline.clock)
        self._token = (
            self._token
            or perform(Asked(pipeline, agents, myself()), "token.add", {"name": "ci", "approve": True})[
                "token"
            ]
        )
        self._console = Console(pipeline, agents, chat=lambda: talk.chat)
        self._console.start(0)
        self._program = Program(self._console, self._token)

    def _post(self, path, body):
        answer = self._program("POST", path, body)
        if answer.status in _ERRORS:
            raise _ERRORS[answer.status](answer.json["error"]["message"])
        assert answer.status in (200, 202), answer.body
        return answer.json

    def say(self, text):
        return self._post(f"/sessions/{self.session}/messages", {"text": text})["run"]

    def answer(self, entry, word, *, message="", edited=None, remember=None, **more):
        at = next((each for each in self.talk.calls() if each.entry == entry), None) if self.talk else None
        if at is None or word not in ("approved", "denied"):
            more |= {"message": message, "edited": edited, "remember": remember}
            return super().answer(entry, word, **more)
        path = f"/runs/{at.run}/calls/{at.call_id}"
        if word == "denied":
            return self._post(f"{path}/decline", {"reason": message})["answer"]
        body = {"reason": message}
        body |= {"edited": edited} if edited is not None else {}
        body |= {"remember": msgspec.to_builtins(remember)} if remember is not None else {}
        return self._post(f"{path}/approve", body)["answer"]

    def cancel(self, caller):
        self._post(f"/runs/{caller.run}/abort", {})

    def put_away(self, arguments):
        caller = super().put_away(arguments)
        self._stop()
        return caller

    def killed(self):
        self._stop()
        super().killed()

    def close(self):
        super().close()
        self._stop()

    def _stop(self):
        if self._console is not None:
            self._console.stop()
            self._console = None
