"""Numbers the page about scripts promises are the ones that hold."""

import re
from pathlib import Path

from checkrein.doors.gateway.scripts.desk import MOST_LIVE
from checkrein.execute.sandbox import Limits

PAGE = (Path(__file__).parents[4] / "docs" / "eval.md").read_text(encoding="utf-8")


def promised(limit):
    (found,) = re.findall(rf"^\| {limit} \| [^|]*\| (\d+)", PAGE, re.MULTILINE)
    return int(found)


def test_limits_nobody_can_set_are_said_as_they_are():
    assert promised("runs of one client at once") == MOST_LIVE
    assert promised("script") == Limits().source >> 10
