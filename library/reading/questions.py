"""Which kind of search a question needs, read off its words. Pure.

* `depth`: a fact stands in one place; the best passages first. What is not clearly another kind.
* `breadth`: a summary, a full list, a development: something of every part of the past.
* `order`: what came when: as broad, and the order of time is the answer.

Precision comes before recall: a fact that is looked for broadly is lost, a summary that is looked
for deeply is only poorer. So the phrase must stand in a sentence that asks for something, whole
("in order to" is no order), and a summary must be about what was said (`my`, `we`, "so far"), not
about a text that comes with the question. Long texts are read at both ends, where the request
stands.

Rejected: any question with a plural ("which books has he read"): that is as often one sentence.
"""

import re
from typing import Literal

from library.reading.topics import as_meant

QuestionKind = Literal["depth", "breadth", "order"]
READ_CHARS = 400
"""Of a longer text the first and the last so many are read."""

_SENTENCE = re.compile(r"[^.?!。？！\n]+[.?!。？！]*")  # noqa: RUF001 - Chinese and Japanese ends


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


_REQUEST = _any(
    r"[?？]",  # noqa: RUF001
    r"^\W*(?:(?:and|so|now|ok|okay|then|please|also|hey|hi|first|finally),? )*(?:please |just )?"
    r"(?:list|name|enumerate|tell|give|provide|show|remind|summari[sz]e|recap|sum|walk|write|make|"
    r"create|put|arrange|sort|order|recount|collect|gather|describe|outline|catch|bring|compile|"
    r"produce|prepare|trace|what|how|which|in (?:what|which))\b",
    r"\b(?:(?:can|could|would|will) you|please|i(?:'d| would) like|i (?:want|need)|let'?s)\b",
)
"""A sentence that asks. Languages whose phrases below are requests by themselves need none."""

_OPENING = r"^\W*(?:(?:and|so|now|ok|okay|then|but|please|also|hey|hi|first|finally),? )*(?:just )?"
_TELLING = (
    r"(?:tell|remind|recall|remember|list|name|enumerate|give|provide|show|explain|describe|outline|"
    r"summari[sz]e|recap|recount|walk|let me know)\b"
)
_TELL_ME = _any(
    _OPENING + _TELLING,
    r"\b(?:can|could|would|will) you (?:please |just )?" + _TELLING,
    _OPENING + r"(?:what|how|which|who|whose|whom|when|where|why)\b.*\?",
)
_DO = _any(r"\b(?:can|could|would|will) you\b", r"\b(?:can|could|may|shall) (?:we|i)\b|\bplease\b")
"""A question that asks for a deed."""

_ORDER = _any(
    r"\border in which\b",
    r"\bin (?:what|which) (?:order|sequence)\b",
    r"\bin (?:the )?(?:chronological|(?:right|correct|exact) (?:time )?order (?:of|in)\b)",
    r"\bchronolog(?:y|ical) (?:of|order|list|overview|summary|account)\b",
    r"\b(?:sequence|order|time ?line|chronology) of (?:(?:the|my|our|all|key|main) ){0,3}"
    r"(?:events|topics|milestones|changes|decisions|meetings|trips|visits|things|what|how)\b",
    r"\b(?:list|name|tell|give|recount|walk|arrange|sort|order|put)\b.{0,400}"
    r"\b(?:in (?:chronological )?(?:order|sequence)(?! to\b)|chronologically|"
    r"from (?:first|earliest|oldest) to (?:last|latest|newest|most recent))\b",
    r"\b(?:give|show|make|create|write|provide|build|draw)\b.{0,60}\btime ?line of "
    r"(?:my|our|all|how|what|everything)\b",
)
_WHOLE = _any(
    r"\beverything (?:that )?(?:(?:you|we|i)(?:'ve| have)? (?:ever )?(?:said|told|mention|"
    r"discuss|cover|decid|learn|talk|know|remember|plan|agreed|worked)|about (?:me|us)\b|"
    r"[a-z]+ (?:has|have|had|ever|said|told|did)\b)",
    r"\b(?:list|name|enumerate|give me|show me|tell me) (?:me )?(?:a (?:complete|full) list of|all "
    r"(?:of )?(?:the|my|our)|every) .{0,200}\b(?:i|i've|we|we've|has|have|had|did|so far)\b",
    r"\bwhat (?:all )?(?:have|did|do) (?:we|i|you and i) (?:all )?[a-z]+\b.{0,60}\b(?:so far|until "
    r"now|up to now|(?:across|throughout|over) (?:our|these|the (?:past|last))\b)",
    r"\bwhat (?:all )?do you (?:know|remember) about (?:me|us)\b",
    r"\b(?:across|throughout|over|in) (?:all )?(?:of )?(?:our|my|these) (?:\w+ ){0,2}"
    r"(?:conversations|sessions|chats|discussions|requests|messages|questions)\b",
    r"\bhow (?:did|has|have|had) (?!you\b).{1,160}\b(?:change|evolve|develop|grow|shift|improve|"
    r"progress)d?\b.{0,60}\b(?:over (?:time|the (?:past|last|course|years|months|weeks))|"
    r"throughout|across (?:our|my|all|the)|since (?:the start|we|i)\b|from\b.{1,80}\bto\b)",
    r"\b(?:up to (?:speed|date) (?:on|with|about)|catch me up|where do we stand)\b",
)
_SUMMARY = _any(
    r"\b(?:summar(?:y|i[sz]e|i[sz]ing)|recap(?:itulate)?|overview|sum up|tl;?dr|rundown)\b"
)
_OURS = _any(
    r"\b(?:i|my|i've|we|we've|our|so far|until now|conversations?|chats?|sessions?|"
    r"discussions?|discussed|history|meetings?)\b"
)
_GIVEN = _any(
    r"\b(?:following|attached|below|above|pasted)\b",
    r"\b(?:this|the|an?) (?:\w+ )?(?:article|paper|file|e-?mail|paragraph|text|document|page|pdf|"
    r"function|code|class|log|book|chapter|video|link|pull request|diff|commit|transcript)\b",
)
"""What is to be summarized comes with the question, or is elsewhere."""
_IS_RULE = _any(r"\b(?:always|whenever|when(?:ever)? i ask|never|from now on)\b")

