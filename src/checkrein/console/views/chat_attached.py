"""What a person attaches to a message, as the form says it: files in base64, what servers offer."""

from __future__ import annotations

from typing import Any

from checkrein.console.forms import Fields
from checkrein.errors import InputError

MOST = 20


def attachments(form: Fields) -> list[dict[str, Any]]:
    """The attachments a script put into the form; what they hold is checked by the authority."""
    given = form.json("attachments")
    if given is None:
        return []
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise InputError("The attachments cannot be read.", remedy="Attach them again.")
    if len(given) > MOST:
        raise InputError(f"These are too many attachments; {MOST} go with one message.")
    return given
