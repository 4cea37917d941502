"""Chinese text with the default preset and the real, English, model: its words find, and rows that
know nothing of it stay out."""

from pathlib import Path

import pytest

from library.embedding.local import LocalEmbedder
from library.embedding.onnx import OnnxModel
from library.embedding.opening import given
from library.library import Library
from library.reading.scripts import is_latin
from library.store.sqlite import SqliteStore
from tests.unit.library.teller import Teller

FACTS = {
    "备用钥匙在哪里?": "我妹妹英格丽德在我们船屋的第三个架子上放着备用钥匙。",
    "苍鹭项目什么时候发货?": "项目苍鹭将于六月十二日发货,负责人是王磊。",
    "我对什么过敏?": "我对花生过敏,请记住。",
    "吉他课是星期几?": "我周三晚上去上吉他课,老师姓陈。",
    "我们在哪个城市买的房子?": "上个月我们在杭州买了一套三居室的房子。",
    "小雨在哪里上大学?": "我女儿小雨今年考上了浙江大学的计算机系。",
    "年会在哪天举行?": "公司的年会定在十二月二十号,在西湖边的酒店。",
    "我最爱看哪部电影?": "我最喜欢的电影是活着,看过五遍。",
}
SMALL_TALK = (
    "今天天气不错,我们去公园散步吧。", "好的,我明白了,谢谢你的提醒。", "晚饭想吃什么?",
    "会议改到下午三点了。", "这本书写得很有意思。", "我刚刚跑完步,有点累。",
    "他说他明天会晚一点到。", "快递已经放在门口了。", "新的咖啡店开张了,排队的人很多。",
)  # fmt: skip


@pytest.fixture
async def library(tmp_path: Path, minilm: OnnxModel) -> Library:
    name, open_embedder = given(LocalEmbedder(minilm, reads=is_latin))
    opened = Library(
        await SqliteStore.open(tmp_path / "a.db"),
        index_folder=tmp_path / "a.index",
        embedder=name,
        open_embedder=open_embedder,
    )
    await opened.start()
    return opened


async def test_chinese_questions_find_what_was_said(library: Library) -> None:
    """Issue 3: Chinese text works with the one default preset."""
    try:
        teller = Teller(library, "s")
        await teller.tell(*FACTS.values(), *SMALL_TALK)
        await teller.embedded()
        found = {question: (await teller.texts(question))[0] for question in FACTS}
        assert found == FACTS
        nothing = await teller.ask("量子色动力学")
        assert (nothing.certainty, nothing.degraded) == (0.0, ())
        assert "dense" not in {name for hit in nothing.hits for name in hit.signals}
    finally:
        await library.close()
