-- How a thread's own desk is placed and replaced, in the governor's words; NULL: as for its model.
ALTER TABLE thread ADD COLUMN desk_placement TEXT;
ALTER TABLE thread ADD COLUMN desk_replacement TEXT;
