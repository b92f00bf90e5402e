-- Scripts: who runs what, how far it got. What a script says, holds and returns is sealed: nothing of it can
-- be read or changed here.
CREATE TABLE run (
    id         TEXT PRIMARY KEY,
    owner      TEXT NOT NULL,
    session    TEXT NOT NULL,
    agent      TEXT NOT NULL,
    project    TEXT NOT NULL,
    profile    TEXT NOT NULL,
    language   TEXT NOT NULL,
    state      TEXT NOT NULL,
    holder     TEXT NOT NULL,
    made_at    DOUBLE PRECISION NOT NULL,
    changed_at DOUBLE PRECISION NOT NULL,
    expires_at DOUBLE PRECISION NOT NULL,
    -- How often it was put away; the suspended bytes are bound to this number.
    rests      BIGINT NOT NULL,
    calls      BIGINT NOT NULL,
    asks       BIGINT NOT NULL,
    refusals   BIGINT NOT NULL,
    tainted_by TEXT NOT NULL,
    source     TEXT NOT NULL,
    suspended  TEXT NOT NULL,
    result     TEXT NOT NULL
);
CREATE INDEX run_state ON run (state);

-- Every call of a script, from the moment it is made.
CREATE TABLE run_call (
    run           TEXT NOT NULL REFERENCES run (id),
    number        BIGINT NOT NULL,
    tool          TEXT NOT NULL,
    argument_hash TEXT NOT NULL,
    state         TEXT NOT NULL,
    entry         TEXT NOT NULL,
    line          BIGINT NOT NULL,
    at            DOUBLE PRECISION NOT NULL,
    arguments     TEXT NOT NULL,
    answer        TEXT NOT NULL,
    PRIMARY KEY (run, number)
);
CREATE INDEX run_call_entry ON run_call (entry);
