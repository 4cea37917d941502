-- Vectors apart from what is indexed by words, so that those of two embedders can lie side by side
-- while one takes over from the other. What the columns held is made anew, in the background.

DROP INDEX indexed_collection;
ALTER TABLE indexed DROP COLUMN vectors;
ALTER TABLE indexed DROP COLUMN embedder;
CREATE INDEX indexed_collection ON indexed(collection_id);

CREATE TABLE embedder (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    -- Everything that changes a row; two rows are compared only if theirs is one and the same.
    identity TEXT NOT NULL UNIQUE,
    -- What opens it again, as the settings gave it.
    name TEXT NOT NULL,
    -- Numbers in a row, a byte each.
    dim INTEGER NOT NULL,
    -- Every indexed event up to this seq has its rows.
    embedded_upto INTEGER NOT NULL DEFAULT 0,
    -- Its rows are the ones that are searched.
    is_serving INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE vector (
    seq INTEGER NOT NULL REFERENCES event(seq) ON DELETE CASCADE,
    embedder_no INTEGER NOT NULL,
    -- int8 rows one after another, one a passage.
    rows BLOB NOT NULL,
    PRIMARY KEY (seq, embedder_no)
) STRICT;
