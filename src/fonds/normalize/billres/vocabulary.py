"""The elements of the House and Senate DTD of bills, by what they are to a reader."""

from __future__ import annotations

from typing import Final

METADATA: Final = frozenset({"metadata", "meta-house", "meta-senate"})

CONTAINERS: Final = {
    "division": "Division",
    "subdivision": "Subdivision",
    "title": "Title",
    "subtitle": "Subtitle",
    "chapter": "Chapter",
    "subchapter": "Subchapter",
    "part": "Part",
    "subpart": "Subpart",
    "rule": "Rule",
    "constitution-article": "Article",
}
"""Divisions that contain sections, and the word that print sets before their number."""

APPROPRIATIONS: Final = frozenset(
    {"appropriations-major", "appropriations-intermediate", "appropriations-small"}
)
LEVELS: Final = frozenset(
    """
    subsection paragraph subparagraph clause subclause item subitem
    rules-clause rules-paragraph rules-subparagraph rules-subdivision rules-item rules-subitem
    committee-appointment-paragraph committee-report-segment committee-report-para
    amendment-instruction instruction-paragraph instruction-subparagraph
    """.split()  # noqa: SIM905 — a list of words reads better than a page of quotation marks
)
"""Numbered levels, which may have a heading that runs into their text, and levels below."""

RUNNING: Final = frozenset(
    """
    text continuation-text quoted-block-continuation-text header subheader enum enum-in-header
    whereas para list-item toc-entry official-title action-desc after-quoted-block entry
    committee-report-header instructive-para level-header footnote legis-comment
    """.split()  # noqa: SIM905 — a list of words reads better than a page of quotation marks
)
"""Elements of running text, in which an unknown element is part of a line."""

FLOWING: Final = frozenset(
    """
    internal-xref external-xref act-name definition header-in-text enum-in-header committee-name
    debate-time sponsor cosponsor nonsponsor short-title editorial proviso effective-date
    inline-comment cato-ref nobreak pagebreak marker
    """.split()  # noqa: SIM905 — a list of words reads better than a page of quotation marks
)
"""Elements that are part of a line and set like the text around them, or empty."""

GROUPS: Final = frozenset(
    """
    pre-form form amendment-form conference-report-form engrossed-amendment-form action
    legis-body resolution-body amendment-body engrossed-amendment-body amendment amendment-block
    amendment-list preamble preamble-amends title-amends attestation attestation-group conferees
    legislators endorsement non-statutory-material tgroup thead tbody tfoot row
    """.split()  # noqa: SIM905 — a list of words reads better than a page of quotation marks
)
"""Elements that only group blocks."""

PASSAGES: Final = frozenset(
    """
    distribution-code calendar congress session enrolled-dateline associated-doc current-chamber
    action-date action-instruction amend-num purpose report-num report-title
    official-title-amendment author-note running-header suspension-floor-action
    suspension-instructions legis-counsel reintroduction-code signature-line first-page-header
    first-page-date first-page-desc attestation-date attestor proxy role
    consideration-paragraph legislator impeachment-resolution-signature rules-clause-header
    graphic-caption ttitle tdesc entry pl-cite
    """.split()  # noqa: SIM905 — a list of words reads better than a page of quotation marks
)
"""Elements that are one paragraph."""
