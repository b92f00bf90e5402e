"""Providers of models: those there are, another one, and whether one answers. No key ever comes back."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from checkrein.console.visits import Visit
from checkrein.errors import CheckreinError, InputError

Facts = dict[str, Any]
# What stands in the form, what it is called, and the address that is meant where none is given.
KINDS = (
    ("openai", "OpenAI", "https://api.openai.com/v1"),
    ("anthropic", "Anthropic", "https://api.anthropic.com"),
    ("google", "Google", "https://generativelanguage.googleapis.com"),
    ("azure", "Azure OpenAI", "https://NAME.openai.azure.com"),
    ("compatible", "OpenAI-compatible (Ollama, vLLM, …)", "http://127.0.0.1:11434/v1"),
)
_SWITCHES = {"on": True, "off": False}


def show(visit: Visit) -> Response:
    ask = visit.desk.ask
    models = ask("chat.models")
    default = next((each["ref"] for each in models if each.get("default")), "")
    return visit.page(
        "chat_models.html", providers=ask("chat.providers"), models=models, default=default, kinds=KINDS
    )


def keep(visit: Visit) -> Response:
    """Add a provider, or change one; a key that is left empty stays as it is."""
    form = visit.form
    given: Facts = {"name": form.text("name")}
    for name in ("kind", "base_url", "api_version", "default_model"):
        if name in form.values:
            given[name] = form.text(name)
    if form.text("key"):
        given["key"] = form.text("key")
    if form.text("models"):
        given["models"] = [
            each.strip() for each in form.text("models").replace("\n", ",").split(",") if each.strip()
        ]
    visit.desk.ask("chat.provider_set", **given)
    return visit.back("/chat/models", f"{given['name']} is kept. Test it to see whether it answers.")


def do(visit: Visit) -> Response:
    """Test, refresh, remove, switch on or off."""
    name, what = visit.named["name"], visit.named["what"]
    try:
        told, kind = _do(visit, name, what)
    except CheckreinError as error:
        return visit.back("/chat/models", str(error), "bad")
    return visit.back("/chat/models", told, kind)


def _do(visit: Visit, name: str, what: str) -> tuple[str, str]:
    ask = visit.desk.ask
    if what == "test":
        came = ask("chat.provider_test", name=name)
        told = f"{name} answers. {came['text']}" if came["ok"] else f"{name}: {came['text']}"
        return told, "good" if came["ok"] else "bad"
    if what == "refresh":
        count = len(ask("chat.provider_refresh", name=name))
        return f"{name} has {count} {'model' if count == 1 else 'models'}.", "good"
    if what == "remove":
        ask("chat.provider_remove", name=name)
        return f"{name} is removed, and its key with it.", "good"
    if what in _SWITCHES:
        ask("chat.provider_set", name=name, enabled=_SWITCHES[what])
        return f"{name} is {'used again' if _SWITCHES[what] else 'not used any more'}.", "good"
    raise InputError(f"{what[:40]!r} cannot be done with a provider.")


def default(visit: Visit) -> Response:
    model = visit.form.text("model")
    visit.desk.ask("chat.default", model=model)
    return visit.back("/chat/models", f"New conversations begin with {model or 'the first model there is'}.")
