"""Word files: their text with numbers and notes, and what is refused in them."""

from __future__ import annotations

import io
import random
import struct
import sys
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.support.faults.damage import damaged
from tests.unit.normalize.written_docx import (
    SPACES,
    STYLES,
    document,
    list_level,
    notes,
    numbering,
    paragraph,
    relationships,
    run,
    table,
    word_file,
    zipped,
)

from fonds.chunk.chunker import Chunker
from fonds.errors import (
    EncryptedError,
    MalformedError,
    NoTextError,
    ParseError,
    WrongContentError,
)
from fonds.model import NormalizedBody
from fonds.normalize.docx import Docx, convert, package
from fonds.normalize.docx import package as parts
from fonds.normalize.registry import Normalizer, get_normalizer, sniff

FIXTURE = Path(__file__).parent / "fixtures" / "docx" / "policy.docx"
CLAUSES = numbering(
    list_level(0, "decimal", "%1."),
    list_level(1, "lowerLetter", "(%2)"),
    list_level(2, "bullet", "•"),
)


def read(body: str, **parts: str) -> NormalizedBody:
    named = {f"word/{name}.xml": part for name, part in parts.items()}
    return Docx().to_markdown(word_file(body, named))


def markdown(body: str, **parts: str) -> str:
    return read(body, **parts).markdown


def test_it_is_a_normalizer_the_registry_knows() -> None:
    assert isinstance(get_normalizer("docx_v1"), Normalizer)
    assert Docx().label == "docx_v1@1.0.0"


def test_a_word_file_is_recognized_by_its_bytes() -> None:
    assert sniff(word_file(paragraph("Words"))) == "docx_v1"
    assert sniff(FIXTURE.read_bytes()) == "docx_v1"


def test_an_archive_of_something_else_is_not_taken_for_a_word_file() -> None:
    assert sniff(zipped({"xl/workbook.xml": "<workbook/>"})) != "docx_v1"


# Text ---------------------------------------------------------------------------------------


def test_headings_are_found_by_their_styles_in_any_language_and_by_what_these_stand_on() -> None:
    body = read(
        paragraph("Harbour policy", "Titel")
        + paragraph("Cover", "berschrift1")
        + paragraph("Section 2 What is covered", "Clause")
        + paragraph("Fire and flood.")
    )
    assert body.markdown == (
        "# Harbour policy\n\n# Cover\n\n## Section 2 What is covered\n\nFire and flood.\n"
    )
    assert [(one.level, one.section) for one in body.headings] == [
        (1, None),
        (1, None),
        (2, "Section 2"),
    ]


def test_an_outline_level_of_the_paragraph_itself_makes_a_heading() -> None:
    styled = '<w:p><w:pPr><w:outlineLvl w:val="2"/></w:pPr>' + run("Exclusions") + "</w:p>"
    assert markdown(styled) == "### Exclusions\n"


def test_a_heading_style_without_definition_still_counts() -> None:
    assert markdown(paragraph("Cover", "Heading3")) == "### Cover\n"


def test_bold_and_italic_are_kept_also_from_a_character_style() -> None:
    said = run("A ") + run("fire", "<w:b/>") + run(", a ") + run("flood", "<w:i/>")
    strong = run(" or ") + run("wind", '<w:rStyle w:val="Strong"/>') + run(".")
    assert markdown(f"<w:p>{said}{strong}</w:p>") == "A **fire**, a *flood* or **wind**.\n"


def test_bold_that_is_switched_off_is_not_bold() -> None:
    said = run("Plain", '<w:b w:val="off"/><w:i w:val="0"/>')
    assert markdown(f"<w:p>{said}</w:p>") == "Plain\n"


def test_lists_have_the_numbers_that_word_shows() -> None:
    body = (
        paragraph("Fire", in_list="1")
        + paragraph("of the house", in_list="1", level=1)
        + paragraph("of the shed", in_list="1", level=1)
        + paragraph("with tools", in_list="1", level=2)
        + paragraph("Flood", in_list="1")
        + paragraph("of the cellar", in_list="1", level=1)
    )
    assert markdown(body, numbering=CLAUSES) == (
        "1. Fire\n\n   - (a) of the house\n\n   - (b) of the shed\n\n     - with tools\n\n"
        "2. Flood\n\n   - (a) of the cellar\n"
    )


