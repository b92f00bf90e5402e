CREATE TRIGGER question_answered_once BEFORE UPDATE OF state ON question WHEN OLD.state <> 'asked'
BEGIN SELECT RAISE(ABORT, 'a question is answered once'); END;
CREATE TRIGGER question_claimed_once BEFORE UPDATE OF claimed_at ON question
WHEN OLD.claimed_at IS NOT NULL OR OLD.ended_at IS NOT NULL OR OLD.state <> 'approved'
BEGIN SELECT RAISE(ABORT, 'an approval is taken once'); END;