_ORDER_ABROAD = _any(
    r"按(?:照)?(?:时间|時間|先后|先後|发生|發生)的?(?:顺序|順序)?(?:排|列|说|說|告)|(?:时间|時間|先后|先後)"
    r"(?:顺序|順序)|(?:时间|時間)(?:线|線)|時系列|(?:起きた|話した|時間)順に|시간\s?순|순서대로|연대순",
    r"\bordre chronologique\b|\bdans quel ordre\b|\bchronologie d[eu]",
    r"\bin welcher reihenfolge\b|\bchronologisch|\bder reihe nach\b|\bzeitliche[rn]? reihenfolge\b",
    r"\ben qu[eé] orden\b|\borden cronol[oó]gico\b|\bcronolog[ií]a de\b",
)
_BREADTH_ABROAD = _any(
    r"(?:总结|總結|概括|归纳|歸納|回顾|回顧|梳理|汇总|彙總)(?:一下|下)?.{0,12}(?:我|目前|至今|对话|對話|讨论|討論|之前|"
    r"迄今)|我.{0,20}(?:总结|總結|归纳|歸納|汇总|彙總)(?:一下)?[。？?]?$",  # noqa: RUF001
    r"(?:列出|列举|列舉|告诉我|告訴我).{0,12}(?:所有|全部|一切)",
    r"(?:これまで|今まで|私|僕|俺|会話|話し合|相談).{0,60}(?:まとめて|要約して|振り返って|(?:すべて|全て|全部).{0,8}(?:挙げ|教え))",
    r"(?:지금까지|내가|우리|나의|내|대화).{0,60}(?:요약|정리해|(?:모두|전부).{0,10}(?:나열|알려|말해))",
    r"\b(?:résum(?:e|ez|er)|récapitul\w+|fai(?:s|tes) (?:un|le) (?:résumé|bilan|point)|"
    r"vue d'ensemble)\b.{0,160}\b(?:je|j'ai|mon|ma|mes|nous|notre|nos|jusqu)",
    r"\b(?:liste|énumère|cite|donne)\w* (?:\w+ )?(?:toutes les|tous les|tout ce)\b.{0,120}"
    r"\b(?:j'|nous|on a|mes|nos)\b",
    r"\b(?:fass\w* .{0,120}\bzusammen\b|zusammenfassung|überblick über).{0,160}"
    r"(?:\b(?:ich|mein\w*|wir|unser\w*|bisher\w*)\b|$)",
    r"\b(?:liste|nenn\w*|zähl\w*) .{0,20}\b(?:alle\w*)\b.{0,120}\b(?:ich|wir|mein\w*|unser\w*)\b",
    r"\b(?:resúm\w+|resumen de|recapitula\w*|haz un resumen).{0,160}"
    r"\b(?:mi|mis|he|hemos|nuestr\w+|hasta ahora)\b",
    r"\b(?:enumera|lista|dime) (?:\w+ )?(?:todo lo que|tod[oa]s (?:los|las))\b.{0,120}"
    r"\b(?:he|hemos|mi|mis|te)\b",
)  # fmt: skip


def question_kind(text: str) -> QuestionKind:
    """Return which kind of search a question needs; reads at most 800 characters of it."""
    read = _ends(text).lower().replace("\u2019", "'")
    # Both: "ordre" is a word, too.
    kinds = {
        _sentence_kind(sentence)
        for spelled in dict.fromkeys((read, as_meant(read)))
        for sentence in _SENTENCE.findall(spelled)
    }
    if "order" in kinds:
        return "order"
    return "breadth" if "breadth" in kinds else "depth"


def is_question(text: str) -> bool:
    """Tell whether a message only asks to be told something: it is short, and a sentence of it is
    a question.

    What a long message needs comes mostly with it, and what is to be done is about what lies
    before one's eyes; a short question is about something elsewhere.
    """
    if len(text) > READ_CHARS:
        return False
    read = text.lower().replace("\u2019", "'")
    return question_kind(text) != "depth" or any(
        _TELL_ME.search(sentence) or ("?" in sentence and not _DO.search(sentence))
        for sentence in _SENTENCE.findall(read.replace("\uff1f", "?"))
    )


def _sentence_kind(sentence: str) -> QuestionKind:
    if _ORDER_ABROAD.search(sentence):
        return "order"
    if _BREADTH_ABROAD.search(sentence):
        return "breadth"
    if not _REQUEST.search(sentence) or _IS_RULE.search(sentence):
        return "depth"
    if _ORDER.search(sentence):
        return "order"
    is_summary = _SUMMARY.search(sentence) and not _GIVEN.search(sentence)
    if _WHOLE.search(sentence) or (is_summary and _OURS.search(sentence)):
        return "breadth"
    return "depth"


def _ends(text: str) -> str:
    if len(text) <= 2 * READ_CHARS:
        return text
    return f"{text[:READ_CHARS]}\n{text[-READ_CHARS:]}"