def test_a_list_goes_on_counting_behind_other_text() -> None:
    body = (
        paragraph("Fire", in_list="1")
        + paragraph("That is all of it.")
        + paragraph("Flood", in_list="1")
    )
    assert markdown(body, numbering=CLAUSES) == "1. Fire\n\nThat is all of it.\n\n2. Flood\n"


def test_numbers_of_headings_are_written_before_them() -> None:
    levels = numbering(list_level(0, "upperRoman", "Part %1"), list_level(1, "decimal", "%1.%2"))
    body = (
        paragraph("Cover", "berschrift1", in_list="1")
        + paragraph("Fire", "Heading2", in_list="1", level=1)
        + paragraph("Flood", "Heading2", in_list="1", level=1)
    )
    assert markdown(body, numbering=levels) == "# Part I Cover\n\n## I.1 Fire\n\n## I.2 Flood\n"


def test_legal_numbering_writes_every_level_in_digits() -> None:
    levels = numbering(
        list_level(0, "upperRoman", "%1"), list_level(1, "decimal", "%1.%2", more="<w:isLgl/>")
    )
    body = paragraph("Cover", in_list="1") + paragraph("Fire", in_list="1", level=1)
    assert "1.1 Fire" in markdown(body, numbering=levels)


def test_a_second_list_may_start_anew_or_continue_the_first() -> None:
    lists = (
        '<w:num w:numId="1">{}</w:num><w:num w:numId="2">{}</w:num><w:num w:numId="3">{}'
        '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride></w:num>'
    )
    levels = numbering(list_level(0, "decimal", "%1.", start=4), lists=lists)
    body = paragraph("a", in_list="1") + paragraph("b", in_list="2") + paragraph("c", in_list="3")
    written = markdown(body, numbering=levels)
    assert "4. a" in written
    assert "5. b" in written
    assert "1\\. c" in written


@pytest.mark.parametrize(
    ("kind", "count", "written"),
    [
        ("upperLetter", 3, "C"),
        ("lowerLetter", 27, "aa"),
        ("lowerLetter", 54, "bbb"),
        ("upperRoman", 949, "CMXLIX"),
        ("lowerRoman", 14, "xiv"),
        ("decimalZero", 7, "07"),
        ("chineseCounting", 5, "5"),
        ("lowerRoman", 0, "0"),
        ("upperLetter", 99999, "99999"),
        ("none", 5, ""),
    ],
)
def test_numbers_are_written_as_word_writes_them(kind: str, count: int, written: str) -> None:
    levels = numbering(list_level(0, kind, "§%1 –", start=count))
    assert markdown(paragraph("x", in_list="1"), numbering=levels) == f"- §{written} – x\n"


def test_a_number_comes_from_the_list_of_a_style() -> None:
    styled = (
        '<w:style w:type="paragraph" w:styleId="Num"><w:name w:val="Num"/>'
        '<w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>'
    )
    levels = numbering(
        list_level(0, "decimal", "%1."),
        list_level(1, "lowerLetter", "(%2)", more='<w:pStyle w:val="Num"/>'),
    )
    styles = f"<w:styles {SPACES}>{STYLES}{styled}</w:styles>"
    assert markdown(paragraph("x", "Num"), numbering=levels, styles=styles) == "- (a) x\n"
    out = '<w:p><w:pPr><w:pStyle w:val="Num"/><w:numPr><w:numId w:val="0"/></w:numPr></w:pPr>'
    assert markdown(f"{out}{run('x')}</w:p>", numbering=levels, styles=styles) == "x\n"


