"""Draws docs/images/demo.svg from a real run of `checkrein demo` in a terminal of its own: `make picture`."""

from __future__ import annotations

from capturing import draw, shown

draw("demo.svg", "checkrein demo", [shown(["demo", "--fast"])], 120)
