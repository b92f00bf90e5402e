-- The call a question is about, and the arguments a person approved instead: encrypted, opened only for this row.
ALTER TABLE question ADD COLUMN sealed_call TEXT NOT NULL DEFAULT '';
ALTER TABLE question ADD COLUMN sealed_edit TEXT NOT NULL DEFAULT '';
-- When the approval was taken for its one run, and when an outcome ended it.
ALTER TABLE question ADD COLUMN claimed_at DOUBLE PRECISION;
ALTER TABLE question ADD COLUMN ended_at DOUBLE PRECISION;
-- Approvals of an earlier version that were used are over.
UPDATE question SET claimed_at = answered_at, ended_at = answered_at WHERE state = 'approved' AND EXISTS (
    SELECT 1 FROM record WHERE record.entry = question.entry AND record.kind IN ('started', 'finished')
);
CREATE INDEX question_unended ON question (answered_at) WHERE state = 'approved' AND ended_at IS NULL;
-- Gateway sessions that left a question, or read an untrusted server's words. The agent's process or the client's
-- token (`reader`) that comes back after a restart takes both up.
CREATE TABLE gateway_session (
    session TEXT PRIMARY KEY,
    reader TEXT NOT NULL,
    tainted_by TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL
);
-- Request states a stateless client has used; each works once.
CREATE TABLE used_state (
    id TEXT PRIMARY KEY,
    expires DOUBLE PRECISION NOT NULL
);
CREATE INDEX used_state_expires ON used_state (expires);
