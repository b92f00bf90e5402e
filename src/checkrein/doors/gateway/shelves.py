"""What servers say about themselves, sorted: what can be used, by name, and what never can.

The catalogue keeps a shelf for each server, and one for what a client's own connection shows beyond that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from checkrein.doors.gateway.definitions import Definition, Kind, read

# Of one kind and one server; what goes beyond is not looked at.
MOST_DEFINITIONS = 2_000
MOST_BYTES = 16 << 20
Key = tuple[Kind, str]


class Shelf(msgspec.Struct):
    """Everything one server says about itself: usable by name, and what can never be offered."""

    usable: dict[Key, Definition]
    unusable: list[Definition]

    def __iter__(self) -> Iterator[Definition]:
        yield from sorted(self.usable.values(), key=lambda each: (each.kind, each.name))
        yield from self.unusable

    def beyond(self, other: Shelf) -> Shelf:
        """What of it has a name that the other does not know."""
        known = {*other.usable, *((each.kind, each.name) for each in other.unusable)}
        return Shelf(
            {key: each for key, each in self.usable.items() if key not in known},
            [each for each in self.unusable if (each.kind, each.name) not in known],
        )


def shelved(server: str, tools: Any, prompts: Any = None, instructions: Any = None) -> Shelf:
    """A server's raw lists; never raises, whatever they hold."""
    found = [*_read_all(server, "tool", tools), *_read_all(server, "prompt", prompts)]
    if isinstance(instructions, str) and instructions:
        found.append(read(server, "instructions", instructions))
    counts = Counter((each.kind, each.name) for each in found if not each.fault)
    usable: dict[Key, Definition] = {}
    unusable: list[Definition] = []
    for each in found:
        if each.fault:
            unusable.append(each)
        elif counts[each.kind, each.name] > 1:
            unusable.append(msgspec.structs.replace(each, fault="Its server has several of this name."))
        else:
            usable[each.kind, each.name] = each
    return Shelf(usable, unusable)


def _read_all(server: str, kind: Kind, raw: Any) -> Iterator[Definition]:
    items, room = raw if isinstance(raw, list) else [], MOST_BYTES
    for item in items[:MOST_DEFINITIONS]:
        each = read(server, kind, item)
        room -= len(each.text)
        yield each
        if room < 0:
            return


class OwnShelves:
    """By client and server: what only that client's own connection shows."""

    def __init__(self) -> None:
        self._by_client: dict[str, dict[str, Shelf]] = {}

    def __contains__(self, key: tuple[str, str]) -> bool:
        client, server = key
        return server in self._by_client.get(client, {})

    def put(self, client: str, server: str, shelf: Shelf) -> bool:
        """Whether it is another one now."""
        mine = self._by_client.setdefault(client, {})
        before, mine[server] = mine.get(server), shelf
        return shelf != (before or Shelf({}, []))

    def forget(self, client: str) -> None:
        self._by_client.pop(client, None)

    def withdraw(self, server: str) -> None:
        for mine in self._by_client.values():
            mine.pop(server, None)

    def clients(self) -> list[str]:
        return list(self._by_client)

    def of_client(self, client: str, shared: dict[str, Shelf]) -> list[Definition]:
        """All of it that the shared shelves do not know; nothing of servers that are away."""
        mine = self._by_client.get(client, {}).items()
        return [each for server, shelf in mine if server in shared for each in shelf.beyond(shared[server])]

    def of_server(self, server: str, shared: dict[str, Shelf]) -> list[Definition]:
        """Each version once, whoever's connections show it."""
        if server not in shared:
            return []
        found: dict[tuple[str, str, str], Definition] = {}
        for mine in self._by_client.values():
            if server in mine:
                for each in mine[server].beyond(shared[server]):
                    found.setdefault((each.kind, each.name, each.hash), each)
        return sorted(found.values(), key=lambda each: (each.kind, each.name, each.hash))
