"""One JavaScript script in its sandbox, inside a worker process: evaluated, answered, snapshotted.

Called by the worker with what its parent says. It runs nothing but the script, and knows nothing outside it.
"""

from __future__ import annotations

import functools
import json
import os
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from checkrein.execute.js_crossing import Way
from checkrein.execute.js_source import Script, StopError, read, shim_prefix
from checkrein.execute.js_values import RefusedError, checked

# The sandbox itself needs this much before a script has anything.
_OWN_MEMORY = 4 << 20
_FLOOD = 16
# Calls that wait, and the text of those the parent was not told of yet, are kept outside the sandbox.
_MOST_WAITING, _MOST_UNSENT = 1000, 4 << 20
_MARK = "\n… more output was cut\n"


class Machine:
    """A sandbox, ready before its script is known."""

    def __init__(self) -> None:
        import quickjs_rs._engine as engine

        self._engine = engine
        self.say: Callable[[str], None] = _nobody_listens
        self._context = engine.QjsContext(engine.QjsRuntime(memory_limit=None, stack_limit=None))
        self._instance = self._context._inst
        self._way = Way(self._instance)
        self._context.set_host_call_dispatcher(self._answer_sandbox)
        self._context.register_host_function("__host", 1)
        self._script = Script("", "")
        self._deadline = float("inf")
        self._flooded = False
        self._next = 1
        self._printed = self._most_output = self._unsent = 0
        self._most_result = self._most_memory = 0
        # Calls the parent was not told of yet, and the ids of all that wait.
        self.wanted: list[dict[str, Any]] = []
        self.waiting: set[int] = set()
        self.state: Literal["running", "ended", "failed"] = "running"
        self._instance.interrupt_handler = self._is_over
        self._control = self._context.eval_handle(shim_prefix() + _shim())

    # -- what the parent asks for ------------------------------------------------------------------------

    def limit(self, *, memory: int, output: int, result: int) -> None:
        """Everything the script can use of memory is the sandbox's one memory; it cannot grow beyond this."""
        self._most_memory = memory + _OWN_MEMORY
        self._instance.store.set_limits(memory_size=self._most_memory)
        self._most_output, self._most_result = output, result

    def offer(self, names: list[str]) -> None:
        numbers = struct.unpack("<4i", os.urandom(16))
        self._do("offer", json.dumps({"names": names, "numbers": numbers}))

    def within(self, seconds: float) -> None:
        """What is done from now on is the script's, and has this long."""
        self._deadline = time.monotonic() + seconds

    def start(self, source: str) -> None:
        self._run(lambda: self._begin(source))

    def take_wanted(self) -> list[dict[str, Any]]:
        """The calls made since this was last asked."""
        taken, self.wanted, self._unsent = self.wanted, [], 0
        return taken

    def settle(self, answers: list[dict[str, Any]]) -> None:
        self.waiting.difference_update(answer["id"] for answer in answers)
        self._run(lambda: self._do("settle", json.dumps(answers)))

    def fire(self) -> None:
        self._run(lambda: self._do("fire"))

    def due(self) -> float:
        """Milliseconds until the next timer; -1 when there is none."""
        found: float = self._guarded(lambda: self._do("due"))
        return found

    @property
    def is_full(self) -> bool:
        """Whether it has all the memory it may have; jobs that found none were dropped in silence."""
        return self._way.size > self._most_memory - _OWN_MEMORY // 2

    def result(self) -> str:
        try:
            size = self._guarded(lambda: self._do("measure", self._most_result))
        except StopError as stop:
            if stop.kind == "error":
                stop.message = f"The result cannot be written as JSON: {stop.message}"
            raise
        text = self._do("result") if size <= self._most_result else None
        if text is None or len(text.encode()) > self._most_result:
            raise StopError("output", f"The result is larger than {self._most_result} bytes as JSON.")
        try:
            checked(text)
        except RefusedError as error:
            raise StopError("output", f"The result {error}.") from None
        return str(text)

    def failure(self) -> StopError:
        text, _, stack = self._guarded(lambda: self._do("failure")).partition("\0")
        kind = "memory" if text.endswith("InternalError: out of memory") else "error"
        return StopError(kind, text, self._script.place(stack)[0])

    def dump(self) -> tuple[dict[str, Any], bytes]:
        meta = {
            "control": self._control._handle,
            "stack": self._way.stack,
            "next": self._next,
            "printed": self._printed,
            "waiting": sorted(self.waiting),
            "state": self.state,
            "script": self._script.as_json(),
        }
        return meta, self._way.read(0, self._way.size)

    def load(self, meta: dict[str, Any], image: bytes) -> None:
        self._control._disposed = True
        self._way.write_all(image, meta["stack"])
        self._control = self._engine.QjsHandle._adopt(self._instance, meta["control"], context=self._context)
        self._next, self._printed = meta["next"], meta["printed"]
        self.waiting, self.state = set(meta["waiting"]), meta["state"]
        self._script = Script.of_json(meta["script"])
        self.due()

    # -- running -----------------------------------------------------------------------------------------

    def _begin(self, source: str) -> None:
        script, main = read(self._context, source, self._read_as)
        self._do("run", main, script.form)

    def _read_as(self, script: Script) -> None:
        self._script = script

    def _run(self, action: Callable[[], Any]) -> None:
        """Do something, and all that follows from it."""

        def everything() -> None:
            action()
            while not self._is_over() and self._context.run_pending_jobs():
                pass

        self._guarded(everything)
        self._check_end()

    def _guarded(self, action: Callable[[], Any]) -> Any:
        import wasmtime

        try:
            return action()
        except self._engine.JSError as error:
            self._check_end()
            raise self._of_error(error) from None
        except wasmtime.Trap as trap:
            self._check_end()
            raise self._of_trap(trap) from None
        except self._engine.QuickJSError:
            self._check_end()
            raise StopError("memory", "The script used up its memory.") from None

    def _of_error(self, error: Any) -> StopError:
        name, message, stack = error.args
        # With no memory left there is none for a message either.
        if (name, message) == ("InternalError", "out of memory") or (
            self.is_full and message in ("", "null")
        ):
            return StopError("memory", "The script used up its memory.")
        return StopError("error", f"{name}: {message}", self._script.place(stack or "")[0])

    def _of_trap(self, trap: Any) -> StopError:
        import wasmtime

        if trap.trap_code == wasmtime.TrapCode.STACK_OVERFLOW:
            return StopError("error", "RangeError: the script recursed too deeply")
        if self.is_full:
            # The engine itself does not always bear having none left.
            return StopError("memory", "The script used up its memory.")
        return StopError("crash", "The sandbox broke under the script.")

    def _is_over(self) -> bool:
        return self._flooded or time.monotonic() >= self._deadline

    def _check_end(self) -> None:
        if self._flooded:
            raise StopError("output", "The script printed far more than is kept.")
        if time.monotonic() >= self._deadline:
            raise StopError("time", "The script used up its computing time.")

    def _do(self, *given: Any) -> Any:
        answer = self._control.call(*given)
        try:
            return answer.to_python()
        finally:
            answer.dispose()

    # -- what the sandbox asks for -----------------------------------------------------------------------

    def _answer_sandbox(self, _number: int, given: tuple[Any, ...]) -> Any:
        what, _, rest = given[0].partition("\0")
        if what == "call":
            return self._call(*rest.split("\0", 2))
        if what == "print":
            more, _, text = rest.partition("\0")
            return self._print(text, int(more))
        if what in ("yaml.parse", "yaml.stringify"):
            return _yaml(what, rest)
        self.state = "ended" if what == "ended" else "failed"
        return None

    def _call(self, name: str, stack: str, text: str) -> int | str:
        try:
            checked(text)
        except RefusedError as error:
            return f"{name}: what it is called with {error}"
        if len(self.waiting) >= _MOST_WAITING or self._unsent + len(text) > _MOST_UNSENT:
            return f"{name}: too many calls wait at the same time; await some of them first"
        self._unsent += len(text)
        number, self._next = self._next, self._next + 1
        line, column = self._script.place(stack, name)
        self.wanted.append({"id": number, "name": name, "arguments": text, "line": line, "column": column})
        self.waiting.add(number)
        return number

    def _print(self, text: str, more: int) -> None:
        data = text.encode()
        room = self._most_output - self._printed
        if room > 0:
            self.say(text if len(data) + more <= room else data[:room].decode(errors="ignore") + _MARK)
        elif room == 0:
            self.say(_MARK)
        self._printed += len(data) + more
        if self._printed > self._most_output * _FLOOD:
            self._flooded = True


def _nobody_listens(_text: str) -> None:
    return


@functools.cache
def _shim() -> str:
    return Path(__file__).with_name("js_shim.js").read_text(encoding="utf-8")


def _yaml(what: str, text: str) -> str:
    from checkrein.execute import yaml_text

    try:
        if what == "yaml.parse":
            made = json.dumps(yaml_text.parse(text), allow_nan=False)
        else:
            made = yaml_text.stringify(checked(text))
    except (ValueError, RefusedError) as error:
        return json.dumps({"refused": f"{what}: {error}"})
    return json.dumps({"text": made})
