"""From a file's bytes to its text: which kind of document it is, and what of it is words."""
