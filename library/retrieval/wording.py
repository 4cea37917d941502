"""The question as it is embedded: who is meant by its names, told at once or guessed before.

Which words of a question are names is known when the words have been found, since whoever is called
so spoke there. But to embed the question takes as long as all the rest of a search, and can go on
while the words are looked for. So it begins with the names of those who spoke in the last search of
the same collection; where that was wrong, the question is embedded once more. What a search
returns depends on the settled wording only.
"""

from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from library.reading.speakers import NOBODY, in_first_person, named, speaker_key
from library.reading.spelling import one_slip_away, respelled
from library.records import SearchQuery

if TYPE_CHECKING:
    from library.retrieval.candidates import Candidates

MOST_REACHES = 1_024
"""Collections, with those of teams, whose speakers are kept: a few hundred bytes each."""


class Wordings:
    """Remembers who spoke; see the module's docstring."""

    def __init__(self) -> None:
        self._speakers: OrderedDict[frozenset[int], frozenset[int]] = OrderedDict()

    def likely(self, query: SearchQuery) -> str:
        """Return the question as it will most likely be worded."""
        speakers = self._speakers.get(_reach(query), frozenset())
        return in_first_person(query.text, named(query.text, speakers))

    def settled(
        self, query: SearchQuery, found: "Candidates", corrected: Mapping[str, str]
    ) -> tuple[list[str], str]:
        """Return the names in the question and its wording, by who said what was found.

        `corrected` has what misspelt words were meant to be; who spoke decides for names.
        """
        speakers = frozenset(found["speaker"].tolist()) - {NOBODY}
        self._speakers[_reach(query)] = speakers
        self._speakers.move_to_end(_reach(query))
        if len(self._speakers) > MOST_REACHES:
            self._speakers.popitem(last=False)
        meant = {
            word: min(
                (one for one in one_slip_away(word) if speaker_key(one) in speakers), default=term
            )
            for word, term in corrected.items()
        }
        text = respelled(query.text, meant)
        names = named(text, speakers)
        return names, in_first_person(text, names)


def _reach(query: SearchQuery) -> frozenset[int]:
    """Return where a query looks: who asks elsewhere must not learn who speaks here."""
    return query.team_ids | {query.collection_id}
