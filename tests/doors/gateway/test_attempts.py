"""Attempts to sign in, at an authorization server in this process; `slow/` has the rest of them."""

import asyncio

import pytest

from checkrein.doors.gateway.sign_in_attempts import Attempts
from checkrein.settings.servers import ServerSpec
from doors.gateway.provider import Provider
from patience import PATIENCE

pytest.importorskip("mcp")


async def _nothing_more(_attempt):
    pass


@pytest.mark.parametrize("server", ["gone", "at another address", "the same"])
@pytest.mark.invariant("nobody signs in for a server that is gone or another one now")
def test_only_attempts_at_servers_that_are_as_they_were_go_on(home, server):
    async def main(provider):
        attempts, spec = Attempts(_nothing_more), ServerSpec(name="mail", url=provider.url, oauth=True)
        found = await attempts.begin(spec, "ada", PATIENCE)
        assert found["state"] == "waiting"
        other = ServerSpec(name="mail", url=f"{provider.url}/other", oauth=True)
        specs = {"gone": {}, "at another address": {"mail": other}, "the same": {"mail": spec}}
        await attempts.keep_only(specs[server])
        try:
            assert attempts.state(spec)["state"] == ("waiting" if server == "the same" else "none")
            assert await _listens(found["port"]) == (server == "the same")
        finally:
            await attempts.close()
        assert not await _listens(found["port"])

    with Provider() as provider:
        asyncio.run(main(provider))


async def _listens(port):
    try:
        _reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True
