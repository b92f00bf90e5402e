"""Health and settings: the server, the record, the mirror, where hooks are installed, what is in force."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from checkrein.console import choices
from checkrein.console.visits import Visit
from checkrein.errors import InputError
from checkrein.ledger.entries import body_of_row
from checkrein.settings import SECTIONS, Settings, keys_of
from checkrein.settings.sources import user_file
from checkrein.store import Reader, records

_DEFAULTS = Settings()
_LOOK_BACK, _MOST_REFUSED = 20_000, 8


def show(visit: Visit) -> Response:
    """Everything at a glance."""
    project = visit.query.text("project")
    pipeline = visit.desk.pipeline
    loaded = pipeline.policies.loaded(project)
    head, signed = records.head(visit.desk.store), records.last_checkpoint(visit.desk.store)
    return visit.page(
        "health.html",
        about=visit.desk.ask("server.about"),
        records=head[0] if head else 0,
        signed=signed[0] if signed else 0,
        check=visit.desk.check,
        installed=visit.desk.ask("installation.list"),
        project=project,
        projects=choices.projects(visit.desk.store),
        fault=loaded.fault,
        notices=loaded.notices,
        settings=in_force(loaded.settings),
        file=str(user_file()),
        passphrase=visit.desk.offered("passphrase.state"),
        failures=list(visit.desk.failures),
        refused=_refused(visit.desk.store, head[0] if head else 0),
    )


def _refused(reader: Reader, head: int) -> list[dict[str, Any]]:
    """What somebody tried lately that only a person may do, newest first."""
    sql = (
        f"SELECT {records.COLUMNS} FROM record "  # noqa: S608
        "WHERE seq > ? AND kind = 'request_refused' ORDER BY seq DESC LIMIT ?"
    )
    rows = reader.query(sql, (head - _LOOK_BACK, _MOST_REFUSED))
    return [{"at": row[1], **body_of_row(row)["data"]} for row in rows]


def in_force(settings: Settings) -> list[dict[str, Any]]:
    """Every single setting with its meaning, and whether somebody changed it."""
    found = []
    for section, struct in SECTIONS.items():
        for name, (_, key) in keys_of(struct).items():
            value = getattr(getattr(settings, section), name)
            default = getattr(getattr(_DEFAULTS, section), name)
            written = value if isinstance(value, str) else msgspec.json.encode(value).decode()
            if value and getattr(key, "secret", False):
                written = f"{1 if isinstance(value, str) else len(value)} set, not shown here"
            found.append(
                {"key": f"{section}.{name}", "value": written, "doc": key.doc, "changed": value != default}
            )
    return found


def verify(visit: Visit) -> Response:
    """Check the whole record, beside the work."""
    begun = visit.desk.check.start()
    return visit.back("/health", "Checking the whole record." if begun else "A check is under way already.")


def passphrase(visit: Visit) -> Response:
    """Set or change the passphrase asked for at sign-in and at release."""
    new = visit.form.text("new")
    if not new or new != visit.form.text("again"):
        raise InputError("Write the new passphrase twice, the same both times.")
    said = {"new": new} | ({"old": visit.form.text("old")} if visit.form.text("old") else {})
    visit.desk.ask("passphrase.set", **said)
    return visit.back("/health", "The passphrase is set.")
