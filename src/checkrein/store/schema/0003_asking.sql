-- Remembered answers. `body` says what they cover; one that is revoked stays for the record.
CREATE TABLE grants (
    id           TEXT PRIMARY KEY,
    what         TEXT NOT NULL,
    label        TEXT NOT NULL,
    project      TEXT NOT NULL,
    session      TEXT NOT NULL,
    server       TEXT,
    tool         TEXT NOT NULL,
    body         TEXT NOT NULL,
    until        DOUBLE PRECISION,
    uses         BIGINT,
    used         BIGINT NOT NULL,
    made_at      DOUBLE PRECISION NOT NULL,
    made_by      TEXT NOT NULL,
    channel      TEXT NOT NULL,
    entry        TEXT NOT NULL,
    last_used_at DOUBLE PRECISION,
    revoked_at   DOUBLE PRECISION,
    revoked_by   TEXT NOT NULL
);
CREATE INDEX grants_tool ON grants (tool, project);

-- One blocked critical call that may pass once.
CREATE TABLE release (
    entry      TEXT PRIMARY KEY,
    binding    TEXT NOT NULL,
    made_at    DOUBLE PRECISION NOT NULL,
    expires_at DOUBLE PRECISION NOT NULL,
    actor      TEXT NOT NULL,
    used_at    DOUBLE PRECISION
);
CREATE INDEX release_binding ON release (binding);