def test_tables_become_tables_with_their_merged_cells_kept_beside() -> None:
    wide = (
        '<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="2"/></w:tcPr>'
        f"{paragraph('Both')}</w:tc></w:tr><w:tr><w:tc>{paragraph('a')}</w:tc>"
        f"<w:tc>{paragraph('b')}</w:tc></w:tr></w:tbl>"
    )
    body = read(table(("Peril", "Limit"), ("Fire", "1,000")) + paragraph("Then:") + wide)
    assert "| Peril | Limit |\n| --- | --- |\n| Fire | 1,000 |\n" in body.markdown
    assert "| Both |  |\n| --- | --- |\n| a | b |\n" in body.markdown
    assert [one.kind for one in body.artifacts] == ["table"]


def test_a_list_in_a_cell_keeps_its_numbers() -> None:
    cell = paragraph("Fire", in_list="1") + paragraph("Flood", in_list="1")
    rows = f"<w:tbl><w:tr><w:tc>{paragraph('Perils')}</w:tc><w:tc>{cell}</w:tc></w:tr></w:tbl>"
    written = markdown(rows, numbering=CLAUSES)
    assert written == "| Perils | 1. Fire<br>2. Flood |\n| --- | --- |\n"


def test_footnotes_and_endnotes_stand_below_the_text_without_arrows() -> None:
    referring = run("Fire") + '<w:r><w:footnoteReference w:id="2"/></w:r>'
    ending = run(" and flood") + '<w:r><w:endnoteReference w:id="2"/></w:r>'
    written = markdown(
        f"<w:p>{referring}{ending}{run('.')}</w:p>",
        footnotes=notes("footnote", n2="Lightning too."),
        endnotes=notes("endnote", n2="Of rivers."),
    )
    assert written == "Fire[^1] and flood[^2].\n\n[^1]: Lightning too.\n\n[^2]: Of rivers.\n"


def test_tracked_changes_are_read_as_accepted() -> None:
    deleted = '<w:del w:id="1"><w:r><w:delText>never</w:delText></w:r></w:del>'
    inserted = f'<w:ins w:id="2">{run("always")}</w:ins>'
    moved = f"<w:moveFrom>{run('old place ')}</w:moveFrom><w:moveTo>{run(' new place')}</w:moveTo>"
    body = read(f"<w:p>{run('We ')}{deleted}{inserted}{run(' pay')}{moved}</w:p>")
    assert body.markdown == "We always pay new place\n"
    assert body.warnings == ("left out: 1 tracked deletion",)


def test_a_deleted_row_and_a_deleted_paragraph_end_are_gone() -> None:
    row = f"<w:tr><w:trPr><w:del/></w:trPr><w:tc>{paragraph('Storm')}</w:tc></w:tr>"
    kept = f"<w:tr><w:tc>{paragraph('Fire')}</w:tc><w:tc>{paragraph('1')}</w:tc></w:tr>"
    joined = f"<w:p><w:pPr><w:rPr><w:del/></w:rPr></w:pPr>{run('One ')}</w:p>"
    written = markdown(f"<w:tbl>{kept}{row}</w:tbl>{joined}{paragraph('sentence.')}")
    assert "Storm" not in written
    assert written.endswith("\n\nOne sentence.\n")


def test_comments_and_hidden_text_are_left_out_and_told() -> None:
    commented = run("Cover") + '<w:r><w:commentReference w:id="0"/></w:r>'
    comments = (
        f'<w:comments {SPACES}><w:comment w:id="0" w:initials="AB">{paragraph("Really?")}'
        "</w:comment></w:comments>"
    )
    body = read(f"<w:p>{commented}{run(' secret', '<w:vanish/>')}</w:p>", comments=comments)
    assert body.markdown == "Cover\n"
    assert body.warnings == ("left out: 1 comment", "left out: 1 hidden piece of text")


