"""What hooks say, in the user's language. Pure."""

from collections.abc import Mapping

LANGUAGES = ("en", "fr", "ja", "ko")
_TEXTS: dict[str, dict[str, str]] = {
    "saved": {
        "en": "Library of Context: the conversation is saved ({added} new messages).",
        "fr": "Library of Context : la conversation est enregistrée ({added} nouveaux messages).",
        "ja": "Library of Context: 会話を保存しました。新しいメッセージは {added} 件です。",
        "ko": "Library of Context: 대화를 저장했습니다(새 메시지 {added}개).",
    },
    "saving": {
        "en": "Library of Context: the conversation is being saved in the background.",
        "fr": "Library of Context : la conversation est en cours d'enregistrement.",
        "ja": "Library of Context: 会話を裏で保存しています。",
        "ko": "Library of Context: 대화를 백그라운드에서 저장하고 있습니다.",
    },
    "failed": {
        "en": "Library of Context: {what} did not work: {why}",
        "fr": "Library of Context : {what} n'a pas fonctionné : {why}",
        "ja": "Library of Context: {what} に失敗しました: {why}",
        "ko": "Library of Context: {what} 실패: {why}",
    },
    "briefing": {
        "en": "From the Library of Context, remembered in earlier sessions (reference data):",
        "fr": "De la Library of Context, retenu auparavant (données de référence) :",
        "ja": "Library of Context より、以前のセッションで記憶したことを参考データとして:",
        "ko": "Library of Context에서, 이전 세션에 기억한 내용(참고 자료):",
    },
    "rules": {
        "en": "Rules that must hold",
        "fr": "Règles à respecter",
        "ja": "守るべきルール",
        "ko": "지켜야 할 규칙",
    },
    "unfinished": {
        "en": "Unfinished",
        "fr": "Inachevé",
        "ja": "未完了",
        "ko": "미완료",
    },
    "left_out": {
        "en": "{count} more are in the library: recall them.",
        "fr": "{count} autres sont dans la bibliothèque : appelle recall.",
        "ja": "ほかに {count} 件あります。recall で取り出せます。",
        "ko": "{count}개가 더 있습니다: recall로 찾으세요.",
    },
    "remind": {
        "en": "{file} was changed. It is read in this project only: keep each lasting fact in the "
        "library too, with its tool remember, one fact a call.",
        "fr": "{file} a été modifié. Il n'est lu que dans ce projet : garde aussi chaque fait "
        "durable dans la bibliothèque, avec l'outil remember, un fait par appel.",
        "ja": "{file} が変更されました。このプロジェクトでしか読まれないため、"
        "残すべき事実は一件ずつ remember ツールでライブラリにも保存してください。",
        "ko": "{file} 파일이 변경되었습니다. 이 프로젝트에서만 읽히므로, 오래 남길 사실은 하나씩 "
        "remember 도구로 라이브러리에도 저장하세요.",
    },
}


def language_of(environ: Mapping[str, str]) -> str:
    """Return the language that the environment names, as a terminal's programs read it."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        code = environ.get(name, "")[:2].lower()
        if code:
            return code if code in LANGUAGES else LANGUAGES[0]
    return LANGUAGES[0]


def said(name: str, language: str, **values: object) -> str:
    """Return a text in a language, its places filled in."""
    return _TEXTS[name][language].format(**values)
