from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fonds.normalize.encodings import declared_encoding, decode, without_controls

JAPANESE = "第一条　この法律は、国民の権利を守ることを目的とする。機関は、次の事項を定める。"
CHINESE = "第一条 为了保护公民的合法权益，根据宪法，制定本法。国务院有关部门应当依照本法规定。"
KOREAN = "제1조(목적) 이 법은 국민의 권리를 보호하고 행정의 투명성을 확보함을 목적으로 한다."
ENGLISH = "The “Secretary” — under § 5 — may not… naïve café £5 ½."


@pytest.mark.parametrize("declaration", ["", "<meta charset=iso-8859-1>", "<meta charset=utf-8>"])
@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (JAPANESE, "cp932"),
        (JAPANESE, "euc_jp"),
        (JAPANESE, "iso2022_jp"),
        (JAPANESE, "utf-8"),
        (JAPANESE, "utf-16-le"),
        (JAPANESE, "utf-16-be"),
        (CHINESE, "gb18030"),
        (CHINESE, "utf-16-le"),
        (KOREAN, "cp949"),
        (ENGLISH, "cp1252"),
        (ENGLISH, "utf-8"),
        (ENGLISH, "utf-16-le"),
        (ENGLISH, "utf-16-be"),
        (ENGLISH, "utf-32-le"),
    ],
)
def test_text_is_read_whatever_is_declared(text: str, encoding: str, declaration: str) -> None:
    assert decode((declaration + text).encode(encoding)).text == declaration + text


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_decides_and_disappears(encoding: str) -> None:
    decoded = decode(ENGLISH.encode(encoding), declared="shift_jis")
    assert decoded.text == ENGLISH
    assert decoded.warnings == ()


@pytest.mark.parametrize("encoding", ["cp932", "euc_jp"])
@pytest.mark.parametrize(
    "text",
    [
        "岐阜県",
        "平成30年分 椿県医師連盟 民社協会 能登ソーラー政治連盟",
        "ソーラー ネットワーク トップページ",
        "ﾃｽﾄ ﾎｰﾑ 岐阜県選挙管理委員会",
    ],
)
def test_japanese_names_are_no_utf8_whatever_is_declared(text: str, encoding: str) -> None:
    markup = f'<meta charset="utf-8"><title>Reports</title><li><a href="a.pdf">{text}</a>'
    decoded = decode(markup.encode(encoding), declared="utf-8")
    assert (decoded.text, decoded.encoding) == (markup, encoding)


@pytest.mark.parametrize("text", ["“Hello” she said—§ 5 … ‘it’s’”", "ÉTAT ÑANDÚ AÇÃO"])
def test_accents_and_quotes_are_not_taken_for_japanese(text: str) -> None:
    assert decode(text.encode("cp1252"), declared="utf-8").text == text
    assert decode(text.encode() + b"\x92", declared="utf-8").text == f"{text}’"


def test_a_contradicted_declaration_is_named() -> None:
    decoded = decode(b'<meta charset="iso-8859-1">' + "café".encode())
    assert decoded.encoding == "utf-8"
    assert decoded.warnings == ("declared as cp1252, but the bytes are utf-8",)


def test_latin1_means_windows_1252() -> None:
    decoded = decode(b'<?xml version="1.0" encoding="ISO-8859-1"?><p>\x93so\x94 caf\xe9</p>')
    assert "“so” café" in decoded.text
    assert decoded.warnings == ()


def test_a_single_windows_character_in_utf8_is_mended_and_counted() -> None:
    decoded = decode("Ünïcödé wörds ".encode() + b"and a pasted \x96 dash")
    assert decoded.text == "Ünïcödé wörds and a pasted – dash"
    assert decoded.encoding == "mixed"
    assert decoded.warnings[0].startswith("1 places are not UTF-8")


def test_a_character_cut_short_is_replaced_with_a_warning() -> None:
    decoded = decode("“Many” “quoted” “words”".encode() + b" \xe2\x80")
    assert decoded.text.endswith("” \ufffd")
    assert "1 unreadable characters replaced by \ufffd" in decoded.warnings


def test_windows_characters_transcoded_as_latin1_come_back() -> None:
    decoded = decode("it\u0092s".encode())
    assert decoded.text == "it’s"
    assert decoded.warnings == ("1 control characters read as windows-1252",)


def test_nuls_are_removed_and_counted() -> None:
    decoded = decode(b"a\0b\0c and more text")
    assert decoded.text == "abc and more text"
    assert decoded.warnings == ("2 NUL characters removed",)


def test_a_declared_single_byte_encoding_is_believed() -> None:
    text = "<meta charset=windows-1251>Федеральный закон"
    assert decode(text.encode("cp1251")).text == text


@pytest.mark.parametrize("label", ["rot13", "base64", "no-such-encoding"])
def test_a_codec_that_is_no_encoding_is_not_used(label: str) -> None:
    assert declared_encoding(f"<meta charset={label}>".encode()) is None
    assert decode(b"plain", declared=label).text == "plain"


def test_controls_are_removed_but_white_space_stays() -> None:
    assert without_controls("a\x14b\tc\nd\x7f") == ("ab\tc\nd", ("2 control characters removed",))
    assert without_controls("clean\f") == ("clean\f", ())


@settings(max_examples=60)
@given(st.binary(max_size=300))
def test_any_bytes_become_text_that_can_be_stored(data: bytes) -> None:
    text = decode(data).text
    assert "\0" not in text
    assert text.encode().decode() == text
