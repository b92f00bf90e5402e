"""What a conversation can use: models and their providers, tools, resources and prompts of servers."""

from __future__ import annotations

from typing import Any

from checkrein.call import reason_lines
from checkrein.doors.chat import (
    Invocation,
    Run,
    Session,
    models,
)
from checkrein.doors.chat.engine import Engine, Facts


class Offering(Engine):
    """What there is to pick from, and how people change it."""

    def models(self) -> list[Facts]:
        """Every model that can be picked, with its limits."""
        table = models.load()
        return [{**each, **_limits(table.model(each["model"]))} for each in self._providers.models()]

    def providers(self) -> list[Facts]:
        return self._providers.listed()

    def provider_set(self, *, name: str, actor: str = "", **changes: Any) -> Facts:
        kind = changes.pop("kind", "") or self._providers.config(name).kind
        made = self._providers.set(name, kind, **changes)
        self._note("set", name, actor)
        return made

    def provider_remove(self, *, name: str, actor: str = "") -> Facts:
        self._providers.remove(name)
        self._note("removed", name, actor)
        return {}

    def provider_test(self, *, name: str) -> Facts:
        return self._do(self._providers.test(name))

    def provider_refresh(self, *, name: str) -> list[str]:
        return self._do(self._providers.refresh(name))

    def default(self, *, model: str, actor: str = "") -> Facts:
        picked = self._providers.set_default(model)
        self._note("default", picked.ref, actor)
        return {"provider": picked.provider, "model": picked.model}

    def _note(self, change: str, name: str, actor: str) -> None:
        self._pipeline.note("providers_changed", {"change": change, "provider": name, "actor": actor})

    # -- tools ------------------------------------------------------------------------------------------

    def tools(self, *, session: str) -> list[Facts]:
        """The tools of a session by server, and what the rules say about each."""
        found = self._sessions.get(session)
        servers = {each["name"]: each for each in self._do(self._tools().servers())}
        groups: dict[str, Facts] = {
            name: {
                "server": name,
                "state": each.get("state", ""),
                "error": each.get("error", ""),
                "on": name not in found.tools_off,
                "tools": [],
            }
            for name, each in servers.items()
        }
        for tool in self._do(self._tools().tools(found.project)):
            group = groups.setdefault(
                tool.server,
                {"server": tool.server, "state": "", "error": "", "on": True, "tools": []},
            )
            group["tools"].append(self._tool(tool, found))
        return list(groups.values())

    def _tool(self, tool: Any, session: Session) -> Facts:
        call = Invocation(
            run="",
            call_id="",
            session=session.id,
            message="",
            name=tool.name,
            server=tool.server,
            tool=tool.tool,
            arguments={},
        )
        run = Run(id="", session=session.id, provider=session.provider, model=session.model)
        verdict = self._pipeline.judge(self._calling.call(run, session, call, tool)).verdict
        return {
            "name": tool.name,
            "tool": tool.tool,
            "description": tool.description,
            "schema": tool.schema,
            "on": not {tool.name, tool.server} & set(session.tools_off),
            "policy": verdict.word,
            "why": " ".join(reason_lines(verdict.reasons)),
        }

    def resources(self) -> list[Facts]:
        return self._do(self._tools().resources())

    def templates(self) -> list[Facts]:
        return self._do(self._tools().templates())

    def prompts(self) -> list[Facts]:
        return self._do(self._tools().prompts())


def _limits(model: models.Model) -> Facts:
    return {"input": model.input, "output": model.output, "known": model.known, "note": model.note}
