"""A sandbox for each language, made when it is first needed."""

import asyncio

from checkrein.doors.gateway.scripts.engines import Engines
from checkrein.execute.javascript import JavaScriptEngine
from checkrein.execute.python import PythonEngine


def test_an_engine_is_made_once_and_closed_with_the_others():
    async def work():
        engines = Engines()
        assert isinstance(engines.of("python"), PythonEngine)
        assert isinstance(engines.of("javascript"), JavaScriptEngine)
        assert engines.of("typescript") is engines.of("javascript")
        first = engines.of("python")
        await engines.close()
        assert engines.of("python") is not first
        await engines.close()

    asyncio.run(work())