def test_text_inside_fields_boxes_formulas_and_readings_is_not_lost() -> None:
    simple = f'<w:fldSimple w:instr="SEQ">{run("7")}</w:fldSimple>'
    box = f"<w:r><w:drawing><wp:inline><w:txbxContent>{paragraph('In a box')}</w:txbxContent>"
    formula = "<m:oMath><m:r><m:t>a+b</m:t></m:r></m:oMath>"
    readings = f"<w:rt>{run('かな')}</w:rt><w:rubyBase>{run('仮名')}</w:rubyBase>"
    ruby = f"<w:r><w:ruby>{readings}</w:ruby></w:r>"
    body = read(
        f"<w:p>{run('Table ')}{simple}{run(' ')}{formula}{run(' ')}{ruby}</w:p>"
        f"<w:p>{run('Above')}{box}</wp:inline></w:drawing></w:r></w:p>"
    )
    assert body.markdown == "Table 7 a+b 仮名\n\nAbove\n\nIn a box\n"
    assert body.warnings == ("left out: 1 layout of a formula",)


def test_of_two_forms_of_a_box_one_is_read() -> None:
    inside = f"<w:txbxContent>{paragraph('Once')}</w:txbxContent>"
    choice = f'<mc:Choice Requires="wps"><w:drawing><wp:anchor>{inside}</wp:anchor></w:drawing>'
    fallback = f"<mc:Fallback><w:pict><v:shape><v:textbox>{inside}</v:textbox></v:shape></w:pict>"
    both = f"{choice}</mc:Choice>{fallback}</mc:Fallback>"
    alone = f"{choice}</mc:Choice>"
    for forms in (both, alone):
        written = markdown(
            f"<w:p><w:r><mc:AlternateContent>{forms}</mc:AlternateContent></w:r></w:p>"
        )
        assert written == "Once\n"


def test_ticked_boxes_are_shown() -> None:
    def box(checked: str) -> str:
        data = f'<w:ffData><w:checkBox><w:checked w:val="{checked}"/></w:checkBox></w:ffData>'
        return (
            f'<w:r><w:fldChar w:fldCharType="begin">{data}</w:fldChar></w:r>'
            "<w:r><w:instrText> FORMCHECKBOX </w:instrText></w:r>"
            '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
        )

    assert markdown(f"<w:p>{box('1')}{run(' yes ')}{box('0')}{run(' no')}</w:p>") == "☒ yes ☐ no\n"


def test_links_to_the_web_are_kept_and_others_stay_text() -> None:
    links = relationships(
        ("r1", "hyperlink", "https://example.org/cover"),
        ("r2", "hyperlink", "file:///etc/passwd"),
        outside=True,
    )
    body = "".join(
        f'<w:p><w:hyperlink r:id="r{number}">{run("see here")}</w:hyperlink></w:p>'
        for number in (1, 2, 3)
    )
    written = Docx().to_markdown(word_file(body, {"word/_rels/document.xml.rels": links})).markdown
    assert written == "[see here](https://example.org/cover)\n\nsee here\n\nsee here\n"


def test_text_that_looks_like_markup_stays_text() -> None:
    written = markdown(paragraph("&lt;script&gt;x&lt;/script&gt; *no* &lt;a href='#x'&gt;"))
    assert written == "\\<script>x\\</script> \\*no\\* \\<a href='#x'>\n"


def test_the_strict_form_and_utf_16_and_other_names_of_parts_are_read() -> None:
    strict = document(paragraph("Strict")).replace(
        "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
        "http://purl.oclc.org/ooxml/wordprocessingml/main",
    )
    assert Docx().to_markdown(word_file("", {"word/document.xml": strict})).markdown == "Strict\n"
    wide = document(paragraph("Wide")).replace("UTF-8", "UTF-16").encode("utf-16")
    assert Docx().to_markdown(word_file("", {"word/document.xml": wide})).markdown == "Wide\n"
    other = {
        "_rels/.rels": relationships(("x", "officeDocument", "/word/document2.xml")),
        "word/document2.xml": document(paragraph("Elsewhere")),
    }
    assert Docx().to_markdown(word_file("", other)).markdown == "Elsewhere\n"


def test_the_same_bytes_give_the_same_body_and_passages_below_headings() -> None:
    data = FIXTURE.read_bytes()
    body = Docx().to_markdown(data)
    assert Docx().to_markdown(data) == body
    paths = [chunk.heading_path for chunk in Chunker().chunk(body)]
    assert ("1. Cover", "1.2 Flood") in paths


