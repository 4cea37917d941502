"""Taking whole threads into a library and out of it: what `import` and `export` are made of."""
