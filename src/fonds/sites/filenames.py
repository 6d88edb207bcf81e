"""Names of files and of organisations that every file system and object store can keep.

Japanese is romanised. In other scripts, and with a rare kanji, a name ends with the first digits of
its hash: it is as stable and as unique, but not readable.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import lru_cache
from typing import Final
from urllib.parse import parse_qsl, unquote_to_bytes, urlsplit

from fonds.sites.models import UNDATED
from fonds.sites.romaji import romanised_kanji

MAX_SLUG: Final = 80
MAX_FILENAME: Final = 200
"""Bytes, with the hash that `collided` adds; file systems allow 255."""
MAX_ORIGINAL: Final = 100

_NAMELESS: Final = "unnamed"
_DIGITS: Final = 8
_SUFFIX: Final = re.compile(r"(?:\s*\.pdf)+\s*$", re.IGNORECASE)
_SCRIPT: Final = re.compile(r"\.(?:aspx?|ashx|cfm|cgi|do|html?|jsp|php\d?)$", re.IGNORECASE)
_JAPANESE: Final = re.compile(r"[\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff々〆]")
_WORD: Final = re.compile(r"[a-z0-9]+")
# Letters that have no decomposition.
_LETTERS: Final = str.maketrans(
    {
        "ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ł": "l",
        "ħ": "h", "ı": "i", "ŋ": "ng", "ŧ": "t", "ə": "e", "'": "", "’": "", "ʻ": "", "ʼ": "",
    }
)  # fmt: skip
# Reserved on Windows, with any extension, or with a meaning in addresses.
_FORBIDDEN: Final = re.compile(r'[\\/:*?"<>|%#&+;=~^`{}\[\]\s-]+')
_DEVICE: Final = re.compile(
    r"(?:con|prn|aux|nul|com\d|lpt\d|conin\$|conout\$)(?=\.|$)", re.IGNORECASE
)
_PARAMETER: Final = re.compile(
    r'(?:^|;)\s*(filename\*?)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;]*))', re.IGNORECASE
)
_ESCAPED: Final = re.compile(r'\\(["\\])')
_CODED: Final = re.compile(r"%[0-9a-f]{2}", re.IGNORECASE)


# Organisations ------------------------------------------------------------------------------


@lru_cache(4096)
def slug(name: str) -> str:
    """A name in small letters, digits and hyphens, at most 80 of them; the same one each time."""
    text = unicodedata.normalize("NFKC", _encodable(name))
    latin, complete = _without_accents(_romanised(text) if _JAPANESE.search(text) else text)
    words = "-".join(_WORD.findall(latin))
    if complete and 0 < len(words) <= MAX_SLUG:
        return words
    if not any(map(str.isalnum, text)):
        return _NAMELESS
    room = MAX_SLUG - _DIGITS - 1
    if len(words) > room:
        words = words[: room + 1].rpartition("-")[0] or words[:room]
    return f"{words or 'name'}-{_hash(text)}"


def _without_accents(text: str) -> tuple[str, bool]:
    """Latin letters without their accents, and whether there were no others."""
    decomposed = unicodedata.normalize("NFKD", text.casefold().translate(_LETTERS))
    letters = "".join(each for each in decomposed if not unicodedata.combining(each))
    return letters, not any(each.isalnum() and not each.isascii() for each in letters)


def _romanised(text: str) -> str:
    hiragana = _hiragana(romanised_kanji(text))
    return _KANA_RUN.sub(lambda run: f" {_KANA.sub(_syllable, run[0])} ", hiragana)


# Hepburn: kana have one sound each.
_SOUNDS: Final = {
    **dict(zip("あいうえおんをゔー", ("a", "i", "u", "e", "o", "n", "wo", "vu", ""), strict=True)),
    **{
        kana: f"{consonant}{vowel}"
        for consonant, row in {
            "k": "かきくけこ", "g": "がぎぐげご", "s": "さしすせそ", "z": "ざじずぜぞ",
            "t": "たちつてと", "d": "だぢづでど", "n": "なにぬねの", "h": "はひふへほ",
            "b": "ばびぶべぼ", "p": "ぱぴぷぺぽ", "m": "まみむめも", "r": "らりるれろ",
        }.items()
        for kana, vowel in zip(row, "aiueo", strict=True)
    },
    **dict(zip("やゆよわゐゑ", ("ya", "yu", "yo", "wa", "i", "e"), strict=True)),
    **dict(zip("ぁぃぅぇぉ", "aiueo", strict=True)),
    "し": "shi", "じ": "ji", "ち": "chi", "ぢ": "ji", "つ": "tsu", "づ": "zu", "ふ": "fu",
}  # fmt: skip
_KANA: Final = re.compile(r"(っ?)([ぁ-ゔー])([ゃゅょ]?)")
_KANA_RUN: Final = re.compile(r"[ぁ-ゔー]+")
_SMALL: Final = {"ゃ": "ya", "ゅ": "yu", "ょ": "yo"}


def _hiragana(text: str) -> str:
    return "".join(chr(ord(each) - 0x60) if "ァ" <= each <= "ヴ" else each for each in text)


def _syllable(match: re.Match[str]) -> str:
    doubled, kana, small = match.groups()
    sound = _SOUNDS.get(kana, "")
    if small:
        glide = _SMALL[small]
        sound = sound[:-1] + (glide[1:] if sound in {"shi", "ji", "chi"} else glide)
    return (sound[:1].replace("c", "t") if doubled else "") + sound


# Files --------------------------------------------------------------------------------------


def filename(*, organization: str, period: str | None, original: str) -> str:
    """`{organization-slug}_{reporting-period}_{original-name}.pdf`; the period in small letters."""
    when = "-".join(_WORD.findall((period or UNDATED).lower())) or UNDATED
    beginning = f"{slug(organization)}_{when[:20]}_"
    room = MAX_FILENAME - _DIGITS - 1 - len(f"{beginning}.pdf")
    return f"{beginning}{_safe(original, room)}.pdf"


def collided(filename: str, sha256: str) -> str:
    """The name of a file whose own name is used for other bytes: `…-{sha8}.pdf`."""
    return f"{filename.removesuffix('.pdf')}-{sha256[:_DIGITS]}.pdf"


def original_name(url: str, disposition: str | None = None) -> str:
    """The publisher's name of a file, without `.pdf`: by its header, or else by its address."""
    name = _disposed(_encodable(disposition or ""))
    return _safe(name or _addressed(_encodable(url)), MAX_ORIGINAL)


