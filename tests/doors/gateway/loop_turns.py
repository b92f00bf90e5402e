"""Events on a test's own loop: what is ready happens while the loop goes round, and takes no time."""

import asyncio


async def loop_turns(count=20):
    """Let the loop go round. Whatever was due, readable or writable on it has happened then."""
    for _ in range(count):
        await asyncio.sleep(0)
