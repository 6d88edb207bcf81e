"""The pages of the queues: what waits, why some of it fails, how fast it goes, what it costs."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from fonds.api.desk import desk_of
from fonds.embed.standstill import left_alone
from fonds.runs.backlog import backlogs, embedding_work
from fonds.runs.commands import QueueName
from fonds.web.admin.asking import AT, Asked, admin_page, standing
from fonds.web.frame import operator_of

TITLES: Final[dict[QueueName, str]] = {
    "normalization": "Texts",
    "embedding": "Vectors",
    "citations": "Citations",
}
MEANINGS: Final[dict[QueueName, str]] = {
    "normalization": "Documents whose files wait to be made into text.",
    "embedding": "Documents whose passages wait for vectors, by which search finds what is meant.",
    "citations": "Documents whose text waits to be searched for what it cites.",
}
COMMANDS: Final[dict[QueueName, str]] = {
    "normalization": "fonds normalize",
    "embedding": "fonds embed",
    "citations": "fonds citations",
}

router: Final = APIRouter(prefix=AT)


@router.get("/normalization")
def show_normalization(request: Request, asked: Asked = 0) -> Response:
    """What waits for its text to be made."""
    return _queue(request, "normalization", asked)


@router.get("/embedding")
def show_embedding(request: Request, asked: Asked = 0) -> Response:
    """What waits for vectors."""
    return _queue(request, "embedding", asked)


@router.get("/citations")
def show_citations(request: Request, asked: Asked = 0) -> Response:
    """What waits to be searched for citations."""
    return _queue(request, "citations", asked)


def _queue(request: Request, name: QueueName, asked: int) -> Response:
    visitor, desk = operator_of(request), desk_of(request)
    now = desk.now()
    with desk.library.database.read() as connection:
        all_of_them = backlogs(connection, now)
        work = embedding_work(connection, now) if name == "embedding" else None
        alone = sorted(left_alone(connection, now)) if name == "embedding" else []
        state = standing(connection, now, asked)
    return admin_page(
        request,
        "queue.html",
        visitor,
        state,
        name=name,
        queue=next(each for each in all_of_them if each.queue == name),
        queues=all_of_them,
        titles=TITLES,
        meaning=MEANINGS[name],
        command=COMMANDS[name],
        work=work,
        alone=alone,
        is_draining=any(each.args.get("queue") == name for each in state.under_way),
    )
