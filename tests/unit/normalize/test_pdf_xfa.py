from __future__ import annotations

from tests.unit.normalize.written_pdf import LINE, Said, text_field, written

from fonds.normalize.pdf import PdfNormalizer
from fonds.normalize.pdf.xfa import XfaValues

PLAIN = PdfNormalizer(recognizer=None)
TEMPLATE = """<template xmlns="http://www.xfa.org/schema/xfa-template/3.3/"><subform name="claim">
<field name="holder"><caption><value><text>Policy holder:</text></value></caption></field>
<field name="clause"><caption><value><text>Clause</text></value></caption></field>
<field name="version" presence="hidden"/>
<field name="smoker"><ui><checkButton/></ui><items><text>Y</text><text>N</text></items>
<caption><value><text>Smoker</text></value></caption></field>
<exclGroup name="plan"><field name="a"><items><text>1</text></items>
<caption><value><text>Gold</text></value></caption></field>
<field name="b"><items><text>2</text></items>
<caption><value><text>Silver</text></value></caption></field></exclGroup>
<field name="risk"/>
</subform></template>"""
DATA = """<xfa:datasets xmlns:xfa="http://www.xfa.org/schema/xfa-data/1.0/"><xfa:data><claim>
<holder>Ada Foobar</holder><clause>2.1</clause><clause>2.2</clause><version>77</version>
<smoker>N</smoker><plan>2</plan><risk><value>Fire</value><value>Flood</value></risk><empty/>
</claim></xfa:data></xfa:datasets>"""
PACKETS = {"template": TEMPLATE.encode(), "datasets": DATA.encode()}


def test_values_of_a_dynamic_form_are_listed_with_their_captions() -> None:
    page = [Said(72, 700, "Please wait while your viewer opens this form")]
    body = PLAIN.to_markdown(written(page, xfa={"template": TEMPLATE, "datasets": DATA}))
    _, _, listed = body.markdown.partition("# Values of the form\n\n")
    assert listed.replace("\n\n", "\n").splitlines() == [
        "- Policy holder: … Ada Foobar",
        "- Clause: … 2.1",
        "- Clause: … 2.2",
        "- ☐ Smoker",
        "- ☐ Gold",
        "- ☒ Silver",
        "- risk: … Fire, Flood",
    ]


def test_a_field_on_a_page_takes_the_value_that_only_the_xml_has() -> None:
    name = "(claim[0].#subform[0].page1[0].clause[1])"
    field = f"/Subtype /Widget /FT /Tx /T {name} /Rect [130 698 200 710]"
    page = [Said(72, 700, "Clause:"), Said(72, 600, LINE)]
    data = {"template": TEMPLATE, "datasets": DATA}
    body = PLAIN.to_markdown(written(page, annotations=[[field]], xfa=data))
    assert "Clause: … 2.2" in body.markdown
    assert "- Clause: … 2.1" in body.markdown
    assert "- Clause: … 2.2" not in body.markdown


def test_the_value_of_a_field_is_that_of_the_page_where_both_have_one() -> None:
    filled = text_field(130, 700, "of the page").replace("(t130-700)", "(claim[0].holder[0])")
    page = [Said(72, 700, "Holder:"), Said(72, 600, LINE)]
    body = PLAIN.to_markdown(written(page, annotations=[[filled]], xfa={"datasets": DATA}))
    assert "Holder: … of the page" in body.markdown
    assert "Ada" not in body.markdown


def test_xml_that_is_hostile_or_broken_has_no_values() -> None:
    entities = b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'
    for packet in (b"", b"<data>", b"\xff\xfe<", entities):
        values = XfaValues({"template": packet, "datasets": packet})
        assert values.take("claim[0].holder[0]") == ""
        assert values.others() == []
    assert XfaValues(PACKETS).take("") == ""
