"""The elements of United States Legislative Markup, by what they are to a reader."""

from __future__ import annotations

from typing import Final

NAMESPACES: Final = ("http://xml.house.gov/schemas/uslm/1.0", "http://schemas.gpo.gov/xml/uslm")
"""USLM 1.0, which the House uses for the Code, and USLM 2, which GPO uses for all else."""

MAX_DEPTH: Final = 120
"""No real file nests a quarter as deep; recursion stays far from the interpreter's limit."""

DOCUMENTS: Final = frozenset(
    [
        "uscDoc",
        "bill",
        "resolution",
        "amendment",
        "engrossedAmendment",
        "pLaw",
        "statuteCompilation",
        "lawDoc",
        "statutesAtLarge",
        "frDoc",
        "cfrDoc",
    ]
)
"""Roots of whole files."""

METADATA: Final = frozenset({"meta", "amendMeta"})
"""Not part of the body."""

CONTAINERS: Final = frozenset(
    [
        "title",
        "subtitle",
        "division",
        "subdivision",
        "part",
        "subpart",
        "chapter",
        "subchapter",
        "article",
        "subarticle",
        "level",
        "appropriations",
        "compiledAct",
        "courtRules",
        "reorganizationPlans",
        "preliminary",
        "appendix",
    ]
)
"""Levels above the section, each a heading; their order differs from title to title."""

SECTIONS: Final = frozenset({"section", "courtRule", "reorganizationPlan"})
"""Elements that are cited by their own number."""

LEVELS: Final = frozenset(
    [
        "subsection",
        "paragraph",
        "subparagraph",
        "clause",
        "subclause",
        "item",
        "subitem",
        "subsubitem",
    ]
)
"""Labelled paragraphs below the section."""

RUN_IN: Final = frozenset({"content", "chapeau", "continuation", "text", "listContent"})
"""Text that follows its label on the same line, if there is one."""

NUMBERED: Final = frozenset({"num", "heading"})
"""Elements with which a level begins."""

GRID: Final = {
    **dict.fromkeys(("-gpo-grid-0-2", "-gpo-grid-0-4"), "b"),
    "-gpo-grid-0-3": "i",
    **dict.fromkeys(("-gpo-grid-5-1", "-gpo-grid-5-3", "-gpo-grid-073-1"), "sup"),
    **dict.fromkeys(
        ("-gpo-grid-5-2", "-gpo-grid-5-4", "-gpo-grid-073-2", "-gpo-grid-073-5"), "sub"
    ),
}
"""Classes of GPO's typesetting, in the Federal Register and the CFR, as the elements they mean."""

TITLES: Final = frozenset({"docTitle", "coverTitle"})
"""Headings of a whole document."""

INLINE: Final = frozenset(
    [
        "date",
        "span",
        "a",
        "amendingAction",
        "quotedText",
        "headingText",
        "term",
        "shortTitle",
        "proviso",
        "cosponsor",
        "sponsor",
        "committee",
        "citableAs",
        "currentThroughPublicLaw",
        "def",
        "entity",
        "docNumber",
        "affected",
        "fillIn",
        "u",
        "organization",
        "person",
        "location",
        "dateInline",
        "abbr",
        "small",
        "big",
        "code",
        "q",
        "wbr",
        "foreign",
        "provisionRange",
    ]
)
"""Words of a line; their markup says nothing a reader would see."""

SPACED: Final = frozenset(
    [
        "name",
        "affiliation",
        "role",
        "notation",
        "designator",
        "label",
        "target",
        "column",
        "editorialNote",
        "elided",
        "headingItem",
        "tocItem",
        "header",
        "referenceItem",
        "groupItem",
        "td",
        "th",
        "tr",
        "thead",
        "tbody",
        "tfoot",
    ]
)
"""Words of a line that the markup alone sets apart from their neighbours."""

BLOCKS: Final = frozenset(
    [
        "main",
        "preface",
        "amendPreface",
        "amendMain",
        "amendmentInstruction",
        "amendmentContent",
        "uscDoc",
        "bill",
        "resolution",
        "pLaw",
        "statuteCompilation",
        "engrossedAmendment",
        "longTitle",
        "officialTitle",
        "enactingFormula",
        "resolvingClause",
        "preamble",
        "recital",
        "action",
        "actionDescription",
        "actionInstruction",
        "slugLine",
        "congress",
        "session",
        "currentChamber",
        "distributionCode",
        "relatedDocument",
        "endMarker",
        "attestation",
        "endorsement",
        "block",
        "signatures",
        "signature",
        "sourceCredit",
        "notes",
        "explanationNote",
        "editionNote",
        "citationNote",
        "enrolledDateline",
        "legislativeHistory",
        "list",
        "listItem",
        "type",
        "property",
        "backMatter",
        "collection",
        "component",
        "lawDoc",
        "statutesAtLarge",
        "presidentialDocs",
        "frDoc",
        "cfrDoc",
        "crossheading",
        "organizationNote",
        "dl",
        "dt",
        "dd",
        "ul",
        "ol",
        "li",
        "div",
        "blockquote",
        "layout",
        "approvedDate",
        "publicPrivate",
        "figure",
        "caption",
        "authority",
        "docStage",
        "legislativeHistoryNote",
        "createdDate",
        "created",
        "creator",
        "uscNote",
        "starPrint",
        "publisher",
        "autograph",
        "billingCode",
        "crossHeading",
        "docPublicationName",
        "docReleasePoint",
        "ear",
        "findingAidsNote",
        "frDocId",
        "index",
        "issue",
        "leftRunningHead",
        "notice",
        "notices",
        "presidentialDoc",
        "proposedRule",
        "proposedRules",
        "rightRunningHead",
        "rule",
        "rulePreamble",
        "rules",
        "signatureDate",
        "source",
        "startingPage",
        "statement",
        "subject",
        "volume",
        "wordsOfIssuance",
    ]
)
"""Paragraphs, or groups of them."""

BLOCK_LEVEL: Final = (
    CONTAINERS | SECTIONS | LEVELS | RUN_IN | BLOCKS | {"p", "toc", "table", "quotedContent"}
)
"""Elements that make a quotation a block of its own."""
