-- Conversations. What was said is the person's own and is kept as it was said; what its calls came to is
-- in the ledger as well, and stays there when a conversation goes.
CREATE TABLE chat_session (
    number           INTEGER PRIMARY KEY,
    id               TEXT NOT NULL UNIQUE,
    -- `coming` and `going` ones are not there for anyone: an import, a deletion under way.
    presence         TEXT NOT NULL,
    title            TEXT NOT NULL,
    created_at       DOUBLE PRECISION NOT NULL,
    updated_at       DOUBLE PRECISION NOT NULL,
    last_message_at  DOUBLE PRECISION,
    archived_at      DOUBLE PRECISION,
    pinned_at        DOUBLE PRECISION,
    color            TEXT NOT NULL,
    provider         TEXT NOT NULL,
    model            TEXT NOT NULL,
    project          TEXT NOT NULL,
    system           TEXT NOT NULL,
    head             TEXT NOT NULL,
    message_count    BIGINT NOT NULL,
    tools_off        TEXT NOT NULL,
    threshold        DOUBLE PRECISION,
    retention_tokens BIGINT,
    auto_compress    BOOLEAN,
    tainted_by       TEXT NOT NULL,
    metadata         TEXT NOT NULL
);
CREATE INDEX chat_session_updated ON chat_session (updated_at);

-- A tree: `parent` is the message before, '' for a first one. `number` grows over all sessions and names the
-- message in the index of words.
CREATE TABLE chat_message (
    number        INTEGER PRIMARY KEY,
    id            TEXT NOT NULL UNIQUE,
    session       TEXT NOT NULL REFERENCES chat_session (id),
    sequence      BIGINT NOT NULL,
    parent        TEXT NOT NULL,
    role          TEXT NOT NULL,
    parts         TEXT NOT NULL,
    state         TEXT NOT NULL,
    deleted       BOOLEAN NOT NULL,
    summary       BOOLEAN NOT NULL,
    created_at    DOUBLE PRECISION NOT NULL,
    provider      TEXT NOT NULL,
    model         TEXT NOT NULL,
    input_tokens  BIGINT,
    output_tokens BIGINT,
    error         TEXT NOT NULL,
    run           TEXT NOT NULL,
    raw           TEXT NOT NULL
);
CREATE UNIQUE INDEX chat_message_sequence ON chat_message (session, sequence);

CREATE TABLE chat_snapshot (
    number     INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    session    TEXT NOT NULL REFERENCES chat_session (id),
    text       TEXT NOT NULL,
    cutoff     TEXT NOT NULL,
    tokens     BIGINT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    estimated  BOOLEAN NOT NULL,
    kind       TEXT NOT NULL
);
CREATE INDEX chat_snapshot_session ON chat_snapshot (session);

CREATE TABLE chat_run (
    number        INTEGER PRIMARY KEY,
    id            TEXT NOT NULL UNIQUE,
    session       TEXT NOT NULL REFERENCES chat_session (id),
    state         TEXT NOT NULL,
    holder        TEXT NOT NULL,
    user_message  TEXT NOT NULL,
    provider      TEXT NOT NULL,
    model         TEXT NOT NULL,
    persona       TEXT NOT NULL,
    routed        TEXT NOT NULL,
    rounds        BIGINT NOT NULL,
    input_tokens  BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    error         TEXT NOT NULL,
    created_at    DOUBLE PRECISION NOT NULL,
    ended_at      DOUBLE PRECISION
);
CREATE INDEX chat_run_session ON chat_run (session);
CREATE INDEX chat_run_state ON chat_run (state);

-- Every call of a run, from the moment the model made it.
CREATE TABLE chat_call (
    number       INTEGER PRIMARY KEY,
    run          TEXT NOT NULL,
    call_id      TEXT NOT NULL,
    session      TEXT NOT NULL REFERENCES chat_session (id),
    message      TEXT NOT NULL,
    name         TEXT NOT NULL,
    server       TEXT NOT NULL,
    tool         TEXT NOT NULL,
    arguments    TEXT NOT NULL,
    status       TEXT NOT NULL,
    definition   TEXT NOT NULL,
    entry        TEXT NOT NULL,
    verdict      TEXT NOT NULL,
    reason       TEXT NOT NULL,
    answered_by  TEXT NOT NULL,
    asked        BOOLEAN NOT NULL,
    edited       TEXT,
    output       TEXT NOT NULL,
    error        TEXT NOT NULL,
    created_at   DOUBLE PRECISION NOT NULL,
    started_at   DOUBLE PRECISION,
    completed_at DOUBLE PRECISION,
    UNIQUE (run, call_id)
);
CREATE INDEX chat_call_session ON chat_call (session);
CREATE INDEX chat_call_message ON chat_call (message);
CREATE INDEX chat_call_entry ON chat_call (entry);
