"""Templates: everything put into a page is made visible, then escaped. No template can switch that off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup
from starlette.responses import HTMLResponse

from checkrein.console import shown

FOLDER = Path(__file__).parent
_NAMES = {
    "auto_approved": "ran",
    "logged_only": "ran, noted",
    "human_required": "asked",
    "blocked": "refused",
}
TODAY = {"auto_approved": "runs", "logged_only": "noted", "human_required": "asks", "blocked": "refused"}


def _seen(value: Any) -> Any:
    # INVARIANT: what an agent or a tool wrote reaches no page with characters that mislead its reader.
    if isinstance(value, Markup):
        return value
    return shown.visible(value) if isinstance(value, str) else value


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(FOLDER / "pages"),
        autoescape=True,
        finalize=_seen,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {
        "ago": shown.ago,
        "clock": shown.clock,
        "epoch": shown.epoch,
        "folder": shown.folder_name,
        "left": shown.left,
        "one_line": shown.one_line,
        "pretty": shown.pretty,
        "quoted": shown.quoted,
    }
    # Nothing may be declared harmless.
    del made.filters["safe"]
    made.globals |= {"danger_words": shown.DANGER, "red_words": shown.RED, "names": _NAMES, "today": TODAY}
    return made


_pages = _environment()


def render(name: str, **values: Any) -> str:
    return _pages.get_template(name).render(values)


def page(name: str, status: int = 200, **values: Any) -> HTMLResponse:
    return HTMLResponse(render(name, **values).encode("utf-8", "replace"), status)
