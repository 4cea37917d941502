-- Records that are shelved on purpose: each is a thread of another kind than 'chat', and what a
-- thread cannot say of it stands here.

ALTER TABLE thread ADD COLUMN kind TEXT NOT NULL DEFAULT 'chat';

CREATE TABLE record (
    thread_no INTEGER PRIMARY KEY REFERENCES thread(no) ON DELETE CASCADE,
    collection_id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    -- fact, decision, ... of an insight; session, ... of a chunk; the media type of a document.
    type TEXT NOT NULL,
    -- 0 low, 1 medium, 2 high, 3 critical.
    importance INTEGER NOT NULL,
    -- Words of the caller's; '' where there are none.
    project TEXT NOT NULL,
    source TEXT NOT NULL,
    title TEXT NOT NULL,
    -- NULL: found by every thread of its collection; else by this one alone.
    owner_no INTEGER,
    -- Of what a document was read from, to know it again; NULL: none, or not whole yet.
    digest BLOB,
    -- Number of the version, or the edition, that was begun last.
    version INTEGER NOT NULL,
    -- How often it was remembered.
    told_count INTEGER NOT NULL DEFAULT 1,
    -- JSON: which record it is a copy of.
    origin TEXT,
    -- When the live version was said.
    said_at INTEGER NOT NULL
) STRICT;
CREATE INDEX record_collection ON record(collection_id, kind, said_at);
CREATE INDEX record_source ON record(collection_id, source) WHERE kind = 'document';
CREATE INDEX record_owner ON record(owner_no) WHERE owner_no IS NOT NULL;

CREATE TABLE record_tag (
    thread_no INTEGER NOT NULL REFERENCES record(thread_no) ON DELETE CASCADE,
    tag TEXT NOT NULL,
    PRIMARY KEY (thread_no, tag)
) STRICT, WITHOUT ROWID;
