"""The pages of what stands beside sources: uploads, websites, and indexes on the store."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from fonds.api.admin_figures import index_health, site_health, upload_work
from fonds.api.desk import desk_of
from fonds.sources.registry import all_sources
from fonds.uploads.states import FAILURES, WORKED_ON, JobStatus
from fonds.web import charts
from fonds.web.admin.asking import AT, Asked, admin_page, standing
from fonds.web.frame import operator_of

router: Final = APIRouter(prefix=AT)


@router.get("/uploads")
def show_uploads(request: Request, asked: Asked = 0) -> Response:
    """Uploads by where they stand, and those that have waited longest."""
    visitor, desk = operator_of(request), desk_of(request)
    now = desk.now()
    with desk.library.database.read() as connection:
        work = upload_work(connection, now)
        state = standing(connection, now, asked)
    jobs = work.figures.jobs
    return admin_page(
        request,
        "uploads.html",
        visitor,
        state,
        work=work,
        figures=work.figures,
        under_way=_sum(jobs, WORKED_ON),
        failed=_sum(jobs, FAILURES),
        complete=jobs[JobStatus.COMPLETE],
        most=max(jobs.values(), default=0),
        failures=FAILURES,
        share=charts.share,
    )


def _sum(jobs: Mapping[JobStatus, int], which: Collection[JobStatus]) -> int:
    return sum(count for status, count in jobs.items() if status in which)


@router.get("/sites")
def show_sites(request: Request, asked: Asked = 0) -> Response:
    """Websites, how their PDFs are found, and how well that works."""
    visitor, desk = operator_of(request), desk_of(request)
    sites = site_health(desk.library)
    with desk.library.database.read() as connection:
        state = standing(connection, desk.now(), asked)
    return admin_page(
        request, "sites.html", visitor, state, sites=sites, known=frozenset(all_sources())
    )


@router.get("/indexes")
def show_indexes(request: Request, asked: Asked = 0) -> Response:
    """Indexes on the object store, their sizes, and who compiles a shard of them."""
    visitor, desk = operator_of(request), desk_of(request)
    found = index_health(desk.library)
    with desk.library.database.read() as connection:
        state = standing(connection, desk.now(), asked)
    return admin_page(request, "indexes.html", visitor, state, found=found)
