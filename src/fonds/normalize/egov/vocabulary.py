"""The elements of the Japanese law schema (version 3), by how they are written."""

from __future__ import annotations

from typing import Final

DEEPEST: Final = 100
"""Elements are never nested so deep; a file that does it means harm."""

CONTAINERS: Final = ("Part", "Subpart", "Chapter", "Section", "Subsection", "Division")
"""`Subpart` is not in the schema; translators of laws with one more level add it."""

APPENDICES: Final = (
    "AppdxTable",
    "AppdxNote",
    "AppdxStyle",
    "AppdxFormat",
    "AppdxFig",
    "Appdx",
    "SupplProvisionAppdxTable",
    "SupplProvisionAppdxStyle",
    "SupplProvisionAppdx",
)

HEADED: Final = frozenset({"LawBody", "Article", "SupplProvision", *CONTAINERS, *APPENDICES})
"""Each is a level of headings."""

HEADS: Final = (
    "LawTitle",
    "SupplProvisionLabel",
    *(f"{name}Title" for name in CONTAINERS),
    *(f"{name}Title" for name in APPENDICES),
    "ArithFormulaNum",
    "RelatedArticleNum",
    # In a file the caption precedes the number, in print it stands above it, in a citation behind.
    "ArticleTitle",
    "ArticleCaption",
)
"""What a heading is made of, in the order in which it is written."""

CONTENTS: Final = frozenset(
    {*(f"TOC{name}" for name in CONTAINERS), "TOCArticle", "TOCSupplProvision"}
)

_SUBITEMS: Final = tuple(f"Subitem{level}" for level in range(1, 11))
_LISTS: Final = ("List", "Sublist1", "Sublist2", "Sublist3")

INDENTED: Final = frozenset({"Item", "Class", *_SUBITEMS, *_LISTS})
"""Each stands one step to the right of what is around it."""

LABELS: Final = frozenset(
    {
        "ParagraphNum",
        "ItemTitle",
        "ClassTitle",
        "RemarksLabel",
        *(f"{name}Title" for name in _SUBITEMS),
    }
)
"""The next sentence continues the line."""

SENTENCES: Final = frozenset(
    {
        "ParagraphSentence",
        "ItemSentence",
        "ClassSentence",
        "AmendProvisionSentence",
        *(f"{name}Sentence" for name in (*_SUBITEMS, *_LISTS)),
    }
)
"""One paragraph each, of sentences, of columns, or a table."""

ANY: Final = frozenset({"Note", "Style", "Format", "QuoteStruct", "ArithFormula"})
"""Text and any other element."""

LINES: Final = frozenset(
    {
        "LawNum",
        "EnactStatement",
        "TOCLabel",
        "TOCPreambleLabel",
        "TOCAppdxTableLabel",
        "ArticleRange",
        "ParagraphCaption",
        "SupplNote",
        "TableStructTitle",
        "FigStructTitle",
        "NoteStructTitle",
        "StyleStructTitle",
        "FormatStructTitle",
    }
)
"""A paragraph each."""

INLINE: Final = frozenset({"Sentence", "Column", "Line", "Ruby", "Rt", "Sup", "Sub", "Fig"})

TABLE: Final = frozenset({"Table", "TableHeaderRow", "TableRow", "TableHeaderColumn"})

GROUPS: Final = frozenset(
    {
        "Law",
        "LawBody",
        "TOC",
        "Preamble",
        "MainProvision",
        "Paragraph",
        "AmendProvision",
        "NewProvision",
        "TableStruct",
        "FigStruct",
        "NoteStruct",
        "StyleStruct",
        "FormatStruct",
        "Remarks",
        "TableColumn",
    }
)

MIXED: Final = (
    frozenset({"Sentence", "Line", "Ruby", "Rt", "Sup", "Sub", "TableHeaderColumn", *HEADS})
    | LABELS
    | LINES
    | ANY
)
"""White space in them may mean a space; between other elements it is the file's layout."""

KNOWN: Final = (
    HEADED | CONTENTS | INDENTED | LABELS | SENTENCES | ANY | LINES | INLINE | TABLE | GROUPS
).union(HEADS)
