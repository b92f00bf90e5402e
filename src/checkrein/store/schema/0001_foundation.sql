-- The ledger: append-only, hash-chained. `body` is the canonical JSON the hash covers; `at`, `kind` and
-- `entry` repeat parts of it, and verification compares them.
CREATE TABLE record (
    seq   INTEGER PRIMARY KEY,
    at    DOUBLE PRECISION NOT NULL,
    kind  TEXT NOT NULL,
    entry TEXT NOT NULL,
    body  TEXT NOT NULL,
    hash  TEXT NOT NULL
);
CREATE INDEX record_entry ON record (entry, seq);

-- Where calls are found by what people remember of them: "project:/home/ada/shop", "decision:blocked".
-- Entry ids begin with their time, so one key answers "which, newest first, since when". Filed a little
-- after the record itself: the counter `filed` says how far.
CREATE TABLE lookup (
    term  TEXT NOT NULL,
    entry TEXT NOT NULL,
    PRIMARY KEY (term, entry)
);

CREATE TABLE checkpoint (
    seq       BIGINT PRIMARY KEY REFERENCES record (seq),
    body      TEXT NOT NULL,
    signature TEXT NOT NULL
);

CREATE TABLE trust (
    project          TEXT NOT NULL,
    domain           TEXT NOT NULL,
    score            DOUBLE PRECISION NOT NULL,
    successes        BIGINT NOT NULL,
    failures         BIGINT NOT NULL,
    total_operations BIGINT NOT NULL,
    last_operated_at DOUBLE PRECISION,
    is_warming_up    BOOLEAN NOT NULL,
    warmup_remaining BIGINT NOT NULL,
    PRIMARY KEY (project, domain)
);

CREATE TABLE rule (
    id         TEXT PRIMARY KEY,
    position   BIGINT NOT NULL,
    body       TEXT NOT NULL,
    uses       BIGINT CHECK (uses >= 0),
    created_at DOUBLE PRECISION NOT NULL,
    updated_at DOUBLE PRECISION NOT NULL
);

CREATE TABLE accepted_policy (
    path   TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    at     DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (path, sha256)
);

-- Counters that move with every change of what they name, so that caches know when to look again.
CREATE TABLE change (
    what   TEXT PRIMARY KEY,
    number BIGINT NOT NULL
);
