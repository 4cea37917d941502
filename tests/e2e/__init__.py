"""Black-box tests: a real gateway process, real HTTP, a scripted upstream that checks what it gets.

Nothing here imports the product. What a test knows of the inside it reads from the SQLite file
with a connection of its own (database.py) or asks over HTTP, as a user would.
"""
