"""The library as the layers above see it: one object that records, finds and forgets.

It owns the store, the derived indexes and the indexer that keeps them up. It knows no HTTP and no
prompt.
"""
