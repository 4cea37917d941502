"""What is remembered and shelved on purpose, from the terminal."""
