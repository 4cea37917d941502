-- Every statement of the SQLite store. `:name` parameters where a value is used twice.

-- ---- the file -------------------------------------------------------------------------------

-- name: has_migrations
SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = '_sqlite_migrations'

-- name: migrations
SELECT name FROM _sqlite_migrations WHERE migration_set = ?

-- name: schema
SELECT ifnull('column ' || s.name || '.' || c.name, s.type || ' ' || s.name)
FROM sqlite_schema AS s LEFT JOIN pragma_table_info(s.name) AS c ON s.type = 'table'
WHERE s.name NOT LIKE '%sqlite%'
ORDER BY s.rowid, c.cid

-- name: get_meta
SELECT value FROM meta WHERE key = ?

-- name: set_meta
INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value

-- name: delete_meta
DELETE FROM meta WHERE key = ?

-- name: abandon_turns
UPDATE turn SET state = 'abandoned' WHERE no > ? AND state = 'prepared'

-- name: newest_turn
SELECT ifnull(max(no), 0) FROM turn

-- name: free_leases
UPDATE outbox SET owner = NULL, token = NULL, available_at = 0 WHERE token IS NOT NULL

-- ---- a turn's place -------------------------------------------------------------------------

-- name: collection
SELECT id FROM collection WHERE name = ?

-- name: collection_names
SELECT name FROM collection ORDER BY name

-- name: insert_collection
INSERT INTO collection (name) VALUES (?)

-- name: session_thread
SELECT no, id, session_id, style, head_branch, head_position, prompt_state,
       budget_tokens, desk_placement, desk_replacement FROM thread
WHERE collection_id = ? AND session_id = ?

-- name: thread_by_id
SELECT no, id, session_id, style, head_branch, head_position, prompt_state,
       budget_tokens, desk_placement, desk_replacement FROM thread
WHERE id = ? AND collection_id = ? AND kind = 'chat'

-- name: thread_by_no
SELECT no, id, session_id, style, head_branch, head_position, prompt_state,
       budget_tokens, desk_placement, desk_replacement FROM thread
WHERE no = ?

-- name: insert_thread
INSERT INTO thread (id, collection_id, session_id, created_at, updated_at) VALUES (?, ?, ?, ?, ?)

-- Two, to tell whether one must be chosen.
-- name: events_with_chain
SELECT seq, thread_no, branch_id, position, chain FROM event
WHERE collection_id = ? AND chain = ? LIMIT 2

-- Of the threads that hold a chain one without a session, then the newest.
-- name: best_with_chain
SELECT e.seq, e.thread_no, e.branch_id, e.position, e.chain
FROM event AS e JOIN thread AS t ON t.no = e.thread_no
WHERE e.collection_id = ? AND e.chain = ?
ORDER BY t.session_id IS NULL DESC, e.seq DESC LIMIT 1

-- name: event_with_chain_in_thread
SELECT seq, thread_no, branch_id, position, chain FROM event
WHERE collection_id = ? AND chain = ? AND thread_no = ?

-- name: stored_chains
SELECT DISTINCT chain FROM event
WHERE collection_id = ? AND chain IN (?, ?, ?, ?, ?, ?, ?, ?)

-- name: stored_chains_in_thread
SELECT chain FROM event
WHERE collection_id = ? AND chain IN (?, ?, ?, ?, ?, ?, ?, ?) AND thread_no = ?

-- name: match_anchors
SELECT e.seq, e.thread_no, e.branch_id, e.position, e.chain, a.chain, a.front_count
FROM anchor AS a JOIN event AS e ON e.seq = a.event_seq
WHERE a.collection_id = ? AND a.chain IN (?, ?, ?, ?, ?, ?, ?, ?)
ORDER BY a.event_seq DESC

-- name: newest_with_digest
SELECT seq, thread_no, branch_id, position, chain FROM event
WHERE collection_id = ? AND digest = ? ORDER BY seq DESC LIMIT 8

-- name: newest_with_digest_in_thread
SELECT seq, thread_no, branch_id, position, chain FROM event
WHERE collection_id = ? AND digest = ? AND thread_no = ? ORDER BY seq DESC LIMIT 8

-- name: last_position
SELECT max(position) FROM event WHERE branch_id = ?

-- name: branch
SELECT parent_id, fork_position FROM branch WHERE id = ?

-- As one row: each row is a wait for the interpreter, and a transcript has thousands.
-- name: seqs_of_branch
SELECT json_group_array(seq) FROM (
    SELECT seq FROM event WHERE branch_id = ? AND position > ? AND position <= ? ORDER BY position
)

-- name: digests_backwards
SELECT digest, role FROM event WHERE branch_id = ? AND position > ? AND position <= ?
ORDER BY position DESC

-- name: has_user
SELECT 1 FROM event WHERE branch_id = ? AND position > ? AND position <= ? AND role = 'user' LIMIT 1

-- name: tail_of_branch
SELECT seq, branch_id, position, chain, digest, is_partial, thread_no FROM event
WHERE branch_id = ? AND position <= ? ORDER BY position DESC LIMIT ?

-- name: event_with_given_id
SELECT seq, thread_no, branch_id, position, chain, digest FROM event
WHERE collection_id = ? AND given_id = ?

-- name: event_with_seq
SELECT seq, thread_no, branch_id, position, chain, digest FROM event
WHERE collection_id = ? AND seq = ?

-- name: places_of_seqs
SELECT seq, branch_id, position FROM event WHERE seq IN (SELECT value FROM json_each(?))

-- The system texts of the turn that brought the first event of a root.
-- name: first_system_texts
SELECT s.texts FROM event AS e JOIN turn AS t ON t.id = e.turn_id
LEFT JOIN system_text AS s
    ON s.collection_id = t.collection_id AND s.digest = t.system_digest
WHERE e.branch_id = ? AND e.position = 0

