"""A sandbox driven by hand, without anybody outside it."""

import subprocess
import sys
import textwrap

from checkrein.execute.sandbox import Ended
from javascript_ground import compiled, run
from patience import PATIENCE

PROGRAM = """
    import sys
    from pathlib import Path
    from checkrein.execute import js_modules
    from checkrein.execute.js_machine import Machine
    from checkrein.execute.js_source import StopError
    js_modules.prepare(Path(sys.argv[1]))

    def made():
        machine = Machine()
        machine.limit(memory=32 << 20, output=1000, result=1000)
        machine.offer(["a", "b"])
        machine.within(60)
        return machine

    first = made()
    heard = []
    first.say = heard.append
    first.start(
        "console.log(1); const x = await codemode.a({n: 1}); setTimeout(() => {}, 50); "
        "return [x, await codemode.b({})]"
    )
    assert [(each["id"], each["name"], each["arguments"]) for each in first.wanted] == [(1, "a", '{"n":1}')]
    assert (first.state, first.waiting, heard) == ("running", {1}, ["1\\n"])
    meta, image = first.dump()

    second = made()
    second.load(meta, image)
    assert second.waiting == {1}
    for machine in (first, second):
        machine.wanted = []
        machine.settle([{"id": 1, "kind": "value", "text": "", "value": {"v": 2}}])
        assert [(each["id"], each["name"]) for each in machine.wanted] == [(2, "b")]
        assert machine.due() == 50
        machine.fire()
        assert machine.due() == -1
        machine.settle([{"id": 2, "kind": "error", "text": "no", "value": None}])
        assert machine.state == "failed"
        stop = machine.failure()
        assert (stop.kind, stop.message, stop.line) == ("error", "Error: no", 1), vars(stop)

    third = made()
    third.start("[Math.random(), yaml.parse('a: 1')]")
    assert third.state == "ended" and third.result().endswith(',{"a":1}]')

    tried = ("for(;;);", 0.1, "time"), ("const l=[];for(;;)l.push({})", 60, "memory"), ("(", 60, "syntax")
    for source, seconds, kind in tried:
        machine = made()
        machine.within(seconds)
        try:
            machine.start(source)
            stop = machine.failure()
        except StopError as error:
            stop = error
        assert stop.kind == kind, (source, vars(stop))
    print("well")
"""


def test_it_runs_waits_and_goes_on():
    assert run("1 + 1") == Ended(2)
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), compiled()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert shown.stdout == "well\n", shown.stderr
