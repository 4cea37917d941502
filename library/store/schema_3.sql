-- Which event says that something is no longer as another event said it was.
CREATE TABLE replacement (
    older_seq INTEGER NOT NULL REFERENCES event(seq) ON DELETE CASCADE,
    newer_seq INTEGER NOT NULL REFERENCES event(seq) ON DELETE CASCADE,
    PRIMARY KEY (older_seq, newer_seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX replacement_newer ON replacement(newer_seq);
