"""Servers of other programs' files and what would become of them, in a word each."""

from pathlib import Path

from checkrein.settings.import_sources import found_in
from checkrein.settings.server_imports import plan

VALUE = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"


def planned(document, path="/home/ada/x.json", existing=None, **more):
    return plan(
        found_in(document, Path(path)),
        existing or {},
        home="/home/ada",
        is_secret=lambda key, value: VALUE in value or "TOKEN" in key.upper(),
        **more,
    )


def one(raw, path="/home/ada/x.json", key="mcpServers", **document):
    (item,) = planned({key: {"s": raw}, **document}, path)
    return item
