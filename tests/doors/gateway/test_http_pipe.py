import asyncio
import gc
import json
import subprocess
import sys
import time
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest

from checkrein.doors.gateway.http_pipe import HttpPipe
from checkrein.doors.gateway.messages import HANDSHAKE, STATELESS, RpcError
from checkrein.doors.gateway.pipes import Gone, PipeError, pipe_for
from checkrein.doors.gateway.signed_in import SignedIn, keep_sign_in, read_sign_in
from checkrein.doors.gateway.upstream import Upstream, WrongEra
from checkrein.settings.servers import ServerSpec
from doors.gateway.back import Ear
from doors.gateway.site import Site
from patience import PATIENCE, soon

pytest.importorskip("mcp")
INFO = {"name": "test", "version": "1"}


def spec_for(site, **more):
    return ServerSpec(name="site", url=site.url, **more)


def run(spec, use=None, *, era=HANDSHAKE, sign_in=None, seconds=PATIENCE):
    ear = Ear()

    async def main():
        problems = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
        upstream = Upstream("site", lambda hear, over: pipe_for(spec, hear, over, sign_in=sign_in), ear)
        try:
            await upstream.start(era=era, capabilities={}, info=INFO, seconds=seconds)
            if use is not None:
                await use(upstream, ear)
        finally:
            await upstream.close()
            assert len(ear.ends) == 1 and len(asyncio.all_tasks()) == 1
        gc.collect()
        assert problems == []

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["json", "sse"])
def test_the_handshake_and_its_session(kind):
    async def use(upstream, ear):
        assert (upstream.version, upstream.info) == ("2025-06-18", {"name": "site"})
        given = {"_meta": {"own": 1}, "x": [None, 1.5, "é"]}
        found = await upstream.request("echo", given, seconds=PATIENCE)
        assert found == {"method": "echo", "params": given, "unknown": {"x": 1}}
        if kind == "sse":
            await soon(lambda: len(ear.notices) >= 3)
            assert "notifications/tools/list_changed" in [each["method"] for each in ear.notices]

    with Site(kind=kind) as site:
        run(spec_for(site), use)
        assert "mcp-protocol-version" not in site.posted("initialize")
        for method in ("notifications/initialized", "echo"):
            headers = site.posted(method)
            assert (headers["mcp-protocol-version"], headers["mcp-session-id"]) == ("2025-06-18", "s-1")
        assert [each[0] for each in site.seen if each[0] == "DELETE"] == ["DELETE"]


@pytest.mark.parametrize("kind", ["json", "sse"])
def test_the_stateless_era_and_its_headers(kind):
    async def use(upstream, ear):
        await upstream.request("tools/list", {}, seconds=PATIENCE)
        await upstream.request("tools/call", {"name": "go", "arguments": {"r": "é"}}, seconds=PATIENCE)
        await upstream.request("tools/call", {"name": "größe", "arguments": {}}, seconds=PATIENCE)

    with Site(kind=kind) as site:
        run(spec_for(site), use, era=STATELESS)
        for method in ("server/discover", "tools/list", "tools/call"):
            headers = site.posted(method)
            assert (headers["mcp-protocol-version"], headers["mcp-method"]) == ("2026-07-28", method)
            assert "mcp-session-id" not in headers
        assert (headers["mcp-name"], headers["mcp-param-region"]) == ("go", "=?base64?w6k=?=")
        assert "GET" not in [each[0] for each in site.seen]


@pytest.mark.invariant("only the headers of the servers file are sent")
def test_only_the_headers_of_the_servers_file_are_sent(monkeypatch, home):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    (home / ".netrc").write_text("machine 127.0.0.1 login ada password secret\n")
    (home / ".netrc").chmod(0o600)
    with Site() as site:
        run(spec_for(site, headers={"X-Key": "k"}))
        headers = site.posted("initialize")
        assert headers.pop("x-key") == "k" and headers["user-agent"].startswith("checkrein/")
        known = {"host", "accept", "accept-encoding", "connection", "content-length", "content-type"}
        assert set(headers) - known == {"user-agent"}


@pytest.mark.parametrize(("eras", "era"), [(("handshake",), STATELESS), (("stateless",), HANDSHAKE)])
def test_a_server_of_the_other_era_says_so(eras, era):
    with Site(eras=eras) as site, pytest.raises(WrongEra) as caught:
        run(spec_for(site), era=era)
    assert caught.value.sure


