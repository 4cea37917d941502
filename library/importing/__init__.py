"""Conversations that other systems wrote down, read as messages: one reader a format, no store.

Every reader yields `items` in the order in which a store can take them: a message comes after the
one that it follows. Bodies are in the form of chat completions, whatever form they were kept in;
times are the source's own. A reader holds one conversation at most: a file of any length is read in
constant memory. What cannot be read is an item too, with its place, and the rest goes on.
"""
