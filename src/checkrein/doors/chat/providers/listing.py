"""Asks a provider which models it has. `clients` hands in the client all calls go through."""

from __future__ import annotations

from typing import Any

import httpx2
import msgspec

from checkrein.doors.chat.providers.addresses import AZURE_VERSION, address
from checkrein.errors import InputError
from checkrein.settings.providers import ProviderSpec

ANTHROPIC_VERSION = "2023-06-01"
_MOST_PAGES = 50
_MOST_MODELS = 5_000
_LARGEST = 8 << 20


class AnswerError(Exception):
    """Raise when a provider answers with an error; `said` is what it said, to be quoted with care."""

    def __init__(self, status_code: int, said: str, retry_after: str | None) -> None:
        super().__init__(f"The provider answered {status_code}.")
        self.status_code, self.said, self.retry_after = status_code, said, retry_after


async def names(spec: ProviderSpec, key: str, client: httpx2.AsyncClient) -> list[str]:
    """The names of the models that can hold a conversation, each once, in the provider's order."""
    if spec.kind == "anthropic":
        found = await _anthropic(spec, key, client)
    elif spec.kind == "google":
        found = await _google(spec, key, client)
    else:
        found = await _openai(spec, key, client)
    named = [each for each in found if isinstance(each, str) and 0 < len(each) <= 200 and each.isprintable()]
    return list(dict.fromkeys(each for each in named if " " not in each))[:_MOST_MODELS]


async def check_azure(spec: ProviderSpec, key: str, client: httpx2.AsyncClient) -> None:
    """Azure tells nobody its deployments; that it answers our key is all there is to see."""
    url = f"{address(spec)}/openai/models"
    await _got(client, url, {"api-key": key}, {"api-version": spec.api_version or AZURE_VERSION})


async def _openai(spec: ProviderSpec, key: str, client: httpx2.AsyncClient) -> list[Any]:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    return [each.get("id") for each in _rows(await _got(client, f"{address(spec)}/models", headers), "data")]


async def _anthropic(spec: ProviderSpec, key: str, client: httpx2.AsyncClient) -> list[Any]:
    headers = {"anthropic-version": ANTHROPIC_VERSION, **({"authorization": f"Bearer {key}"} if key else {})}
    found: list[Any] = []
    after: dict[str, str] = {}
    for _ in range(_MOST_PAGES):
        page = await _got(client, f"{address(spec)}/v1/models", headers, {"limit": "1000", **after})
        found += [each.get("id") for each in _rows(page, "data")]
        if not page.get("has_more") or not isinstance(page.get("last_id"), str):
            break
        after = {"after_id": page["last_id"]}
    return found


async def _google(spec: ProviderSpec, key: str, client: httpx2.AsyncClient) -> list[Any]:
    headers = {"x-goog-api-key": key} if key else {}
    found: list[Any] = []
    after: dict[str, str] = {}
    for _ in range(_MOST_PAGES):
        page = await _got(client, f"{address(spec)}/v1beta/models", headers, {"pageSize": "1000", **after})
        for each in _rows(page, "models"):
            ways = each.get("supportedGenerationMethods")
            if not isinstance(ways, list) or "generateContent" in ways:
                found.append(str(each.get("name", "")).removeprefix("models/"))
        if not isinstance(page.get("nextPageToken"), str) or not page["nextPageToken"]:
            break
        after = {"pageToken": page["nextPageToken"]}
    return found


async def _got(
    client: httpx2.AsyncClient, url: str, headers: dict[str, str], query: dict[str, str] | None = None
) -> dict[str, Any]:
    async with client.stream("GET", url, headers=headers, params=query) as response:
        body = b""
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > _LARGEST:
                raise InputError("The provider's list of models is too long.", remedy="Check its address.")
        if not response.is_success:
            text = body[:4096].decode("utf-8", "replace")
            raise AnswerError(response.status_code, text, response.headers.get("retry-after"))
    found = msgspec.json.decode(body)
    if not isinstance(found, dict):
        raise msgspec.ValidationError("not an object")
    return found


def _rows(page: dict[str, Any], name: str) -> list[dict[str, Any]]:
    rows = page.get(name)
    if not isinstance(rows, list):
        raise msgspec.ValidationError("no list of models")
    return [each for each in rows if isinstance(each, dict)]