def _safe(name: str, room: int) -> str:
    """A name that every file system and object store can store, of so many bytes."""
    text = unicodedata.normalize("NFC", _SUFFIX.sub("", _encodable(name)))
    # Besides controls these are marks of the reading direction, and invalid characters.
    text = "".join(" " if unicodedata.category(each)[0] in "CZ" else each for each in text)
    text = _SUFFIX.sub("", _FORBIDDEN.sub("-", text).strip("-. "))
    text = re.sub(r"\.{2,}", ".", text).strip("-. ")
    if not text:
        return _NAMELESS
    if _DEVICE.match(text):
        text = f"_{text}"
    return text if len(text.encode()) <= room else _shortened(text, room)


def _shortened(text: str, room: int) -> str:
    beginning = text.encode()[: room - _DIGITS - 1].decode(errors="ignore").rstrip("-. ")
    return f"{beginning}-{_hash(text)}"


def _disposed(header: str) -> str:
    names = {kind.lower(): quoted or token for kind, quoted, token in _PARAMETER.findall(header)}
    name = _extended(names.get("filename*", "")) or _simple(names.get("filename", ""))
    # Some programs send the path of the file on the author's machine.
    return re.split(r"[/\\]", name)[-1]


def _extended(value: str) -> str:
    charset, _, rest = value.strip().partition("'")
    _, _, coded = rest.partition("'")
    try:
        return unquote_to_bytes(coded).decode(charset or "utf-8")
    except (LookupError, ValueError):
        return ""


def _simple(value: str) -> str:
    name = _ESCAPED.sub(r"\1", value.strip())
    if _CODED.search(name):
        return _decoded(unquote_to_bytes(name))
    try:
        # Headers are read as Latin-1 in any case.
        return _decoded(name.encode("latin-1"))
    except UnicodeEncodeError:
        return name


def _addressed(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    names = [_decoded(unquote_to_bytes(each)) for each in parts.path.split("/") if each]
    name = re.split(r"[/\\]", names[-1])[-1] if names else ""
    if _SUFFIX.search(name):
        return name
    values = [
        re.split(r"[/\\]", _decoded(value.encode("latin-1", "replace")))[-1]
        for _, value in parse_qsl(parts.query, encoding="latin-1")
    ]
    if file := next((value for value in values if _SUFFIX.search(value)), None):
        return file
    return "-".join(each for each in (_SCRIPT.sub("", name), *values) if each)


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        pass
    # Text in Shift_JIS has bytes that are control characters in Latin-1.
    if any(0x80 <= byte < 0xA0 for byte in data):  # noqa: PLR2004 — the second row of controls
        return data.decode("cp932", "replace").replace("\ufffd", "")
    return data.decode("latin-1")


def _encodable(text: str) -> str:
    """A text without the lone surrogates of damaged pages."""
    return text.encode("utf-8", "ignore").decode()


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
