"""What a person attaches to a message, as the form says it: files in base64, what servers offer."""

from __future__ import annotations

from typing import Any

from checkrein.console.forms import Fields
from checkrein.console.guard import LARGEST_UPLOAD
from checkrein.doors.chat.attachments import LARGEST, MOST_TOGETHER
from checkrein.errors import InputError

MOST = 20
# What a form carries of files, in whole megabytes: four letters for three bytes, and room for words.
CARRIED = ((LARGEST_UPLOAD - (1 << 20)) * 3 // 4) >> 20 << 20
# For the page, which says so before anything is sent: bytes, and the letters of a whole form.
LIMITS = {
    "largest": min(LARGEST, CARRIED),
    "together": min(MOST_TOGETHER, CARRIED),
    "imported": CARRIED,
    "letters": LARGEST_UPLOAD,
}


def attachments(form: Fields) -> list[dict[str, Any]]:
    """The attachments a script put into the form; what they hold is checked by the authority."""
    given = form.json("attachments")
    if given is None:
        return []
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise InputError("The attachments cannot be read.", remedy="Attach them again.")
    if len(given) > MOST:
        raise InputError(f"These are too many attachments; {MOST} go with one message.")
    return [_standard(each) for each in given]


def _standard(given: dict[str, Any]) -> dict[str, Any]:
    """A form has the letters of base64 that an address may have; others would be three letters each."""
    if not isinstance(data := given.get("data"), str):
        return given
    return {**given, "data": data.replace("-", "+").replace("_", "/")}
