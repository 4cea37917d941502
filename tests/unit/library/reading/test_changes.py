import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library.reading.changes import MOST_CHANGES, Change, changes, is_replaced

REPLACEMENTS = [
    (
        "We deploy on Heroku.",
        "We moved from Heroku to AWS last week.",
        ["Heroku has a free tier, I read.", "We deploy every Friday.", "AWS is expensive."],
    ),
    (
        "Our CI runs on Jenkins.",
        "CI no longer runs on Jenkins.",
        ["Jenkins is also my uncle's name.", "The CI badge is green.", "Our docs run on Sphinx."],
    ),
    (
        "The library workshop has 45 seats.",
        "The library workshop now has 40 seats, not 45.",
        [
            "We sold 45 books at the fair.",
            "The workshop starts at nine.",
            "There are 12 seats in the van.",
        ],
    ),
    (
        "I use Vim as my editor for Python.",
        "I switched from Vim to Helix for Python.",
        ["My editor at the newspaper is called Ann.", "Python 3.12 is out.", "Do you like Vim?"],
    ),
    (
        "The release is planned for 12 May.",
        "The release has been postponed to 19 May.",
        [
            "12 May is my birthday.",
            "The release notes are written in Markdown.",
            "The picnic is on 14 May.",
        ],
    ),
    (
        "Standup is at 9:30 every morning.",
        "Standup has been moved to 10:00.",
        ["I get up at 9:30 on Sundays.", "The dentist is at 11:00.", "Standup takes ten minutes."],
    ),
    (
        "The project is called Nimbus.",
        "We renamed the project from Nimbus to Stratus.",
        ["Nimbus clouds bring rain.", "The project has three members.", "The cat is called Bo."],
    ),
    (
        "My manager is Priya.",
        "Priya is no longer my manager, Tom is.",
        ["Priya plays the cello.", "My dentist is Dr. Lee.", "The manager of the shop was rude."],
    ),
    (
        "The rate limit of the API is 60 requests per minute.",
        "They raised the API rate limit to 120 requests per minute.",
        [
            "The API has 60 endpoints.",
            "The limit of the credit card is 500 euros.",
            "We wrote 120 tests.",
        ],
    ),
    (
        "We store sessions in Redis.",
        "We replaced Redis with Postgres for the sessions.",
        [
            "Redis was written by antirez.",
            "The sessions at the gym are fun.",
            "We store invoices in S3.",
        ],
    ),
    (
        "The meeting with the bank is on Tuesday at 3 PM.",
        "The bank meeting was rescheduled to Thursday at 11 AM.",
        [
            "On Tuesday at 3 PM it rained.",
            "The bank is closed on Sundays.",
            "The meeting with the school is on Monday at 3 PM.",
        ],
    ),
    (
        "My Zotero library has 45 sources.",
        "My Zotero library has now grown to 52 sources.",
        [
            "The essay has 45 pages.",
            "My library card expired.",
            "There are 7 sources of error in the lab.",
        ],
    ),
    (
        "I live in Leeds and work from home.",
        "I don't live in Leeds anymore.",
        ["Leeds lost the match.", "My brother works in Leeds.", "I work on Mondays."],
    ),
    (
        "We agreed to write the parser in Python.",
        "After the benchmark we decided to write the parser in Rust instead of Python.",
        [
            "Python is my favourite snake.",
            "The parser has a bug in line 12.",
            "The docs are in English.",
        ],
    ),
    (
        "The password hash uses bcrypt.",
        "Correction: the password hash uses argon2, not bcrypt.",
        [
            "bcrypt was published in 1999.",
            "The hash of the file is wrong.",
            "The token uses HS256.",
        ],
    ),
    (
        "Anna drives a red Fiat.",
        "Anna sold the Fiat and drives a blue Skoda now.",
        ["The Fiat museum is in Turin.", "Anna sings in a choir.", "Marco drives a blue van."],
    ),
    (
        "The budget for the garden is 2,000 euros.",
        "The garden budget went up from 2,000 to 2,500 euros.",
        [
            "The trip cost 2,000 euros.",
            "The garden has two gates.",
            "The budget airline lost my bag.",
        ],
    ),
    (
        "Set the timeout to 30 seconds in config.toml.",
        "I changed the timeout in config.toml to 45 seconds.",
        [
            "Wait 30 seconds before you retry.",
            "config.toml has a typo.",
            "The timeout of the game is over.",
        ],
    ),
    (
        "The bug in the importer is still open.",
        "The importer bug is now closed.",
        ["The shop is still open.", "The importer reads CSV.", "The window is open."],
    ),
    (
        "Tickets cost 25 dollars.",
        "As of June the tickets cost 30 dollars.",
        ["The shirt was 25 dollars.", "We bought the tickets online.", "Parking costs 10 dollars."],
    ),
    (
        "We meet at the Blue Cafe.",
        "We are going to meet at the Old Mill instead of the Blue Cafe.",
        ["The Blue Cafe has good cake.", "I met Sue in May.", "The old mill is broken."],
    ),
    (
        "我们把服务部署在阿里云上。",
        "我们已经从阿里云迁移到腾讯云了。",
        ["腾讯云的价格不便宜。", "我昨天去爬山了。", "服务的文档写好了。"],
    ),
    (
        "会議は水曜日の10時です。",
        "会議は水曜日から金曜日に変更になりました。",
        ["水曜日は雨でした。", "会議室は3階です。", "昼ごはんはうどんです。"],
    ),
    (
        "우리는 배포에 젠킨스를 사용합니다.",
        "이제 젠킨스 대신 깃허브 액션을 사용합니다.",
        ["젠킨스는 오픈 소스입니다.", "오늘 날씨가 좋아요.", "배포 문서를 썼어요."],
    ),
    (
        "Nous hébergeons le site chez Gandi.",
        "Nous sommes passés de Gandi à OVH pour le site.",
        ["Gandi est une vieille entreprise.", "Le site est en bleu.", "Il pleut à Paris."],
    ),
    (
        "Wir nutzen Trello für die Aufgaben.",
        "Für die Aufgaben nutzen wir jetzt Linear statt Trello.",
        ["Trello wurde 2011 gegründet.", "Die Aufgaben sind schwer.", "Linear ist eine Funktion."],
    ),
    (
        "El equipo usa Slack para hablar.",
        "El equipo ya no usa Slack, ahora usa Teams.",
        ["Slack salió en 2013.", "El equipo ganó ayer.", "Hablar es fácil."],
    ),
]
"""What was said, what replaced it, and what was said of other things with the same words."""


