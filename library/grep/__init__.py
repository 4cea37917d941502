"""Search for exact words and patterns: what is in a text, and not what it is about."""
