-- Sessions of agents as they introduce themselves, with the process that speaks for them.
CREATE TABLE session (
    agent           TEXT NOT NULL,
    id              TEXT NOT NULL,
    project         TEXT NOT NULL,
    started_at      DOUBLE PRECISION NOT NULL,
    ended_at        DOUBLE PRECISION,
    process         BIGINT NOT NULL,
    process_started TEXT NOT NULL,
    attended        BOOLEAN NOT NULL,
    PRIMARY KEY (agent, id)
);
CREATE INDEX session_project ON session (project, started_at);

-- The phase a person set: for a session, a project, or (both empty) the user.
CREATE TABLE phase (
    project TEXT NOT NULL,
    session TEXT NOT NULL,
    name    TEXT NOT NULL,
    at      DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (project, session)
);

-- Questions. The call itself stays with whoever waits for the answer; what is kept binds to it by hash.
CREATE TABLE question (
    entry       TEXT PRIMARY KEY,
    session     TEXT NOT NULL,
    project     TEXT NOT NULL,
    binding     TEXT NOT NULL,
    asked_at    DOUBLE PRECISION NOT NULL,
    expires_at  DOUBLE PRECISION NOT NULL,
    state       TEXT NOT NULL,
    answered_at DOUBLE PRECISION,
    actor       TEXT NOT NULL,
    channel     TEXT NOT NULL,
    message     TEXT NOT NULL
);
CREATE INDEX question_state ON question (state, asked_at);
CREATE INDEX question_binding ON question (binding, state);

-- Where our hooks are registered.
CREATE TABLE installation (
    agent  TEXT NOT NULL,
    folder TEXT NOT NULL,
    at     DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (agent, folder)
);
