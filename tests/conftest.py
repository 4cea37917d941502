"""What all tests share: a run names what it left out, and with `--all` it may leave out nothing.

A test that cannot run everywhere skips with a sentence that says what enables it; these sentences
are the last lines of a run, so that a green run never claims more than it did.
"""

from pathlib import Path

import hypothesis
import pytest

hypothesis.settings.register_profile("shared", deadline=None)
hypothesis.settings.load_profile("shared")
"""Wall time says nothing on a machine that others use, too."""
_LEFT_OUT = pytest.StashKey[dict[str, int]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="a skipped test is a failure")
    parser.addoption(
        "--data",
        type=Path,
        default=None,
        help="folder with transcripts/*.jsonl for the long replay; default: the small fixture",
    )
    parser.addoption(
        "--rounds", type=int, default=20, help="how often the crash test kills the gateway"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_LEFT_OUT] = {}


class _Watcher:
    """Counts skipped tests by reason, those of a whole module included."""

    def __init__(self, config: pytest.Config) -> None:
        self._left_out = config.stash[_LEFT_OUT]

    def _count(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            assert isinstance(report.longrepr, tuple)
            reason = report.longrepr[2].removeprefix("Skipped: ")
            self._left_out[reason] = self._left_out.get(reason, 0) + 1

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._count(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._count(report)


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.pluginmanager.register(_Watcher(session.config))


def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.config.getoption("--all") and session.config.stash[_LEFT_OUT]:
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


def pytest_unconfigure(config: pytest.Config) -> None:
    """Say what was left out, after everything else."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    left_out = config.stash[_LEFT_OUT]
    if reporter is None or not left_out:
        return
    for reason, count in sorted(left_out.items()):
        reporter.write_line(f"left out: {count} x {reason}")
    if config.getoption("--all"):
        reporter.write_line("failed: --all leaves nothing out", red=True)
