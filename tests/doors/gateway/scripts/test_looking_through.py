"""A script is looked through for the question about it beside everything else the gateway does."""

import threading

import pytest

from checkrein.doors.gateway.scripts import wording
from doors.gateway.house import STATELESS
from doors.gateway.scripts.bench import evaluate, run

CODE = "return (await codemode.srv__echo({})).content[0].text"


@pytest.mark.parametrize("era", ["handshake", STATELESS])
def test_a_script_that_takes_long_to_look_through_holds_up_nobody(bench, monkeypatch, era):
    """One made to be tangled takes a second or two, in which other clients are served."""
    looked, real = [], wording.preview

    def looking(*given):
        looked.append(threading.current_thread())
        return real(*given)

    monkeypatch.setattr(wording, "preview", looking)

    async def work():
        if era == STATELESS:
            asked = await evaluate(bench.house.passing(), CODE, "codemode_eval_supervised")
            assert "inputRequests" in asked
        else:
            await evaluate(await bench.house.guest(), CODE, "codemode_eval_supervised")
        assert looked and threading.current_thread() not in looked

    run(bench, work)
