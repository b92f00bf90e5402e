"""What the gateway offers: the definitions a person accepted, as they are now, and nothing else.

The hub teaches it what servers say and lists from it; calls look tools up. It never asks a server itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from checkrein.doors.gateway.definitions import (
    KINDS,
    LONGEST_OFFERED,
    Definition,
    diff,
    legible,
    shown,
)
from checkrein.doors.gateway.lookalikes import skeleton
from checkrein.doors.gateway.mentions import by_word, flags, telling
from checkrein.doors.gateway.messages import Message
from checkrein.doors.gateway.pins import Pins, Word
from checkrein.doors.gateway.schemas import Validator, compile_schema
from checkrein.doors.gateway.shelves import Key, OwnShelves, Shelf, shelved
from checkrein.errors import InputError
from checkrein.ledger.record import Ledger
from checkrein.store import Store

# How long all schemas of a review may take to compile.
REVIEW_SECONDS = 1.0
# Compiled schemas kept for servers that are away.
KEPT = 1_000
_REVIEW = "Review it with `checkrein servers review`."
_HIDDEN = {
    "new": "Nobody has accepted it yet.",
    "changed": "It changed since a person decided about it.",
    "refused": "A person refused it.",
    "unreadable": "What is kept about it cannot be read.",
}
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_APART = "Only clients whose own connection to its server shows it are offered it."
_Holders = dict[Key, Definition]


class Offered(msgspec.Struct, frozen=True):
    """A tool that can be called now, under the name clients know it by."""

    server: str
    tool: str
    name: str
    definition: Message
    hash: str
    annotations: Message
    input: Validator
    _stated: Message = {}
    _pinned: Message = {}

    def __post_init__(self) -> None:
        # INVARIANT: what a server says of its tools never says that it is trusted.
        stated = {name: self.annotations[name] for name in _HINTS if name in self.annotations}
        msgspec.structs.force_setattr(self, "_stated", stated)
        msgspec.structs.force_setattr(self, "_pinned", {**stated, "pinned": True})

    def hints(self, trusted: bool) -> Message:
        """What its calls are judged with. `trusted`: whether a person vouches for its server."""
        return self._pinned if trusted else self._stated


class _View(msgspec.Struct):
    """What is offered at one moment."""

    tools: dict[str, Offered] = {}
    listed: list[Message] = []
    prompts: dict[str, tuple[str, str]] = {}
    listed_prompts: list[Message] = []
    instructions: str = ""
    hidden: dict[str, str] = {}
    marks: dict[str, object] = {}


class Catalogue:
    """All servers' definitions; runs on the gateway's own thread."""

    def __init__(self, store: Store, ledger: Ledger, clock: Callable[[], float]) -> None:
        self._pins = Pins(store, ledger, clock)
        self._shelves: dict[str, Shelf] = {}
        self._own = OwnShelves()
        self._validators: dict[str, Validator | str] = {}
        self._view = _View(marks=_marks(_View()))
        # What single clients are offered beside that, and those for whom it changed.
        self._apart: dict[str, _View] = {}
        self._changed_for: set[str] = set()
        self._held: _Holders = {}

    def learn(self, server: str, *, tools: Any, prompts: Any, instructions: Any) -> frozenset[str]:
        """Take in a server's raw lists; what visibly changed. Never raises, whatever the lists hold."""
        shelf = shelved(server, tools, prompts, instructions)
        known = self._shelves.get(server)
        if known == shelf and self._pins.is_read(server):
            return frozenset()
        if not self._pins.is_read(server):
            self._pins.load(server)
        self._pins.see(server, list(shelf.usable.values()))
        self._shelves[server] = shelf
        return self._arrange()

    def learn_own(self, server: str, client: str, *, tools: Any) -> None:
        """Take in the tools a client's own connection shows; those everybody has are not its own."""
        if (shared := self._shelves.get(server)) is None:
            # What everybody has is not known yet; it is read again when it is.
            return
        found = shelved(server, tools).beyond(shared)
        if self._own.put(client, server, found):
            self._pins.see(server, list(found.usable.values()))
            self._arrange_apart(client)

    def knows_own(self, server: str, client: str) -> bool:
        return (client, server) in self._own

    def forget_client(self, client: str) -> None:
        """A client left: what was its own is nobody's."""
        self._own.forget(client)
        self._apart.pop(client, None)
        self._changed_for.discard(client)

    def changed_for(self) -> set[str]:
        """Clients whose own tools visibly changed since this was asked last."""
        found, self._changed_for = self._changed_for, set()
        return found

    def withdraw(self, server: str) -> frozenset[str]:
        """The server stopped or is gone: nothing of it is offered."""
        self._own.withdraw(server)
        if self._shelves.pop(server, None) is None:
            return frozenset()
        return self._arrange()

    def tools(self) -> list[Message]:
        """As offered, in the order of their names; not to be changed by whoever reads it."""
        return self._view.listed

    def own_tools(self, client: str) -> list[Message]:
        """What this client is offered beside them."""
        found = self._apart.get(client)
        return found.listed if found is not None else []

    def prompts(self) -> list[Message]:
        return self._view.listed_prompts

    def instructions(self) -> str:
        return self._view.instructions

    def tool(self, name: str, client: str = "") -> Offered | None:
        """As everybody is offered it, or only this client."""
        # INVARIANT: what only one client's own connection shows is offered to nobody else.
        own = self._apart.get(client)
        return self._view.tools.get(name) or (own.tools.get(name) if own is not None else None)

    def prompt(self, name: str) -> tuple[str, str] | None:
        return self._view.prompts.get(name)

    def hidden(self, name: str, client: str = "") -> str:
        """Why this tool or prompt cannot be used although a server has it; empty when none has."""
        found = self._view.hidden.get(name, "")
        if not found and client:
            own = self._apart.get(client)
            return own.hidden.get(name, "") if own is not None else ""
        # Who asks for no client is no client.
        return found or (_APART if any(name in each.tools for each in self._apart.values()) else "")

    def review(self, server: str | None = None) -> list[dict[str, Any]]:
        """Everything servers say about themselves, for a person's eyes."""
        return list(self.reviewing(server))

    def reviewing(self, server: str | None = None) -> Iterator[dict[str, Any]]:
        """The same one by one, for who has something else to do in between."""
        holders, until = self._holders(self._everything()), time.monotonic() + REVIEW_SECONDS
        for name in sorted(self._shelves):
            if server in (None, name):
                others = self._others(name)
                for each in [*self._all_of(name)]:
                    yield self._reviewed(each, holders, others, until)
                own = self._own.of_server(name, self._shelves)
                for each in own:
                    row = self._reviewed(each, {**self._holders(own), **holders}, others, until)
                    yield {**row, "flags": [_APART, *row["flags"]]}

    def counts(self, server: str) -> dict[str, int]:
        """How many tools of a server are offered, and how many are hidden."""
        own = {
            (each.name, each.hash)
            for view in self._apart.values()
            for each in view.tools.values()
            if each.server == server
        }
        offered = sum(each.server == server for each in self._view.tools.values()) + len(own)
        every = [*self._all_of(server), *self._own.of_server(server, self._shelves)]
        known = sum(each.kind == "tool" for each in every)
        return {"offered": offered, "hidden": max(0, known - offered)}

    def accept(self, server: str, picks: Any, actor: str) -> frozenset[str]:
        """A person accepts exactly these versions, all or none of them; what visibly changed."""
        chosen = [self._live(server, pick) for pick in _picks(picks)]
        # Said again it changes nothing: who was accepted first stays first.
        fresh = [each for each in chosen if self._pins.state(each) != "accepted"]
        return self._decide(server, fresh, "accepted", actor)

    def refuse(self, server: str, picks: Any, actor: str) -> frozenset[str]:
        """A person refuses exactly these versions, also ones accepted before or not shown any more."""
        return self._decide(server, [self._seen(server, pick) for pick in _picks(picks)], "refused", actor)

    def _decide(self, server: str, chosen: list[Definition], word: Word, actor: str) -> frozenset[str]:
        if not chosen:
            return frozenset()
        self._pins.decide(server, chosen, word, actor)
        return self._arrange()

    def _live(self, server: str, pick: dict[str, str]) -> Definition:
        found = self._found(server, pick)
        label = legible(f"{pick['kind']} {pick['name']} of {server}", 200)
        if found is None:
            raise InputError(f"There is no usable {label} now.", remedy=_REVIEW)
        # INVARIANT: what is accepted is what was shown; a version that came later is not.
        if found.hash != pick["hash"]:
            raise InputError(f"The {label} changed since it was shown; nothing was accepted.", remedy=_REVIEW)
        if fault := self._fault(found):
            raise InputError(f"The {label} cannot be used: {fault}", remedy="Its server has to mend it.")
        return found

    def _found(self, server: str, pick: dict[str, str]) -> Definition | None:
        shelf = self._shelves.get(server)
        kind = next((each for each in KINDS if each == pick["kind"]), None)
        if shelf is None or kind is None:
            return None
        if (found := shelf.usable.get((kind, pick["name"]))) is not None:
            return found
        own = [
            each
            for each in self._own.of_server(server, self._shelves)
            if (each.kind, each.name, each.fault) == (kind, pick["name"], "")
        ]
        # Of several versions the one that was shown; else any, so that it is said that it changed.
        return next((each for each in own if each.hash == pick["hash"]), own[0] if own else None)

    def _seen(self, server: str, pick: dict[str, str]) -> Definition:
        found = self._found(server, pick)
        if found is not None and found.hash == pick["hash"]:
            return found
        kept = self._pins.kept(server, pick["kind"], pick["name"], pick["hash"])
        if kept is None:
            label = legible(f"{pick['kind']} {pick['name']} of {server}", 200)
            raise InputError(f"No such version of the {label} was ever seen.", remedy=_REVIEW)
        return kept

    def _fault(self, definition: Definition) -> str:
        """Why it can never be offered as it is; a schema is compiled only when that matters."""
        if definition.fault or definition.kind != "tool":
            return definition.fault
        found = self._validator(definition)
        return found if isinstance(found, str) else ""

    def _validator(self, definition: Definition) -> Validator | str:
        found = self._validators.get(definition.hash)
        if found is None:
            try:
                found = compile_schema(definition.value.get("inputSchema"))
            except InputError as error:
                found = error.message
            # What nobody accepted keeps no memory: it is compiled again when somebody does.
            if isinstance(found, str) or self._pins.state(definition) == "accepted":
                self._validators[definition.hash] = found
        return found

    def _everything(self) -> list[Definition]:
        return [each for shelf in self._shelves.values() for each in shelf.usable.values()]

    def _arrange(self) -> frozenset[str]:
        """Work out anew what is offered; the kinds of things that visibly changed."""
        before = self._view.marks
        everything = self._everything()
        own = {client: self._own.of_client(client, self._shelves) for client in self._own.clients()}
        self._forget([*everything, *(each for mine in own.values() for each in mine)])
        self._held = self._holders(everything)
        unusable = (each for shelf in self._shelves.values() for each in shelf.unusable)
        self._view = self._viewed([*everything, *unusable], self._held)
        for client in {*own, *self._apart}:
            self._arrange_apart(client)
        return frozenset(what for what, mark in self._view.marks.items() if mark != before[what])

    def _arrange_apart(self, client: str) -> None:
        """Work out anew what only this client is offered."""
        mine = self._own.of_client(client, self._shelves)
        # What everybody has keeps its name, whenever the client's own was accepted.
        view = self._viewed(mine, {**self._holders(each for each in mine if not each.fault), **self._held})
        before = self._apart.pop(client, None)
        if mine:
            self._apart[client] = view
        if view.marks["tools"] != (before.marks["tools"] if before is not None else []):
            self._changed_for.add(client)

    def _viewed(self, definitions: list[Definition], holders: _Holders) -> _View:
        view = _View()
        usable = [each for each in definitions if not each.fault]
        for each in sorted(usable, key=lambda each: (each.offered, each.server)):
            why = self._why_hidden(each, holders)
            if not why:
                self._show(view, each)
            elif each.kind != "instructions":
                view.hidden.setdefault(each.offered, why)
        for each in definitions:
            if each.fault:
                view.hidden.setdefault(each.offered[:LONGEST_OFFERED], each.fault)
        for name in (*view.tools, *view.prompts):
            view.hidden.pop(name, None)
        view.marks = _marks(view)
        return view

    def _forget(self, everything: list[Definition]) -> None:
        """Let go of schemas nobody has now; a server that only starts again finds its own still there."""
        if len(self._validators) > KEPT + len(everything):
            live = {each.hash for each in everything}
            self._validators = {key: kept for key, kept in self._validators.items() if key in live}

    def _show(self, view: _View, each: Definition) -> None:
        value = each.value
        if each.kind == "instructions":
            part = f"# {each.server}\n\n{value}"
            view.instructions = f"{view.instructions}\n\n{part}" if view.instructions else part
            return
        listed = {**value, "name": each.offered}
        if each.kind == "prompt":
            view.prompts[each.offered] = (each.server, each.name)
            view.listed_prompts.append(listed)
            return
        validator, annotations = self._validator(each), value.get("annotations")
        assert isinstance(validator, Validator)  # noqa: S101 - what has none is hidden
        view.tools[each.offered] = Offered(
            each.server,
            each.name,
            each.offered,
            listed,
            each.hash,
            annotations if isinstance(annotations, dict) else {},
            validator,
        )
        view.listed.append(listed)

    def _holders(self, everything: Iterable[Definition]) -> _Holders:
        """Of names that look alike, the one a person accepted first; names nobody accepted hold nothing."""
        first: dict[Key, tuple[float, str, str]] = {}
        found: _Holders = {}
        for each in everything:
            at = self._pins.first_accepted(each)
            if at is None or each.kind == "instructions":
                continue
            key, rank = (each.kind, skeleton(each.offered)), (at, each.server, each.name)
            if key not in first or rank < first[key]:
                first[key], found[key] = rank, each
        return found

    def _why_hidden(self, each: Definition, holders: _Holders) -> str:
        # INVARIANT: what nobody accepted in exactly this version is never offered.
        state = self._pins.state(each)
        if state != "accepted":
            return _HIDDEN[state]
        if fault := self._fault(each):
            return fault
        holder = holders.get((each.kind, skeleton(each.offered)))
        # INVARIANT: no two names that look alike are offered at once.
        if holder is not None and (holder.server, holder.name) != (each.server, each.name):
            return f"Its name looks like {legible(holder.offered, 160)}, which was accepted first."
        return ""

    def _all_of(self, server: str) -> Iterator[Definition]:
        # Nothing is known of one that is stopped, or was not there yet.
        if (shelf := self._shelves.get(server)) is not None:
            yield from shelf

    def _reviewed(
        self, each: Definition, holders: _Holders, others: dict[str, str], until: float
    ) -> dict[str, Any]:
        # A schema made to take long is looked at when somebody accepts it.
        fault = self._fault(each) if time.monotonic() < until else each.fault
        state = "unusable" if fault else self._pins.state(each)
        before = self._pins.before(each) if state == "changed" else None
        return {
            "server": each.server,
            "kind": each.kind,
            "name": legible(each.name, 96),
            "state": state,
            "hash": each.hash,
            "diff": diff(before.definition, each.text) if before else [],
            "flags": flags(each, others),
            "shown": shown(each.text),
            "hidden": fault or self._why_hidden(each, holders),
        }

    def _others(self, server: str) -> dict[str, str]:
        """Names that belong to other servers: their own and those of their tools."""
        names: set[str] = set()
        for other, shelf in self._shelves.items():
            if other != server:
                tools = [name for kind, name in shelf.usable if kind == "tool"]
                names |= {other, *telling(tools), *(f"{other}__{tool}" for tool in tools)}
        return by_word(names)


def _picks(picks: Any) -> list[dict[str, str]]:
    try:
        return [
            {key: msgspec.convert(pick[key], str) for key in ("kind", "name", "hash")}
            for pick in msgspec.convert(picks, list[dict[str, Any]])
        ]
    except (msgspec.ValidationError, KeyError):
        raise InputError("Each choice needs a kind, a name and a hash.", remedy=_REVIEW) from None


def _marks(view: _View) -> dict[str, object]:
    return {
        "tools": [(each.name, each.hash) for each in view.tools.values()],
        "prompts": view.listed_prompts,
        "instructions": view.instructions,
    }
