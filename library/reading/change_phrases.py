"""How one says that something has changed, in eight languages: patterns only. Pure.

`old` names what is gone, `done` what is no longer done, `new` what has come. Every repeat is
bounded.
"""

import re

_STOP = (
    r"(?=\s*(?:[,.;:](?!\d)|[!?()\n\"]|\b(?:to|and|but|because|since|for|as|in favou?r|"
    r"with|by|any ?more|any longer|now|"
    r"when|after|so|if|while|which|that|last|this|yesterday|today)\b|$))"
)
_IN = r"(?:[^,.;:!?()\n\"]|(?<=\d)[,.:](?=\d)|(?<=\w)\.(?=\w))"
"""A character inside a value: figures and names may have marks inside."""
_OLD = rf"(?P<old>{_IN}{{2,50}}?){_STOP}"
_OLD_PHRASE = rf"(?P<old>{_IN}{{2,50}}?)"
_NEW = rf"(?P<new>{_IN}{{1,40}}?){_STOP}"
_OLD_ABROAD, _NEW_ABROAD = r"(?P<old>[^,.;:!?\n]{2,30})", r"(?P<new>[^,.;:!?\n]{2,30}?)"
_CJK_OLD, _CJK_NEW = r"(?P<old>[^,\uff0c。、\s]{1,20}?)", r"(?P<new>[^,\uff0c。、\s了]{1,12})"
_CJK_GONE = _CJK_NEW.replace("<new>", "<old>")
_GAP = r"(?: (?!from\b|to\b)[\w'./-]+){0,8}?"
_WENT = (
    r"(?:moved|switched|migrated|changed|went|gone|upgraded|downgraded|converted|"
    r"transitioned|shifted|ported|"
    r"rescheduled|pushed|postponed|extended|raised|lowered|increased|decreased|reduced|cut|dropped|"
    r"grew|grown|rose|risen|fell|fallen|improved|bumped|updated|adjusted|revised|"
    r"corrected|renamed|moving|"
    r"switching|migrating|delayed|brought forward|shortened|expanded)"
)

