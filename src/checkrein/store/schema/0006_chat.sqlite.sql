-- The words of messages and titles, as `doors/chat/words.py` spells them: folded, parted by spaces. The tables
-- keep that spelling, so that what is taken out is what was put in, whatever a later version would spell.
CREATE VIRTUAL TABLE chat_words USING fts5 (words, tokenize = 'ascii', prefix = '1 2 3');
CREATE VIRTUAL TABLE chat_title_words USING fts5 (words, tokenize = 'ascii', prefix = '1 2 3');
