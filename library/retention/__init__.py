"""What becomes of records that nobody has wanted for long: archived, and in the end purged.

A thread (a chat, an insight, a document, a chunk) is active, archived or gone. Archived, its text
lies compressed (library/store/archive) and everything else stays: it is found by its words, its
tags and its vectors, and read like any other; opened, it is active again. Purged, nothing of it is
left. What a run would do is worked out first, as plain data (plan.py), and can be looked at.
"""