# Pictures and everything else that is not in the file ----------------------------------------


def pictured(attribute: str, target: str, *, outside: bool) -> bytes:
    blip = f'<a:blip r:{attribute}="rP"/>'
    body = (
        f"<w:p>{run('Seen')}<w:r><w:drawing><wp:inline><a:graphic><a:graphicData><pic:pic>"
        f"<pic:blipFill>{blip}</pic:blipFill></pic:pic></a:graphicData></a:graphic></wp:inline>"
        f'</w:drawing></w:r><w:r><w:pict><v:imagedata r:id="rP"/></w:pict></w:r></w:p>'
    )
    links = relationships(("rP", "image", target), outside=outside)
    return word_file(
        body, {"word/_rels/document.xml.rels": links, "word/media/1.png": b"\x89PNG\r\n\x1a\nxx"}
    )


def test_pictures_are_left_out_and_told() -> None:
    body = Docx().to_markdown(pictured("embed", "media/1.png", outside=False))
    assert body.markdown == "Seen\n"
    assert body.warnings == ("left out: 2 pictures",)


OPENED: list[tuple[str, tuple[Any, ...]]] = []
WATCHING: list[bool] = []


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if WATCHING and event.partition(".")[0] in {"open", "socket", "urllib", "subprocess", "os"}:
        OPENED.append((event, arguments))


@pytest.fixture(scope="module")
def watched() -> None:
    """Hear of every file, socket and process that Python opens; a hook can never be removed."""
    sys.addaudithook(_watch)


@pytest.mark.parametrize(
    "target",
    ["file:///etc/passwd", "/etc/passwd", "../../../etc/passwd", "http://127.0.0.1:9/x.png"],
)
@pytest.mark.parametrize("attribute", ["link", "embed"])
@pytest.mark.usefixtures("watched")
def test_nothing_outside_the_file_is_ever_opened(target: str, attribute: str) -> None:
    data = pictured(attribute, target, outside=True)
    Docx().to_markdown(data)
    OPENED.clear()
    WATCHING.append(True)
    try:
        body = Docx().to_markdown(data)
        heard = [*OPENED]
        Path(__file__).open("rb").close()
    finally:
        WATCHING.clear()
    assert heard == []
    assert len(OPENED) > len(heard)
    assert body.markdown == "Seen\n"


# What is refused ---------------------------------------------------------------------------


def refused(data: bytes) -> str:
    with pytest.raises(ParseError) as raised:
        Docx().to_markdown(data)
    return f"{type(raised.value).__name__}: {raised.value}"


def test_a_document_without_a_word_says_so() -> None:
    for body in ("", paragraph(" "), "<w:p/>", paragraph("—")):
        with pytest.raises(NoTextError, match="contains no text"):
            Docx().to_markdown(word_file(body))


def test_a_document_of_pictures_only_says_what_it_holds() -> None:
    drawing = "<w:p><w:r><w:drawing><wp:inline/></w:drawing></w:r></w:p>"
    with pytest.raises(NoTextError, match="left out: 1 picture"):
        Docx().to_markdown(word_file(drawing))


def test_an_old_or_locked_file_is_told_to_be_saved_as_docx() -> None:
    old = bytes.fromhex("D0CF11E0A1B11AE1") + bytes(600)
    with pytest.raises(WrongContentError, match=r"save it as \.docx"):
        Docx().to_markdown(old)


def test_an_entry_with_a_password_is_named_as_locked() -> None:
    data = bytearray(word_file(paragraph("x")))
    data[data.index(b"PK\x03\x04") + 6] |= 1
    place = data.index(b"PK\x01\x02")
    while place >= 0:
        data[place + 8] |= 1
        place = data.find(b"PK\x01\x02", place + 1)
    with pytest.raises(EncryptedError, match="password"):
        Docx().to_markdown(bytes(data))