@pytest.mark.parametrize(
    ("method", "error"),
    [
        ("lost", Gone),
        ("huge", RpcError),
        ("huge_event", Gone),
        ("packed", RpcError),
        ("nonsense", RpcError),
        ("page", RpcError),
        ("error", RpcError),
    ],
)
def test_a_bad_answer_spoils_only_its_own_request(method, error):
    async def use(upstream, ear):
        with pytest.raises(error):
            await upstream.request(method, {}, seconds=PATIENCE)
        assert (await upstream.request("echo", {}, seconds=PATIENCE))["method"] == "echo"

    with Site() as site:
        run(spec_for(site), use)


@pytest.mark.parametrize("kind", ["json", "sse"])
def test_an_answer_is_read_as_it_is_over_a_pipe(kind):
    async def use(upstream, ear):
        for raw in ('{"x": "cut \\ud83d", "b": 1, "a": [[]]}', "[" * 300 + "]" * 300, "7", "null"):
            found = await upstream.request("raw", {"raw": raw}, seconds=PATIENCE)
            assert json.dumps(found) == raw
        for raw, why in (
            ("1e400", "a number"),
            ("1" * 5001, "a number"),
            ("[" * 5000 + "]" * 5000, "values nested deeper"),
        ):
            with pytest.raises(RpcError, match=f"The server's answer holds {why}"):
                await upstream.request("raw", {"raw": f'{{"x": {raw}}}'}, seconds=PATIENCE)
        # What is no JSON is not guessed at.
        with pytest.raises(RpcError):
            await upstream.request("raw", {"raw": "NaN"}, seconds=PATIENCE)
        assert (await upstream.request("echo", {}, seconds=PATIENCE))["method"] == "echo"

    with Site(kind=kind) as site:
        run(spec_for(site), use)


@pytest.mark.invariant("whatever goes wrong, the pipe ends with a reason")
def test_a_connection_that_breaks_leaves_nobody_waiting():
    async def use(upstream, ear):
        waiting = asyncio.create_task(upstream.request("silent", {}, seconds=None))
        with pytest.raises(Gone, match="connection lost"):
            await upstream.request("broken", {}, seconds=PATIENCE)
        with pytest.raises(Gone):
            await waiting
        assert not upstream.ready and upstream.tail

    with Site() as site:
        run(spec_for(site), use)


@pytest.mark.parametrize("era", [HANDSHAKE, STATELESS])
def test_a_request_that_takes_too_long_is_cancelled_in_the_words_of_its_era(era):
    async def use(upstream, ear):
        with pytest.raises(TimeoutError):
            await upstream.request("silent", {}, seconds=0.1)
        await upstream.request("echo", {}, seconds=PATIENCE)

    with Site() as site:
        run(spec_for(site), use, era=era)
        sent = [json.loads(each[3]).get("method") for each in site.seen if each[3]]
    # The younger era has no such message over HTTP: the connection of the request is closed instead.
    assert ("notifications/cancelled" in sent) is (era == HANDSHAKE)


def test_a_session_the_server_forgot_ends_the_connection():
    async def use(upstream, ear):
        site.session = "s-2"
        with pytest.raises((RpcError, Gone)):
            await upstream.request("echo", {}, seconds=PATIENCE)
        await soon(lambda: ear.ends)
        assert ear.ends[0][1] == "the server forgot our session"

    with Site() as site:
        run(spec_for(site), use)


@pytest.mark.parametrize("era", [HANDSHAKE, STATELESS])
def test_a_server_that_wants_to_know_who_we_are_is_no_server_of_another_era(era):
    with Site(token="t") as site:
        with pytest.raises(PipeError, match="401") as caught:
            run(spec_for(site), era=era)
        assert caught.value.lasting and "oauth" in caught.value.remedy
        run(spec_for(site, headers={"Authorization": "Bearer t"}), era=era)


@pytest.mark.parametrize(
    "target", ["http://127.0.0.1:1/mcp", "http://169.254.169.254/mcp", "http://x.example/"]
)
def test_a_redirect_leads_nowhere_else(target):
    with Site() as site:
        site.redirect = target
        with pytest.raises((PipeError, WrongEra)):
            run(spec_for(site))
        assert len(site.seen) == 1


def test_nobody_there_is_said_to_be_nobody():
    with Site() as site:
        spec = spec_for(site)
    for era in (HANDSHAKE, STATELESS):
        with pytest.raises(PipeError, match="cannot be connected to") as caught:
            run(spec, era=era)
        assert not caught.value.lasting
    with pytest.raises(PipeError, match="cannot be connected to"):
        run(ServerSpec(name="site", url=spec.url, transport="sse"))


def test_a_server_that_never_answers_does_not_hold_us():
    with Site() as site:
        site._do_initialize = site._do_silent
        with pytest.raises(PipeError, match="did not answer"):
            run(spec_for(site), seconds=0.1)


def test_what_is_not_encrypted_is_not_connected_to():
    with pytest.raises(PipeError, match="only https"):
        run(ServerSpec(name="site", url="http://93.184.216.34/mcp"))


