"""Google's ADK, a scripted model, and the tools of a program."""

# ruff: noqa: F401 - tests take the names of the framework from here, once they run.

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import FunctionTool, google_search
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.genai import types

from checkrein.doors.library.adapters.google_adk import LOST, REJECTED, STATE, WAITS, gated

CONFIRM = "adk_request_confirmation"


class Scripted(BaseLlm):
    """Says a turn at a time; keeps what it was sent."""

    model: str = "scripted"
    turns: list
    requests: list

    async def generate_content_async(self, llm_request, stream=False):
        self.requests.append(list(llm_request.contents))
        turn = self.turns.pop(0) if self.turns else types.Part(text="done")
        parts = turn if isinstance(turn, list) else [turn]
        yield LlmResponse(content=types.Content(role="model", parts=parts))

    def told(self):
        """What the model was told came of its calls, by call id."""
        parts = [part for each in self.requests[-1] for part in each.parts]
        found = [part.function_response for part in parts if part.function_response]
        return {each.id: each.response for each in found}


def call(name, id="c1", /, **arguments):
    return types.Part(function_call=types.FunctionCall(id=id, name=name, args=arguments))


class Desk:
    """Tools of a program, and what they did."""

    def __init__(self):
        self.booked = []

    def book(self, to: str, amount: int = 1) -> str:
        """Book a room."""
        self.booked.append((to, amount))
        return f"{amount} for {to}"

    def read_note(self, name: str) -> dict:
        """Read a note."""
        self.booked.append(name)
        return {"note": name}

    def break_it(self) -> str:
        """Fails."""
        raise ValueError("it broke")

    def say_error(self) -> dict:
        """Says that it failed."""
        return {"error": "no paper"}

    @property
    def tools(self):
        return [self.book, self.read_note, self.break_it, self.say_error]


class House:
    """An agent, its session and its model."""

    def __init__(self, tools, *turns, sessions=None):
        self.model = Scripted(turns=list(turns), requests=[])
        self.agent = LlmAgent(name="clerk", model=self.model, tools=tools)
        self.sessions = sessions or InMemorySessionService()
        self.runner = Runner(app_name="app", agent=self.agent, session_service=self.sessions)

    async def open(self):
        kept = await self.sessions.get_session(app_name="app", user_id="u", session_id="s")
        if kept is None:
            await self.sessions.create_session(app_name="app", user_id="u", session_id="s")

    async def say(self, *parts):
        await self.open()
        content = types.Content(role="user", parts=list(parts) or [types.Part(text="go")])
        events = self.runner.run_async(user_id="u", session_id="s", new_message=content)
        return [each async for each in events]

    async def state(self):
        found = await self.sessions.get_session(app_name="app", user_id="u", session_id="s")
        return found.state


def asked(events):
    """The confirmations the ADK asks for: original call id to the request's id."""
    calls = [each for event in events for each in event.get_function_calls() if each.name == CONFIRM]
    return {each.args["originalFunctionCall"]["id"]: each.id for each in calls}


def confirm(id, confirmed=True, payload=None):
    said = {"confirmed": confirmed} | ({"payload": payload} if payload is not None else {})
    return types.Part(function_response=types.FunctionResponse(id=id, name=CONFIRM, response=said))
