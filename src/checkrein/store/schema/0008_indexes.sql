-- A script's call is looked for by its record only while a person is asked about it; filing every call of every
-- script would be for nothing.
DROP INDEX run_call_entry;
CREATE INDEX run_call_asked ON run_call (entry) WHERE state = 'asked';
