"""What a question about the whole is about: its words without those of asking. Pure.

"Can you list the order in which I brought up different aspects of my budget tracker throughout our
conversations?" is about a budget tracker. The other words are of every such question, and of no
record that answers one: they find what lists, orders and brings up, and they make a question about
something never said look half answered.

Words are kept as they are spelled, so that names, versions and paths stay whole. English only: of
another language nothing is known, which is said and not guessed.
"""

from library.analysis import STOP_WORDS

_ASKING = """
    account accounts across again all approach arrange aspect aspects bring bringing brought
    catch chat chats chronological chronologically chronology clear collect compile complete
    comprehensive conversation conversations cover covered day days describe detailed developed
    different discuss discussed discussing discussion discussions earliest eight entire
    enumerate event events ever every everything evolve evolved exact explain far few first five
    four full gather give happened history including item items key last latest let's like list
    main make many mention mentioned mentioning message messages month months name need nine now
    one only order ordered organize outline overall overview past please progressed provide put
    question questions raised recap recapitulate recount remember remind request requests
    rundown said say sequence session sessions seven show six sort summaries summarise
    summarised summarize summarized summary talked ten thing things three throughout till time
    timeline today together topic topics trace two various walk want way ways week weeks whole
    would write year years
"""
_ASKING_WORDS = frozenset(_ASKING.split())
_JOINING_WORDS = _ASKING_WORDS | STOP_WORDS
_MARKS = " \t\n.,;:?!()[]\"'\u2018\u2019\u201c\u201d"
"""At the ends of a word they are none of it."""


def topic(text: str) -> str | None:
    """Return a broad question without its words of asking and those that only join; "" when there
    is nothing else, so that it asks for everything. None: it has no word of asking that is known.
    """
    found = [word.strip(_MARKS) for word in text.split()]
    spelled = [word.lower().replace("\u2019", "'") for word in found]
    if _ASKING_WORDS.isdisjoint(spelled):
        return None
    return " ".join(
        word
        for word, plain in zip(found, spelled, strict=True)
        if plain and _JOINING_WORDS.isdisjoint((plain, plain.partition("'")[0]))
    )
