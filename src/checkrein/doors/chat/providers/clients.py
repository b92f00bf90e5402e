"""Makes the models of Pydantic AI, each for its own provider and over our own wires.

Importing this loads Pydantic AI and takes seconds; `Providers` does so in a thread, and so are the libraries
of single providers loaded, when the first of their models is asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from pydantic_ai.exceptions import ContentFilterError, ModelConnectionError
from pydantic_ai.messages import ModelMessage, ModelResponseStreamEvent
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from checkrein.call import digest
from checkrein.doors.chat.providers import listing
from checkrein.doors.chat.providers.addresses import AZURE_VERSION, address
from checkrein.doors.chat.providers.bounds import hang_up, noting
from checkrein.doors.chat.providers.network import http_client
from checkrein.doors.chat.scripted import ScriptedModel
from checkrein.settings import Connections
from checkrein.settings.providers import ProviderSpec, key_of
from checkrein.settings.secrets import environment_file, secrets_file

# The libraries will not do without; a provider that wants no key gets this one.
_NO_KEY = "none"
_MOST_KEPT = 32
# INVARIANT: an answer that was cut is never taken for a whole one.
_TO_ITS_END: Any = {"openai_chat_streaming_requires_finish_reason": True}


class Clients:
    """The clients in use: one way out for all, and one library client for each configuration."""

    def __init__(self) -> None:
        self._scripted = ScriptedModel()
        self._made: dict[str, Model] = {}
        self._http: tuple[Any, httpx2.AsyncClient] | None = None
        self._retired: list[httpx2.AsyncClient] = []
        self._lock = asyncio.Lock()
        # Keys in use, so that nothing we quote can hold one.
        self.secrets: set[str] = set()

    async def model(self, spec: ProviderSpec, model: str, connections: Connections) -> Model:
        """The model of that very name; raises ConfigError when its key or our way out cannot be used."""
        if spec.kind == "scripted":
            return self._scripted
        key = await self.key(spec)
        http = await self._way_out(connections)
        mark = digest([spec.kind, spec.name, address(spec), spec.api_version, model, digest(key), id(http)])
        if mark not in self._made:
            made = await asyncio.to_thread(_made, spec, key, model, http)
            while len(self._made) >= _MOST_KEPT:
                self._made.pop(next(iter(self._made)))
            self._made[mark] = Whole(made)
        return self._made[mark]

    async def names(self, spec: ProviderSpec, connections: Connections) -> list[str]:
        """The models the provider says it has."""
        key = await self.key(spec)
        http = await self._way_out(connections)
        if spec.kind == "azure":
            await listing.check_azure(spec, key, http)
            return list(spec.offered)
        return await listing.names(spec, key, http)

    async def key(self, spec: ProviderSpec) -> str:
        # A key store may be slow to answer.
        key = await asyncio.to_thread(key_of, spec)
        if key:
            self.secrets.add(key)
        return key

    async def close(self) -> None:
        open_ones = [*self._retired, *([self._http[1]] if self._http else [])]
        self._made, self._http, self._retired = {}, None, []
        for each in open_ones:
            await each.aclose()

    async def _way_out(self, connections: Connections) -> httpx2.AsyncClient:
        async with self._lock:
            loop = asyncio.get_running_loop()
            mark = (connections, loop, *_files(connections))
            if self._http is None or self._http[0] != mark:
                made = await asyncio.to_thread(http_client, connections)
                if self._http is not None and self._http[0][1] is loop:
                    # A conversation may still be read over it.
                    self._retired.append(self._http[1])
                self._http, self._made = (mark, made), {}
            return self._http[1]


class Whole(WrapperModel):
    """A model whose streamed answers end as whole ones, or with an error."""

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: Any = None,
    ) -> AsyncGenerator[StreamedResponse]:
        stream = self.wrapped.request_stream(messages, model_settings, model_request_parameters, run_context)
        async with AsyncExitStack() as stack:
            with noting() as begun:
                # Libraries leave an answer open that is given up between two of its words.
                stack.push_async_callback(hang_up, begun)
                streamed = await stack.enter_async_context(stream)
            inner = streamed._get_event_iterator

            async def to_its_end() -> AsyncIterator[ModelResponseStreamEvent]:
                try:
                    async for event in inner():
                        yield event
                except ModelConnectionError:
                    # Who hung up is not told that the line is dead.
                    if not streamed.cancelled:
                        raise
                # INVARIANT: an answer that was cut is never taken for a whole one.
                if streamed.finish_reason is None and not streamed.cancelled:
                    raise ModelConnectionError(
                        self.model_name, "The answer ended before its end.", phase="read", in_stream=True
                    )
                if streamed.finish_reason == "content_filter":
                    raise ContentFilterError("The answer was held back.")

            streamed._get_event_iterator = to_its_end  # type: ignore[method-assign]
            yield streamed


def _made(spec: ProviderSpec, key: str, model: str, http: httpx2.AsyncClient) -> Model:
    makers = {"anthropic": _anthropic, "google": _google, "azure": _azure}
    return makers.get(spec.kind, _openai)(spec, key, model, http)


def _openai(spec: ProviderSpec, key: str, model: str, http: httpx2.AsyncClient) -> Model:
    """OpenAI and everything that speaks its chat completions: Ollama, vLLM, LM Studio and others."""
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    client = AsyncOpenAI(api_key=key or _NO_KEY, base_url=address(spec), http_client=http, max_retries=0)
    if spec.kind == "openai":
        return OpenAIChatModel(model, provider=OpenAIProvider(openai_client=client), profile=_TO_ITS_END)
    provider = OpenAICompatibleProvider(spec.name, openai_client=client)
    return OpenAIChatModel(model, provider=provider, profile=_TO_ITS_END)


def _azure(spec: ProviderSpec, key: str, model: str, http: httpx2.AsyncClient) -> Model:
    """A model of Azure's is a deployment, named in the address of each call."""
    from openai import AsyncAzureOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.azure import AzureProvider

    client = AsyncAzureOpenAI(
        api_key=key or _NO_KEY,
        azure_endpoint=address(spec),
        api_version=spec.api_version or AZURE_VERSION,
        http_client=http,
        max_retries=0,
    )
    return OpenAIChatModel(model, provider=AzureProvider(openai_client=client), profile=_TO_ITS_END)


def _anthropic(spec: ProviderSpec, key: str, model: str, http: httpx2.AsyncClient) -> Model:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = AsyncAnthropic(api_key=key or _NO_KEY, base_url=address(spec), http_client=http, max_retries=0)
    return AnthropicModel(model, provider=AnthropicProvider(anthropic_client=client))


def _google(spec: ProviderSpec, key: str, model: str, http: httpx2.AsyncClient) -> Model:
    from google.genai import Client
    from google.genai.types import HttpOptions, HttpRetryOptions
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    options = HttpOptions(
        base_url=address(spec), httpx_async_client=http, retry_options=HttpRetryOptions(attempts=1)
    )
    client = Client(vertexai=False, api_key=key or _NO_KEY, http_options=options)
    return GoogleModel(model, provider=GoogleProvider(client=client))


def _files(connections: Connections) -> list[object]:
    """Other whenever a file is another that says whom to believe or which way to go."""
    found: list[object] = []
    for path in (*map(Path, connections.ca_files), environment_file(), secrets_file()):
        try:
            status = path.expanduser().stat()
            found.append((status.st_mtime_ns, status.st_size))
        except OSError:
            found.append(None)
    return found
