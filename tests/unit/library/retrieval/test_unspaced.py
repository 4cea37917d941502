"""Questions in scripts without spaces, by words alone: what was said is told from what was not."""

from pathlib import Path

import pytest

from tests.unit.library.teller import Teller, opened

SAID = {
    "zh": (
        "我女儿小雨今年秋天要上小学了,学校就在我们小区对面。",
        "我想存够三十万首付,在滨江区买一套小房子。",
        "我推荐你看《三体》,刘慈欣写的,特别适合坐高铁的时候看。",
        "我决定不去日本了,改去云南大理住一个星期。",
        "中午吃什么好呢?", "今天开了四个会,头都大了。", "你看那场球赛了吗?",
        "昨晚没睡好,有点困。", "这个项目的报告我还没写完。", "你觉得学英语用什么方法好?",
        "周末有什么电影可以看?",
    ),
    "ja": (
        "先週、大阪から札幌に引っ越しました。冬がとても寒いです。",
        "来月から営業部に異動することになりました。上司は田中さんです。",
        "ハワイ旅行はキャンセルして、沖縄に行くことにしました。",
        "富士山に登って、ご来光を見ました。",
        "会議が長くて疲れました。", "お昼は何を食べましょうか。", "電車が遅れて困りました。",
        "週末に見る映画を探しています。", "昨日はよく眠れませんでした。",
    ),
    "ko": (
        "딸 지우가 피아노 콩쿠르에서 은상을 받았어요.",
        "요즘 기타를 배우고 있어요.",
        "한강의 소설 \"소년이 온다\"를 추천드려요.",
        "회의가 너무 길었어요.", "점심은 뭐 먹을까요?", "지하철이 너무 붐벼요.",
        "보고서를 아직 못 끝냈어요.", "어젯밤에 잠을 못 잤어요.", "저녁에는 카레를 만들 거예요.",
    ),
}  # fmt: skip
ASKED = {
    "zh": {"我的女儿叫什么名字,什么时候上学?": 0, "买房的首付要存多少钱?": 1,
           "你推荐了哪本书?": 2, "我的旅行改去哪里了?": 3},
    "ja": {"新しい上司は誰ですか?": 1, "旅行はどこに行くことにしましたか?": 2,
           "どの山に登りましたか?": 3},
    "ko": {"딸이 무슨 대회에서 상을 받았어요?": 0, "제가 배우는 악기는 뭐예요?": 1,
           "어떤 소설을 추천해 주셨어요?": 2},
}  # fmt: skip
NEVER = {
    "zh": ("后端现在用什么框架?", "限流用什么算法?", "谁负责支付模块?",
           "上线时间推迟到哪一天?为什么?"),
    "ja": ("リリースはいつになりましたか?", "負荷試験の結果はどうでしたか?",
           "キャッシュには何を使っていますか?"),
    "ko": ("백엔드는 어떤 언어로 바꿔요?", "결제 기능 담당자는 누구예요?", "로그를 며칠 보관해요?"),
}  # fmt: skip
"""Of another past: they share how one asks, and nothing else."""


@pytest.mark.parametrize("language", [*SAID])
async def test_what_was_never_said_is_doubted_and_what_was_said_is_found(
    tmp_path: Path, language: str
) -> None:
    """Issue 3: Chinese, Japanese and Korean work; unrelated questions stop early."""
    async with opened(tmp_path / "a.db") as library:
        teller = Teller(library, "s")
        await teller.tell(*SAID[language])
        await teller.indexed()
        for question, at in ASKED[language].items():
            found = await teller.ask(question)
            assert found.hits[0].event.text == SAID[language][at], question
        sure = {one: (await teller.ask(one)).certainty for one in ASKED[language]}
        unsure = {one: (await teller.ask(one)).certainty for one in NEVER[language]}
        assert sum(sure.values()) >= 0.75 * len(sure), sure
        assert sum(unsure.values()) <= 0.35 * len(unsure), unsure
