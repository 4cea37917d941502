"""What days, months and spans of time are called in nine languages: tables only. Pure."""

MONTHS: dict[str, int] = {}
for _number, _names in enumerate(
    (
        "january jan janvier januar jänner enero",
        "february feb février fevrier februar febrero",
        "march mar mars märz maerz marzo",
        "april apr avril abril",
        "may mai mayo",
        "june jun juin juni junio",
        "july jul juillet juli julio",
        "august aug août aout agosto",
        "september sep sept septembre septiembre setiembre",
        "october oct octobre oktober okt octubre",
        "november nov novembre noviembre",
        "december dec décembre decembre dezember dez diciembre",
    ),
    1,
):
    MONTHS |= dict.fromkeys(_names.split(), _number)

AMBIGUOUS_MONTHS = frozenset({"may", "march", "mar", "mars", "mai", "august", "jun", "dec", "sep"})
"""Something else, too: taken for a month only beside a day, a year or a preposition."""

WEEKDAYS: dict[str, int] = {}
for _number, _names in enumerate(
    (
        "monday mon lundi montag lunes",
        "tuesday tue tues mardi dienstag martes",
        "wednesday wed mercredi mittwoch miércoles miercoles",
        "thursday thu thur thurs jeudi donnerstag jueves",
        "friday fri vendredi freitag viernes",
        "saturday samedi samstag sonnabend sábado sabado",
        "sunday dimanche sonntag domingo",
    )
):
    WEEKDAYS |= dict.fromkeys(_names.split(), _number)
WEEKDAYS_ABROAD = {
    **dict(zip("一二三四五六日", range(7), strict=True)),
    "天": 6,
    **dict(zip("月火水木金土", range(6), strict=True)),
    **dict(zip("월화수목금토", range(6), strict=True)),
}
"""日 is Sunday in Chinese and Japanese, 일 is left out: it is "day" in Korean more often."""

SEASONS = {
    "spring": 3, "printemps": 3, "frühling": 3, "frühjahr": 3, "primavera": 3,
    "summer": 6, "été": 6, "sommer": 6, "verano": 6,
    "autumn": 9, "fall": 9, "automne": 9, "herbst": 9, "otoño": 9,
    "winter": 12, "hiver": 12, "invierno": 12,
}  # fmt: skip
"""First month, on the northern half of the world."""

FEASTS = {
    "christmas": (12, 20, 12), "xmas": (12, 20, 12), "noël": (12, 20, 12),
    "weihnachten": (12, 20, 12), "navidad": (12, 20, 12), "圣诞": (12, 20, 12),
    "thanksgiving": (11, 20, 11), "halloween": (10, 29, 5), "valentine's day": (2, 13, 3),
}  # fmt: skip
"""Month, first day, days."""

UNITS: dict[str, str] = {}
for _unit, _names in {
    "day": "day days jour jours tag tagen tage día días dia dias 天 日 일",
    "week": "week weeks semaine semaines woche wochen semana semanas "
    "周 週 星期 个星期 個星期 礼拜 週間 주 주일",
    "weekend": "weekend weekends",
    "month": "month months mois monat monaten monate mes meses 个月 個月 ヶ月 か月 カ月 달 개월",
    "year": "year years an ans année jahr jahren jahre año años 年 년",
}.items():
    UNITS |= dict.fromkeys(_names.split(), _unit)

NUMBERS = {
    "a": 1, "an": 1, "one": 1, "un": 1, "une": 1, "una": 1, "einem": 1, "einer": 1,
    "一": 1, "한": 1,
    "two": 2, "deux": 2, "zwei": 2, "dos": 2, "两": 2, "兩": 2, "二": 2, "couple": 2, "두": 2,
    "three": 3, "trois": 3, "drei": 3, "tres": 3, "三": 3, "few": 3, "세": 3,
    "quelques": 3, "einigen": 3, "unos": 3, "unas": 3, "几": 3, "幾": 3, "数": 3, "몇": 3,
    "four": 4, "quatre": 4, "vier": 4, "cuatro": 4, "四": 4, "several": 4, "네": 4,
    "five": 5, "cinq": 5, "fünf": 5, "cinco": 5, "五": 5, "다섯": 5,
    "six": 6, "sechs": 6, "seis": 6, "六": 6,
    "seven": 7, "sept": 7, "sieben": 7, "siete": 7, "七": 7,
    "eight": 8, "huit": 8, "acht": 8, "ocho": 8, "八": 8, "nine": 9, "neuf": 9, "neun": 9,
    "nueve": 9, "九": 9, "ten": 10, "dix": 10, "zehn": 10, "diez": 10, "十": 10,
    "eleven": 11, "twelve": 12,
}  # fmt: skip
VAGUE = frozenset(
    ("few", "several", "couple", "quelques", "einigen", "unos", "unas", "几", "幾", "数", "몇")
)
"""Numbers that mean about so many."""

DAYS_OFF: dict[str, int] = {}
for _days, _names in {
    -2: "day before yesterday|avant-hier|vorgestern|anteayer|antier|"
    "前天|一昨日|おととい|그저께|그제|엊그제",
    -1: "yesterday|last night|hier|gestern|ayer|昨天|昨晚|昨日|어제|어젯밤",
    0: "today|tonight|this morning|this afternoon|this evening|"
    "aujourd'hui|heute|hoy|今天|今晚|今日|오늘",
    1: "tomorrow|demain|明天|明日|내일",
    2: "day after tomorrow|après-demain|übermorgen|pasado mañana|后天|後天|明後日|모레",
}.items():
    DAYS_OFF |= dict.fromkeys(_names.split("|"), _days)

PERIODS_OFF: dict[str, tuple[str, int]] = {}
for _period, _names in {
    (
        "week",
        -1,
    ): "la semaine dernière|la semaine passée|letzte woche|vorige woche|la semana pasada|"
    "上周|上週|上个星期|上個星期|上星期|上礼拜|先週|지난주|지난 주|저번 주",
    ("week", 0): "cette semaine|diese woche|esta semana|这周|這週|本周|本週|这个星期|今週|이번 주",
    (
        "week",
        1,
    ): "la semaine prochaine|nächste woche|la próxima semana|下周|下週|下个星期|来週|다음 주",
    (
        "month",
        -1,
    ): "le mois dernier|letzten monat|letzter monat|el mes pasado|上个月|上個月|上月|先月|"
    "지난달|지난 달",
    ("month", 0): "ce mois-ci|diesen monat|este mes|这个月|這個月|本月|今月|이번 달",
    ("month", 1): "le mois prochain|nächsten monat|el próximo mes|下个月|下個月|来月|다음 달",
    ("year", -2): "前年|一昨年|재작년",
    (
        "year",
        -1,
    ): "l'année dernière|l'an dernier|letztes jahr|voriges jahr|el año pasado|去年|昨年|작년|"
    "지난해",
    ("year", 0): "cette année|dieses jahr|este año|今年|올해",
    ("year", 1): "l'année prochaine|nächstes jahr|el próximo año|明年|来年|내년",
}.items():
    PERIODS_OFF |= dict.fromkeys(_names.split("|"), _period)
