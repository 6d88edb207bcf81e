from __future__ import annotations

import hashlib
import re
import unicodedata
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fonds.sites.filenames import collided, filename, original_name, slug
from fonds.sites.models import DownloadedPDF
from fonds.stores.folder import check_key

SHA256 = hashlib.sha256(b"%PDF-").hexdigest()
SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
FILENAME = next(
    each.pattern
    for each in DownloadedPDF.model_fields["filename"].metadata
    if getattr(each, "pattern", None)
)


# Organisations ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("自由民主党", "jiyu-minshuto"),
        ("日本共産党", "nihon-kyosanto"),
        ("公明党", "komeito"),
        ("れいわ新選組", "reiwa-shinsengumi"),
        ("立憲民主党東京都支部連合会", "rikken-minshuto-tokyoto-shibu-rengokai"),
        ("大阪府選挙管理委員会", "osaka-fu-senkyo-kanri-iinkai"),
        ("佐々木さやか後援会", "sasaki-sayaka-koenkai"),
        ("人々の会", "jinjin-no-kai"),
        ("ＮＨＫから国民を守る党", "nhk-kara-kokumin-wo-mamoru-to"),
        ("教育無償化を実現する会", "kyoiku-musho-ka-wo-jitsugen-suru-kai"),
        ("鈴木　俊一 後援会", "suzuki-shunichi-koenkai"),
    ],
)
def test_japanese_names_are_romanised(name: str, expected: str) -> None:
    assert slug(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Liberal Democratic Party", "liberal-democratic-party"),
        ("Bündnis 90/Die Grünen", "bundnis-90-die-grunen"),
        ("Freie Wähler Straße", "freie-wahler-strasse"),
        ("Parti de l’Écologie", "parti-de-lecologie"),
        ("Sosialistisk Venstreparti Ørsta", "sosialistisk-venstreparti-orsta"),
        ("Łódź Æsir Đặng", "lodz-aesir-dang"),
        ("  A --- B & Co., Ltd.  ", "a-b-co-ltd"),
        ("ＡＢＣ　１２３", "abc-123"),
    ],
)
def test_latin_names_lose_their_accents(name: str, expected: str) -> None:
    assert slug(name) == expected


@pytest.mark.parametrize("name", ["Ελλάδα", "Единая Россия", "더불어민주당", "กกต.", "حزب"])
def test_other_scripts_are_known_by_their_hash(name: str) -> None:
    assert re.fullmatch(r"name-[0-9a-f]{8}", slug(name))
    assert slug(name) != slug(f"{name}{name}")


def test_what_can_be_read_of_a_mixed_name_stays() -> None:
    assert re.fullmatch(r"siriza-2024-[0-9a-f]{8}", slug("Siriza Ελλάδα 2024"))


def test_names_with_rare_kanji_are_told_apart() -> None:
    assert slug("日本维新の会") != slug("日本杂新の会")


@pytest.mark.parametrize("name", ["", "  ", "!!!", "・", "\x00"])
def test_no_name_is_a_name_too(name: str) -> None:
    assert slug(name) == "unnamed"


def test_long_names_are_cut_between_words_and_stay_different() -> None:
    first, second = slug("committee for " * 20 + "one"), slug("committee for " * 20 + "two")
    assert first != second
    assert re.fullmatch(r"(committee-for-)+[0-9a-f]{8}", first)
    assert len(first) <= 80


def test_one_word_without_end_is_cut_as_well() -> None:
    assert re.fullmatch(r"a{71}-[0-9a-f]{8}", slug("a" * 500))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("れいわ", "reiwa"),
        ("がっこう", "gakkou"),
        ("マッチ", "matchi"),
        ("きょうと・しゅふ", "kyouto-shufu"),
        ("ジャパン", "japan"),
    ],
)
def test_kana_are_spelled(name: str, expected: str) -> None:
    assert slug(name) == expected


@settings(max_examples=60)
@given(st.text(max_size=120))
def test_every_name_has_a_slug(name: str) -> None:
    found = slug(name)
    assert SLUG.fullmatch(found)
    assert len(found) <= 80
    assert slug.__wrapped__(name) == found


@settings(max_examples=40)
@given(st.text(alphabet="自由民主党日本の会ぁっーンヴ々〆?!12ab ", min_size=1, max_size=60))
def test_every_japanese_name_has_a_slug(name: str) -> None:
    assert SLUG.fullmatch(slug(name))


