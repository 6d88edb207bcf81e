"""Japanese law XML becomes Markdown, and no word of it is lost."""

from __future__ import annotations

import re

import pytest

from fonds.errors import MalformedError, WrongContentError
from fonds.normalize.egov import ELEMENTS, Egov
from fonds.normalize.registry import get_normalizer, sniff

LAW = (
    '<Law Era="Heisei"><LawNum>平成一年法律第一号</LawNum><LawBody><LawTitle>灯法</LawTitle>'
    '<TOC><TOCLabel>目次</TOCLabel><TOCChapter Num="1"><ChapterTitle>第一章　灯</ChapterTitle>'
    '<ArticleRange>（第一条）</ArticleRange><TOCSection Num="1"><SectionTitle>第一節　柱'
    "</SectionTitle></TOCSection></TOCChapter></TOC>"
    '<MainProvision><Chapter Num="1"><ChapterTitle>第一章　灯</ChapterTitle><Article Num="1">'
    "<ArticleCaption>（灯）</ArticleCaption><ArticleTitle>第一条</ArticleTitle>"
    "<Paragraph><ParagraphNum/><ParagraphSentence><Sentence>灯す。</Sentence>"
    "</ParagraphSentence></Paragraph><SupplNote>注</SupplNote></Article></Chapter>"
    "</MainProvision></LawBody></Law>"
)


def markdown(xml: str) -> str:
    return Egov().to_markdown(xml.encode()).markdown


def sentence(inside: str) -> str:
    return f"<ParagraphSentence><Sentence>{inside}</Sentence></ParagraphSentence>"


def cell(inside: str, attributes: str = "") -> str:
    return f"<TableColumn{attributes}>{inside}</TableColumn>"


def table(*rows: str) -> str:
    return f"<Table>{''.join(f'<TableRow>{row}</TableRow>' for row in rows)}</Table>"


# Levels -----------------------------------------------------------------------------------


def test_a_whole_law_has_a_heading_for_each_level() -> None:
    body = Egov().to_markdown(LAW.encode())
    assert body.markdown == (
        "平成一年法律第一号\n\n# 灯法\n\n目次\n\n第一章 灯（第一条）\n\n\u2003第一節 柱\n\n"
        "## 第一章 灯\n\n### （灯）第一条\n\n灯す。\n\n注\n"
    )
    assert [(heading.level, heading.text, heading.section) for heading in body.headings] == [
        (1, "灯法", "灯法"),
        (2, "第一章 灯", "第一章 灯"),
        (3, "（灯）第一条", "第一条"),
    ]


def test_headings_stand_where_the_body_says() -> None:
    body = Egov().to_markdown(LAW.encode())
    assert [body.markdown[heading.offset] for heading in body.headings] == ["#"] * 3


def test_the_answer_of_the_api_is_the_law_in_it() -> None:
    wrapped = f'<?xml version="1.0"?><DataRoot><Result><Code>0</Code></Result>{LAW}</DataRoot>'
    assert markdown(wrapped) == markdown(LAW)


def test_elements_beside_each_other_are_read_together() -> None:
    assert markdown("<EnactStatement>甲</EnactStatement> <EnactStatement>乙</EnactStatement>") == (
        "甲\n\n乙\n"
    )


def test_items_stand_further_in_at_each_level() -> None:
    deep = "<Subitem1><Subitem1Title>イ</Subitem1Title><Subitem1Sentence><Sentence>丙</Sentence>"
    items = (
        f"<Item><ItemTitle>一</ItemTitle><ItemSentence><Sentence>乙</Sentence></ItemSentence>{deep}"
        "</Subitem1Sentence></Subitem1></Item>"
    )
    text = f"<Paragraph><ParagraphNum>２</ParagraphNum>{sentence('甲')}{items}</Paragraph>"
    assert markdown(text) == "２ 甲\n\n\u2003一 乙\n\n\u2003\u2003イ 丙\n"


def test_lists_have_no_labels() -> None:
    text = (
        "<List><ListSentence><Sentence>甲</Sentence></ListSentence><Sublist1><Sublist1Sentence>"
        "<Sentence>乙</Sentence></Sublist1Sentence></Sublist1></List>"
    )
    assert markdown(text) == "\u2003甲\n\n\u2003\u2003乙\n"


