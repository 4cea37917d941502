"""Bodies that lie compressed, and what is known of how often their events are wanted."""
