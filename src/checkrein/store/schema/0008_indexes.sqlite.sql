-- A table that is kept in the order of its key needs no index beside it: each card is written once, not twice.
CREATE TABLE lookup_by_term (
    term  TEXT NOT NULL,
    entry TEXT NOT NULL,
    PRIMARY KEY (term, entry)
) WITHOUT ROWID;
INSERT INTO lookup_by_term (term, entry) SELECT term, entry FROM lookup ORDER BY term, entry;
DROP TABLE lookup;
ALTER TABLE lookup_by_term RENAME TO lookup;
CREATE TRIGGER lookup_no_update BEFORE UPDATE ON lookup
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER lookup_no_delete BEFORE DELETE ON lookup
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