-- How many messages stood outside the path in the turn that brought the first event of a root.
-- name: front_of_root
SELECT t.front_count FROM event AS e JOIN turn AS t ON t.id = e.turn_id
WHERE e.branch_id = ? AND e.position = 0

-- name: thread_pins
SELECT event_seq FROM pin WHERE collection_id = ? AND (thread_no = ? OR thread_no IS NULL)
ORDER BY no

-- ---- writing a turn -------------------------------------------------------------------------

-- name: insert_branch
INSERT INTO branch (thread_no, parent_id, fork_position) VALUES (?, ?, ?)

-- name: insert_event
INSERT INTO event (seq, given_id, collection_id, thread_no, branch_id, position, role, digest,
                   chain, body, text, occurred_at, recorded_at, turn_id, is_partial, is_masked)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: insert_outbox
INSERT INTO outbox (seq, thread_no) SELECT seq, thread_no FROM event WHERE seq BETWEEN ? AND ?

-- name: insert_part
INSERT INTO part (collection_id, digest, data) VALUES (?, ?, ?) ON CONFLICT DO NOTHING

-- name: insert_event_part
INSERT INTO event_part (event_seq, part_no)
SELECT ?, no FROM part WHERE collection_id = ? AND digest = ?

-- name: insert_system_text
INSERT INTO system_text (collection_id, digest, texts) VALUES (?, ?, ?) ON CONFLICT DO NOTHING

-- name: insert_anchor
INSERT INTO anchor (collection_id, chain, event_seq, front_count) VALUES (?, ?, ?, ?)
ON CONFLICT DO NOTHING

-- name: insert_turn
INSERT INTO turn (id, collection_id, thread_no, head_seq, own_chain, front_count, system_digest,
                  instruction_count, state, model, upstream, started_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'prepared', ?, ?, ?)
ON CONFLICT (id) DO NOTHING

-- name: move_head
UPDATE thread SET head_branch = ?, head_position = ?, style = ?, updated_at = ?,
                  turn_count = turn_count + ?
WHERE no = ?

-- ---- events of other libraries --------------------------------------------------------------

-- Of any kind.
-- name: thread_with_id
SELECT no, id FROM thread WHERE id = ? AND collection_id = ?

-- name: has_thread_id
SELECT 1 FROM thread WHERE id = ?

-- name: newest_event_seq
SELECT seq FROM sqlite_sequence WHERE name = 'event'

-- name: used_at
UPDATE thread SET updated_at = max(updated_at, :at) WHERE no = :no

-- name: record_version
SELECT version FROM record WHERE thread_no = ?

-- name: set_versions
UPDATE record SET version = ?, told_count = ? WHERE thread_no = ?

-- name: has_turns
SELECT 1 FROM thread WHERE no = ? AND turn_count > 0

-- name: set_head
UPDATE thread SET head_branch = ?, head_position = ? WHERE no = ?

-- ---- taking out -----------------------------------------------------------------------------

-- name: seqs_after
SELECT seq FROM event
WHERE seq > :after AND seq <= :upto AND (:collection_id IS NULL OR collection_id = :collection_id)
ORDER BY seq LIMIT :limit

-- What of an event is no part of an `Event`: the id that its caller gave it, and its place.
-- name: moved_events
SELECT e.seq, e.given_id, e.is_masked, ifnull(p.chain, f.chain)
FROM event AS e JOIN branch AS b ON b.id = e.branch_id
LEFT JOIN event AS p ON p.branch_id = e.branch_id AND p.position = e.position - 1
LEFT JOIN event AS f ON p.seq IS NULL AND f.branch_id = b.parent_id AND f.position = b.fork_position
WHERE e.seq IN (SELECT value FROM json_each(?))

-- name: moved_uses
SELECT seq, found_count, used_count, used_at FROM access
WHERE seq IN (SELECT value FROM json_each(?))

-- name: moved_archives
SELECT a.thread_no, a.archived_at FROM archive AS a JOIN thread AS t ON t.no = a.thread_no
WHERE t.no > :after
  AND (:collection_id IS NULL OR t.collection_id = :collection_id)
  AND (:no IS NULL OR t.no = :no)
ORDER BY t.no LIMIT :limit

-- name: moved_replacements
SELECT n.thread_no, n.chain, ot.id, o.chain
FROM replacement AS r JOIN event AS n ON n.seq = r.newer_seq JOIN event AS o ON o.seq = r.older_seq
JOIN thread AS t ON t.no = n.thread_no JOIN thread AS ot ON ot.no = o.thread_no
WHERE t.kind = 'insight' AND (:collection_id IS NULL OR n.collection_id = :collection_id)
    AND (:thread_no IS NULL OR n.thread_no = :thread_no)
ORDER BY n.seq, o.seq

-- name: moved_threads
SELECT t.no, c.name, t.id, t.session_id, t.created_at, t.updated_at, e.chain, t.kind,
       t.budget_tokens, t.desk_placement, t.desk_replacement
FROM thread AS t JOIN collection AS c ON c.id = t.collection_id
LEFT JOIN event AS e ON e.branch_id = t.head_branch AND e.position = t.head_position
WHERE t.no IN (SELECT value FROM json_each(?))

-- name: threads_after
SELECT no FROM thread
WHERE no > :after
  AND (:collection_id IS NULL OR collection_id = :collection_id)
ORDER BY no LIMIT :limit

-- name: count_roles
SELECT collection_id, role, count(*) FROM event
WHERE :collection_id IS NULL OR collection_id = :collection_id GROUP BY collection_id, role

-- name: count_collections
SELECT c.id, c.name,
       (SELECT count(*) FROM thread WHERE collection_id = c.id),
       (SELECT count(*) FROM branch AS b JOIN thread AS t ON t.no = b.thread_no
        WHERE t.collection_id = c.id),
       (SELECT count(*) FROM turn WHERE collection_id = c.id),
       (SELECT count(*) FROM pin WHERE collection_id = c.id),
       (SELECT min(occurred_at) FROM event WHERE collection_id = c.id),
       (SELECT max(occurred_at) FROM event WHERE collection_id = c.id),
       (SELECT ifnull(sum(length(data)), 0) FROM part WHERE collection_id = c.id)
