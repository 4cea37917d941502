"""Questions by hand: a search for words alone, without a transcript that they stand in.

Every front end that lets people or agents search (HTTP, MCP, the command line) asks this.
"""

from dataclasses import dataclass
from datetime import date

from library.errors import UnknownRecord
from library.kinds.filter import EVERYTHING, Filter
from library.library import Library
from library.reading.questions import QuestionKind, question_kind
from library.records import Event, Path, Scope, SearchQuery, SearchResult

CATCH_UP_S = 2.0
"""For what an earlier process left: who asks by hand, right after a start, waits so long for it."""
ANYWHERE = 2**62
"""A position behind every message: nothing is in a prompt already."""


@dataclass(frozen=True, slots=True)
class Question:
    """What somebody looks for, and where."""

    words: str
    asked_on: date
    collection_id: int
    limit: int
    thread: str | None = None
    """An id, or the session that a client named; None: every thread alike."""
    scope: Scope = "thread"
    """With a thread: that one alone, or (`project`) all, that one first."""
    filter: Filter = EVERYTHING
    team_ids: frozenset[int] = frozenset()
    """Shelves of the asker's teams, looked at too wherever all threads are."""
    exclude_seqs: frozenset[int] = frozenset()
    """Events that who asks has before them already."""

    @property
    def kind(self) -> QuestionKind:
        """Which kind of search the words need, as in a request."""
        return question_kind(self.words)


async def ask(library: Library, question: Question) -> SearchResult:
    """Return the passages that bear on a question, best first.

    Raises:
        UnknownRecord: there is no such thread, or it is empty.

    """
    thread_no = 0
    path: Path = ()
    scope: Scope = "project"
    if question.thread is not None:
        first = await first_event(library, question.thread, question.collection_id)
        thread_no, scope = first.thread_no, question.scope
        path = await library.store.live_path(thread_no)
    query = SearchQuery(
        collection_id=question.collection_id,
        text=question.words,
        scope=scope,
        thread_no=thread_no,
        path=path,
        before_position=ANYWHERE,
        exclude_seqs=question.exclude_seqs,
        limit=question.limit,
        asked_on=question.asked_on,
        kind=question.kind,
        filter=question.filter,
        team_ids=question.team_ids,
    )
    result = await library.search(query)
    if "index-behind" in result.degraded and await library.wait_caught_up(CATCH_UP_S):
        result = await library.search(query)
    return result


async def first_event(library: Library, thread: str, collection_id: int | None) -> Event:
    """Return the first event of a thread, which tells its id, number and collection; `thread` may
    also be the session that its client named.

    Raises:
        UnknownRecord: there is no such thread, or it is empty.

    """
    for event in await library.store.thread_events(
        thread, collection_id=collection_id, live_only=False, after=0, limit=1
    ):
        return event
    raise UnknownRecord(kind="thread", name=thread)
