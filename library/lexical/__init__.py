"""Full-text search in a folder of its own: the index, its scopes, runs and files (index.py)."""

from library.lexical.errors import LexicalUnavailable
from library.lexical.index import SCHEMA_VERSION, Document, Lexical, stems

__all__ = ["SCHEMA_VERSION", "Document", "Lexical", "LexicalUnavailable", "stems"]