FROM collection AS c WHERE :collection_id IS NULL OR c.id = :collection_id ORDER BY c.name

-- name: moved_pins
SELECT e.thread_no, e.chain, p.thread_no IS NULL FROM pin AS p JOIN event AS e ON e.seq = p.event_seq
WHERE (:collection_id IS NULL OR p.collection_id = :collection_id)
  AND (:thread_no IS NULL OR e.thread_no = :thread_no)
ORDER BY p.no

-- ---- ending a turn --------------------------------------------------------------------------

-- name: turn_to_end
SELECT t.no, t.collection_id, t.thread_no, t.state, t.own_chain, t.front_count, t.reply_seqs,
       h.id, h.session_id, e.seq, e.branch_id, e.position, e.chain
FROM turn AS t JOIN thread AS h ON h.no = t.thread_no LEFT JOIN event AS e ON e.seq = t.head_seq
WHERE t.id = ?

-- name: end_turn
UPDATE turn SET state = ?, ended_at = ?, reply_seqs = ?, report_no = ? WHERE no = ?

-- name: insert_report
INSERT INTO report (turn_no, body) VALUES (?, ?)

-- The head moves on only from where the turn left it: a later turn's place is kept.
-- name: end_thread_turn
UPDATE thread SET
    head_branch = iif(?1 AND head_branch IS ?2 AND head_position IS ?3, ?4, head_branch),
    head_position = iif(?1 AND head_branch IS ?2 AND head_position IS ?3, ?5, head_position),
    prompt_state = ifnull(?6, prompt_state),
    updated_at = ?7
WHERE no = ?8

-- name: thread_head
SELECT head_branch, head_position FROM thread WHERE no = ?

-- The newest turn that used a name has it.
-- name: insert_reply_name
INSERT INTO reply_name (collection_id, name, event_seq, turn_no) VALUES (?, ?, ?, ?)
ON CONFLICT (collection_id, name)
DO UPDATE SET event_seq = excluded.event_seq, turn_no = excluded.turn_no

-- ---- names of replies -----------------------------------------------------------------------

-- name: named_reply
SELECT n.event_seq, t.id, t.instruction_count, s.texts
FROM reply_name AS n JOIN turn AS t ON t.no = n.turn_no
     LEFT JOIN system_text AS s
         ON s.collection_id = t.collection_id AND s.digest = t.system_digest
WHERE n.collection_id = ? AND n.name = ?

-- name: turns_reply
SELECT ifnull(json_extract(t.reply_seqs, '$[0]'), t.head_seq), t.id, t.instruction_count, s.texts
FROM turn AS t LEFT JOIN system_text AS s
     ON s.collection_id = t.collection_id AND s.digest = t.system_digest
WHERE t.collection_id = ? AND t.id = ?

-- name: place_of_event
SELECT thread_no, branch_id, position, role FROM event WHERE seq = ?

-- name: named_seqs
SELECT name, event_seq FROM reply_name
WHERE collection_id = ? AND name IN (SELECT value FROM json_each(?))

-- name: delete_reply_name
DELETE FROM reply_name WHERE collection_id = ? AND name = ?

-- ---- reading --------------------------------------------------------------------------------

-- name: events
SELECT e.seq, e.given_id, e.collection_id, e.thread_no, t.id, t.session_id, e.branch_id,
       e.position, e.role, e.digest, e.body, e.text, e.occurred_at, e.recorded_at, e.turn_id,
       e.is_partial, t.kind
FROM event AS e JOIN thread AS t ON t.no = e.thread_no
WHERE e.seq IN (SELECT value FROM json_each(:seqs))
  AND (:reach IS NULL OR e.collection_id IN (SELECT value FROM json_each(:reach)))

-- The index begins with the collection, so that each is named even where any will do.
-- name: seq_with_given_id
SELECT seq FROM event
WHERE given_id = :id AND collection_id IN (
    SELECT id FROM collection
    WHERE :reach IS NULL OR id IN (SELECT value FROM json_each(:reach)))
ORDER BY seq DESC LIMIT 1

-- name: seqs_of_thread
SELECT e.seq FROM branch AS b JOIN event AS e ON e.branch_id = b.id
WHERE b.thread_no = ? AND e.seq > ? ORDER BY e.seq LIMIT ?

-- name: parts
SELECT p.digest, p.data FROM event_part AS r JOIN part AS p ON p.no = r.part_no
WHERE r.event_seq = ?

-- name: find_thread
SELECT no FROM thread
WHERE id = :id AND (:collection_id IS NULL OR collection_id = :collection_id)

-- As with `seq_with_given_id`.
-- name: find_session
SELECT no FROM thread
WHERE session_id = :id AND collection_id IN (
    SELECT id FROM collection WHERE :collection_id IS NULL OR id = :collection_id)
ORDER BY updated_at DESC LIMIT 1

-- Which ones comes first: what is counted would be counted of every thread there is.
-- name: threads
SELECT t.id, t.session_id, c.name, t.turn_count, t.created_at, t.updated_at,
       (SELECT count(*) FROM branch AS b JOIN event AS e ON e.branch_id = b.id
        WHERE b.thread_no = t.no),
       (SELECT count(*) FROM branch AS b WHERE b.thread_no = t.no),
       (SELECT e.seq FROM branch AS b JOIN event AS e ON e.branch_id = b.id
        WHERE b.thread_no = t.no AND b.parent_id IS NULL AND e.position = 0
        ORDER BY b.id LIMIT 1)