def test_layout_between_elements_means_nothing() -> None:
    text = "<ParagraphSentence>\n  <Sentence>甲。</Sentence>\n  <Sentence>乙。</Sentence>\n"
    assert markdown(f"<Paragraph>\n{text}</ParagraphSentence>\n</Paragraph>") == "甲。乙。\n"


def test_translated_sentences_are_kept_apart() -> None:
    text = "<ParagraphSentence><Sentence>One.</Sentence><Sentence>Two.</Sentence>"
    assert markdown(f"{text}</ParagraphSentence>") == "One. Two.\n"


def test_columns_are_kept_apart() -> None:
    columns = "".join(f"<Column><Sentence>{text}</Sentence></Column>" for text in "甲乙")
    assert markdown(f"<ItemSentence>{columns}</ItemSentence>") == "甲 乙\n"


# Inline -----------------------------------------------------------------------------------


def test_a_reading_follows_its_word_in_brackets() -> None:
    assert markdown(sentence("<Ruby>瑕疵<Rt>かし</Rt></Ruby>ある物")) == "瑕疵（かし）ある物\n"


def test_raised_and_lowered_signs_are_marked() -> None:
    assert markdown(sentence("ｍ<Sup>2</Sup>とＣＯ<Sub>2</Sub>")) == (
        "ｍ<sup>2</sup>とＣＯ<sub>2</sub>\n"
    )


def test_side_lines_leave_only_their_text() -> None:
    assert markdown(sentence('甲<Line Style="dotted">乙</Line>丙')) == "甲乙丙\n"


def test_a_formula_stays_in_its_sentence() -> None:
    assert markdown(sentence("次の式<ArithFormula>Ａ÷Ｂ</ArithFormula>")) == "次の式Ａ÷Ｂ\n"


def test_formulas_of_an_appendix_stand_apart() -> None:
    formulas = "<ArithFormula>Ａ</ArithFormula><ArithFormula>Ｂ</ArithFormula>"
    text = f"<Appdx><ArithFormulaNum>付録第一</ArithFormulaNum>{formulas}</Appdx>"
    assert markdown(text) == "# 付録第一\n\nＡ\n\nＢ\n"


def test_a_figure_is_named_and_kept_beside_the_text() -> None:
    body = Egov().to_markdown(b'<FigStruct><Fig src="./pict/a_1.jpg"/></FigStruct>')
    assert body.markdown == "[図 ./pict/a_1.jpg]\n"
    assert [(one.kind, one.content) for one in body.artifacts] == [("figure", "./pict/a_1.jpg")]


def test_a_figure_in_a_cell_is_not_lost() -> None:
    drawn = markdown(table(cell('<FigStruct><Fig src="a.jpg"/></FigStruct>')))
    assert drawn == "|  |\n| --- |\n| [図 a.jpg] |\n"


def test_a_quotation_of_words_stays_in_its_sentence() -> None:
    assert markdown(sentence("甲「<QuoteStruct>乙</QuoteStruct>」")) == "甲「乙」\n"


def test_a_quotation_of_blocks_is_set_off() -> None:
    quoted = f"<QuoteStruct><TableStruct>{table(cell('<Sentence>乙</Sentence>'))}</TableStruct>"
    assert markdown(sentence(f"甲{quoted}</QuoteStruct>丙")) == (
        "甲\n\n> |  |\n> | --- |\n> | 乙 |\n\n丙\n"
    )


def test_headings_of_quoted_provisions_are_none() -> None:
    article = f"<Article><ArticleTitle>第一条</ArticleTitle><Paragraph>{sentence('油')}</Paragraph>"
    body = Egov().to_markdown(f"<NewProvision>{article}</Article></NewProvision>".encode())
    assert body.markdown == "> 第一条\n>\n> 油\n"
    assert body.headings == ()


# Tables -----------------------------------------------------------------------------------


def test_a_table_keeps_rows_heads_and_several_sentences_of_a_cell() -> None:
    head = "<TableHeaderRow><TableHeaderColumn>甲</TableHeaderColumn></TableHeaderRow>"
    row = cell("<Sentence>一</Sentence><Sentence>二|三</Sentence>")
    text = f"<Table>{head}<TableRow>{row}</TableRow></Table>"
    assert markdown(text) == "| 甲 |\n| --- |\n| 一 / 二\\|三 |\n"


