"""Small PDFs with known words at known places."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LINE = "The board shall keep a record of each permit it has granted"
PICTURE = "q 400 0 0 500 100 100 cm BI /W 1 /H 1 /CS /G /BPC 8 ID \x80 EI Q"


@dataclass(frozen=True)
class Said:
    """Text at a place of a page."""

    x: float
    y: float
    text: str
    size: float = 10
    bold: bool = False


def written(
    *pages: Iterable[Said | str],
    box: str = "0 0 612 792",
    extra: str = "",
    extra_page: str = "",
    annotations: Sequence[Sequence[str]] = (),
    xfa: Mapping[str, str] | None = None,
) -> bytes:
    """A PDF with these pages; a plain string is drawn as it is.

    `annotations` are the entries of those on each page, with `LOOK` for an empty appearance; `xfa`
    has the packets of an XFA form by name.
    """
    kids = " ".join(f"{5 + 2 * n} 0 R" for n in range(len(pages)))
    look = 5 + 2 * len(pages)
    numbers = iter(range(look + 1, look + 1 + sum(map(len, annotations))))
    references = [[f"{next(numbers)} 0 R" for _ in one] for one in annotations]
    if annotations or xfa:
        first = look + 1 + sum(map(len, annotations))
        packets = " ".join(f"({name}) {first + n} 0 R" for n, name in enumerate(xfa or ()))
        fields = " ".join(reference for one in references for reference in one)
        extra = f"/AcroForm << /Fields [{fields}] /XFA [{packets}] >> {extra}"
    annotated = [f"/Annots [{' '.join(one)}]" for one in references] or [""] * len(pages)
    objects = [
        f"<< /Type /Catalog /Pages 2 0 R {extra} >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold /Encoding /WinAnsiEncoding >>",
    ]
    for number, page in enumerate(pages):
        content = "\n".join(map(drawn, page))
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [{box}] /Contents {6 + 2 * number} 0 R "
            f"{extra_page} {annotated[number]} /Resources << /Font << /F1 3 0 R /F2 4 0 R >> >> >>"
        )
        objects.append(
            f"<< /Length {len(content.encode('cp1252', 'replace'))} >>\n"
            f"stream\n{content}\nendstream"
        )
    if annotations or xfa:
        objects.append("<< /Subtype /Form /BBox [0 0 9 9] /Length 0 >>\nstream\n\nendstream")
        objects += [
            f"<< /Type /Annot {entry.replace('LOOK', f'{look} 0 R')} >>"
            for one in annotations
            for entry in one
        ]
        objects += [
            f"<< /Length {len(packet)} >>\nstream\n{packet}\nendstream"
            for packet in (xfa or {}).values()
        ]
    return assembled(objects)


def drawn(said: Said | str) -> str:
    if isinstance(said, str):
        return said
    text = re.sub(r"([\\()])", r"\\\1", said.text)
    font = "F2" if said.bold else "F1"
    return f"BT /{font} {said.size} Tf {said.x} {said.y} Td ({text}) Tj ET"


def assembled(objects: Iterable[str]) -> bytes:
    data = b"%PDF-1.7\n"
    starts = []
    for number, content in enumerate(objects, 1):
        starts.append(len(data))
        data += f"{number} 0 obj\n{content}\nendobj\n".encode("cp1252", "replace")
    table = "".join(f"{start:010d} 00000 n \n" for start in starts)
    size = len(starts) + 1
    end = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R >>\n"
    return data + f"{end}startxref\n{len(data)}\n%%EOF\n".encode()


def lines(x: float, y: float, *texts: str, **style: Any) -> list[Said]:
    """Lines one below the other."""
    return [Said(x, y - 12 * n, text, **style) for n, text in enumerate(texts)]


def paragraph(x: float, y: float, word: str) -> list[Said]:
    """Eight full lines of a narrow column, each marked with a word and its number."""
    texts = [f"{word}{n} of the text that fills a whole column" for n in range(8)]
    return lines(x, y, *texts)


def text_field(x: float, y: float, value: str, *, width: float = 200, **entries: str) -> str:
    """A field to write in; entries are those of its dictionary, such as `Ff` and `F`."""
    more = " ".join(f"/{name} {entry}" for name, entry in entries.items())
    return f"/Subtype /Widget /FT /Tx /T (t{x}-{y}) /V ({value}) {_rect(x, y, width)} {more}"


def tick(x: float, y: float, *, is_ticked: bool, **entries: str) -> str:
    """A box to tick; with `Ff` of 32768 a radio button."""
    more = " ".join(f"/{name} {entry}" for name, entry in entries.items())
    state = "/Yes" if is_ticked else "/Off"
    return (
        f"/Subtype /Widget /FT /Btn /T (b{x}-{y}) /V {state} /AS {state} {_rect(x, y, 9)} {more} "
        "/AP << /N << /Yes LOOK /Off LOOK >> >>"
    )


def choice(x: float, y: float, chosen: str, options: dict[str, str], flags: int = 131072) -> str:
    """A field to choose from; without flags, a list."""
    shown = " ".join(f"[({value}) ({label})]" for value, label in options.items())
    return (
        f"/Subtype /Widget /FT /Ch /Ff {flags} /T (c{x}-{y}) /V {chosen} /Opt [{shown}] "
        f"{_rect(x, y, 120)}"
    )


def _rect(x: float, y: float, width: float) -> str:
    return f"/Rect [{x} {y - 2} {x + width} {y + 10}]"