FROM (
    SELECT no, id, session_id, collection_id, turn_count, created_at, updated_at FROM thread
    WHERE kind = 'chat' AND (:collection_id IS NULL OR collection_id = :collection_id)
    ORDER BY updated_at DESC, no DESC LIMIT :limit
) AS t JOIN collection AS c ON c.id = t.collection_id
ORDER BY t.updated_at DESC, t.no DESC

-- name: prompt_state
SELECT prompt_state FROM thread WHERE no = ?

-- name: set_prompt_state
UPDATE thread SET prompt_state = ? WHERE no = ?

-- name: own_settings
SELECT id, budget_tokens, desk_placement, desk_replacement FROM thread WHERE no = ?

-- name: set_own_settings
UPDATE thread SET budget_tokens = ?, desk_placement = ?, desk_replacement = ? WHERE no = ?

-- name: turn
SELECT t.id, h.id, c.name, t.model, t.upstream, t.state, t.started_at, t.ended_at,
       r.number, r.body
FROM turn AS t JOIN thread AS h ON h.no = t.thread_no
     JOIN collection AS c ON c.id = t.collection_id
     LEFT JOIN report AS r ON r.number = t.report_no
WHERE t.id = :id AND (:collection_id IS NULL OR t.collection_id = :collection_id)

-- name: reports
SELECT t.id, h.id, c.name, t.model, t.upstream, t.state, t.started_at, t.ended_at,
       r.number, r.body
FROM report AS r JOIN turn AS t ON t.no = r.turn_no
     JOIN thread AS h ON h.no = t.thread_no
     JOIN collection AS c ON c.id = t.collection_id
WHERE r.number > :after
  AND (:collection_id IS NULL OR t.collection_id = :collection_id)
  AND (:thread_no IS NULL OR t.thread_no = :thread_no)
ORDER BY r.number DESC LIMIT :newest

-- ---- pins -----------------------------------------------------------------------------------

-- name: count_other_pins
SELECT count(*) FROM pin WHERE collection_id = ? AND thread_no IS ? AND event_seq <> ?

-- name: insert_pin
INSERT INTO pin (collection_id, thread_no, event_seq) VALUES (?, ?, ?)
ON CONFLICT (event_seq) DO UPDATE SET thread_no = excluded.thread_no

-- name: delete_pin
DELETE FROM pin WHERE event_seq = ?

-- name: pinned
SELECT event_seq FROM pin
WHERE (:collection_id IS NULL OR collection_id = :collection_id)
  AND (:thread_no IS NULL OR thread_no IS NULL OR thread_no = :thread_no)
ORDER BY no

-- ---- records that are no chats ---------------------------------------------------------------

-- name: insert_record_thread
INSERT INTO thread (id, collection_id, kind, created_at, updated_at) VALUES (?, ?, ?, ?, ?)

-- name: insert_record
INSERT INTO record (thread_no, collection_id, kind, type, importance, project, source, title,
                    owner_no, digest, version, origin, said_at)
VALUES (:thread_no, :collection_id, :kind, :type, :importance, :project, :source, :title,
        :owner_no, :digest, 0, :origin, :said_at)

-- name: renew_record
UPDATE record SET type = :type, importance = :importance, project = :project, title = :title,
                  owner_no = :owner_no, digest = :digest, origin = :origin,
                  said_at = :said_at
WHERE thread_no = :thread_no

-- name: update_record
UPDATE record SET type = ?, importance = ?, project = ?, title = ?, owner_no = ?, told_count = ?
WHERE thread_no = ?

-- name: touch_thread
UPDATE thread SET updated_at = ? WHERE no = ?

-- name: count_version
UPDATE record SET version = version + 1 WHERE thread_no = ?

-- name: set_said_at
UPDATE record SET said_at = ? WHERE thread_no = ?

-- name: set_record_head
UPDATE thread SET head_branch = ?1, updated_at = ?2,
    head_position = (SELECT max(position) FROM event WHERE branch_id = ?1)
WHERE no = ?3

-- name: record_seq
SELECT e.seq FROM thread AS t JOIN event AS e ON e.branch_id = t.head_branch AND e.position = 0
WHERE t.no = ?

-- name: record_parts
SELECT e.seq FROM thread AS t JOIN event AS e ON e.branch_id = t.head_branch
WHERE t.no = ? AND e.position >= ? ORDER BY e.position LIMIT ?

-- The first parts of some records, live.
-- name: records_there
SELECT thread_no FROM record WHERE thread_no IN (SELECT value FROM json_each(?))

-- name: record_heads
SELECT e.seq FROM thread AS t
JOIN event AS e ON e.branch_id = t.head_branch AND e.position = 0
WHERE t.no IN (SELECT value FROM json_each(?))

-- name: record_versions
SELECT e.seq FROM branch AS b JOIN event AS e ON e.branch_id = b.id AND e.position = 0
WHERE b.thread_no = ? ORDER BY e.seq

-- name: branch_seqs
SELECT seq FROM event WHERE branch_id = ? AND position > ? ORDER BY position

-- name: other_seqs
SELECT e.seq FROM branch AS b JOIN event AS e ON e.branch_id = b.id
WHERE b.thread_no = ? AND b.id <> ?

-- name: delete_other_events
DELETE FROM event WHERE branch_id IN (SELECT id FROM branch WHERE thread_no = ? AND id <> ?)

-- name: delete_other_branches
DELETE FROM branch WHERE thread_no = ? AND id <> ?

-- Two parts that were pinned may be one now: its pin stays, and the other goes with its event.
-- name: move_pin
UPDATE OR IGNORE pin SET event_seq = ?1 WHERE event_seq = ?2

-- name: move_older
UPDATE OR IGNORE replacement SET older_seq = ?1 WHERE older_seq = ?2

-- name: move_newer
UPDATE OR IGNORE replacement SET newer_seq = ?1 WHERE newer_seq = ?2

-- Pins are few: CROSS lets them be looked at first, and not all events.
-- name: pinned_of_record
SELECT p.event_seq FROM pin AS p CROSS JOIN event AS e ON e.seq = p.event_seq
WHERE e.thread_no = ?