def replaces(text: str, earlier: str) -> bool:
    found = changes(text)
    return any(is_replaced(earlier, one, rarity=dict.fromkeys(one.words, 1.0)) for one in found)


@pytest.mark.parametrize(
    ("old", "new", "others"), REPLACEMENTS, ids=[row[1] for row in REPLACEMENTS]
)
def test_a_fact_that_was_replaced_is_known_among_others_with_its_words(
    old: str, new: str, others: list[str]
) -> None:
    """CASES J8."""
    assert replaces(new, old)
    assert [text for text in others if replaces(new, text)] == []


def test_a_change_without_a_subject_replaces_what_the_same_people_use_or_where_they_are() -> None:
    """CASES J8."""
    assert replaces("we moved to AWS", "we deploy on Heroku")
    assert replaces("I switched to Helix.", "I write everything in Vim.")
    for other in (
        "We deploy every Friday.",
        "They deploy on Heroku.",
        "We don't deploy on Heroku.",
    ):
        assert not replaces("we moved to AWS", other)
    assert changes("moved to the left") == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Should we switch from Heroku to AWS?",
        "I'm thinking of moving from Heroku to AWS.",
        "We might migrate to Postgres.",
        "How do I change from tabs to spaces?",
        "What a nice day!",
        "```\nmoved from a to b\n```",
    ],
)
def test_what_is_only_weighed_changes_nothing(text: str) -> None:
    assert changes(text) == ()


@pytest.mark.parametrize(
    "earlier",
    [
        "Do we deploy on Heroku?",
        "We don't deploy on Heroku.",
        "We moved from Heroku to AWS.",
        "Heroku has a free tier.",
        "",
    ],
)
def test_questions_negations_and_the_same_news_are_not_what_was_before(earlier: str) -> None:
    assert not replaces("We moved our deploys from Heroku to AWS.", earlier)


def test_the_same_value_again_replaces_nothing() -> None:
    old = "The release is planned for 12 May."
    assert not replaces("The release has been moved to 12 May.", old)
    assert replaces("The release has been moved to 13 May.", old)


def test_a_change_says_what_to_look_for() -> None:
    (change,) = changes("The bank meeting was rescheduled to Thursday at 11 AM.")
    assert set(change.words) == {"bank", "meeting"}


@given(st.text(), st.text())
def test_any_texts_can_be_compared(text: str, earlier: str) -> None:
    found = changes(text)
    assert len(found) <= MOST_CHANGES
    for one in found:
        assert isinstance(one, Change)
        is_replaced(earlier, one, rarity={})


HOSTILE = [
    "moved from " * 20_000, "not x " * 20_000, "a" * 1_000_000, "instead of " * 20_000,
    "the new " * 20_000, "1,000," * 20_000, "从" * 100_000, "에서 " * 50_000, "``` " * 50_000,
    "is now, not " * 20_000, "replaced " * 20_000, "moved a b c d e f g h " * 10_000 + "from",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=[text[:12] for text in HOSTILE])
def test_hostile_text_takes_no_time(text: str) -> None:
    started_s = time.process_time()
    found = changes(text)
    for one in found:
        is_replaced(text, one, rarity={})
    assert time.process_time() - started_s < 0.3
