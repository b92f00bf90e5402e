"""Names that look alike to a person or a model, brought to one spelling. Pure; the catalogue compares."""

from __future__ import annotations

import re
import unicodedata

from checkrein.doors.gateway.definitions import UNSEEN

_SEPARATORS = re.compile(r"[-_.\s:/\u2010-\u2015\u2212]+")
# Letters of other alphabets, and digits, that are drawn like the Latin letter beside them.
_DRAWN_LIKE = {
    "a": "аαɑ",
    "b": "ьβƅ",
    "c": "сϲ",
    "d": "ԁ",
    "e": "еєεҽ",
    "g": "ցɡ",
    "h": "һհ",
    "i": "1lіιıӏ|!ɩ",
    "j": "јϳ",
    "k": "кκ",
    "m": "м",
    "n": "пոη",
    "o": "0оοօσ",
    "p": "рρ",
    "q": "ԛ",
    "r": "г",
    "s": "ѕꜱ",
    "t": "тτ",
    "u": "υսц",
    "v": "νѵ",
    "w": "ԝωш",
    "x": "хχ",
    "y": "уγү",
    "z": "ᴢʐ",
}
_FOLD = str.maketrans({other: letter for letter, others in _DRAWN_LIKE.items() for other in others})


def skeleton(name: str) -> str:
    """What is left of a name when everything is taken away that an eye may miss."""
    # Folded before as well: taking a sign apart may turn it into one that is drawn otherwise.
    plain = unicodedata.normalize("NFKD", UNSEEN.sub("", name).casefold().translate(_FOLD)).casefold()
    letters = "".join(char for char in plain if unicodedata.category(char) not in ("Mn", "Me", "Cf"))
    return _SEPARATORS.sub("_", letters.translate(_FOLD)).replace("rn", "m").replace("vv", "w")