-- name: delete_tags
DELETE FROM record_tag WHERE thread_no = ?

-- name: insert_tag
INSERT INTO record_tag (thread_no, tag) VALUES (?, ?) ON CONFLICT DO NOTHING

-- name: tags
SELECT tag FROM record_tag WHERE thread_no = ? ORDER BY tag

-- By the record's own id, or by that of one of its events.
-- name: find_record
SELECT thread_no FROM record
WHERE thread_no IN (
    SELECT no FROM thread WHERE id = :id
    UNION ALL
    SELECT thread_no FROM event WHERE seq = :seq)
  AND (:reach IS NULL OR collection_id IN (SELECT value FROM json_each(:reach)))
LIMIT 1

-- name: record
SELECT t.id, r.collection_id, r.kind, r.type, r.importance, r.project, r.source, r.title,
       r.owner_no, o.id, r.digest, r.version, r.told_count, r.origin, t.created_at, t.updated_at,
       r.said_at,
       EXISTS (SELECT 1 FROM pin AS p JOIN event AS e ON e.seq = p.event_seq
               WHERE e.branch_id = t.head_branch)
FROM record AS r JOIN thread AS t ON t.no = r.thread_no LEFT JOIN thread AS o ON o.no = r.owner_no
WHERE r.thread_no = ?

-- A source that ends in a slash is a folder. `owner_no` -1: whoever finds them.
-- name: records
SELECT r.thread_no, count(*) OVER () FROM record AS r JOIN thread AS t ON t.no = r.thread_no
WHERE r.collection_id IN (SELECT value FROM json_each(:reach)) AND t.head_branch IS NOT NULL
  AND (:kinds IS NULL OR r.kind IN (SELECT value FROM json_each(:kinds)))
  AND (:types IS NULL OR r.type IN (SELECT value FROM json_each(:types)))
  AND (:projects IS NULL OR r.project IN (SELECT value FROM json_each(:projects)))
  AND (:sources IS NULL OR EXISTS (
      SELECT 1 FROM json_each(:sources) AS s
      WHERE r.source = s.value OR (
          substr(s.value, -1) = '/' AND substr(r.source, 1, length(s.value)) = s.value)))
  AND r.importance BETWEEN :least AND :most
  AND (:tags IS NULL OR :tag_count = (
      SELECT count(*) FROM record_tag AS g
      WHERE g.thread_no = r.thread_no AND g.tag IN (SELECT value FROM json_each(:tags))))
  AND (:since IS NULL OR r.said_at >= :since) AND (:until IS NULL OR r.said_at <= :until)
  AND (:owner_no = -1 OR r.owner_no IS NULL OR r.owner_no = :owner_no)
ORDER BY r.said_at DESC, r.thread_no DESC LIMIT :limit OFFSET :offset

-- The newest first; a collection has one for each project.
-- name: documents_at
SELECT r.thread_no FROM record AS r JOIN thread AS t ON t.no = r.thread_no
WHERE r.kind = 'document' AND r.source = :source AND t.head_branch IS NOT NULL
  AND (:reach IS NULL OR r.collection_id IN (SELECT value FROM json_each(:reach)))
ORDER BY r.said_at DESC, r.thread_no DESC LIMIT :limit

-- name: owner_of_record
SELECT owner_no FROM record WHERE thread_no = ?

-- name: owned_records
SELECT owner_no, thread_no FROM record WHERE collection_id = ? AND owner_no IS NOT NULL

-- name: importances
SELECT thread_no, importance FROM record WHERE collection_id = ? AND importance <> 1

-- name: record_of_source
SELECT thread_no FROM record
WHERE collection_id = :collection_id AND kind = :kind AND project = :project
  AND iif(:source = '', digest = :digest, source = :source)
ORDER BY thread_no LIMIT 1

-- Of a message or a record, by its id.
-- name: copies
SELECT thread_no FROM record WHERE origin IS NOT NULL AND json_extract(origin, '$.of') = :of
  AND (:collection IS NULL OR json_extract(origin, '$.collection') = :collection)
ORDER BY thread_no

-- name: record_lines
SELECT e.seq FROM thread AS t JOIN event AS e ON e.branch_id = t.head_branch
WHERE t.no = :no
  AND ifnull(json_extract(e.body, '$.lines[1]'), json_extract(e.body, '$[2]')) >= :first
  AND ifnull(json_extract(e.body, '$.lines[0]'), json_extract(e.body, '$[1]')) <= :last
ORDER BY e.position LIMIT :limit

-- name: record_size
SELECT count(*), max(ifnull(json_extract(e.body, '$.lines[1]'), json_extract(e.body, '$[2]')))
FROM thread AS t JOIN event AS e ON e.branch_id = t.head_branch WHERE t.no = ?

-- ---- deletion -------------------------------------------------------------------------------

-- name: thread_numbers
SELECT no FROM thread WHERE collection_id = ?

-- name: collection_of_thread
SELECT collection_id FROM thread WHERE no = ?

-- Of all threads together: turns and pins have no index by thread, and are gone through once.
-- name: count_events_of
SELECT count(*) FROM branch AS b JOIN event AS e ON e.branch_id = b.id
WHERE b.thread_no IN (SELECT value FROM json_each(?))

-- name: count_events_by_thread
SELECT b.thread_no, count(*) FROM branch AS b JOIN event AS e ON e.branch_id = b.id
WHERE b.thread_no IN (SELECT value FROM json_each(?)) GROUP BY b.thread_no

-- name: delete_events_of
DELETE FROM event WHERE branch_id IN (
    SELECT id FROM branch WHERE thread_no IN (SELECT value FROM json_each(?)))

-- name: delete_pins_of
DELETE FROM pin WHERE thread_no IN (SELECT value FROM json_each(?))

