-- What a client's protocol calls a reply, and the items of one: an id under which it may be asked
-- for, or gone on from, by the very next request.

CREATE TABLE reply_name (
    collection_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    -- The reply; the turn's newest message where it had none.
    event_seq INTEGER NOT NULL REFERENCES event(seq) ON DELETE CASCADE,
    turn_no INTEGER NOT NULL,
    PRIMARY KEY (collection_id, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX reply_name_event ON reply_name(event_seq);

-- So many of a turn's system texts hold for that request alone, and not for what goes on from it.
ALTER TABLE turn ADD COLUMN instruction_count INTEGER NOT NULL DEFAULT 0;
