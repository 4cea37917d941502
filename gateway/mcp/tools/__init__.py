"""The tools, a module for each of the things that they work on."""
