"""Who may promote how far; what is copied is held in tests/unit/library/kinds/test_promoting.py."""

from pathlib import Path

import pytest

from gateway.auth import Principal
from gateway.refusals import ScopeForbidden
from gateway.routes.promotions import promoted
from library.errors import UnknownRecord
from library.library import Library
from library.runtime.options import LibraryOptions


async def test_a_key_that_reaches_one_thread_promotes_nothing_to_its_project(
    tmp_path: Path,
) -> None:
    """DESIGN 9: keys map to scopes."""
    narrow, wide = Principal("ann", scopes=("thread",)), Principal("ann")
    options = LibraryOptions(db=tmp_path / "library.db", embedder="none")
    library = await Library.open(options)
    try:
        with pytest.raises(ScopeForbidden):
            await promoted(library, narrow, "e1", to="project", team=None, known_teams=None)
        with pytest.raises(UnknownRecord):
            await promoted(library, wide, "e1", to="project", team=None, known_teams=None)
    finally:
        await library.close()