-- name: delete_reports_of
DELETE FROM report WHERE number IN (
    SELECT report_no FROM turn WHERE thread_no IN (SELECT value FROM json_each(?)))

-- name: delete_turns_of
DELETE FROM turn WHERE thread_no IN (SELECT value FROM json_each(?))

-- name: delete_threads
DELETE FROM thread WHERE no IN (SELECT value FROM json_each(?))

-- Records that only this thread finds.
-- name: records_of_owner
SELECT thread_no FROM record WHERE owner_no = ?

-- Without its plus the id has a column's affinity, and no index on an expression is used.
-- name: copies_of_thread
SELECT r.thread_no FROM thread AS t JOIN collection AS c ON c.id = t.collection_id
JOIN record AS r ON r.origin IS NOT NULL AND json_extract(r.origin, '$.thread') = +t.id
    AND json_extract(r.origin, '$.collection') = c.name
WHERE t.no = ?

-- name: delete_unused_parts
DELETE FROM part WHERE collection_id = ? AND no NOT IN (SELECT part_no FROM event_part)

-- name: delete_unused_system_texts
DELETE FROM system_text
WHERE collection_id = :collection_id AND digest NOT IN (
    SELECT system_digest FROM turn
    WHERE collection_id = :collection_id AND system_digest IS NOT NULL
)

-- Another thread's prompt may have held records of the forgotten one.
-- name: clear_prompt_states
UPDATE thread SET prompt_state = NULL WHERE collection_id = ? AND prompt_state IS NOT NULL

-- name: delete_collection
DELETE FROM collection WHERE id = ?

-- ---- archive --------------------------------------------------------------------------------

-- name: archive_slice
SELECT data FROM archive_slice WHERE no = ?

-- name: rows_to_archive
SELECT seq, body, text FROM event
WHERE seq IN (SELECT value FROM json_each(?)) AND substr(body, 1, 1) <> '[' ORDER BY seq

-- name: count_active
SELECT count(*) FROM event
WHERE seq IN (SELECT value FROM json_each(?)) AND substr(body, 1, 1) <> '['

-- name: is_archived
SELECT 1 FROM archive WHERE thread_no = ?

-- name: insert_slice
INSERT INTO archive_slice (thread_no, plain_bytes, data)
SELECT no, ?, ? FROM thread WHERE no = ?

-- name: set_stored
UPDATE event SET body = ?, text = ? WHERE seq = ?

-- name: set_stub
UPDATE event SET body = ?, text = NULL WHERE seq = ?

-- name: insert_archive
INSERT INTO archive (thread_no, archived_at, summary) SELECT no, ?, ? FROM thread WHERE no = ?
ON CONFLICT (thread_no) DO UPDATE SET archived_at = excluded.archived_at,
                                      summary = excluded.summary

-- name: slices_of
SELECT no, data FROM archive_slice WHERE thread_no = ? ORDER BY no LIMIT ?

-- name: slice_sizes
SELECT ifnull(sum(plain_bytes), 0), ifnull(sum(length(data)), 0) FROM archive_slice
WHERE thread_no = ?

-- name: delete_slice
DELETE FROM archive_slice WHERE no = ?

-- name: delete_archive
DELETE FROM archive WHERE thread_no = ?

-- What of a thread its policy looks at. The head is missing while a document is being shelved.
-- name: holdings
SELECT t.no, t.id, t.session_id, t.collection_id, c.name, t.kind, t.updated_at, r.type,
       r.importance, r.project, r.title, r.source, r.owner_no,
       (SELECT json_group_array(tag) FROM record_tag WHERE thread_no = t.no),
       a.archived_at, a.summary
FROM thread AS t JOIN collection AS c ON c.id = t.collection_id
LEFT JOIN record AS r ON r.thread_no = t.no LEFT JOIN archive AS a ON a.thread_no = t.no
WHERE t.no > :after AND (:collection_id IS NULL OR t.collection_id = :collection_id)
  AND (:nos IS NULL OR t.no IN (SELECT value FROM json_each(:nos)))
  AND (NOT :only_archived OR a.thread_no IS NOT NULL)
  AND t.head_branch IS NOT NULL
ORDER BY t.no LIMIT :limit

-- Reads an index and no body.
-- name: holding_counts
SELECT b.thread_no, count(*), ifnull(sum(a.found_count), 0), ifnull(sum(a.used_count), 0),
       max(a.used_at)
FROM branch AS b JOIN event AS e ON e.branch_id = b.id LEFT JOIN access AS a ON a.seq = e.seq
WHERE b.thread_no IN (SELECT value FROM json_each(?)) GROUP BY b.thread_no

-- Reads every body: the length of a text is known by counting it.
-- name: holding_sizes
SELECT b.thread_no, sum(length(e.body) + ifnull(length(e.text), 0))
FROM branch AS b JOIN event AS e ON e.branch_id = b.id
WHERE b.thread_no IN (SELECT value FROM json_each(?)) GROUP BY b.thread_no

-- name: holding_slices
SELECT thread_no, sum(plain_bytes), sum(length(data)) FROM archive_slice
WHERE thread_no IN (SELECT value FROM json_each(?)) GROUP BY thread_no

-- Ids of the threads that records are copies of: they would go with those.
-- name: shared_threads
SELECT DISTINCT json_extract(origin, '$.thread') FROM record WHERE origin IS NOT NULL

-- name: pinned_threads
SELECT DISTINCT e.thread_no FROM pin AS p JOIN event AS e ON e.seq = p.event_seq

-- name: accesses
SELECT seq, found_count, used_count FROM access WHERE seq IN (SELECT value FROM json_each(?))

-- An event that was deleted meanwhile has none.
-- name: count_access
INSERT INTO access (seq, found_count, used_count, used_at)
SELECT seq, :found, :used, iif(:used, :at, NULL) FROM event WHERE seq = :seq
ON CONFLICT (seq) DO UPDATE SET found_count = found_count + excluded.found_count,
                                used_count = used_count + excluded.used_count,
                                used_at = ifnull(excluded.used_at, used_at)

