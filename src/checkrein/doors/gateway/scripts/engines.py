"""The sandboxes, by language; each is started at its first script and ends with the gateway."""

from __future__ import annotations

from checkrein.execute.preview import Language
from checkrein.execute.sandbox import Engine


class Engines:
    """Made on first use, so that a gateway without scripts pays nothing."""

    def __init__(self) -> None:
        self._engines: dict[str, Engine] = {}

    def of(self, language: Language) -> Engine:
        kind = "python" if language == "python" else "javascript"
        if kind not in self._engines:
            self._engines[kind] = _made(kind)
        return self._engines[kind]

    async def close(self) -> None:
        engines, self._engines = list(self._engines.values()), {}
        for each in engines:
            await each.close()


def _made(kind: str) -> Engine:
    if kind == "python":
        from checkrein.execute.python import PythonEngine

        return PythonEngine()
    from checkrein.execute.javascript import JavaScriptEngine

    return JavaScriptEngine()
