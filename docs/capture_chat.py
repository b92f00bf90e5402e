"""Pictures of a conversation in the console: `make picture`.

A model with two lines to say talks in a home that is thrown away: what a rule allows runs, the rest waits.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

IMAGES = Path(__file__).parent / "images"
QUESTION = "What does the handbook say about refunds? Add a page that explains it to new colleagues."
ANSWER = """\
The handbook is short about it: **refunds are paid within 14 days.** A page for new colleagues could say

1. who may approve a refund,
2. how long it takes,
3. how to book one:

```python
refund = orders.refund(order=4711, amount=Decimal("19.90"))
print(refund.due)  # in 14 days
```

I add it under a title they will look for."""
OLDER = ("Prices in the shop", "Why was the import slow?", "Notes for the release")


def model() -> Any:
    """Looks something up, then says it and wants to write."""
    from pydantic_ai.messages import ToolReturnPart
    from pydantic_ai.models.function import DeltaToolCall, FunctionModel

    async def said(messages: list[Any], _info: Any) -> AsyncIterator[Any]:
        if not any(isinstance(part, ToolReturnPart) for each in messages for part in each.parts):
            yield {0: DeltaToolCall("docs__search", json.dumps({"query": "refunds"}), tool_call_id="call-1")}
            return
        yield ANSWER
        wanted = json.dumps({"title": "How refunds work"})
        yield {1: DeltaToolCall("docs__add_page", wanted, tool_call_id="call-2")}

    return FunctionModel(stream_function=said, model_name="gpt-4o")


def prepare(console: Any) -> str:
    """A server, a rule, a conversation in which a call waits."""
    ask = console.desk.ask
    entry = {"command": sys.executable, "args": ["-m", "checkrein.cli.demo_server"]}
    ask("upstream.add", name="docs", entry=entry)
    ask("upstream.start", name="docs")
    shown = ask("upstream.review", name="docs")
    ask(
        "upstream.accept",
        name="docs",
        picks=[{key: each[key] for key in ("kind", "name", "hash")} for each in shown],
    )
    ask("rule.add", rule={"action": "allow", "server": "docs", "tool": "search"})
    ask(
        "chat.provider_set",
        name="work",
        kind="compatible",
        base_url="http://127.0.0.1:11434/v1",
        models=["gpt-4o"],
    )
    for title, color in zip(OLDER, ("", "amber", "blue"), strict=True):
        made = ask("chat.create", title=title)
        ask("chat.update", id=made["id"], color=color, pinned=title == OLDER[-1])
    own: str = ask("chat.create", title="Refunds", model="work/gpt-4o")["id"]
    ask("chat.send", session=own, text=QUESTION)
    deadline = time.monotonic() + 30
    while not any(each.get("question") for each in ask("chat.session", id=own)["calls"].values()):
        if time.monotonic() > deadline:
            raise SystemExit("The call does not wait.")
        time.sleep(0.05)
    return own


def capture(console: Any, own: str, folder: Path) -> None:
    """In the light, in the dark, on a phone."""
    from playwright.sync_api import sync_playwright

    views = (
        ("chat", {"width": 1180, "height": 1120}, "light", 1.25),
        ("chat-dark", {"width": 1180, "height": 1120}, "dark", 1.25),
        ("chat-phone", {"width": 390, "height": 844}, "light", 2),
    )
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, size, theme, scale in views:
            context = browser.new_context(viewport=size, color_scheme=theme, device_scale_factor=scale)
            tab = context.new_page()
            tab.goto(console.link())
            tab.wait_for_selector("body[data-live]")
            place = tab.evaluate("document.body.dataset.place")
            tab.goto(f"http://127.0.0.1:{console.port}{place}/chat/{own}")
            tab.wait_for_selector("[data-gauge] details")
            tab.screenshot(path=folder / f"{name}.png")
            context.close()
        browser.close()


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    with tempfile.TemporaryDirectory(prefix="checkrein-pictures-") as name:
        for variable in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"):
            os.environ[variable] = f"{name}/{variable.lower()}"
        from checkrein import authority
        from checkrein.agents import Agents
        from checkrein.console.serving import Console
        from checkrein.doors.chat.chat import Chat
        from checkrein.doors.chat.providers import Picked, Providers
        from checkrein.doors.gateway.gateway import Gateway
        from checkrein.pipeline import Pipeline
        from checkrein.settings.sources import state_dir
        from checkrein.store.sqlite import SqliteStore

        class Few(Providers):
            """Every model says the same two lines."""

            async def model(self, picked: Picked) -> Any:  # noqa: ARG002
                return model()

        authority.user_name = lambda uid: "ada"  # noqa: ARG005
        pipeline = Pipeline(SqliteStore.open(state_dir()), state_dir())
        agents = Agents(pipeline.store, pipeline.ledger, pipeline.clock)
        gateway = Gateway(pipeline, agents, lambda _: None)
        gateway.open()
        chat = Chat(pipeline, lambda: gateway.guest("chat"), providers=Few())
        chat.open()
        console = Console(pipeline, agents, None, lambda: gateway, lambda: chat)
        console.start(0)
        try:
            capture(console, prepare(console), folder)
        finally:
            console.stop()
            chat.close()
            gateway.close()
            pipeline.close()


if __name__ == "__main__":
    main()
