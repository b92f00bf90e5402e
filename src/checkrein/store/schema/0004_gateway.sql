-- What servers say about themselves, word for word, and whether a person accepted it.
CREATE TABLE pin (
    server     TEXT NOT NULL,
    kind       TEXT NOT NULL,
    name       TEXT NOT NULL,
    hash       TEXT NOT NULL,
    definition TEXT NOT NULL,
    state      TEXT NOT NULL,
    seen_at    DOUBLE PRECISION NOT NULL,
    decided_at DOUBLE PRECISION,
    actor      TEXT NOT NULL,
    PRIMARY KEY (server, kind, name, hash)
);

-- Who may come in over HTTP. Only the hash of a token is kept; a revoked one stays for the record.
CREATE TABLE gateway_client (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    hash       TEXT NOT NULL,
    made_at    DOUBLE PRECISION NOT NULL,
    made_by    TEXT NOT NULL,
    revoked_at DOUBLE PRECISION,
    revoked_by TEXT NOT NULL
);

-- What was learned about a server while it ran: which requests it sends back to clients, which eras it speaks.
CREATE TABLE server_fact (
    server     TEXT NOT NULL,
    fact       TEXT NOT NULL,
    value      TEXT NOT NULL,
    learned_at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (server, fact)
);
