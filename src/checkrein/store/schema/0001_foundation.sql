-- The ledger: append-only, hash-chained. `body` is the canonical JSON the hash covers; the other columns
-- repeat parts of it so that an index can find a record, and verification compares them with it.
CREATE TABLE record (
    seq      BIGINT PRIMARY KEY,
    at       DOUBLE PRECISION NOT NULL,
    kind     TEXT NOT NULL,
    entry    TEXT NOT NULL,
    project  TEXT NOT NULL,
    session  TEXT NOT NULL,
    tool     TEXT NOT NULL,
    decision TEXT NOT NULL,
    body     TEXT NOT NULL,
    hash     TEXT NOT NULL
);
CREATE INDEX record_entry ON record (entry, seq) WHERE entry <> '';
CREATE INDEX record_decided_at ON record (at, seq) WHERE kind = 'decided';
CREATE INDEX record_decided_project ON record (project, seq) WHERE kind = 'decided';
CREATE INDEX record_decided_session ON record (session, seq) WHERE kind = 'decided';
CREATE INDEX record_decided_tool ON record (tool, seq) WHERE kind = 'decided';
CREATE INDEX record_decided_decision ON record (decision, seq) WHERE kind = 'decided';
CREATE INDEX record_other ON record (kind, seq) WHERE kind NOT IN ('decided', 'finished');

CREATE TABLE record_domain (
    domain TEXT NOT NULL,
    seq    BIGINT NOT NULL REFERENCES record (seq),
    PRIMARY KEY (domain, seq)
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
