"""The examples of a page, run one after the other as one program."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[4] / "docs"


def page_of(name, **given):
    """What the examples define, beside what is given them."""
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / name).read_text(encoding="utf-8"), re.M | re.S)
    assert blocks
    found = dict(given)
    for each in blocks:
        exec(compile(each, name, "exec"), found)
    return found
