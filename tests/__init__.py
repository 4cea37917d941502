"""The tests of the whole tree; see pyproject.toml for how they are run."""
