-- A copy is found by what it is a copy of, and goes when the thread of that is deleted.
CREATE INDEX record_copy_of ON record(json_extract(origin, '$.of')) WHERE origin IS NOT NULL;
CREATE INDEX record_copy_from ON record(json_extract(origin, '$.thread')) WHERE origin IS NOT NULL;
