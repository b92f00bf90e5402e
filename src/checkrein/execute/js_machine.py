"""One JavaScript script in its sandbox, inside a worker process: evaluated, answered, snapshotted.

Called by the worker with what its parent says. It runs nothing but the script, and knows nothing outside it.
"""

from __future__ import annotations

import functools
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from checkrein.execute.js_source import Script, StopError, read, shim_prefix
from checkrein.execute.sandbox import DEEPEST_VALUE, LARGEST_VALUE

# The sandbox itself needs this much before a script has anything.
_OWN_MEMORY = 4 << 20
_FLOOD = 16
_MARK = "\n… more output was cut\n"


class RefusedError(Exception):
    """Raise when a value may not cross; the script sees the text."""


class Machine:
    """A sandbox, ready before its script is known."""

    def __init__(self, *, say: Callable[[str], None]) -> None:
        import quickjs_rs._engine as engine

        self._engine, self._say = engine, say
        self._context = engine.QjsContext(engine.QjsRuntime(memory_limit=None, stack_limit=None))
        self._instance = self._context._inst
        self._context.set_host_call_dispatcher(self._answer_sandbox)
        self._context.register_host_function("__host", 1)
        self._script = Script("", "")
        self._deadline = float("inf")
        self._flooded = False
        self._next = 1
        self._printed = self._most_output = 0
        self._most_result = self._most_memory = 0
        # Calls the parent was not told of yet, and the ids of all that wait.
        self.wanted: list[dict[str, Any]] = []
        self.waiting: set[int] = set()
        self._instance.interrupt_handler = self._is_over
        self._control = self._context.eval_handle(shim_prefix() + _shim())

    # -- what the parent asks for ------------------------------------------------------------------------

    def limit(self, *, memory: int, output: int, result: int) -> None:
        """Everything the script can use of memory is the sandbox's one memory; it cannot grow beyond this."""
        self._most_memory = memory + _OWN_MEMORY
        self._instance.store.set_limits(memory_size=self._most_memory)
        self._most_output, self._most_result = output, result

    def offer(self, names: list[str]) -> None:
        self._do("offer", json.dumps(names))

    def start(self, source: str, seconds: float) -> None:
        self._guarded(seconds, lambda: self._begin(source))

    def settle(self, answers: list[tuple[int, str, str, str | None]], seconds: float) -> None:
        def all_of_them() -> None:
            for number, kind, text, result in answers:
                self.waiting.discard(number)
                self._do("settle", number, kind, text, result)

        self._guarded(seconds, all_of_them)

    def fire(self, seconds: float) -> None:
        self._guarded(seconds, lambda: self._do("fire"))

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._do("state"))
        return found

    @property
    def is_full(self) -> bool:
        """Whether it has all the memory it may have; jobs that found none were dropped in silence."""
        size: int = self._instance.mem.data_len(self._instance.store)
        return size > self._most_memory - _OWN_MEMORY // 2

    def result(self) -> str:
        try:
            size = self._do("measure")
        except self._engine.JSError as error:
            raise StopError("error", f"The result cannot be written as JSON: {error.args[1]}") from None
        if size > self._most_result:
            raise StopError("output", f"The result is larger than {self._most_result} bytes as JSON.")
        text: str = self._do("result")
        if len(text.encode()) > self._most_result:
            raise StopError("output", f"The result is larger than {self._most_result} bytes as JSON.")
        try:
            _checked(text)
        except RefusedError as error:
            raise StopError("output", f"The result {error}.") from None
        return text

    def failure(self) -> StopError:
        found = json.loads(self._do("failure"))
        kind = "memory" if found["text"].endswith("InternalError: out of memory") else "error"
        return StopError(kind, found["text"], self._script.place(found["stack"])[0])

    def dump(self) -> tuple[dict[str, Any], bytes]:
        meta = {
            "control": self._control._handle,
            "next": self._next,
            "printed": self._printed,
            "waiting": sorted(self.waiting),
            "script": self._script.as_json(),
        }
        return meta, self._context.create_snapshot()

    def load(self, meta: dict[str, Any], image: bytes) -> None:
        self._control._disposed = True
        self._context.restore_snapshot(image)
        self._control = self._engine.QjsHandle._adopt(self._instance, meta["control"], context=self._context)
        self._next, self._printed = meta["next"], meta["printed"]
        self.waiting = set(meta["waiting"])
        self._script = Script.of_json(meta["script"])
        self.state()

    # -- running -----------------------------------------------------------------------------------------

    def _begin(self, source: str) -> None:
        script, main = read(self._context, source, self._read_as)
        self._do("run", main, script.form)

    def _read_as(self, script: Script) -> None:
        self._script = script

    def _guarded(self, seconds: float, action: Callable[[], None]) -> None:
        """Do something and all that follows from it, within the script's time."""
        import wasmtime

        self._deadline = time.monotonic() + seconds
        try:
            action()
            while not self._is_over() and self._context.run_pending_jobs():
                pass
        except self._engine.JSError as error:
            self._check_end()
            raise _of_error(error) from None
        except wasmtime.Trap as trap:
            self._check_end()
            raise _of_trap(trap) from None
        except self._engine.MarshalError as error:
            raise StopError("memory", f"The script's memory is used up ({error}).") from None
        finally:
            over = self._is_over()
            self._deadline = float("inf")
        if over:
            self._check_end(timed=True)

    def _is_over(self) -> bool:
        return self._flooded or time.monotonic() >= self._deadline

    def _check_end(self, *, timed: bool = False) -> None:
        if self._flooded:
            raise StopError("output", "The script printed far more than is kept.")
        if timed or time.monotonic() >= self._deadline:
            raise StopError("time", "The script used up its computing time.")

    def _do(self, *given: Any) -> Any:
        answer = self._control.call(*given)
        try:
            return answer.to_python()
        finally:
            answer.dispose()

    # -- what the sandbox asks for -----------------------------------------------------------------------

    def _answer_sandbox(self, _number: int, given: tuple[Any, ...]) -> Any:
        what, *rest = given
        if what == "call":
            return self._call(*rest)
        if what == "print":
            return self._print(*rest)
        if what in ("yaml.parse", "yaml.stringify"):
            return _yaml(what, *rest)
        return None

    def _call(self, name: str, text: str, stack: str) -> str:
        try:
            _checked(text)
        except RefusedError as error:
            return json.dumps({"refused": f"{name}: what it is called with {error}"})
        number, self._next = self._next, self._next + 1
        line, column = self._script.place(stack)
        self.wanted.append({"id": number, "name": name, "arguments": text, "line": line, "column": column})
        self.waiting.add(number)
        return json.dumps({"id": number})

    def _print(self, text: str, more: float) -> None:
        data = text.encode()
        room = self._most_output - self._printed
        if room > 0:
            self._say(text if len(data) + more <= room else data[:room].decode(errors="ignore") + _MARK)
        elif room == 0:
            self._say(_MARK)
        self._printed += len(data) + int(more)
        if self._printed > self._most_output * _FLOOD:
            self._flooded = True


