"""What every door's driver offers the cases, and the words a caller hears, whichever door it is behind."""

import threading

from checkrein.errors import CheckreinError
from patience import PATIENCE

SERVER, TOOL = "srv", "put"
# Parts of what callers are told, in the order in which they are looked for.
_SAID = (
    ("was used before", "used"),
    ("waits for a person's yes", "pending"),
    ("nobody can be reached", "unreachable"),
    ("obody answered in time", "expired"),
    ("A person refused this call", "denied"),
    ("said no to", "denied"),
    ("question about this call was withdrawn", "cancelled"),
    ("question was taken back", "cancelled"),
    ("stopped waiting", "cancelled"),
    ("Stopped before it ran", "cancelled"),
    ("answers for the tool", "answered"),
    ("whether the call took effect is unknown", "unknown"),
    ("Whether the call took effect is unknown", "unknown"),
    ("reason:elicitation_declined", "denied"),
    ("reason:elicitation_unsupported", "unreachable"),
    ("reason:expired", "expired"),
    ("reason:", "dropped"),
    ("The call could not be made:", "broken"),
    ("Checkrein refused this call", "dropped"),
    ("has no parameter", "dropped"),
    ("There is no tool", "dropped"),
    ("does not fit", "dropped"),
    ("do not fit", "dropped"),
    ("It was not called:", "dropped"),
    ("Refused.", "dropped"),
    ("cannot be used", "dropped"),
    ("was not called, so nothing ran", "dropped"),
)


def word_of(text):
    """What a caller heard, in the suite's vocabulary."""
    found = next((word for part, word in _SAID if part in text), None)
    assert found is not None, f"no word for: {text}"
    if found == "used" and "is unknown" in text:
        return "unknown"
    return found


class Cannot(Exception):  # noqa: N818 - says what is so, not what went wrong
    """Raise where something cannot exist at a door; the message says why."""


class Caller:
    """One call under way: its result comes later, in a thread of its own."""

    def __init__(self, arguments):
        self.arguments, self.said = arguments, ""
        self._thread, self._word, self._error = None, None, None

    def start(self, work):
        """Have `work(caller)` make the call; what it returns is what was heard."""
        self._word = self._error = None

        def run():
            try:
                self._word = work(self)
            except CheckreinError as error:
                self._word, self.said = "broken", str(error)
            except BaseException as error:
                self._error = error

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()
        return self

    @property
    def done(self):
        return self._thread is not None and not self._thread.is_alive()

    def heard(self):
        """What the caller heard; `broken` where its server died under it."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "the caller still waits"
        if self._error is not None:
            raise self._error
        return self._word

    def told(self, text):
        self.said = text
        return word_of(text)


class Driver:
    """One door."""

    name = ""
    # What every settings file of this door holds.
    settings = ""
    # Whether a call is asked about for itself, also where another is the same.
    asks_each = False

    def __init__(self, world):
        self.world = world

    def open(self):
        """Open the door over `world.pipeline`; a driver may open the store itself."""
        raise NotImplementedError

    def call(self, arguments, *, keeps=False):
        """Start a call. `keeps`: its caller can go on with it later, also after a restart."""
        raise NotImplementedError

    def put_away(self, arguments):
        """A call that is asked about, and whose caller is away for now."""
        raise NotImplementedError

    def answer(self, entry, word, **more):
        """What a person says through another channel."""
        return self.world.pipeline.answer(entry, word, **more)

    def keep(self, scene):
        """A call that is asked about, and whose caller can be given other arguments later."""
        return scene.put_away()

    def unheard(self, scene, word, **more):
        """A call that is answered before its caller hears of it."""
        caller = scene.put_away()
        scene.answer(word, **more)
        return caller

    def same_session(self, caller, arguments=None):
        """Another call in the session of this one; the same call where no arguments are given."""
        return self.call(caller.arguments if arguments is None else arguments)

    def cancellable(self, arguments):
        """A call that its agent can take back while it waits."""
        return self.call(arguments)

    def replay(self, caller):
        """The very same request once more."""
        return self.same_session(caller)

    def needs_schema(self):
        """Only where the door knows which arguments fit a tool."""

    def needs_claim(self):
        """Only where the door takes an approval for the run it makes itself."""

    def needs_return(self):
        """Only where a caller can come back for an answer it has heard."""

    def nobody(self):
        """No person can be asked from now on."""
        self.world.pipeline.broker.reach(None)

    def define(self, description, *, accept=False):
        """The tool is described otherwise (None: it is gone); `accept`: a person accepted that."""
        raise Cannot("callers bring no definition of the tool")

    def switch_phase(self, phase):
        """A person switches the phase the door's calls are judged in."""
        raise Cannot("every call is judged in the building phase")

    def needs_project(self):
        """Only where the door's calls belong to a project's folder."""

    def refuse_in_profile(self):
        """The profile of the call refuses the tool from now on."""
        raise Cannot("calls belong to no profile")

    def back(self, caller):
        """The caller comes back for its answer, as this door's callers do."""
        raise NotImplementedError

    def cancel(self, caller):
        """The agent takes the call back."""
        raise NotImplementedError

    def leave(self, caller):
        """The client ends."""
        raise NotImplementedError

    def killed(self):
        """The server was killed: let go of what is left of this door. The store is dead already."""
        raise NotImplementedError

    def close(self):
        """The server ends as it should; the pipeline stays open."""
        raise NotImplementedError
