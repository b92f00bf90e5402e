"""A chat in memory, for tests of whoever asks one: it says what it was asked, and tells what it is given."""

import threading

import msgspec

from checkrein.errors import NotFoundError


class Told(msgspec.Struct, frozen=True):
    id: str
    kind: str
    session: str
    run: str = ""
    data: dict = {}


class Following:
    def __init__(self, talker, session, seen, tell):
        self.talker, self.session, self.seen, self.tell = talker, session, seen, tell
        self.closed = False

    def take(self):
        found = self.talker.told[self.session][self.seen :]
        self.seen += len(found)
        return found

    def close(self):
        self.closed = True


class Talker:
    """Answers every request with what it was asked, except where its asker needs more than that."""

    def __init__(self):
        self.asked, self.told, self.lines = [], {"s1": []}, []
        self.news = threading.Condition()

    def __getattr__(self, name):
        def do(**given):
            self.asked.append((name, given))
            if (given.get("session", given.get("id")) or "s1") not in self.told:
                raise NotFoundError("There is no such session.", remedy="See the list.")
            return {"did": name, **msgspec.to_builtins(given)}

        return do

    def tell(self, kind, session="s1", run="r1", **data):
        with self.news:
            events = self.told[session]
            events.append(Told(f"e-{len(events) + 1}", kind, session, run, data))
            self.news.notify_all()
        for line in self.lines:
            line.tell()

    def session(self, *, id, before, limit):
        self.asked.append(("session", {"id": id, "before": before, "limit": limit}))
        if id not in self.told:
            raise NotFoundError("There is no such session.", remedy="See the list.")
        return {"session": {"id": id, "title": "One"}, "messages": [], "last": f"e-{len(self.told[id])}"}

    def events(self, *, session, after, wait):
        self.asked.append(("events", {"session": session, "after": after, "wait": wait}))
        if session not in self.told:
            raise NotFoundError("There is no such session.")
        told = self.told[session]
        seen = int(after.partition("-")[2]) if after else len(told)
        with self.news:
            self.news.wait_for(lambda: len(told) > seen, wait)
            found = [msgspec.to_builtins(each) for each in told[seen:]]
        return {"events": found, "last": f"e-{len(told)}"}

    def export(self, *, id, form):
        return {"text": f"# {id}\n", "name": "One.md" if form == "markdown" else "One.json"}

    def subscribe(self, session, after, tell):
        if session not in self.told:
            raise NotFoundError("There is no such session.")
        seen = int(after.partition("-")[2]) if after else len(self.told[session])
        self.lines.append(Following(self, session, seen, tell))
        tell()
        return self.lines[-1]