# Original names -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://a.example/reports/annual_report.pdf", "annual_report"),
        ("https://a.example/R6.PDF", "R6"),
        ("https://a.example/a.pdf.pdf", "a"),
        ("https://a.example/a.pdf?v=3#page=2", "a"),
        ("https://a.example/%E5%8F%8E%E6%94%AF%E5%A0%B1%E5%91%8A.pdf", "収支報告"),
        (f"https://a.example/{quote('収支報告'.encode('cp932'))}.pdf", "収支報告"),
        (f"https://a.example/{quote('Résumé'.encode('latin-1'))}.pdf", "Résumé"),
        ("https://a.example/収支 報告.pdf", "収支-報告"),
        ("https://a.example/cafe%CC%81.pdf", "café"),
        ("https://a.example/download/123", "123"),
        ("https://a.example/download/123/", "123"),
        ("https://a.example/get.aspx?id=5", "get-5"),
        ("https://a.example/get.php?file=reports%2F2024.pdf", "2024"),
        ("https://a.example/get?name=%8E%FB%8Ex.pdf", "収支"),
        ("https://a.example/", "unnamed"),
        ("https://a.example/.pdf", "unnamed"),
        ("https://a.example/....pdf", "unnamed"),
        ("https://a.example/a%00b%0A.pdf", "a-b"),
        ("https://a.example/..%2F..%2Fetc%2Fpasswd.pdf", "passwd"),
        ("https://a.example/..%5C..%5Cboot.pdf", "boot"),
        ("https://a.example/%252e%252e%252fx.pdf", "2e-2e-2fx"),
        ("https://a.example/get?f=../../x.pdf", "x"),
        ("https://a.example/con.pdf", "_con"),
        ("https://a.example/LPT1.final.pdf", "_LPT1.final"),
        ("https://a.example/console.pdf", "console"),
        ("https://a.example/a.%20.pdf", "a"),
        ('https://a.example/a<b>:"c|d*?.pdf', "a-b-c-d"),
        ("https://a.example/%E2%80%AEfdp.exe.pdf", "fdp.exe"),
        ("https://a.example/a..b.pdf", "a.b"),
        ("http://[broken", "unnamed"),
    ],
)
def test_a_file_is_named_after_its_address(url: str, expected: str) -> None:
    assert original_name(url) == expected


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ('attachment; filename="report.pdf"', "report"),
        ("attachment; filename=report.pdf; size=12", "report"),
        ("ATTACHMENT;FILENAME=Report.PDF", "Report"),
        ('inline; filename="a;b.pdf"', "a-b"),
        (r'attachment; filename="say \"hi\".pdf"', "say-hi"),
        ("attachment; filename*=UTF-8''%E5%A0%B1%E5%91%8A.pdf", "報告"),
        ("attachment; filename=x.pdf; filename*=utf-8'ja'%E5%A0%B1%E5%91%8A.pdf", "報告"),
        ("attachment; filename*=UTF-8''%E5%A0%B1.pdf; filename=x.pdf", "報"),
        ("attachment; filename*=iso-8859-1''%A3%20rates.pdf", "£-rates"),
        ("attachment; filename*=Shift_JIS''%95%F1%8D%90.pdf", "報告"),
        ("attachment; filename*=nonsense''%A3.pdf; filename=x.pdf", "x"),
        ("attachment; filename*=UTF-8''%FF.pdf; filename=x.pdf", "x"),
        ("attachment; filename=%E5%A0%B1%E5%91%8A.pdf", "報告"),
        (f'attachment; filename="{"報告".encode().decode("latin-1")}.pdf"', "報告"),
        (f'attachment; filename="{"報告書".encode("cp932").decode("latin-1")}.pdf"', "報告書"),
        ('attachment; filename="Résumé.pdf"', "Résumé"),
        ('attachment; filename="報告.pdf"', "報告"),
        (r'attachment; filename="C:\reports\new.pdf"', "new"),
        ('attachment; filename="../../etc/passwd.pdf"', "passwd"),
        ("attachment; filename*=UTF-8''..%2F..%2Fx.pdf", "x"),
    ],
)
def test_a_header_names_a_file_better_than_its_address(header: str, expected: str) -> None:
    assert original_name("https://a.example/download/123", header) == expected


@pytest.mark.parametrize(
    "header", ["", "attachment", 'attachment; filename=""', "filename*=x", ";="]
)
def test_a_header_without_a_name_leaves_it_to_the_address(header: str) -> None:
    assert original_name("https://a.example/download/123", header) == "123"


def test_long_names_are_cut_within_characters_of_any_length_and_stay_different() -> None:
    first, second = original_name("https://a/" + "報" * 99), original_name("https://a/" + "報" * 98)
    assert first != second
    assert first.startswith("報報")
    assert len(first.encode()) <= 100


NAMES = st.one_of(
    st.text(max_size=150),
    st.text(alphabet="./\\ \x00:%\u202e報é-_", max_size=40),
    st.sampled_from(["con", "NUL.pdf", "..", ".pdf", "a" * 300, "報" * 300, "\ud800"]),
)


@settings(max_examples=150)
@given(NAMES, st.one_of(st.none(), NAMES))
def test_every_original_name_is_safe(name: str, header: str | None) -> None:
    found = original_name(f"https://a.example/{name}", header and f'x; filename="{header}"')
    assert 0 < len(found.encode()) <= 100
    assert not set(found) & set('/\\:*?"<>|%#')
    assert found == unicodedata.normalize("NFC", found)
    assert found == found.strip(". ")
    assert not any(unicodedata.category(each).startswith("C") for each in found)
    assert found.split(".")[0].lower() not in {"con", "prn", "aux", "nul", "com1", "lpt9"}
    check_key(found)


# File names ---------------------------------------------------------------------------------


def test_a_file_name_has_organisation_period_and_original_name() -> None:
    found = filename(organization="自由民主党", period="2024-Q1", original="報告書")
    assert found == "jiyu-minshuto_2024-q1_報告書.pdf"


def test_an_unknown_period_is_undated() -> None:
    assert filename(organization="A", period=None, original="x") == "a_undated_x.pdf"


def test_colliding_names_get_the_beginning_of_the_hash() -> None:
    assert collided("a_undated_x.pdf", SHA256) == f"a_undated_x-{SHA256[:8]}.pdf"


@settings(max_examples=100)
@given(st.text(max_size=150), st.one_of(st.none(), st.text(max_size=40)), NAMES)
def test_every_file_name_keeps_the_convention(
    organization: str, period: str | None, original: str
) -> None:
    found = filename(organization=organization, period=period, original=original)
    for name in (found, collided(found, SHA256)):
        assert re.fullmatch(FILENAME, name)
        assert len(name.encode()) <= 200
        check_key(f"pdfs/{name}")


def test_a_file_system_takes_the_longest_names(tmp_path: Path) -> None:
    name = filename(organization="委員会" * 40, period="2024-annual", original="報告" * 200)
    file = tmp_path / collided(name, SHA256)
    file.touch()
    assert [each.name for each in tmp_path.iterdir()] == [file.name]