-- Of another library: the same again must count nothing twice.
-- name: take_access
INSERT INTO access (found_count, used_count, used_at, seq) VALUES (?, ?, ?, ?)
ON CONFLICT (seq) DO UPDATE SET found_count = max(found_count, excluded.found_count),
                                used_count = max(used_count, excluded.used_count),
                                used_at = nullif(max(ifnull(used_at, 0),
                                                     ifnull(excluded.used_at, 0)), 0)

-- name: count_archive
SELECT (SELECT count(*) FROM archive), (SELECT ifnull(sum(plain_bytes), 0) FROM archive_slice),
       (SELECT ifnull(sum(length(data)), 0) FROM archive_slice)

-- ---- outbox ---------------------------------------------------------------------------------

-- name: due
SELECT seq, attempts FROM outbox WHERE is_quarantined = 0 AND available_at <= ?
ORDER BY seq LIMIT ?

-- name: lease
UPDATE outbox SET owner = ?, token = ?, attempts = ?, available_at = ? WHERE seq = ?

-- Whose lease still holds, of pairs of seq and token.
-- name: settle
DELETE FROM outbox WHERE (seq, token) IN (
    SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?))
RETURNING seq

-- name: insert_indexed
INSERT INTO indexed (seq, collection_id, spans)
SELECT seq, collection_id, ? FROM event WHERE seq = ?
ON CONFLICT (seq) DO UPDATE SET spans = excluded.spans

-- The older event may have been deleted since it was looked at.
-- name: insert_replacement
INSERT INTO replacement (older_seq, newer_seq) SELECT seq, ? FROM event WHERE seq = ?
ON CONFLICT DO NOTHING

-- What replaces one of the seqs may be replaced itself, and so on.
-- name: replacements
WITH RECURSIVE later(older_seq, newer_seq, step) AS (
    SELECT older_seq, newer_seq, 1 FROM replacement
    WHERE older_seq IN (SELECT value FROM json_each(:seqs))
    UNION
    SELECT replacement.older_seq, replacement.newer_seq, step + 1
    FROM later JOIN replacement ON replacement.older_seq = later.newer_seq
    WHERE step < :most_steps
)
SELECT older_seq, newer_seq FROM later
UNION
SELECT older_seq, newer_seq FROM replacement
WHERE newer_seq IN (SELECT value FROM json_each(:seqs))
ORDER BY newer_seq, older_seq

-- name: fail
UPDATE outbox SET owner = NULL, token = NULL, available_at = ?, error = ?, is_quarantined = ?
WHERE seq = ? AND token = ?

-- name: retry_quarantined
UPDATE outbox SET is_quarantined = 0, attempts = 0, available_at = 0
WHERE is_quarantined AND (:seqs IS NULL OR seq IN (SELECT value FROM json_each(:seqs)))

-- name: recorded
SELECT ifnull(max(seq), 0) FROM event

-- name: oldest_pending
SELECT o.seq, e.recorded_at FROM outbox AS o JOIN event AS e ON e.seq = o.seq
WHERE o.is_quarantined = 0 ORDER BY o.seq LIMIT 1

-- name: pending_count
SELECT count(*) FROM outbox WHERE is_quarantined = 0

-- name: quarantined
SELECT o.seq, e.given_id, o.attempts, o.error FROM outbox AS o JOIN event AS e ON e.seq = o.seq
WHERE o.is_quarantined ORDER BY o.seq

-- name: thread_pending
SELECT 1 FROM outbox WHERE thread_no = ? AND is_quarantined = 0 LIMIT 1

-- ---- for derived indexes --------------------------------------------------------------------

-- name: indexed_after
SELECT seq, spans FROM indexed WHERE seq > ? ORDER BY seq LIMIT ?

-- name: vectors
SELECT i.seq, e.thread_no, e.branch_id, e.position, v.rows,
       e.occurred_at / 1000000, t.kind
FROM indexed AS i JOIN event AS e ON e.seq = i.seq JOIN thread AS t ON t.no = e.thread_no
JOIN vector AS v ON v.seq = i.seq
    AND v.embedder_no = (SELECT no FROM embedder WHERE identity = :embedder)
WHERE i.collection_id = :collection_id AND i.seq > :after ORDER BY i.seq LIMIT :limit

-- ---- rows of embedders ----------------------------------------------------------------------

-- name: embedders
SELECT no, identity, name, dim, embedded_upto, is_serving FROM embedder ORDER BY no

-- name: insert_embedder
INSERT INTO embedder (identity, name, dim) VALUES (:identity, :name, :dim)
ON CONFLICT (identity) DO UPDATE SET name = excluded.name

-- name: serve_embedder
UPDATE embedder SET is_serving = (no = ?)

-- name: delete_other_embedders
DELETE FROM embedder WHERE no <> ?

-- What was indexed anew, or late, is below the mark and has no rows.
-- name: lower_embedded
UPDATE embedder SET embedded_upto = :seq - 1 WHERE embedded_upto >= :seq

-- name: reset_other_marks
UPDATE embedder SET embedded_upto = 0 WHERE no <> ? AND embedded_upto > 0

-- name: raise_embedded
UPDATE embedder SET embedded_upto = :upto
WHERE no = :no AND embedded_upto = :after AND NOT EXISTS (
    SELECT 1 FROM indexed AS i
    WHERE i.seq > :after AND i.seq <= :upto AND i.spans <> '[]'
      AND NOT EXISTS (SELECT 1 FROM vector AS v WHERE v.seq = i.seq AND v.embedder_no = :no)
)

-- name: owed_rows
SELECT i.seq, i.spans FROM indexed AS i
WHERE i.seq > :after AND i.seq <= :upto AND i.spans <> '[]'
  AND NOT EXISTS (SELECT 1 FROM vector AS v WHERE v.seq = i.seq AND v.embedder_no = :no)
