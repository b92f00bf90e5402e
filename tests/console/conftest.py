"""A console over a real store and a real socket, and somebody who visits it as a browser does."""

import http.client
import os
import re
import signal
import subprocess
import threading
from urllib.parse import urlencode, urlsplit

import pytest

import mcp_echo
from checkrein import peers
from checkrein.agents import Agents
from checkrein.authority.phase import switch
from checkrein.call import tool_call
from checkrein.console.serving import Console
from checkrein.doors.chat.chat import Chat
from checkrein.doors.gateway.gateway import Gateway
from checkrein.store.agents import Session, put_session
from checkrein.tcp_peers import TcpPeers
from console.browsing import CHROMIUM, SWITCHES
from console.listening import Listener
from notebook import Notes
from patience import PATIENCE, until


class Answer:
    def __init__(self, response):
        self.status, self.headers = response.status, response.headers
        self.body = response.read()
        self.text = self.body.decode()


class Visitor:
    """Signs in through a link, keeps its cookie and its place, and sends forms with their token."""

    def __init__(self, console):
        self.console, self.cookie, self.place, self.csrf = console, "", "", ""

    def request(self, method, path, body=None, headers=None):
        line = http.client.HTTPConnection("127.0.0.1", self.console.port, timeout=PATIENCE)
        sent = {"Cookie": self.cookie} if self.cookie else {}
        try:
            line.request(method, path, body, sent | (headers or {}))
            return Answer(line.getresponse())
        finally:
            line.close()

    def sign_in(self, link=None):
        answer = self.request("GET", urlsplit(link or self.console.link()).path)
        assert answer.status == 200, answer.text
        self.cookie = answer.headers["set-cookie"].partition(";")[0]
        self.place = re.search(r"url=(/at/[\w-]+)/", answer.text)[1]
        self.csrf = re.search(r'data-csrf="([^"]+)"', self.get("/").text)[1]
        return self

    def get(self, path="/", **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.request("GET", self.place + path, headers=named)

    def post(self, path, fields=None, **headers):
        body = urlencode({"csrf": self.csrf} | (fields or {}), doseq=True)
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.request("POST", self.place + path, body, kind | named)

    def piece(self, path, fields=None):
        """As a script asks: for a part of a page."""
        return self.get(path, x_piece="1") if fields is None else self.post(path, fields, x_piece="1")


@pytest.fixture
def agents(pipeline):
    return Agents(pipeline.store, pipeline.ledger, pipeline.clock)


@pytest.fixture
def gateway(pipeline, agents):
    """A real gateway, made when it is first asked for."""
    made = []

    def get():
        if not made:
            made.append(Gateway(pipeline, agents, lambda _: None))
            made[0].open()
        return made[0]

    yield get
    for each in made:
        each.close()


@pytest.fixture
def chat(pipeline, gateway):
    """A real chat with the gateway's tools, made when it is first asked for."""
    made = []

    def get():
        if not made:
            gateway()
            made.append(Chat(pipeline, lambda: gateway().guest("chat")))
            made[0].open()
        return made[0]

    yield get
    for each in made:
        each.close()


@pytest.fixture(scope="session")
def listener():
    """One for all tests of a worker, where they come one after the other."""
    made = Listener()
    yield made
    made.close()


@pytest.fixture
def serve(listener):
    """Lets a console listen at the address all tests share; it is not started, and cannot be stopped."""
    served = []

    def make(console):
        listener.serve(console)
        served.append(console)
        return console

    yield make
    for each in served:
        listener.end(each)


class Finder:
    """Finds the process at the other end of a connection, as the system says or as a test wants it."""

    def __init__(self):
        self.answer, self.asked = TcpPeers().find, 0

    def __call__(self, address, port):
        self.asked += 1
        return self.answer(address, port)


@pytest.fixture
def finder():
    return Finder()


@pytest.fixture
def met(pipeline):
    """Makes the process that runs the tests one that a gated agent started: whatever it starts is, too."""

    def make():
        me = peers.process(os.getpid())
        session = Session(
            agent="claude-code",
            id="s9",
            project="",
            started_at=1.0,
            process=me.pid,
            process_started=me.started,
        )
        pipeline.store.write(lambda tx: put_session(tx, session))

    return make


@pytest.fixture
def console(pipeline, agents, gateway, chat, serve, finder):
    return serve(Console(pipeline, agents, None, gateway, chat, finder))


@pytest.fixture
def own_console(pipeline, agents, gateway, chat):
    """One with a listener of its own, as the server starts it."""
    made = Console(pipeline, agents, None, gateway, chat)
    made.start(0)
    yield made
    made.stop()


@pytest.fixture
def talk(console, tmp_path, user_settings):
    """The authority, with a server `echo` behind the gateway whose tools are accepted."""
    user_settings("[gateway]\nhttp_port = 0\n")
    command, *given = mcp_echo.words(tmp_path)
    verb = console.desk.ask
    verb("upstream.add", name="echo", entry={"command": command, "args": given})
    verb("upstream.start", name="echo")
    shown = verb("upstream.review", name="echo")
    verb(
        "upstream.accept",
        name="echo",
        picks=[{key: each[key] for key in ("kind", "name", "hash")} for each in shown],
    )
    return verb


@pytest.fixture
def path(talk):
    """The page of a conversation with nothing in it."""
    return f"/chat/{talk('chat.create', title='Trial')['id']}"


@pytest.fixture
def notes(tmp_path):
    return Notes(tmp_path)


@pytest.fixture
def added(visitor, notes):
    """A server called notes that runs, with nothing accepted."""
    answer = visitor.post("/servers/add", {"name": "notes", "line": notes.line, "answer": "start"})
    assert answer.status == 303, answer.text
    return notes


@pytest.fixture
def stranger(console):
    return Visitor(console)


@pytest.fixture
def visitor(console):
    return Visitor(console).sign_in()


@pytest.fixture
def call(project):
    def make(command="make x", *, tool="Bash", session="s1", arguments=None, **more):
        given = {"command": command} if arguments is None else arguments
        raw = {"tool": tool, "arguments": given, "project": project, "cwd": project, "session": session}
        return tool_call({**raw, "agent": "claude-code", "user": "ada", "door": "hooks", **more})

    return make


@pytest.fixture
def work(pipeline, call, project):
    """Calls that ran, in a session somebody knows."""
    switch(pipeline, "building", "ada", "terminal", project=project)
    met = Session(agent="claude-code", id="s1", project=project, started_at=pipeline.clock())
    pipeline.store.write(lambda tx: put_session(tx, met))

    def run(count=1, **given):
        found = []
        given = given or {"tool": "Read", "arguments": {"file_path": f"{project}/README.md"}}
        for _ in range(count):
            decided = pipeline.decide(call(**given))
            if decided.verdict.word == "allow":
                pipeline.finish(decided.entry, "success", output="fine", evidence="exit status")
            found.append(decided.entry)
        return found

    return run


class Waiter(threading.Thread):
    """Waits for an answer as a hook does."""

    def __init__(self, pipeline, entry, call):
        super().__init__(daemon=True)
        self.pipeline, self.entry, self.call = pipeline, entry, call
        self.ended = threading.Event()
        self.settled = None
        self.edited = None
        self.start()
        until(lambda: pipeline.broker.is_awaited(entry))

    def run(self):
        with self.pipeline.broker.awaiting(self.entry):
            while self.settled is None and not self.ended.is_set():
                self.settled = self.pipeline.broker.wait(self.entry, 0.2)
            self.edited = self.pipeline.broker.edited(self.entry)

    def answer(self):
        self.join(PATIENCE)
        assert self.settled is not None, "nobody answered"
        return self.settled


@pytest.fixture
def ask(pipeline, call):
    """Somebody asks about a call and waits for the answer."""
    switch(pipeline, "building", "ada", "terminal")
    waiters = []

    def make(command="make x", **given):
        wanted = call(command, **given)
        decided = pipeline.decide(wanted, asking=True, ask_reason="A person looks at this first.")
        assert decided.verdict.word == "ask", decided.verdict
        waiters.append(Waiter(pipeline, decided.entry, wanted))
        return waiters[-1]

    yield make
    for each in waiters:
        each.ended.set()
        each.join(PATIENCE)


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """One Chromium for all modules of a worker; the address where it is spoken to.

    Playwright's loop runs in the main thread for as long as it is in use, and a test with a loop of its own
    cannot run beside it. So every module connects anew, and the process stays.
    """
    if CHROMIUM is None:
        pytest.skip("NO BROWSER: install Debian's chromium to test the console")
    profile = tmp_path_factory.mktemp("chromium")
    given = ["--no-sandbox", "--remote-debugging-port=0", f"--user-data-dir={profile}", *SWITCHES]
    made = subprocess.Popen(
        [CHROMIUM, *given, "about:blank"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=os.environ | {"HOME": str(profile)},
    )
    try:
        said = profile / "DevToolsActivePort"
        port = until(lambda: said.exists() and said.read_text().split("\n")[0])
        yield f"http://127.0.0.1:{port}"
    finally:
        # Its helpers are in its group.
        os.killpg(made.pid, signal.SIGKILL)
        made.wait(PATIENCE)


@pytest.fixture(scope="module")
def browser(chromium):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        made = play.chromium.connect_over_cdp(chromium)
        yield made
        made.close()


@pytest.fixture
def open_tab(browser, console):
    contexts = []

    def make(context=None, path="/", **options):
        context = context or browser.new_context(**options)
        contexts.append(context)
        tab = context.new_page()
        tab.set_default_timeout(PATIENCE * 1000)
        tab.troubles = []
        tab.on("pageerror", lambda error: tab.troubles.append(str(error)))
        tab.on("console", lambda said: tab.troubles.append(said.text) if said.type == "error" else None)
        if path == "/":
            tab.goto(console.link())
        else:
            # Signed in already: two pages less for a browser to draw.
            visitor = Visitor(console).sign_in()
            name, _, value = visitor.cookie.partition("=")
            at = f"http://127.0.0.1:{console.port}"
            context.add_cookies([{"name": name, "value": value, "url": at}])
            tab.goto(at + visitor.place + path)
        tab.wait_for_selector("body[data-live]")
        tab.base = f"http://127.0.0.1:{console.port}{tab.evaluate('document.body.dataset.place')}"
        return tab

    yield make
    for context in contexts:
        context.close()
