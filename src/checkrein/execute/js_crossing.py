"""The way into the sandbox made short: its functions are called without asking for their types each time.

Used by the machine. The values are checked by the WebAssembly engine all the same; only the binding's own
bookkeeping, ten times the cost of the call, is left out.
"""

from __future__ import annotations

import ctypes
from typing import Any

# How the engine numbers its types; their names are those of the fields values are kept in.
_KINDS = {"i32": 0, "i64": 1, "f32": 2, "f64": 3}

_Entry = tuple[Any, Any, tuple[str, ...], Any, str]


_PAGE = 1 << 16


class Way:
    """Into one instance; everything that calls into it takes this way from now on."""

    def __init__(self, instance: Any) -> None:
        import quickjs_rs._engine as package
        import wasmtime
        from wasmtime import _ffi

        self._ffi: Any = _ffi
        self._trap_pointer = ctypes.POINTER(self._ffi.wasm_trap_t)
        self._errors = wasmtime.WasmtimeError, wasmtime.Trap
        self._current = package._CUR
        self._instance = instance
        self._context = instance.store._context()
        self._entries: dict[str, _Entry] = {}
        instance.c, instance.read = self.call, self.read

    def call(self, name: str, *given: Any) -> Any:
        entry = self._entries.get(name)
        if entry is None:
            entry = self._entries[name] = self._entry(name)
        function, parameters, fields, results, result = entry
        for place, field, value in zip(parameters, fields, given, strict=True):
            setattr(place.of, field, value)
        trap = self._trap_pointer()
        before = getattr(self._current, "inst", None)
        self._current.inst = self._instance
        try:
            error = self._ffi.wasmtime_func_call(
                self._context, function, parameters, len(fields), results, len(results), ctypes.byref(trap)
            )
        finally:
            self._current.inst = before
        if error:
            raise self._errors[0]._from_ptr(error)
        if trap:
            raise self._errors[1]._from_ptr(trap)
        # Read before anybody else can call: calls into the sandbox nest, and share this place.
        return getattr(results[0].of, result) if result else None

    def read(self, start: int, length: int) -> bytes:
        if start < 0 or length < 0 or start + length > self.size:
            raise ValueError(f"the sandbox points outside its memory: {start}, {length}")
        return ctypes.string_at(self._base() + start, length)

    @property
    def size(self) -> int:
        memory = ctypes.byref(self._instance.mem._memory)
        found: int = self._ffi.wasmtime_memory_data_size(self._context, memory)
        return found

    @property
    def stack(self) -> int:
        """Where the sandbox's stack stands: with its memory, all there is of it between calls."""
        found: int = self._instance.sp.value(self._instance.store)
        return found

    def write_all(self, image: bytes, stack: int) -> None:
        """Make it what another was. Raises ValueError, or the engine's error when it may not grow so far."""
        if not 0 <= stack <= len(image) or len(image) % _PAGE or len(image) < self.size:
            raise ValueError("this is no sandbox's memory")
        if len(image) > self.size:
            self._instance.mem.grow(self._instance.store, (len(image) - self.size) // _PAGE)
        ctypes.memmove(self._base(), image, len(image))
        self._instance.sp.set_value(self._instance.store, stack)

    def _base(self) -> int:
        memory = ctypes.byref(self._instance.mem._memory)
        first = self._ffi.wasmtime_memory_data(self._context, memory)
        return ctypes.cast(first, ctypes.c_void_p).value or 0

    def _entry(self, name: str) -> _Entry:
        function = self._instance._exports[name]
        kind = function.type(self._instance.store)
        given, taken = tuple(map(str, kind.params)), tuple(map(str, kind.results))
        value = self._ffi.wasmtime_val_t
        parameters, results = (value * len(given))(), (value * len(taken))()
        for place, word in zip(parameters, given, strict=True):
            place.kind = _KINDS[word]
        return ctypes.byref(function._func), parameters, given, results, taken[0] if taken else ""