def test_other_files_are_named_as_what_they_are_not() -> None:
    with pytest.raises(WrongContentError, match="does not begin as one"):
        Docx().to_markdown(b"%PDF-1.7 ...")
    with pytest.raises(WrongContentError, match="no Word file"):
        Docx().to_markdown(zipped({"xl/workbook.xml": "<workbook/>"}))
    with pytest.raises(MalformedError, match="empty"):
        Docx().to_markdown(b"")


def test_a_file_without_its_document_is_refused() -> None:
    bare = zipped({"[Content_Types].xml": "<Types/>", "word/styles.xml": f"<w:styles {SPACES}/>"})
    with pytest.raises(WrongContentError, match="the document itself is missing"):
        Docx().to_markdown(bare)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_a_file_that_was_cut_off_is_refused(share: float) -> None:
    data = FIXTURE.read_bytes()
    assert "cut off or damaged" in refused(data[: int(len(data) * share)])


def test_entities_are_refused_before_anybody_reads_them() -> None:
    lol = '<!ENTITY a "lol">' + "".join(
        f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9)
    )
    plain = document(paragraph("&j;")).partition("?>\n")[2]
    for start in (
        f"<!DOCTYPE x [{lol}]>",
        "<!DOCTYPE x>",
        '<!DOCTYPE x SYSTEM "file:///etc/hosts">',
    ):
        assert refused(word_file("", {"word/document.xml": start + plain})).startswith("Malformed")
        hidden = (start + plain).encode("utf-16")
        assert refused(word_file("", {"word/document.xml": hidden})).startswith("Malformed")
    bomb = word_file(paragraph("x"), {"word/styles.xml": f"<!DOCTYPE x><w:styles {SPACES}/>"})
    assert "'word/styles.xml' cannot be read" in refused(bomb)


def test_a_zip_bomb_is_refused_by_its_directory() -> None:
    bomb = word_file("", {"word/document.xml": b" " * (40 * 2**20)})
    assert "zip bomb" in refused(bomb)
    steep = word_file("", {"word/document.xml": document(" " * (3 * 2**20))})
    assert "250 times" in refused(steep)


def test_a_zip_bomb_in_a_part_nobody_reads_is_refused_too() -> None:
    padding = {f"word/media/{n}.bin": b"" for n in range(package.MAX_ENTRIES)}
    assert "entries" in refused(word_file(paragraph("x"), padding))


def test_a_directory_that_lies_about_sizes_gains_nothing() -> None:
    big = 24 * 2**20
    data = bytearray(word_file("", {"word/document.xml": b" " * big}))
    for start, size_at, name_at in ((b"PK\x01\x02", 24, 46), (b"PK\x03\x04", 22, 30)):
        place = data.find(start)
        while place >= 0:
            if data[place + name_at :].startswith(b"word/document.xml"):
                data[place + size_at : place + size_at + 4] = struct.pack("<I", 500)
            place = data.find(start, place + 4)
    with zipfile.ZipFile(io.BytesIO(bytes(data))) as lying:
        assert lying.getinfo("word/document.xml").file_size == 500
    tracemalloc.start()
    try:
        assert "damaged" in refused(bytes(data))
        assert tracemalloc.get_traced_memory()[1] < big / 4
    finally:
        tracemalloc.stop()


def test_more_text_than_the_limit_is_refused_while_reading(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = word_file(paragraph("word " * 500))
    monkeypatch.setattr(package, "LARGEST_TEXT", 2_000)
    with zipfile.ZipFile(io.BytesIO(data)) as opened:
        assert opened.getinfo("word/document.xml").file_size > 2_000
    assert "MiB" in refused(data)


def test_a_directory_of_impossible_size_is_never_read() -> None:
    data = bytearray(word_file(paragraph("x")) + bytes(3 * 2**20))
    end = data.index(b"PK\x05\x06")
    tail = data[end : end + 22]
    tail[12:16] = struct.pack("<I", 3 * 2**20)
    tail[16:20] = struct.pack("<I", 0)
    assert "cut off or damaged" in refused(bytes(data) + bytes(tail))


def test_parts_packed_in_ways_word_never_uses_are_refused() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_LZMA) as packed:
        packed.writestr("word/document.xml", document(paragraph("x")))
    assert "packed as Word never does" in refused(file.getvalue())


