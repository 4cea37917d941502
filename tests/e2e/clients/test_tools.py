"""Other people's conformance tools find no fault (`scripts/conform` runs them by hand)."""

import pytest

from tests.e2e.clients.environments import environment, install, is_installed
from tests.e2e.clients.tools import ARRANGEMENTS, FORMATS, TOOLS, findings


@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_conformance_tools_find_no_fault(arrangement: str, request: pytest.FixtureRequest) -> None:
    """Issue 5: `llm-comply` and `compatcanary`, offline."""
    for tool in map(environment, TOOLS):
        if not is_installed(tool):
            if not request.config.getoption("--all"):
                pytest.skip("`scripts/conform` installs it")
            install(tool)
    found = findings(arrangement)
    assert [one for one in found if one.status == "failed"] == []
    passed = {one.tool for one in found if one.status == "passed"}
    assert passed == {"compatcanary", *(f"llm-comply {form}" for form in FORMATS)}
