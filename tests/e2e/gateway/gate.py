"""A house with the gateway in it: servers a person added and accepted, and clients they let in."""

import contextlib
import json
import sys
from urllib.parse import urlsplit

from e2e.clients.house import House
from patience import until

_VERB = (
    "import json, sys; from checkrein import knocking;"
    "print(json.dumps(knocking.ask(knocking.start(), sys.argv[1], json.loads(sys.argv[2]))))"
)


class Gate(House):
    def __init__(self, settings="", **extra):
        super().__init__(**extra)
        self.settings(settings)
        self._servers = {}

    def verb(self, verb, /, **params):
        """Ask the one authority, as a person's command line does."""
        return json.loads(self.run(sys.executable, "-c", _VERB, verb, json.dumps(params)).stdout)

    def add(self, name, words, *, allow=True, accept=True, **spec):
        """A server the person wrote into their file, looked through and let its tools be used."""
        self._servers[name] = {"command": words[0], "args": list(words[1:]), **spec}
        path = self.home / ".config" / "checkrein" / "servers.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"mcpServers": self._servers}))
        path.chmod(0o600)
        self.verb("upstream.reload")
        if accept:
            self.accept(name)
        if allow:
            self.checkrein("rules", "add", "allow", "--server", name, "--pattern", "*")

    def accept(self, name):
        """Everything the server offers, exactly as it is shown now."""
        shown = until(lambda: self.verb("upstream.review", name=name))
        picks = [{key: each[key] for key in ("kind", "name", "hash")} for each in shown]
        self.verb("upstream.accept", name=name, picks=picks)

    def client(self, name="suite"):
        """(port, token) for a client that comes over HTTP."""
        made = self.verb("client.add", name=name)
        return urlsplit(made["url"]).port, made["token"]

    @contextlib.contextmanager
    def entered(self):
        try:
            yield self
        finally:
            self.leave()