@functools.cache
def _shim() -> str:
    return Path(__file__).with_name("js_shim.js").read_text(encoding="utf-8")


def _of_error(error: Any) -> StopError:
    name, message, stack = error.args
    if name == "InternalError" and message == "out of memory":
        return StopError("memory", "The script used up its memory.")
    found = re.search(r"eval_script:(\d+)", stack or "")
    return StopError("error", f"{name}: {message}", int(found[1]) if found else 0)


def _of_trap(trap: Any) -> StopError:
    import wasmtime

    if trap.trap_code == wasmtime.TrapCode.STACK_OVERFLOW:
        return StopError("error", "RangeError: the script recursed too deeply")
    return StopError("crash", "The sandbox broke under the script.")


def _yaml(what: str, text: str) -> str:
    from checkrein.execute import yaml_text

    try:
        if what == "yaml.parse":
            made = json.dumps(yaml_text.parse(text), allow_nan=False)
        else:
            made = yaml_text.stringify(_checked(text))
    except (ValueError, RefusedError) as error:
        return json.dumps({"refused": f"{what}: {error}"})
    return json.dumps({"text": made})


def _checked(text: str) -> Any:
    """JSON that may cross. INVARIANT: nothing larger, deeper or less than JSON does, in either direction."""
    if len(text) > LARGEST_VALUE or len(text.encode()) > LARGEST_VALUE:
        raise RefusedError(f"is larger than {LARGEST_VALUE} bytes as JSON")
    try:
        value = json.loads(text, parse_constant=_no_number, parse_int=_whole)
        _walk(value, 0)
    except RecursionError:
        raise RefusedError(f"is nested deeper than {DEEPEST_VALUE} levels") from None
    except ValueError:
        raise RefusedError("is no JSON") from None
    return value


def _whole(digits: str) -> int:
    if len(digits) > 20 or not -(1 << 63) <= int(digits) < 1 << 64:
        raise RefusedError("holds a whole number beyond 64 bits; pass it as text")
    return int(digits)


def _no_number(word: str) -> Any:
    raise RefusedError(f"holds {word}, which JSON has no word for")


def _walk(value: Any, depth: int) -> None:
    if depth > DEEPEST_VALUE:
        raise RefusedError(f"is nested deeper than {DEEPEST_VALUE} levels")
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise RefusedError("holds text that is not valid Unicode") from None
    elif isinstance(value, list):
        for item in value:
            _walk(item, depth + 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            _walk(key, depth)
            _walk(item, depth + 1)