def test_elements_nested_without_end_are_refused() -> None:
    for depth in (60, 300, 5_000):
        deep = "<w:ins>" * depth + run("x") + "</w:ins>" * depth
        tables = "<w:tbl><w:tr><w:tc>" * depth + paragraph("x") + "</w:tc></w:tr></w:tbl>" * depth
        assert refused(word_file(tables)).startswith("Malformed")
        if depth > convert.MAX_DEPTH:
            assert refused(word_file(f"<w:p>{deep}</w:p>")).startswith("Malformed")


def test_nesting_within_the_limit_needs_no_deep_stack() -> None:
    depth = (convert.MAX_DEPTH - 8) // 3
    nested = "<w:tbl><w:tr><w:tc>" * depth + paragraph("x") + "</w:tc></w:tr></w:tbl>" * depth
    assert markdown(nested) == "x\n"


def test_too_many_elements_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert, "MAX_ELEMENTS", 100)
    assert markdown(paragraph("x") * 20).count("x") == 20
    assert "too large to be read" in refused(word_file(paragraph("x") * 50))


def test_more_tags_than_any_document_has_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MAX_MARKUP_SIGNS", 500)
    assert "more elements than can be read" in refused(word_file("<w:p/>" * 500))


def test_one_note_or_address_cannot_be_multiplied() -> None:
    noted = run("x") + '<w:r><w:footnoteReference w:id="2"/></w:r>'
    body = read(f"<w:p>{noted * 50}</w:p>", footnotes=notes("footnote", n2="Long note."))
    assert body.markdown.count("Long note.") == 1
    field = (
        '<w:r><w:fldChar w:fldCharType="begin"/></w:r>'
        f'<w:r><w:instrText>HYPERLINK "https://example.org/{{}}"</w:instrText></w:r>'
        '<w:r><w:fldChar w:fldCharType="separate"/></w:r>'
        f'{run("here we go")}<w:r><w:fldChar w:fldCharType="end"/></w:r>'
    )
    assert markdown(f"<w:p>{field.format('x' * 2000)}</w:p>") == "here we go\n"
    written = markdown(f"<w:p>{field.format('page')}</w:p>")
    assert written == "[here we go](https://example.org/page)\n"


def test_references_to_nothing_are_mended() -> None:
    body = (
        f'<w:p>{run("Kept")}<w:r><w:footnoteReference w:id="9"/></w:r>'
        '<w:r><w:endnoteReference/></w:r><w:r><w:sym w:char="zz"/></w:r><w:r><w:sym/></w:r></w:p>'
        f'<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="x9"/></w:tcPr>{paragraph("a")}</w:tc>'
        f'<w:tc><w:tcPr><w:gridSpan w:val="99999"/></w:tcPr>{paragraph("b")}</w:tc></w:tr></w:tbl>'
        f"{paragraph('In no list', in_list='77')}{paragraph('In no style', 'Nowhere')}"
    )
    written = markdown(body)
    for words in ("Kept", "In no list", "In no style", "| a | b |"):
        assert words in written


def test_styles_and_lists_that_stand_on_themselves_end() -> None:
    styles = (
        f'<w:styles {SPACES}><w:style w:type="paragraph" w:styleId="A"><w:basedOn w:val="A"/>'
        "</w:style></w:styles>"
    )
    assert markdown(paragraph("x", "A"), styles=styles) == "x\n"


def test_damaged_parts_give_text_or_a_named_error() -> None:
    whole = {
        name: zipfile.ZipFile(FIXTURE).read(name) for name in zipfile.ZipFile(FIXTURE).namelist()
    }
    chance = random.Random("word")
    for name in (name for name in whole if name.startswith("word/")):
        for item in damaged([(name, whole[name])], chance, 12):
            try:
                body = Docx().to_markdown(zipped(whole | {name: item.data}))
            except ParseError as error:
                assert str(error)  # noqa: PT017 — either outcome is right
            else:
                assert "\0" not in body.markdown
                assert Chunker().chunk(body)
