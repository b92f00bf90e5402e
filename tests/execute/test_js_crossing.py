"""The short way into the sandbox leads to the same place."""

import subprocess
import sys
import textwrap

from patience import PATIENCE

PROGRAM = """
    import quickjs_rs._engine as engine, wasmtime
    from checkrein.execute import js_crossing
    heard = []
    def made(short):
        context = engine.QjsContext(engine.QjsRuntime(memory_limit=None, stack_limit=None))
        if short:
            context.way = js_crossing.Way(context._inst)
        context.set_host_call_dispatcher(lambda _number, given: [heard.append(given), context.eval('1.5')][1])
        context.register_host_function("host", 1)
        return context
    sources = ["1", "-1.5", "2**40", "'\\u00e9'.repeat(70000)", "[1,{a:null}]", "10n**30n"]
    sources.append("host(1,'x')+host(2)")
    assert [made(True).eval(each) for each in sources] == [made(False).eval(each) for each in sources]
    assert heard == [(1, "x"), (2,)] * 2, heard
    context = made(True)
    try:
        context.eval("(function f() { f() })()")
    except wasmtime.Trap as trap:
        assert trap.trap_code == wasmtime.TrapCode.STACK_OVERFLOW
    else:
        raise AssertionError
    for start, length in ((-1, 1), (0, -1), (1 << 31, 1), (0, 1 << 31)):
        try:
            context._inst.read(start, length)
        except ValueError:
            continue
        raise AssertionError((start, length))
    first, second = made(True), made(True)
    first.eval("var a = {}; var b = [a]; var big = 'x'.repeat(3e6)")
    image, stack = first.way.read(0, first.way.size), first.way.stack
    second.way.write_all(image, stack)
    assert second.eval("b[0] === a && big.length") == 3000000
    wrong = (image[:-1], stack), (image[: 1 << 16], 0), (image, len(image) + 1), (image, -1), (b"", 0)
    for broken in wrong:
        try:
            second.way.write_all(*broken)
        except ValueError:
            continue
        raise AssertionError
    try:
        context.eval("throw new TypeError('x')")
    except engine.JSError as error:
        assert error.args[:2] == ("TypeError", "x")
"""


def test_the_same_values_errors_and_bounds():
    subprocess.run([sys.executable, "-c", textwrap.dedent(PROGRAM)], check=True, timeout=PATIENCE)
