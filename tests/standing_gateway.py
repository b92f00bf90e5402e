"""A gateway as the verbs about servers see it: it runs nothing and remembers what was asked of it."""

import msgspec

from checkrein.authority import perform
from checkrein.settings.servers import read_servers

VALUE = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"


class Standing:
    """What it did is in `done`; its tools are what a test puts there."""

    def __init__(self):
        self.done, self.tools = [], []

    def servers(self):
        return [{"name": name, "state": "ready", "connections": 1} for name in read_servers().servers]

    def start(self, name):
        self.done.append(("start", name))

    def stop(self, name):
        self.done.append(("stop", name))

    def restart(self, name):
        self.done.append(("restart", name))

    def sign_in(self, name, actor):
        self.done.append(("sign_in", name, actor))
        return {"state": "waiting", "url": "https://accounts.example/"}

    def sign_in_state(self, name):
        return {"state": "waiting"}

    def sign_out(self, name):
        self.done.append(("sign_out", name))
        return {"forgot": True}

    def logs(self, name, count):
        return [f"token={VALUE}"] * count

    def test(self, spec):
        return {"info": {"name": spec.command}, "tools": []}

    def browse(self, name):
        return self.tools

    def review(self, name):
        return [{"server": name, "kind": "tool", "name": "t", "hash": "h", "state": "new"}]

    def accept(self, name, picks, actor):
        self.done.append(("accept", name, picks, actor))

    def refuse(self, name, picks, actor):
        self.done.append(("refuse", name, picks, actor))

    def reload(self):
        self.done.append(("reload",))
        return {"servers": len(read_servers().servers)}

    def clients(self):
        return []

    def revoke(self, owner):
        self.done.append(("revoke", owner))


def through(asked, gateway):
    """Performs a verb as a person at a terminal, where a server runs."""
    behind = msgspec.structs.replace(asked, gateway=lambda: gateway)
    return lambda name, /, **params: perform(behind, name, params)
