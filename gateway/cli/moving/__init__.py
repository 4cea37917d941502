"""Commands that take a library in and out: `import`, `export`, `backup`, `restore`."""
