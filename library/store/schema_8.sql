-- What was put into the archive: its threads stay where they are, with digests, chains, passages
-- and vectors; only the bodies of their events lie compressed in slices.

CREATE TABLE archive (
    thread_no INTEGER PRIMARY KEY REFERENCES thread(no) ON DELETE CASCADE,
    archived_at INTEGER NOT NULL,
    -- A few of its sentences, for people.
    summary TEXT NOT NULL
) STRICT;

-- Instead of its body an archived event has [no, first line, last line], an array where every
-- message is an object; the lines are those of a part of a document.
CREATE TABLE archive_slice (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    thread_no INTEGER NOT NULL REFERENCES thread(no) ON DELETE CASCADE,
    plain_bytes INTEGER NOT NULL,
    -- Deflated JSON: [[seq, body, text], ...].
    data BLOB NOT NULL
) STRICT;
CREATE INDEX archive_slice_thread ON archive_slice(thread_no);

-- How often an event was found by a search, and how often it was laid on a desk or opened.
CREATE TABLE access (
    seq INTEGER PRIMARY KEY REFERENCES event(seq) ON DELETE CASCADE,
    found_count INTEGER NOT NULL,
    used_count INTEGER NOT NULL,
    -- NULL: it was only found.
    used_at INTEGER
) STRICT;
