"""How a publication of the Congressional Budget Office is cited.

The Bluebook gives reports of an agency its abbreviated name (tables T6 and T10), the title and the
date. A cost estimate says that it is one and which bill it estimates, for its title alone may not:
`Cong. Budget Off., Cost Estimate: H.R. 2101, Harbor Dredging Transparency Act (Mar. 2025).`
"""

from __future__ import annotations

from datetime import date

from fonds.citations.months import bluebook_month


def cite_cbo(*, title: str, published: date | None, estimate: bool, bill: str | None) -> str:
    """`Cong. Budget Off., Title (Mar. 2025).`; `bill` is the estimated one if the title is silent.

    Without a date the parenthesis is left out.
    """
    named = f"{bill}, {title}" if bill else title
    label = f"Cost Estimate: {named}" if estimate else title
    cited = f"Cong. Budget Off., {label.rstrip('.')}"
    return f"{cited} ({bluebook_month(published)})." if published else f"{cited}."
