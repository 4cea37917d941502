"""Retention from outside: its settings, its schedule, and what the front ends say of a plan."""
