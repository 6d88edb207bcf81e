"""Bytes to text where the declaration of the encoding is missing, wrong or half true."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from functools import cache
from typing import Final

_BOMS: Final = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_DECLARED: Final = (
    re.compile(rb"""^\s*<\?xml[^>]{0,200}?\sencoding\s*=\s*["']\s*([\w.:-]+)""", re.IGNORECASE),
    re.compile(rb"""<meta[^>]{0,500}?charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE),
)
_HEAD: Final = 4096

# As browsers read them: a page that says Latin-1 means windows-1252, one that says gb2312 uses
# the characters of its successors, and a page whose declaration is legible is not UTF-16.
_ALIASES: Final = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "iso8859-9": "cp1254",
    "utf-16": "utf-8",
    "utf-16-le": "utf-8",
    "utf-16-be": "utf-8",
    "utf-32": "utf-8",
    "utf-7": "utf-8",
}
_UNOFFICIAL: Final = {
    "x-sjis": "cp932",
    "windows-31j": "cp932",
    "ms_kanji": "cp932",
    "x-euc-jp": "euc_jp",
    "x-gbk": "gb18030",
    "unicode": "utf-8",
    "x-cp1252": "cp1252",
    "ks_c_5601-1987": "cp949",
}
_TEXT_CODECS: Final = re.compile(
    r"utf|cp\d|iso8859|iso2022|gb|big5|euc|shift|koi8|mac|tis|hz|johab|ptcp|kz|ascii"
)

# The commonest characters of each writing: a wrong guess turns text into characters that are
# all legal and nearly all rare. Characters of statutes are included with those of prose.
_COMMON: Final = {
    "cp932": "のにはをたがでてとしれさいなるもっからことありまき、。，．・「」（）"
    "第条法項号年月日人本大会者国令規定一二三十",
    "gb18030": "的一是不了在人有我他这中大来上国个到说们为子和你地出道也时年得就那"
    "要下以生会自着去之过家学对可她里后，。、；：（）《》“”第条法规定律章款项务政府民行部门",
    "cp949": "이다는의을를에가한은고지로하기사도자어대서인리시제정나일그있조법률항규및수것의관",
    "big5": "的一是不了在人有我他這中大來上國個到說們為子和你地出道也時年得就那"
    "要下以生會自著去之過家學對可她裡後，。、；：（）「」第條法規定律章款項務政府民行部門",
}
_COMMON_OF: Final = {name: frozenset(text) for name, text in _COMMON.items()}
_JAPANESE: Final = _COMMON_OF["cp932"]
_EAST_ASIAN: Final = {
    "cp932": _JAPANESE,
    "euc_jp": _JAPANESE,
    "gb18030": _COMMON_OF["gb18030"],
    "cp949": _COMMON_OF["cp949"],
    "big5": _COMMON_OF["big5"],
}
# Names of offices and parties have few of the characters of prose, but some of these.
_JAPANESE_NAMES: Final = _JAPANESE | frozenset(
    "県市区町村都府道党連盟支部議員選挙政治団体協民主自由"
)
_MIN_JAPANESE: Final = 3
"""Different characters that are evidence of Japanese."""
_MIN_JAPANESE_RATIO: Final = 0.9
_MIN_NAMES_RATIO: Final = 0.1
_UTF16: Final = ("utf-16-le", "utf-16-be")
_SAMPLE: Final = 65_536
_PLAUSIBLE: Final = 0.18

_HIGH: Final = re.compile(rb"[\x80-\xff]+")
_UTF8_CHARACTER: Final = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)
_NON_ASCII: Final = re.compile(r"[^\x00-\x7f]")
_C1: Final = re.compile("[\x80-\x9f]")
_CONTROLS: Final = bytes({*range(1, 9), 11, *range(14, 32), 127})
_REPLACEMENT: Final = "\ufffd"
_REPAIR: Final = "fonds-repair-utf8"


@dataclass(frozen=True, kw_only=True, slots=True)
class Decoded:
    """Text, how it was read, and warnings of what was guessed or repaired."""

    text: str
    encoding: str
    """The codec's name; `mixed` where a file had two encodings."""
    warnings: tuple[str, ...] = ()


def decode(data: bytes, *, declared: str | None = None) -> Decoded:
    """The text of a file in any encoding; never fails, and warns of what it could not read.

    `declared` came with the file, as in an HTTP header; the declaration in its first bytes comes
    second, and neither is used if the bytes contradict it.
    """
    text, encoding, warnings = _read(data, declared)
    text, repaired = _cleaned(text)
    return Decoded(text=text, encoding=encoding, warnings=(*warnings, *repaired))


def declared_encoding(data: bytes) -> str | None:
    """The codec that an XML declaration or a meta element names, if it names a known one."""
    head = data[:_HEAD]
    for pattern in _DECLARED:
        if (match := pattern.search(head)) and (codec := _codec(match[1].decode("latin-1"))):
            return codec
    return None


def _codec(label: str) -> str | None:
    label = label.strip().lower()
    if label in _UNOFFICIAL:
        return _UNOFFICIAL[label]
    try:
        name = codecs.lookup(label).name
    except (LookupError, ValueError):
        return None
    name = _ALIASES.get(name, name)
    # base64, rot13 and their like are codecs too.
    return name if _TEXT_CODECS.match(name) else None


def _read(data: bytes, declared: str | None) -> tuple[str, str, tuple[str, ...]]:
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return _with_bom(data[len(bom) :], encoding)
    if (wide := _wide(data)) is not None:
        return data.decode(wide, "replace"), wide, (f"no byte order mark: read as {wide}",)
    declared = (_codec(declared) if declared else None) or declared_encoding(data)
    if declared in {"iso2022_jp", "hz"} and (text := _strict(data, declared)) is not None:
        return text, declared, ()
    if data.isascii():
        return _ascii(data)
    if (text := _strict(data, "utf-8")) is not None and not _only_looks_like_utf8(data, declared):
        return text, "utf-8", _contradicted(declared, "utf-8")
    return _legacy(data, declared)


def _with_bom(data: bytes, encoding: str) -> tuple[str, str, tuple[str, ...]]:
    if (text := _strict(data, encoding)) is not None:
        return text, encoding, ()
    if encoding == "utf-8":
        return _repaired(data)
    return data.decode(encoding, "replace"), encoding, ()


def _ascii(data: bytes) -> tuple[str, str, tuple[str, ...]]:
    if b"\x1b$" in data and (text := _strict(data, "iso2022_jp")) is not None:
        return text, "iso2022_jp", ("no encoding declared: read as iso2022_jp",)
    return data.decode("ascii"), "ascii", ()


def _contradicted(declared: str | None, actual: str) -> tuple[str, ...]:
    if declared is None or declared == actual:
        return ()
    return (f"declared as {declared}, but the bytes are {actual}",)


def _strict(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        return None


def _wide(data: bytes) -> str | None:
    """UTF-16 or UTF-32 without a mark: ASCII in it leaves NULs on one side only."""
    sample = data[: _SAMPLE - _SAMPLE % 4]
    if len(sample) < 4 or sample.count(0) * 5 < len(sample):  # noqa: PLR2004 — a share of a fifth
        return None
    lanes = [sample[lane::4].count(0) * 10 > len(sample[lane::4]) for lane in range(4)]
    pattern = "".join("0" if zero else "x" for zero in lanes)
    encodings = {
        "x0x0": "utf-16-le",
        "0x0x": "utf-16-be",
        "x000": "utf-32-le",
        "000x": "utf-32-be",
    }
    return encodings.get(pattern)


def _only_looks_like_utf8(data: bytes, declared: str | None) -> bool:
    # A few pairs of GB or EUC bytes can be legal UTF-8; long text never is.
    if declared not in _EAST_ASIAN or len(data) > _HEAD:
        return False
    if (text := _strict(data, declared)) is None:
        return False
    return _plausibility(text, _EAST_ASIAN[declared]) > _PLAUSIBLE and not any(
        len(match) > 2  # noqa: PLR2004 — pairs are what both encodings share
        for match in _UTF8_CHARACTER.findall(data)
    )


def _legacy(data: bytes, declared: str | None) -> tuple[str, str, tuple[str, ...]]:
    right, wrong = _utf8_bytes(data)
    best = _japanese(data, declared, right < wrong)
    if best is None and right and right >= wrong * 2:
        return _repaired(data)
    if (best := best or _east_asian(data, declared)) is not None:
        text = data.decode(best)
        return text, best, _contradicted(declared, best) or _guessed(declared, best)
    if declared and declared not in {"utf-8", "cp1252", *_EAST_ASIAN}:
        text = data.decode(declared, "replace")
        return text, declared, ()
    if declared in _EAST_ASIAN and _runs_long(data):
        return data.decode(declared, "replace"), declared, ()
    if right * 4 > wrong:
        return _repaired(data)
    text = data.decode("cp1252", "replace")
    return text, "cp1252", _contradicted(declared, "cp1252") or _guessed(declared, "cp1252")


def _guessed(declared: str | None, actual: str) -> tuple[str, ...]:
    return () if declared else (f"no encoding declared: read as {actual}",)


def _utf8_bytes(data: bytes) -> tuple[int, int]:
    """How many bytes beyond ASCII belong to whole UTF-8 characters, and how many do not."""
    high = sum(map(len, _HIGH.findall(data)))
    right = sum(map(len, _UTF8_CHARACTER.findall(data)))
    return right, high - right


def _east_asian(data: bytes, declared: str | None) -> str | None:
    scores: dict[str, float] = {}
    for encoding, common in _EAST_ASIAN.items() if _runs_long(data) else ():
        if (text := _strict(data, encoding)) is not None:
            scores[encoding] = _plausibility(text[:_SAMPLE], common)
    if declared in scores:
        scores[declared] += _PLAUSIBLE / 2
    for encoding in _UTF16 if len(data) % 2 == 0 and not _few_high(data) else ():
        if (text := _strict(data, encoding)) is not None:
            scores[encoding] = max(
                _plausibility(text[:_SAMPLE], common) for common in _EAST_ASIAN.values()
            )
    best = max(scores, key=lambda name: scores[name], default=None)
    return best if best is not None and scores[best] > _PLAUSIBLE else None


def _japanese(data: bytes, declared: str | None, is_not_utf8: bool) -> str | None:  # noqa: FBT001 — of one caller
    """The codec by which the bytes are Japanese, also if they are little more than names.

    Half-width kana are also what a codec makes of UTF-8, so they need others beside them.
    """
    if declared not in {None, "utf-8", "cp932", "euc_jp"}:
        return None
    # Of katakana in cp932, every other byte may be ASCII; so may what follows quotes in cp1252.
    min_names = _MIN_NAMES_RATIO if _runs_long(data) else 0.5
    for encoding in ("cp932", "euc_jp"):
        text = _strict(data, encoding)
        characters = _NON_ASCII.findall(text[:_SAMPLE]) if text else []
        half = sum("\uff61" <= character <= "\uff9f" for character in characters)
        full = [character for character in characters if _is_common_japanese(character)]
        kana_or_names = sum(
            "\u3041" <= each <= "\u30ff" or each in _JAPANESE_NAMES for each in full
        )
        if (
            len(set(full)) >= _MIN_JAPANESE
            and len(full) >= _MIN_JAPANESE_RATIO * (len(characters) - half)
            and kana_or_names >= min_names * len(full)
            and half <= len(full) * (1 if is_not_utf8 else 0.5)
        ):
            return encoding
    return None


def _is_common_japanese(character: str) -> bool:
    """True for kana, punctuation, full-width letters, and the kanji of JIS level 1."""
    if "\u3000" <= character <= "\u30ff" or "\uff01" <= character <= "\uff5e":
        return True
    return character in _level_1()


@cache
def _level_1() -> frozenset[str]:
    """The 2,965 common kanji: the first rows of kanji in both encodings."""
    rows = range(16, 48)
    pairs = (bytes((0xA0 + row, cell)) for row in rows for cell in range(0xA1, 0xFF))
    return frozenset(filter(None, (pair.decode("euc_jp", "ignore") for pair in pairs)))


def _few_high(data: bytes) -> bool:
    return sum(map(len, _HIGH.findall(data[:_SAMPLE]))) * 10 < len(data[:_SAMPLE])


def _plausibility(text: str, common: frozenset[str]) -> float:
    """The share of common characters among those beyond ASCII; half-width kana count against."""
    characters = _NON_ASCII.findall(text)
    if not characters:
        return 0.0
    common_count = sum(character in common for character in characters)
    half_width = sum("\uff61" <= character <= "\uff9f" for character in characters)
    private = sum("\ue000" <= character <= "\uf8ff" for character in characters)
    return float(common_count - half_width / 2 - private) / len(characters)


def _runs_long(data: bytes) -> bool:
    runs = _HIGH.findall(data)
    return sum(len(run) for run in runs if len(run) > 1) * 2 > sum(map(len, runs))


def _repaired(data: bytes) -> tuple[str, str, tuple[str, ...]]:
    """UTF-8 into which single windows-1252 characters were pasted, or which was cut."""
    text = data.decode("utf-8", _REPAIR)
    stray = len(data.decode("utf-8", "ignore"))
    count = len(text) - stray
    return text, "mixed", (f"{count} places are not UTF-8: read as windows-1252 where possible",)


def _repair(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    wrong = error.object[error.start : error.end]
    # One byte is a character of another encoding; more are a character of UTF-8 cut short.
    repaired = wrong.decode("cp1252", "replace") if len(wrong) == 1 else _REPLACEMENT
    return repaired, error.end


codecs.register_error(_REPAIR, _repair)


def _cleaned(text: str) -> tuple[str, tuple[str, ...]]:
    warnings = []
    if nuls := text.count("\0"):
        text = text.replace("\0", "")
        warnings.append(f"{nuls} NUL characters removed")
    # U+0080 to U+009F never appear in prose: windows-1252 was transcoded as Latin-1.
    transcoded = 0
    if not text.isascii():
        text, transcoded = _C1.subn(lambda match: _windows(match[0]), text)
    if transcoded:
        warnings.append(f"{transcoded} control characters read as windows-1252")
    if unreadable := text.count(_REPLACEMENT):
        warnings.append(f"{unreadable} unreadable characters replaced by {_REPLACEMENT}")
    return text.removeprefix("\ufeff"), tuple(warnings)


def _windows(character: str) -> str:
    return character.encode("latin-1").decode("cp1252", "replace")


def without_controls(text: str) -> tuple[str, tuple[str, ...]]:
    """The text without characters that no reader sees, and the warning that counts them."""
    data = text.encode()
    visible = data.translate(None, _CONTROLS)
    count = len(data) - len(visible)
    return (visible.decode(), (f"{count} control characters removed",)) if count else (text, ())
