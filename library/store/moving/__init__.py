"""Whole threads into a store and out of it: `Store.moving`."""
