"""The retrieval benchmark: `library-of-context bench recall`.

Conversations whose questions name the messages that answer them are told to a real library, every
question is asked through the real governor, and what then lies on the desk is compared with what
should lie there. No language model takes part.

    conversations.py  reads files of the form
    replay.py         tells a conversation to a library, kept for later runs
    remembering.py    an embedder that makes each row once
    methods.py        what lays out a desk: the library, and what it is compared with
    baselines.py      those of this machine: a window, full text, vectors
    fts5.py           SQLite's full-text search
    peers.py          somebody else's memory, in an environment of its own
    peer_worker.py    what runs there
    filling.py        a desk filled by a given order, charged like the library's
    scoring.py        the metric
    results.py        what was answered, kept so that a stopped run goes on
    run.py            the loop over sets, methods, conversations, questions and budgets
    tables.py         results for people
    command.py        the command line
    progress.py       the bar
"""