def test_cells_under_a_span_are_blank_and_the_table_is_kept() -> None:
    wide = cell("<Sentence>広</Sentence>", ' colspan="2"')
    tall = cell("<Sentence>高</Sentence>", ' rowspan="2"')
    one, two = cell("<Sentence>一</Sentence>"), cell("<Sentence>二</Sentence>")
    body = Egov().to_markdown(table(wide, tall + one, two).encode())
    assert body.markdown == "|  |  |\n| --- | --- |\n| 広 |  |\n| 高 | 一 |\n|  | 二 |\n"
    assert [one.kind for one in body.artifacts] == ["table"]


def test_a_hostile_span_is_cut() -> None:
    body = Egov().to_markdown(table(cell("<Sentence>広</Sentence>", ' colspan="9999"')).encode())
    assert len(body.markdown) < 2000


def test_items_in_a_cell_stand_on_one_line() -> None:
    item = "<Item><ItemTitle>一</ItemTitle><ItemSentence><Sentence>甲</Sentence></ItemSentence>"
    remarks = f"<Remarks><RemarksLabel>備考</RemarksLabel>{item}</Item></Remarks>"
    assert markdown(table(cell(remarks))) == "|  |\n| --- |\n| 備考 一 甲 |\n"


def test_a_table_in_a_cell_is_written_out_flat() -> None:
    inner = f"<Paragraph><TableStruct>{table(cell('<Sentence>甲</Sentence>'))}</TableStruct>"
    assert "| 甲 |" in markdown(table(cell(f"{inner}</Paragraph>")))


# Nothing is lost --------------------------------------------------------------------------


@pytest.mark.parametrize("tag", sorted(ELEMENTS))
def test_text_survives_in_any_element_wherever_it_stands(tag: str) -> None:
    inside = markdown(f"<Article>{sentence(f'前<{tag}>中</{tag}>後')}</Article>")
    assert re.sub(r"[^前中後]", "", inside) == "前中後"
    in_cell = markdown(table(cell(f"<{tag}>中</{tag}>") + cell("<Sentence>後</Sentence>")))
    assert re.sub(r"[^中後]", "", in_cell) == "中後"


def test_loose_text_in_a_table_is_kept() -> None:
    text = markdown(
        f"<Table>迷<TableRow>子{cell('外<Sentence>中</Sentence>後')}</TableRow></Table>"
    )
    assert re.sub(r"[^迷子外中後]", "", text) == "迷子外中後"


def test_an_unknown_element_keeps_its_text_and_is_reported() -> None:
    body = Egov().to_markdown(sentence("甲<Blink>乙</Blink>丙").encode())
    assert body.markdown == "甲乙丙\n"
    assert body.warnings == ("unknown element <Blink> (1×); its text is kept",)


def test_an_unknown_element_around_known_ones_is_read_too() -> None:
    body = Egov().to_markdown(f"<Annex>{sentence('甲')}</Annex>".encode())
    assert body.markdown == "甲\n"


# Input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (b"", MalformedError, "empty"),
        (b"<html><body>moved</body></html>", WrongContentError, "HTML"),
        (b"<Article><Paragraph>", MalformedError, "not well-formed"),
        (b"<norm>x</norm>", WrongContentError, "Japanese law schema"),
        (b"<Article></Article>", WrongContentError, "contains no text"),
        (b"<!DOCTYPE a [<!ENTITY b 'c'>]><Law>&b;</Law>", MalformedError, "entities"),
        (b"<Item>" * 300 + b"x" + b"</Item>" * 300, MalformedError, "nested more than"),
    ],
)
def test_other_input_is_refused(data: bytes, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Egov().to_markdown(data)


@pytest.mark.parametrize("root", ["Law", "DataRoot", "Article"])
def test_the_root_tells_the_format(root: str) -> None:
    assert sniff(f"<{root}>x</{root}>".encode()) == "egov_v1"


def test_it_is_registered() -> None:
    assert get_normalizer("egov_v1").label == "egov_v1@1.1.0"
