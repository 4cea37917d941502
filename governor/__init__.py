"""The governor: decides, per request, what fits into the context budget."""
