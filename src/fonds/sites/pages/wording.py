"""Words in lists of reports, in the languages of their publishers.

Structure decides first; these words distinguish a name from a kind of report, and a report from a
form.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

from fonds.sites.periods import reporting_period

_SIZE: Final = r"\d+(?:[.,]\d+)?\s*(?:[KMG]i?B|[KM]o|kbytes?|bytes|バイト|キロバイト|メガバイト)\b"
_FILE: Final = re.compile(
    rf"[(\[（［【〔]\s*[^()\[\]（）［］【】〔〕]{{0,40}}?(?:pdf|{_SIZE})[^()\[\]（）［］【】〔〕]{{0,40}}[)\]）］】〕]"
    rf"|(?<![a-z])\.?pdf(?:形式|ファイル|版|文書)?(?![a-z])|{_SIZE}|(?:別|新しい)ウ[イィ]ンドウ\S{{0,12}}"
    r"|opens in (?:a )?new (?:window|tab)",
    re.IGNORECASE,
)
_MONTH: Final = (
    r"(?:jan(?:uar[yi]?)?|feb(?:ruar[yi]?)?|mar(?:ch)?|apr(?:il)?|ma[yi]|june?i?|july?i?|aug(?:ust)?"
    r"|sept?(?:ember)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?)"
)
_ERA: Final = r"(?:明治|大正|昭和|平成|令和)\s*(?:元|\d{1,2}|[〇一二三四五六七八九十]{1,3})\s*年"
_DATES: Final = re.compile(
    rf"(?:{_ERA}|(?<!\d)\d{{4}}\s*[年./-])\s*\d{{1,2}}\s*[月./-]\s*\d{{1,2}}(?!\d)\s*日?(?:\s*[(（].[)）])?"
    rf"|(?<!\d)\d{{1,2}}\s*[./-]\s*\d{{1,2}}\s*[./-]\s*\d{{4}}(?!\d)"
    rf"|(?<!\d)\d{{1,2}}(?:st|nd|rd|th)?\.?\s+(?:de\s+)?{_MONTH}\w*\.?,?\s+(?:de\s+)?\d{{4}}(?!\d)"
    rf"|\b{_MONTH}\.?\s+\d{{1,2}}(?:st|nd|rd|th)?,\s*\d{{4}}(?!\d)",
    re.IGNORECASE,
)
_PERIODS: Final = re.compile(
    rf"{_ERA}(?:度|分)?(?:\s*\d{{1,2}}\s*月(?:分)?)?|(?<!\d)(?:19|20)\d\d(?:\s*[/–-]\s*(?:19|20)?\d\d)?(?!\d)"
    r"(?:\s*年(?:度|分)?(?:\s*\d{1,2}\s*月(?:分)?)?|\s*년(?:도)?)?"
    r"|第\s*[1-4一二三四]\s*四半期|[上下]\s*半?期|[上下]반기|[1-4]\s*/?\s*분기|[상하]반기"
    r"|\bq[1-4]\b|\b[1-4]q\b|\bh[12]\b|\b[rhs]\d{1,2}\b|\bfy\b|\bt[1-4]\b"
    r"|\b(?:1st|2nd|3rd|4th|first|second|third|fourth|[1-4]\.)\s+"
    r"(?:quarter|half(?:[- ]year)?|quartal|halbjahr)\b"
    rf"|\b{_MONTH}\.?(?:\s*(?:-|–|to)\s*{_MONTH})?(?=\s+\d{{4}})",
    re.IGNORECASE,
)
_REPORT: Final = (
    r"(?:reports?|statements?|returns?|accounts?|filings?|disclosures?|declarations?|balances?"
    r"|summar(?:y|ies)|audits?|documents?|files?|attachments?|records?|registers?|publications?"
    r"|\w*berichte?n?|\w*rechnung(?:en)?|\w*abschl(?:uss|üsse)|\w*erklärung(?:en)?|\w*unterlagen"
    r"|\w*rekening(?:en)?|\w*verslag(?:en)?|\w*overzicht(?:en)?|comptes?|rapports?|bilans?|déclarations?"
    r"|informes?|cuentas?|balances?|declaraci(?:ón|ones)|rendiciones|relazion[ei]|bilanci[o]?|rendicont[oi]"
    r"|relat[óo]rios?|contas|presta[çc](?:ão|ões)|sprawozdani[ae]|zpráv[ay]|správ[ay]|rapoarte(?:le)?|raport(?:ul|y|u)?"
    r"|\w*regnskap(?:er)?|\w*redovisning(?:ar)?|årsredovisning(?:ar)?|\w*tilinpäätö(?:s|kset)|raportit?"
    r"|beszámolók?|jelentések?|отч[её]ты?|звіти?|elenco|contribut[io])"
)
_REPORT_JA: Final = (
    r"(?:政治資金)?(?:収支)?報告書(?:等)?(?:の)?(?:要旨|写し)?|定期公表|収支(?:報告)?|要旨|財務諸表|決算書?|公表"
    r"|회계보고(?:서)?|보고서|报告|報告"
)
_ADJECTIVE: Final = (
    r"(?:annual|yearly|quarterly|half-?yearly|semi-?annual|monthly|interim|final|financial|campaign"
    r"|audited|consolidated|donations?|finance|expenditure|amended|original|public|disclosure|party)"
)
_TRAILING_REPORT: Final = re.compile(
    rf"(?:(?:^|[\s,:;|–—-])(?:{_ADJECTIVE}\s+)*{_REPORT}(?:\s.*)?|\s*(?:の)?(?:{_REPORT_JA}).*)$",
    re.IGNORECASE,
)
_LEADING_REPORT: Final = re.compile(
    rf"^(?:.*\b)?{_REPORT}(?:\s+\(?\w*\)?)?\s+"
    r"(?:of|for|by|from|de la|de|des|du|del|der|von|van|di|da|do)\s+"
    r"(?:the\s+|die\s+|la\s+|le\s+)?",
    re.IGNORECASE,
)
_GENERIC: Final = re.compile(
    rf"\b{_REPORT}\b|{_REPORT_JA}|一覧|について|ページ|ホーム|トップ|目次|検索|資料|情報|お知らせ|ダウンロード|次の|その他の"
    r"|\b(?:downloads?|view|open|click|here|more|details?|home|welcome|search|lists?\s+of|index|archive[sd]?|all"
    r"|overview|page|results?|information|news|latest|previous|next|year|period|date|type|name|size|title"
    r"|télécharger|voir|ver|descargar|scarica|herunterladen|anzeigen|ansehen|öffnen|pobierz|stáhnout|hämta"
    r"|ladda|baixar|vedi|exercice|exercise|ejercicio|anno|année|año|jahr|jaar|rok|år|vuosi|trimestre"
    r"|trimestri?\w*|quarterly|monthly|annual|letölt\w*|скачать|beginning|ending)\b",
    re.IGNORECASE,
)
_ORGANIZATION_WORDS: Final = re.compile(
    r"\b(?:part(?:y|ies|ei|ij|i|it|ido|ito|ia|id|idul|iet)|committee|pac|alliance|union|league|movement"
    r"|coalition|association|council|front|forum|group|club|society|fund|friends of|citizens"
    r"|democrats?|greens?|labou?r|liberals?|conservatives?|bund|verein|liste|lista|bewegung|mouvement|rassemblement"
    r"|movimiento|alianza|frente|unión|hnutí|strana|puolue|liitto|bloc|congress)\b"
    r"|党|会(?:議)?$|連盟|協会|後援会|支部|団体|組合|同盟|クラブ|本部|당$|연합",
    re.IGNORECASE,
)
_ORGANIZATION_HEAD: Final = re.compile(
    r"part(?:y|ei|ij|i|ido|ito|ia|id|it)\b|parti\b|organi[sz]|\bname\b|\bnom\b|nombre|naam|nazwa|název|nome"
    r"|committee|candida|filer|entit|group|agrupaci|団体|政党|名称|届出|정당|단체|puolue|strana|hnut|liste\b|lista"
    r"|association|body|member|donee|regulated",
    re.IGNORECASE,
)
_PERIOD_HEAD: Final = re.compile(
    r"period|year|quarter|\bfy\b|month|jahr|jaar|année|exercice|ejercicio|año|anno|\brok\b|période|trimestre"
    r"|tilikausi|vuosi|\bår\b|\ban\b|年分|年度|対象|期間|年次|기간|연도|badge",
    re.IGNORECASE,
)
_DATE_HEAD: Final = re.compile(
    r"publish|posted|filed|received|updated|submitted|\bdate\b|datum|fecha|公表日|掲載|提出|受付|更新|公開日|등록일|작성일",
    re.IGNORECASE,
)
_OTHER_HEAD: Final = re.compile(
    r"代表|会計責任|責任者|住所|所在|represent|treasurer|address|agent|amount|type|kind|\bart\b|status|size|\bno\b\.?|#"
    r"|ref|備考|番号|金額|금액|번호|contact|rubri|district|選挙区|種別|区分|catego|\btyp\b|\blp\b",
    re.IGNORECASE,
)
_UNWANTED: Final = re.compile(
    r"privacy|datenschutz|cookies?\b|terms\s+(?:of|and)|accessib|barrierefrei|toegankelijk|tilgjengelig|saavutettav"
    r"|impressum|imprint|mentions\s+l[ée]gales|aviso\s+legal|sitemap|site\s+map|disclaimer|copyright|rodo\b|gdpr"
    r"|(?:user|filer|filing|style|foi|information)?[\s_-]*(?:guides?|manuals?|handbooks?|instructions?)\b|guide[\s_]du|guía"
    r"|how\s+to\b|help\b|faqs?\b|brochures?\b|leaflet|flyer|merkblatt|leitfaden|handreichung|blank\b|\bleer\b"
    r"|\btemplates?\b|vordruck|formular(?:e|io|ios)?\b|formulaires?\b|formulieren?\b|modello\b|vzor|wzór|(?:dog|job|grant)?\s*application(?:\s+form)?\b"
    r"|organi(?:gram|zational\s+chart|grafie)|regolamento|statut(?:e|en|s)?\b|press\s+(?:kit|release)|logo\b"
    r"|プライバシー|個人情報|利用規約|免責|サイトポリシー|サイトマップ|アクセシビリティ|使い方|手引|手びき|記載例|記入例|記載要領|様式|書式"
    r"|ひな形|雛形|パンフレット|チラシ|リーフレット|案内|地図|ガイド|Adobe|Acrobat|よくある質問|개인정보|이용약관|서식|안내",
    re.IGNORECASE,
)
_CATEGORY: Final = re.compile(
    r"(?:国会議員(?:関係)?|その他の?|政治|資金管理|後援)?(?:政治)?団体(?:等)?|政党(?:の)?(?:支部|本部)?(?:等)?|(?:political\s+)?(?:parties|party)"
    r"|(?:political\s+|campaign\s+)?committees?|candidates?|part(?:is|eien|ijen|idos|iti)(?:\s+politi\w+)?|organi[sz]ations?",
    re.IGNORECASE,
)
_JOINTS: Final = re.compile(r"\s+[–—|/:»>-]+\s+|[|｜／:：»]\s*|\s*[,;、]\s+|\s[–—]\s?|[–—]")
_EDGE: Final = " \t\u3000-–—:：,、;|/.·•*()（）[]［］「」『』»›>_="
_NUMBERS: Final = re.compile(r"\d+")
_MIN_LETTERS: Final = 2
_CACHE_SIZE: Final = 512
_MAX_NAME: Final = 120
_MAX_TEXT: Final = 300


@lru_cache(maxsize=_CACHE_SIZE)
def normalized(text: str) -> str:
    """A text in NFKC, so that full-width letters and digits become ASCII, on one line."""
    return " ".join(unicodedata.normalize("NFKC", text).split())


@lru_cache(maxsize=_CACHE_SIZE)
def without_dates(text: str) -> str:
    """A text without its full dates: those are of publication, not of the period."""
    return _DATES.sub(" ", normalized(text))


@lru_cache(maxsize=_CACHE_SIZE)
def organization_name(text: str) -> str | None:
    """The name in a text, without period, kind of report and file; None if no name is left."""
    text = _PERIODS.sub(" ", _DATES.sub(" ", _FILE.sub(" ", _line(text))))
    names = [name for name in map(_name, _JOINTS.split(text)) if name]
    if not names:
        return None
    return max(names, key=lambda name: (is_organization_like(name), -names.index(name)))


def _line(text: str) -> str:
    # Longer texts contain no name, and patterns with two open ends are slow on them.
    return " ".join(text[:_MAX_TEXT].split())


def bare_name(text: str) -> str | None:
    """A text at the position of a name, without period and file."""
    text = _PERIODS.sub(" ", _DATES.sub(" ", _FILE.sub(" ", _line(text)))).strip(_EDGE)
    if _is_bare(_GENERIC.sub(" ", text)) or len(text) > _MAX_NAME:
        return None
    return " ".join(text.split())


def _name(part: str) -> str | None:
    part = part.strip(_EDGE)
    if _is_bare(part) or _CATEGORY.fullmatch(part):
        return None
    if _GENERIC.search(part):
        cut = _TRAILING_REPORT.sub("", part).strip(_EDGE)
        if cut == part or _is_bare(cut):
            cut = _LEADING_REPORT.sub("", part).strip(_EDGE)
        if cut == part and not is_organization_like(part):
            return None
        part = cut
    part = re.sub(r"^(?:\d+[.)]?\s+)(?=\D)", "", part).strip(_EDGE)
    return None if _is_bare(part) or len(part) > _MAX_NAME else _close_brackets(part)


def _close_brackets(text: str) -> str:
    for opening, closing in ("()", "（）", "[]"):
        if text.count(opening) > text.count(closing):
            text += closing
    return text


def _is_bare(text: str) -> bool:
    return sum(character.isalpha() for character in text) < _MIN_LETTERS


def name_score(name: str) -> float:
    """How much a cleaned text looks like the name of an organisation, from 0 to 1."""
    if _ORGANIZATION_WORDS.search(name):
        return 1.0
    if _GENERIC.search(name):
        return 0.15
    digits = sum(character.isdigit() for character in name)
    if digits * 2 > len(name):
        return 0.1
    # Codes such as PRT-0091 or A/12.
    if digits and " " not in name and name.isascii():
        return 0.25
    return 0.55 if name[:1].islower() else 0.8


@lru_cache(maxsize=_CACHE_SIZE)
def is_generic(text: str) -> bool:
    """Whether a text has a word for reports or pages in general."""
    return bool(_GENERIC.search(text))


@lru_cache(maxsize=_CACHE_SIZE)
def is_organization_like(text: str) -> bool:
    """Whether a text has a word that occurs in the names of organisations."""
    return bool(_ORGANIZATION_WORDS.search(text))


def is_unwanted(text: str) -> bool:
    """Whether a text is about forms, help, rules or policies, which are listed next to reports."""
    # File names differ by their numbers, which do not matter here; so the cache has fewer entries.
    return _is_unwanted(_NUMBERS.sub("0", text))


@lru_cache(maxsize=_CACHE_SIZE)
def _is_unwanted(text: str) -> bool:
    return bool(_UNWANTED.search(text))


def is_heading_of(head: str, field: str) -> bool:
    """Whether a heading is of an `organization`, `period`, `date` or `other` column."""
    patterns = {
        "organization": _ORGANIZATION_HEAD,
        "period": _PERIOD_HEAD,
        "date": _DATE_HEAD,
        "other": _OTHER_HEAD,
    }
    return bool(patterns[field].search(normalized(head)))


_YEAR: Final = re.compile(
    r"(?<!\d)(?:19|20)\d\d(?!\d)|(?:元|[\d〇一二三四五六七八九十])\s*年|\d月|四半期|quarter"
    r"|(?<![a-z])[rh]\d{1,2}(?!\d)|q[1-4]\b|２０\d\d",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(r"[0-9０-９〇一二三四五六七八九十元]")


def period_of(*texts: str) -> str | None:
    """The reporting period in some texts, of which the first ones have priority."""
    distinct = tuple(dict.fromkeys(text for text in texts if text))
    return _period(distinct) if any(_NUMBER.search(text) for text in distinct) else None


def has_year(text: str) -> bool:
    """Whether a text seems to have a year or a quarter; a fast check."""
    return bool(_YEAR.search(text))


@lru_cache(maxsize=_CACHE_SIZE)
def _period(texts: tuple[str, ...]) -> str | None:
    return reporting_period(texts)
