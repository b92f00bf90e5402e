"""Makes the models of Pydantic AI. Importing this loads Pydantic AI; `Providers` does so in a thread."""

from __future__ import annotations

from pydantic_ai.models import Model

from checkrein.doors.chat.scripted import ScriptedModel
from checkrein.errors import InputError
from checkrein.settings import Connections
from checkrein.settings.providers import ProviderSpec


class Clients:
    """The clients in use, one for each configuration."""

    def __init__(self) -> None:
        self._scripted = ScriptedModel()
        self.secrets: tuple[str, ...] = ()

    async def model(self, spec: ProviderSpec, model: str, connections: Connections) -> Model:
        if spec.kind == "scripted":
            return self._scripted
        raise InputError(f"{spec.kind} is not there yet.")

    async def names(self, spec: ProviderSpec, key: str, connections: Connections) -> list[str]:
        raise NotImplementedError

    async def close(self) -> None:
        pass
