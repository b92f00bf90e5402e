-- Programs that may use the HTTP API. Only the hash of a token is kept; a revoked one stays for the record.
CREATE TABLE api_token (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    hash       TEXT NOT NULL,
    may_change BIGINT NOT NULL,
    may_answer BIGINT NOT NULL,
    made_at    DOUBLE PRECISION NOT NULL,
    made_by    TEXT NOT NULL,
    used_at    DOUBLE PRECISION,
    revoked_at DOUBLE PRECISION,
    revoked_by TEXT NOT NULL
);