def test_sending_before_and_after(home):
    async def main():
        ends = []
        with Site() as site:
            pipe = HttpPipe(spec_for(site), print, ends.append)
            with pytest.raises(Gone):
                pipe.send({"jsonrpc": "2.0", "method": "x"})
            await pipe.open()
            await asyncio.gather(pipe.close(), pipe.close())
            with pytest.raises(Gone, match="closed"):
                pipe.send({"jsonrpc": "2.0", "method": "x"})
        never = HttpPipe(spec_for(site), print, print)
        await never.close()
        assert ends == ["closed"] == [pipe.ended]

    asyncio.run(main())


def test_without_the_package_the_error_says_what_to_install():
    code = (
        "import asyncio, sys; sys.modules['mcp'] = None\n"
        "from checkrein.doors.gateway.http_pipe import HttpPipe\n"
        "from checkrein.settings.servers import ServerSpec\n"
        "asyncio.run(HttpPipe(ServerSpec(name='a', url='http://127.0.0.1:1/'), print, print).open())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "need the `mcp` package" in done.stderr and "pip install" in done.stderr


class Person:
    """Signs in at once, or in the way a test wants."""

    redirect_uri = "http://127.0.0.1:7/callback"

    def __init__(self, **changes):
        self.asked, self.changes = [], changes

    async def __call__(self, url):
        self.asked.append(url)
        query = parse_qs(urlsplit(url).query)
        return SimpleNamespace(**({"code": "c1", "state": query["state"][0], "iss": None} | self.changes))


def test_a_person_signs_in_once(home):
    person = Person()
    with Site(token="unknown") as site:
        spec = spec_for(site, oauth=True)
        run(spec, sign_in=person)
        (asked,) = person.asked
        assert asked.startswith(f"{site.origin}/authorize?") and "code_challenge_method=S256" in asked
        kept = read_sign_in("site", site.url)
        assert kept.tokens["access_token"] == "token-for-c1" and kept.expires_at > time.time() + 3000
        assert kept.client["client_id"] == "client-1" and kept.metadata["issuer"].startswith(site.origin)
        run(spec)
        run(spec, era=STATELESS)
        assert len(person.asked) == 1


def test_a_token_that_ran_out_is_renewed_without_the_person(home):
    with Site(token="unknown") as site:
        spec = spec_for(site, oauth=True)
        run(spec, sign_in=Person())
        kept = read_sign_in("site", site.url)
        kept.expires_at = time.time() - 1
        keep_sign_in("site", kept)
        site.token = "new"
        run(spec)
        assert read_sign_in("site", site.url).tokens["access_token"] == "token-for-refresh-1"


def test_without_a_person_the_error_says_how_to_sign_in(home):
    with Site(token="unknown") as site, pytest.raises(PipeError, match="asks for a sign-in") as caught:
        run(spec_for(site, oauth=True))
    assert caught.value.lasting and "checkrein servers sign-in site" in caught.value.remedy


def test_a_sign_in_is_not_used_for_another_address(home):
    with Site(token="t") as site:
        keep_sign_in("site", SignedIn(url="https://other.example/mcp", tokens={"access_token": "secret"}))
        with pytest.raises(PipeError, match="sign-in"):
            run(spec_for(site, oauth=True))
        assert "secret" not in str(site.seen)


@pytest.mark.parametrize("server", ["http://169.254.169.254", "https://10.0.0.1", "http://127.0.0.2:1"])
def test_where_to_sign_in_cannot_be_inside(home, server):
    person = Person()
    refused = pytest.raises(PipeError, match="is not connected to")
    with Site(token="t", metadata={"server": server}) as site, refused:
        run(spec_for(site, oauth=True), sign_in=person)
    assert person.asked == []


@pytest.mark.parametrize("issued", ["authorization_endpoint", "token_endpoint", "registration_endpoint"])
def test_no_part_of_signing_in_can_be_inside(home, issued):
    metadata = {"issued": {issued: "https://192.168.1.1/x"}}
    refused = pytest.raises(PipeError, match="is not connected to")
    with Site(token="t", metadata=metadata) as site, refused:
        run(spec_for(site, oauth=True), sign_in=Person())


@pytest.mark.parametrize(
    "changes", [{"state": "forged"}, {"state": None}, {"code": ""}, {"iss": "https://evil.example"}]
)
def test_an_answer_that_is_not_to_our_question_signs_nobody_in(home, changes):
    with Site(token="t") as site, pytest.raises(PipeError):
        run(spec_for(site, oauth=True), sign_in=Person(**changes))
    assert read_sign_in("site", site.url).tokens is None
