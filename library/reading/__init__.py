"""What can be read off a text without a model: kinds of question, dates, names, changes."""
