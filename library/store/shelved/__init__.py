"""Records that are no chats, in SQLite."""
