-- The first schema. Times are microseconds since 1970 in UTC.
--
-- Tables that hold words (event, system_text, part, report) are rowid tables that only grow at
-- their end; what has random keys (chains, digests) stands in indexes that hold no words. Every
-- page that a turn touches is written to the log once, so there is no index that a request or an
-- index of the library does not need.

CREATE TABLE collection (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE thread (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    collection_id INTEGER NOT NULL REFERENCES collection(id),
    session_id TEXT,
    -- 'full': the client sends its whole transcript; 'newest': only what is new; NULL: not known yet.
    style TEXT,
    -- The live branch ends here; NULL while the thread has no event.
    head_branch INTEGER,
    head_position INTEGER,
    prompt_state BLOB,
    -- Set for this thread alone; NULL: what holds for all.
    budget_tokens INTEGER,
    turn_count INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (collection_id, session_id)
) STRICT;

CREATE TABLE branch (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    thread_no INTEGER NOT NULL REFERENCES thread(no) ON DELETE CASCADE,
    -- NULL: a root. Else the events of `parent_id` at positions <= `fork_position` come before.
    parent_id INTEGER,
    fork_position INTEGER NOT NULL
) STRICT;
CREATE INDEX branch_thread ON branch(thread_no);

CREATE TABLE event (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    -- Given by the caller; NULL: the id is 'e' || seq.
    given_id TEXT,
    collection_id INTEGER NOT NULL,
    thread_no INTEGER NOT NULL,
    branch_id INTEGER NOT NULL REFERENCES branch(id),
    position INTEGER NOT NULL,
    role TEXT NOT NULL,
    digest BLOB NOT NULL,
    chain BLOB NOT NULL,
    -- JSON, as it was given but for its large parts.
    body TEXT NOT NULL,
    -- NULL: the text can be read off the body.
    text TEXT,
    occurred_at INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    turn_id TEXT,
    is_partial INTEGER NOT NULL,
    is_masked INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX event_chain ON event(collection_id, chain, thread_no);
CREATE UNIQUE INDEX event_place ON event(branch_id, position);
CREATE INDEX event_digest ON event(collection_id, digest);
CREATE UNIQUE INDEX event_given_id ON event(collection_id, given_id) WHERE given_id IS NOT NULL;

-- The chain of a transcript that a client has trimmed, and the event that it ends at.
CREATE TABLE anchor (
    collection_id INTEGER NOT NULL,
    chain BLOB NOT NULL,
    event_seq INTEGER NOT NULL REFERENCES event(seq) ON DELETE CASCADE,
    -- So many messages at the start of that transcript stand outside the path.
    front_count INTEGER NOT NULL,
    PRIMARY KEY (collection_id, chain, event_seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX anchor_event ON anchor(event_seq);

CREATE TABLE part (
    no INTEGER PRIMARY KEY,
    collection_id INTEGER NOT NULL,
    digest BLOB NOT NULL,
    data TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX part_digest ON part(collection_id, digest);

CREATE TABLE event_part (
    event_seq INTEGER NOT NULL REFERENCES event(seq) ON DELETE CASCADE,
    part_no INTEGER NOT NULL REFERENCES part(no),
    PRIMARY KEY (event_seq, part_no)
) STRICT, WITHOUT ROWID;
CREATE INDEX event_part_part ON event_part(part_no);

CREATE TABLE system_text (
    no INTEGER PRIMARY KEY,
    collection_id INTEGER NOT NULL,
    digest BLOB NOT NULL,
    -- JSON array of the system and developer texts of a request, in order.
    texts TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX system_text_digest ON system_text(collection_id, digest);

CREATE TABLE turn (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    collection_id INTEGER NOT NULL,
    thread_no INTEGER NOT NULL,
    -- The newest message of the request; NULL when it had none.
    head_seq INTEGER,
    -- Set when the client's own chain is another than the stored one, see `anchor`.
    own_chain BLOB,
    front_count INTEGER NOT NULL,
    system_digest BLOB,
    state TEXT NOT NULL,
    model TEXT NOT NULL,
    upstream TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    -- JSON array of the seqs of its replies.
    reply_seqs TEXT,
    report_no INTEGER
) STRICT;

CREATE TABLE report (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    turn_no INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;

CREATE TABLE outbox (
    seq INTEGER PRIMARY KEY REFERENCES event(seq) ON DELETE CASCADE,
    thread_no INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    -- The end of a lease or of a back-off: nobody else may claim it before.
    available_at INTEGER NOT NULL DEFAULT 0,
    owner TEXT,
    token TEXT,
    is_quarantined INTEGER NOT NULL DEFAULT 0,
    error TEXT
) STRICT;

CREATE TABLE indexed (
    seq INTEGER PRIMARY KEY REFERENCES event(seq) ON DELETE CASCADE,
    collection_id INTEGER NOT NULL,
    -- JSON array of [start, stop], one a passage, in order.
    spans TEXT NOT NULL,
    embedder TEXT NOT NULL,
    -- The passages' vectors one after another: int8 rows; may be empty.
    vectors BLOB NOT NULL
) STRICT;
CREATE INDEX indexed_collection ON indexed(collection_id, embedder);

CREATE TABLE pin (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    collection_id INTEGER NOT NULL,
    -- NULL: for every thread of the collection.
    thread_no INTEGER,
    event_seq INTEGER NOT NULL UNIQUE REFERENCES event(seq) ON DELETE CASCADE
) STRICT;
CREATE INDEX pin_collection ON pin(collection_id);

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
