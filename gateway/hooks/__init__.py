"""Hooks of Claude Code: small commands that it runs at moments of its own, with JSON on their
standard input. They save, brief and remind, and whatever goes wrong, they never fail the agent."""
