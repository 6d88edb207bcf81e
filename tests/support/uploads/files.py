"""Files that users upload, and what the parser outside says of them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from fonds import ids
from fonds.uploads.jobs import Job

USERS: Final = (UUID(int=1, version=4), UUID(int=2, version=4))


@dataclass(frozen=True)
class Paper:
    """A file as somebody may upload it, and what it says."""

    names: tuple[str, ...]
    data: bytes
    said: str = ""
    """What the parser outside reads in it."""
    wordless: bool = False


def _long(word: str) -> str:
    parts = [f"## {word} {n}\n\n" + f"The {word} of part {n} is insured. " * 5 for n in range(3)]
    return f"# About {word}\n\n" + "\n\n".join(parts) + "\n"


PAPERS: Final = (
    Paper(("cover.md", "cover.txt"), _long("cover").encode()),
    Paper(("copy.md",), _long("cover").replace("\n", "\r\n").encode()),
    Paper(("stars.md",), b"***\n\n***\n", wordless=True),
    Paper(("title.md",), b"# Nothing below\n"),
    Paper(("scan.pdf",), b"%PDF-1.7 one scan", said=_long("water")),
    Paper(("again.pdf",), b"%PDF-1.7 another scan", said=_long("water")),
)
BY_NAME: Final = {paper.names[0]: paper for paper in PAPERS}
BY_SHA: Final = {hashlib.sha256(paper.data).hexdigest(): paper for paper in PAPERS}
SAID: Final = {ids.upload_uid(user, sha): BY_SHA[sha].said for user in USERS for sha in BY_SHA}


def told_of(job: Job, status: str, **changes: Any) -> bytes:
    """A webhook about a job, as the parser outside sends it."""
    content = SAID[job.document_id].encode()
    artifact = {
        "type": "markdown",
        "content": content.decode(),
        "sha256": changes.pop("sha256", hashlib.sha256(content).hexdigest()),
        "bytes": len(content),
    }
    told = {"job_id": str(job.job_id), "document_id": str(job.document_id), "status": status}
    rest: dict[str, Any] = {"error": "it could not be read outside"}
    if status == "parsed":
        meta = {"parser_name": "llamaparse", "parser_version": "1"}
        rest = {"artifacts": [artifact], "meta": meta}
    return json.dumps(told | rest | changes).encode()
