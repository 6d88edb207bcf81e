"""Small Word files with known words, written part by part."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import Final

SPACES: Final = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" '
    'xmlns:v="urn:schemas-microsoft-com:vml" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:pic="http://schemas.openxmlformats.org/drawingml/2006/picture" '
    'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" '
    'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
)
KIND: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
CONTENT_TYPES: Final = (
    '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.'
    'relationships+xml"/><Default Extension="xml" ContentType="application/xml"/>'
    '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-'
    'officedocument.wordprocessingml.document.main+xml"/></Types>'
)
STYLES: Final = (
    '<w:style w:type="paragraph" w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>'
    '<w:style w:type="paragraph" w:styleId="Heading2"><w:name w:val="heading 2"/></w:style>'
    '<w:style w:type="paragraph" w:styleId="Clause"><w:name w:val="Clause heading"/>'
    '<w:basedOn w:val="Heading2"/></w:style>'
    '<w:style w:type="paragraph" w:styleId="Titel"><w:name w:val="Title"/></w:style>'
    '<w:style w:type="character" w:styleId="Strong"><w:name w:val="Strong"/>'
    "<w:rPr><w:b/></w:rPr></w:style>"
)


def run(text: str, properties: str = "") -> str:
    """A run of text."""
    said = f"<w:rPr>{properties}</w:rPr>" if properties else ""
    return f'<w:r w:rsidR="00A1">{said}<w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(content: str, style: str = "", *, in_list: str = "", level: int = 0) -> str:
    """A paragraph of runs, or of plain text, in a style and in a list."""
    inside = content if content.startswith("<") else run(content)
    said = f'<w:pStyle w:val="{style}"/>' if style else ""
    if in_list:
        said += f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{in_list}"/></w:numPr>'
    return f"<w:p><w:pPr>{said}</w:pPr>{inside}</w:p>"


def table(*rows: tuple[str, ...]) -> str:
    """A table whose first row is its head."""
    written = ""
    for number, row in enumerate(rows):
        head = "<w:trPr><w:tblHeader/></w:trPr>" if number == 0 else ""
        cells = "".join(f"<w:tc><w:tcPr/>{paragraph(cell)}</w:tc>" for cell in row)
        written += f"<w:tr>{head}{cells}</w:tr>"
    return f"<w:tbl><w:tblPr/>{written}</w:tbl>"


def list_level(level: int, kind: str, text: str, *, start: int = 1, more: str = "") -> str:
    """How one level of a list counts."""
    return (
        f'<w:lvl w:ilvl="{level}"><w:start w:val="{start}"/><w:numFmt w:val="{kind}"/>{more}'
        f'<w:lvlText w:val="{text}"/></w:lvl>'
    )


def numbering(*levels: str, lists: str = '<w:num w:numId="1">{}</w:num>') -> str:
    """A numbering part with one kind of list; `{}` in its lists stands for its id."""
    link = '<w:abstractNumId w:val="7"/>'
    kinds = f'<w:abstractNum w:abstractNumId="7">{"".join(levels)}</w:abstractNum>'
    return f"<w:numbering {SPACES}>{kinds}{lists.replace('{}', link)}</w:numbering>"


def notes(kind: str, **texts: str) -> str:
    """A part of footnotes or endnotes, by their ids (`n2`)."""
    written = "".join(
        f'<w:{kind} w:id="{name[1:]}">{paragraph(text)}</w:{kind}>' for name, text in texts.items()
    )
    separator = f'<w:{kind} w:type="separator" w:id="0"><w:p/></w:{kind}>'
    return f"<w:{kind}s {SPACES}>{separator}{written}</w:{kind}s>"


def relationships(*found: tuple[str, str, str], outside: bool = False) -> str:
    """A part of relationships: id, kind and target of each."""
    mode = ' TargetMode="External"' if outside else ""
    inside = "".join(
        f'<Relationship Id="{name}" Type="{KIND}/{kind}" Target="{target}"{mode}/>'
        for name, kind, target in found
    )
    space = "http://schemas.openxmlformats.org/package/2006/relationships"
    return f'<Relationships xmlns="{space}">{inside}</Relationships>'


def document(body: str) -> str:
    """The main part around a body."""
    start = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
    return f"{start}<w:document {SPACES}><w:body>{body}<w:sectPr/></w:body></w:document>"


def word_file(body: str, parts: Mapping[str, str | bytes] | None = None) -> bytes:
    """A Word file with this body; other parts are added, or put in the place of the usual ones."""
    usual: dict[str, str | bytes] = {
        "[Content_Types].xml": CONTENT_TYPES,
        "_rels/.rels": relationships(("rId1", "officeDocument", "word/document.xml")),
        "word/document.xml": document(body),
        "word/styles.xml": f"<w:styles {SPACES}>{STYLES}</w:styles>",
    }
    return zipped(usual | dict(parts or {}))


def zipped(parts: Mapping[str, str | bytes]) -> bytes:
    """An archive of these entries, the same bytes every time."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            entry = zipfile.ZipInfo(name, (2026, 1, 2, 3, 4, 6))
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return file.getvalue()
