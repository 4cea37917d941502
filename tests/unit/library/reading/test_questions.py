import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library.reading.questions import is_question, question_kind

BREADTH = [
    "Can you summarize what we decided about the database so far?",
    "Please give me a recap of our conversations.",
    "Give me an overview of how my thesis has gone.",
    "I need a full summary of my job search. Include the dates.",
    "List all the books I have read this year.",
    "Tell me everything you know about my sister's wedding, everything I said about it.",
    "What have we covered so far?",
    "What do you remember about me?",
    "How has my running improved over the last months?",
    "How did our architecture evolve over time?",
    "How many different tools did I name across all of our sessions?",
    "Catch me up on the migration.",
    "Here is the log again, as you asked.\nok? Now sum up what we discussed.",
    "帮我总结一下我们之前的讨论",
    "请列出我提到的所有餐厅",
    "これまでの会話をまとめてください",
    "지금까지 우리가 한 이야기를 요약해 줘",
    "Résume ce que nous avons décidé jusqu'ici.",
    "Fasse bitte zusammen, was wir bisher besprochen haben.",
    "Haz un resumen de lo que hemos hablado hasta ahora.",
]
ORDER = [
    "In what order did we build the features?",
    "List my trips in chronological order.",
    "Walk me through the steps of the migration in order, please.",
    "Can you give me a timeline of my job applications?",
    "Name the order in which I met them.",
    "Put the events of the trip in order from first to last.",
    "What was the sequence of events before the outage?",
    "请按时间顺序列出我去过的城市",
    "出来事を時系列で教えて",
    "내가 방문한 도시를 순서대로 알려 줘",
    "Dans quel ordre avons-nous visité ces villes ?",
    "In welcher Reihenfolge haben wir die Module gebaut?",
    "¿En qué orden visitamos las ciudades?",
]
DEPTH = [
    "",
    "When did Ada move to Lyon?",
    "What did I order for lunch on Friday?",
    "What do I have to change in order to deploy?",
    "List the files in the folder and put them in order to delete them.",
    "What is the order number of my last purchase?",
    "Summarize the following article: ...",
    "Please summarize this file for my boss.",
    "Write a function that returns a summary of a text.",
    "Always keep summaries short when I ask for one.",
    "Which part of the overview page did I dislike?",
    "Everything we discussed is fine. What is the port of the staging server?",
    "Thanks, that is everything I needed.",
    "How did you recommend improving my essay's flow from one section to the next?",
    "What do I use that syncs across my devices?",
    "What is all this about?",
    "How do I put my resume online?",
    "Does my mother know everything?",
    "What happened first, the fire or the flood?",
    "Tell me the history of Rome.",
    "Which timeline library do we use in the frontend?",
    "Ich habe alles verstanden. Wo liegt die Datei?",
    "我昨天点了什么?",
    "このファイルはどこにありますか",
]


@pytest.mark.parametrize("text", BREADTH)
def test_a_summary_a_full_list_or_a_development_is_broad(text: str) -> None:
    assert question_kind(text) == "breadth"


@pytest.mark.parametrize("text", ORDER)
def test_a_question_for_what_came_when_is_one_of_order(text: str) -> None:
    assert question_kind(text) == "order"


@pytest.mark.parametrize("text", DEPTH)
def test_a_question_for_a_fact_is_deep(text: str) -> None:
    assert question_kind(text) == "depth"


def test_a_request_is_found_on_either_end_of_a_long_text() -> None:
    page = "The quick brown fox jumps over the lazy dog. " * 200
    assert question_kind(f"{page}\nCan you summarize what we decided so far?") == "breadth"
    assert question_kind(f"In what order did we meet them?\n{page}") == "order"


@given(st.text())
def test_any_text_has_a_kind(text: str) -> None:
    assert question_kind(text) in ("depth", "breadth", "order")


@pytest.mark.parametrize(
    "text",
    ["list " * 300, "how did " * 200, "what " * 240, "everything " * 110, "(" * 1_000_000,
     "列出所有" * 300, "in order " * 130 + "?", "how has a" + " from to" * 150 + " improve " * 20],
)  # fmt: skip
def test_hostile_text_takes_no_time(text: str) -> None:
    started_s = time.process_time()
    question_kind(text)
    assert time.process_time() - started_s < 0.1


@pytest.mark.parametrize(
    "text",
    (
        "When did Maria adopt the dog?",
        "Remind me of the port that we chose.",
        "Could you list what Tom said about the boat?",
        "Ok, so which of the two was cheaper?",
        "What libraries would you suggest for that?",
        "これまでの話をまとめて",
        "护照放在哪里？",  # noqa: RUF001
    ),
)
def test_a_short_message_that_asks_to_be_told_something_is_a_question(text: str) -> None:
    assert is_question(text)


@pytest.mark.parametrize(
    "text",
    (
        "Yes, please go ahead with the upgrade.",
        "Can you book that flight for me, please?",
        "I'd like to change the passenger to myself.",
        "My user ID is mia_li_3668.",
        "Here is my whole module, why does it fail? " + "x = 1\n" * 100,
        "",
    ),
)
def test_what_tells_or_wants_a_deed_or_is_long_is_no_question(text: str) -> None:
    assert not is_question(text)
