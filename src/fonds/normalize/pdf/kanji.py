"""Forms of kanji: those that Japanese print uses, and those that recognizers and fonts give."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

# They differ by a stroke or two, and recognizers trained on Chinese take one for the other. Old
# forms that are common in names and not confused (澤, 濱, 齋) are not among them.
_OTHER: Final = (
    "德稅說產內戶户吳查步黃溫淸靑緖卽旣槪敎曆歷每收鄕錄銳悅閱脫稻涉顏尙强别"
    "决减况册黑倂戾淨淚橫晚拔凉徵絕緣虛郞鎭瀨賴姬惠穗將狀壯裝乘"
)
_COMMON: Final = (
    "徳税説産内戸戸呉査歩黄温清青緒即既概教暦歴毎収郷録鋭悦閲脱稲渉顔尚強別"
    "決減況冊黒併戻浄涙横晩抜涼徴絶縁虚郎鎮瀬頼姫恵穂将状壮装乗"
)
_COMMON_FORMS: Final = str.maketrans(_OTHER, _COMMON)
_OTHER_FORM: Final = re.compile(f"[{_OTHER}]")
_KANA: Final = re.compile("[\u3041-\u30ff]")
_RADICALS: Final = re.compile("[\u2e80-\u2fd5\uf900-\ufaff]")


def common_forms(text: str) -> str:
    """A recognized text with the forms of kanji that are used in Japan."""
    return text.translate(_COMMON_FORMS)


def other_forms(text: str) -> str:
    """The letters of a Japanese text that have another form in Japan, each once."""
    if not _KANA.search(text):
        return ""
    return "".join(dict.fromkeys(_OTHER_FORM.findall(text)))


def without_radicals(text: str) -> str:
    """The text with letters for the parts of letters, which fonts give in their place."""
    return _RADICALS.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)
