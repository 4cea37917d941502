"""Records that are shelved on purpose, beside what chats say: insights, documents, chunks.

Each is a thread of its own with a `kind` (library/kinds/filter.py), so that recording, indexing,
vectors, links, verification, forgetting and isolation are the ones that chats have. A version of an
insight, or an edition of a document, is a root branch of its thread; the live one is what searches
see. What a thread cannot say (importance, tags, project, source, scope) stands in the table
`record`.
"""