_MOVED = (
    "moved switched migrated changed went gone upgraded downgraded converted transitioned shifted "
    "ported"
)
_SET = (
    "rescheduled pushed postponed extended raised lowered increased decreased reduced "
    "cut dropped grew grown rose "
    "risen fell fallen improved bumped updated adjusted revised corrected renamed "
    "delayed brought shortened expanded"
)
_CHANGED = f"{_MOVED} {_SET} moving switching migrating"
_ROWS = (
    (_CHANGED, rf"\b{_WENT}\b{_GAP} from {_OLD}"),
    ("renamed rebranded", rf"\b(?:renamed|rebranded) (?:the |our |my )?{_OLD} (?:to|as|into) "),
    (
        "replaced replacing swapped traded",
        rf"\b(?:replac(?:ed|ing)|swapped|traded) (?:out )?(?:the |our |"
        rf"my )?{_OLD_PHRASE} (?:with|by|for) ",
    ),
    (
        "replaced",
        r"(?P<old>[\w.'-]+(?: [\w.'-]+)?) (?:has|have|had|was|were|is|are|got) (?:been |"
        r"being )?replaced\b",
    ),
    (
        "instead place lieu",
        rf"\b(?:instead of|in place of|in lieu of)(?: (?:the|a|an|my|our|using))? {_OLD}",
    ),
    (
        "longer stopped quit gave given got ditched abandoned phased moved switched",
        rf"\b(?:no longer|stopped|quit|gave up(?: on)?|given up(?: on)?|got rid of|ditched|"
        rf"abandoned|phased out|"
        rf"moved away from|moved off(?: of)?|switched (?:away from|off))"
        rf"(?: (?:using|use|the|a|an|my|our|going to|being)){{0,4}} {_OLD}",
    ),
    (
        "anymore more longer",
        rf"\b(?:do|does|did|is|are|am|was|were)(?:n't| not)(?: (?:using|"
        rf"use))? (?P<done>{_IN}{{2,50}}?) "
        r"(?:any ?more|any longer)\b",
    ),
    (
        "sold retired cancelled canceled deprecated removed dropped",
        rf"\b(?:sold|retired|cancell?ed|deprecated|removed|dropped) (?:the|my|our|his|her|"
        rf"their) {_OLD}",
    ),
    (
        "not",
        r"(?:\bis|\bare|\bwas|\bwere|'s|\bhas|\bhave|\bcosts?|\buses?|\bbe) (?:now |"
        r"actually |really )?"
        r"(?P<new>[^,.;:!?\n]{1,40}?),? (?:and )?not (?!only|just|sure|all|yet|that|"
        r"really|so|a |an |the |in |too)"
        r"(?P<old>[\w.:%$-]+(?: [\w.:%$-]+)?)(?=[,.;:!)\n]|$)",
    ),
    ("not", rf"\bnot (?:the |a |an )?(?P<old>[\w.:%$-]+(?: [\w.:%$-]+)?),? but (?:rather )?{_NEW}"),
    (
        "used",
        rf"\bused to (?!it\b|that\b|the\b|be able)(?P<done>{_IN}{{2,50}}?),? (?:(?:but|"
        rf"and) )?now\b",
    ),
    (_CHANGED, rf"\b{_WENT}\b{_GAP} (?:to|until|till|by) {_NEW}"),
    (
        "now",
        rf"(?:\b(?:is|are|was|has been|have been|has|have|it's|that's|we're|i'm)|"
        rf"\w's) now (?:at |on |in |a |an |the )?{_NEW}",
    ),
    (
        "now",
        rf"\bnow (?:is|are|uses?|has|have|lives?|works?|costs?|runs?|stands at|totals?) {_NEW}",
    ),
    (
        "new updated revised extended",
        r"\b(?:new|updated|revised|extended) (?:[\w-]+ ){0,2}?(?:deadline|price|date|time|"
        r"address|number|name|version|"
        r"limit|target|goal|budget|quota|job|boss|manager|phone|schedule|score|rate|total|"
        r"count|size|salary|"
        rf"password|estimate|location)\b(?: (?:is|of|for|at|on|will|be)){{0,2}} {_NEW}",
    ),
    (
        "correction scratch mistake wrong misspoke meant sorry",
        rf"\b(?:correction|scratch that|my mistake|i was wrong|i misspoke|i meant|"
        rf"sorry, it's)\b[:,]? {_NEW}",
    ),
    ("actually", rf"\bactually,? (?:it'?s|that'?s|it is|they'?re|the [\w-]+ is) {_NEW}"),
    (
        "as_of effective starting",
        r"\b(?:as of|effective|starting)\b(?: [\w-]+){1,3}?,? (?=the |we |i |it |our |my |they )",
    ),
    (
        "从從",
        rf"[从從]{_CJK_OLD}(?:换|換|改|搬|迁|遷|切换|切換|转|轉|升级|升級|变更|變更|调整|調整|推迟|提前)(?:移|"
        rf"家)?[到成为為至]{_CJK_NEW}",
    ),
    ("把", rf"把{_CJK_OLD}(?:换成|換成|改成|改为|改為|替换为|替換為|替换成|改名为){_CJK_NEW}"),
    ("再", rf"不再(?:使用|用|是|在|住在)?{_CJK_GONE}"),
    ("代取而", rf"(?:代替|取代|而不是)了?{_CJK_GONE}"),
    (
        "か",
        r"(?P<old>[^\s、。はがを]{1,20})から(?P<new>[^\s、。]{1,20}?)[にへ]"
        r"(?:変更|移行|切り替|乗り換|引っ越|変わ|移)",
    ),
    ("代は", r"(?P<old>[^\s、。はがを]{1,20})(?:の代わりに|ではなく)"),
    (
        "使やめ",
        r"(?P<old>[^\s、。はがを]{1,20})[はを](?:もう)?"
        r"(?:使っていない|使わない|使っていません|使わなくな|やめ)",
    ),
    (
        "서",
        r"(?P<old>\S{1,20}?)에서 (?P<new>\S{1,20}?)(?:으로|로) "
        r"(?:변경|옮|이전|바꿨|바꾸|바뀌|전환|이사)",
    ),
    ("신", r"(?P<old>\S{1,20}) 대신"),
    ("상", r"더 이상 (?P<old>\S{1,20}?)(?:을|를|은|는|이|가|에)? "),
    (
        "passé passés passée passées changé migré déménagé basculé",
        rf"\b(?:passée?s?|changé|migré|déménagé|basculé) de {_OLD_PHRASE} (?:à|vers|"
        rf"chez) {_NEW_ABROAD}",
    ),
    ("lieu place", rf"\b(?:au lieu d|à la place d)[eu'] ?{_OLD_ABROAD}"),
    ("plus", rf"\bn(?:e |')(?:\w+ ){{1,3}}plus {_OLD_ABROAD}"),
    ("remplacé", rf"\bremplacé {_OLD_PHRASE} par "),
    (
        "gewechselt umgestiegen umgezogen geändert verschoben migriert umgestellt erhöht gesenkt",
        rf"\bvon {_OLD_PHRASE} (?:auf|zu|nach) {_NEW_ABROAD} (?:gewechselt|umgestiegen|"
        rf"umgezogen|geändert|"
        r"verschoben|migriert|umgestellt|erhöht|gesenkt)",
    ),
    (
        "statt anstatt anstelle",
        rf"\b(?:statt|anstatt|anstelle von) (?:dem |der |des |den )?{_OLD_ABROAD}",
    ),
    ("mehr", rf"\bnicht mehr (?:bei |in |mit |auf )?{_OLD_ABROAD}"),
    ("ersetzt", r"\b(?P<old>[\w.-]+) durch (?P<new>[\w.-]+) ersetzt"),
    (
        "cambiamos cambié cambiado pasamos pasé pasado migramos migrado mudamos mudé mudado",
        rf"\b(?:cambi|pas|migr|mud)(?:amos|é|ado) de {_OLD_PHRASE} a {_NEW_ABROAD}",
    ),
    ("lugar vez", rf"\b(?:en lugar de|en vez de) {_OLD_ABROAD}"),
    ("ya", rf"\bya no {_OLD_ABROAD}"),
    (
        "reemplazamos reemplazado sustituimos sustituido",
        rf"\b(?:reemplaz|sustitu)\w+ {_OLD_PHRASE} (?:por|con) ",
    ),
)
CUES = tuple(
    (
        frozenset(one.replace("_", " ") for one in needed.split())
        if needed[0] < "\u2e80"
        else frozenset(needed),
        re.compile(pattern),
    )
    for needed, pattern in _ROWS
)
"""Words (two of them with a space between), or characters, of which a sentence must have one; the
phrase. Those that name what is gone come first."""
BARE = re.compile(
    r"(?P<verb>moved|switched|migrated|changed)\b.{0,20}? (?:over )?to (?:the )?(?:[A-Z]|`)"
)
HYPOTHETICAL = re.compile(
    r"\b(?:should|could|would|might|may|if|whether|consider(?:ing|ed)?|"
    r"think(?:ing)? (?:of|about)|wants? to|"
    r"wanted to|plan(?:s|ning)? to|try(?:ing)? to|how (?:to|can|do|should)|"
    r"can you(?! remind)|can i|can we|help me|"
    r"wish|hope|hoping|need to|have to|has to|suggest\w*|recommend\w*|let's|ever|"
    r"never)\b[^,;]{0,40}$"
)
_NOT_SUBJECT_TEXT = """
    dollar dollars euro euros pound pounds usd percent
    kinda sorta worried wondering stuck curious
    now new moved switched migrated changed went gone upgraded increased decreased reduced dropped
    raised lowered grew grown improved updated adjusted revised corrected renamed rescheduled
    postponed extended replaced decided agreed instead longer anymore used use uses using actually
    correction recently already finally since june january february march april may july august
    september october november december monday tuesday wednesday thursday friday saturday sunday
    week month year day today yesterday last next am pm i'm i've we've it's can help want make
    sure trying like get going really also even still much many one two three getting got gets
    我们 们把 已经 经从 です ます した まし 니다 습니 합니 이제
"""
NOT_SUBJECT = frozenset(_NOT_SUBJECT_TEXT.split())
"""Words that say that something changed, when, or nothing."""
