"""A process that decides and learns as fast as it can, telling each acknowledgement; made to be killed."""

import sys
import threading

from checkrein.call import tool_call
from checkrein.pipeline import Pipeline
from checkrein.settings.sources import state_dir
from checkrein.store.sqlite import SqliteStore

COMMANDS = ("ls", "git push", "make x", "pytest")


def main():
    pipeline = Pipeline(SqliteStore.open(state_dir()), state_dir())
    if pipeline.ledger.broken:
        sys.exit(f"broken: {pipeline.ledger.broken}")
    out = threading.Lock()

    def say(kind, entry):
        with out:
            sys.stdout.write(f"{kind} {entry}\n")
            sys.stdout.flush()

    def work(number):
        while True:
            command = COMMANDS[number % len(COMMANDS)]
            call = tool_call(
                {"tool": "Bash", "arguments": {"command": command}, "project": "/p", "session": "s"}
            )
            decided = pipeline.decide(call)
            if decided.verdict.stage == "record":
                sys.exit(f"unrecorded: {decided.verdict.reasons[0].text}")
            say(decided.verdict.word, decided.entry)
            if decided.verdict.word == "allow":
                pipeline.finish(decided.entry, "success")
                say("finished", decided.entry)
            number += 1

    for number in range(4):
        threading.Thread(target=work, args=(number,), daemon=True).start()
    threading.Event().wait()


main()