ORDER BY i.seq LIMIT :limit

-- name: owed_rows_of
SELECT i.seq, i.spans FROM indexed AS i
WHERE i.seq IN (SELECT value FROM json_each(:seqs)) AND i.spans <> '[]'
  AND NOT EXISTS (SELECT 1 FROM vector AS v WHERE v.seq = i.seq AND v.embedder_no = :no)
ORDER BY i.seq

-- name: indexed_upto
SELECT ifnull(max(seq), 0) FROM indexed

-- name: count_owed_rows
SELECT count(*) FROM indexed WHERE seq > ?

-- name: insert_vector
INSERT INTO vector (seq, embedder_no, rows)
SELECT seq, :no, :rows FROM indexed WHERE seq = :seq AND json_array_length(spans) = :count
ON CONFLICT (seq, embedder_no) DO UPDATE SET rows = excluded.rows

-- name: delete_all_vectors
DELETE FROM vector

-- name: reset_marks
UPDATE embedder SET embedded_upto = 0

-- name: delete_vectors
DELETE FROM vector WHERE seq IN (SELECT value FROM json_each(?))

-- name: vector_seqs
SELECT DISTINCT seq FROM vector WHERE seq > ? ORDER BY seq LIMIT ?

-- name: delete_other_vectors
DELETE FROM vector WHERE seq > :after AND seq <= :upto AND embedder_no <> :no

-- ---- verification ---------------------------------------------------------------------------

-- References that no foreign key holds: (where, what is wrong).
-- name: verify_references
SELECT 'thread ' || t.id, 'its live head is missing' FROM thread AS t
WHERE t.head_branch IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM event AS e JOIN branch AS b ON b.id = e.branch_id
    WHERE e.branch_id = t.head_branch AND e.position = t.head_position AND b.thread_no = t.no
)
UNION ALL
SELECT 'event e' || e.seq, 'its thread is missing or of another collection' FROM event AS e
WHERE NOT EXISTS (
    SELECT 1 FROM thread AS t WHERE t.no = e.thread_no AND t.collection_id = e.collection_id
)
UNION ALL
SELECT 'turn ' || u.id, 'its thread is missing' FROM turn AS u
WHERE NOT EXISTS (SELECT 1 FROM thread AS t WHERE t.no = u.thread_no)
UNION ALL
SELECT 'turn ' || u.id, 'its newest message is missing' FROM turn AS u
WHERE u.head_seq IS NOT NULL AND NOT EXISTS (SELECT 1 FROM event WHERE seq = u.head_seq)
UNION ALL
SELECT 'turn ' || u.id, 'a reply of it is missing' FROM turn AS u, json_each(u.reply_seqs) AS r
WHERE NOT EXISTS (SELECT 1 FROM event WHERE seq = r.value)
UNION ALL
SELECT 'report ' || r.number, 'its turn is missing' FROM report AS r
WHERE NOT EXISTS (SELECT 1 FROM turn AS u WHERE u.no = r.turn_no)
UNION ALL
SELECT 'turn ' || u.id, 'its system text is missing' FROM turn AS u
WHERE u.system_digest IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM system_text AS s
    WHERE s.collection_id = u.collection_id AND s.digest = u.system_digest
)

-- name: verify_schema_count
SELECT count(*) FROM sqlite_schema

-- name: verify_thread_count
SELECT count(*) FROM thread

-- name: verify_bodies
SELECT e.seq, e.given_id, e.role, e.body, e.digest, e.is_masked, t.kind
FROM event AS e JOIN thread AS t ON t.no = e.thread_no ORDER BY e.seq

-- A branch is forked off an older one, so parents come first.
-- name: verify_branches
SELECT id, thread_no, parent_id, fork_position FROM branch ORDER BY id

-- name: verify_branch
SELECT seq, given_id, position, digest, chain, thread_no FROM event
WHERE branch_id = ? ORDER BY position

-- name: verify_fork
SELECT e.chain FROM branch AS b
JOIN branch AS p ON p.id = b.parent_id AND p.thread_no = b.thread_no AND p.id < b.id
JOIN event AS e ON e.branch_id = p.id AND e.position = b.fork_position
WHERE b.id = ?

-- name: verify_neither
SELECT seq, given_id FROM event
WHERE seq NOT IN (SELECT seq FROM outbox) AND seq NOT IN (SELECT seq FROM indexed)

-- name: verify_indexed
SELECT i.seq, e.given_id, i.spans, e.text, e.body
FROM indexed AS i JOIN event AS e ON e.seq = i.seq ORDER BY i.seq

-- name: verify_vectors
SELECT v.seq, e.given_id, length(v.rows), json_array_length(i.spans), m.dim
FROM vector AS v JOIN event AS e ON e.seq = v.seq
LEFT JOIN indexed AS i ON i.seq = v.seq LEFT JOIN embedder AS m ON m.no = v.embedder_no
ORDER BY v.seq

-- Events below the mark of an embedder that lack its rows.
-- name: verify_embedded
SELECT i.seq, e.given_id, m.identity FROM embedder AS m
JOIN indexed AS i ON i.seq <= m.embedded_upto AND i.spans <> '[]'
JOIN event AS e ON e.seq = i.seq
WHERE NOT EXISTS (SELECT 1 FROM vector AS v WHERE v.seq = i.seq AND v.embedder_no = m.no)
LIMIT 1

-- How much of the searched embedder's work is done, or owed.
-- name: verify_owed
SELECT m.identity, count(i.seq) FROM embedder AS m
LEFT JOIN indexed AS i ON i.seq > m.embedded_upto
WHERE m.is_serving GROUP BY m.no

-- name: verify_spans
SELECT seq, spans FROM indexed ORDER BY seq

-- name: verify_indexed_count
SELECT count(*) FROM indexed
