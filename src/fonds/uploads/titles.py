"""The title of an upload: of its metadata, else its first heading, else its file name."""

from __future__ import annotations

import re
from typing import Final

from fonds.chunk.headings import read_outline, text_only
from fonds.model import NormalizedBody

MAX_TITLE_LENGTH: Final = 200
_PRODUCER: Final = re.compile(r"^(?:Microsoft (?:Word|PowerPoint|Excel) - )+", re.IGNORECASE)
_ENDING: Final = re.compile(
    r"\.(?:cdr|docx?|html?|indd|jpe?g|md|odt|pdf|pmd|png|pptx?|qxd|rtf|tiff?|txt|xlsx?)$",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
# Written without spaces, so that one run of them may be a title.
_CJK_WORDS: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff]{4,}")
_MARKS: Final = re.compile(r"[<>_\\]|[^\s/]{40,}")


def title_of(text: NormalizedBody, name: str) -> str:
    """The title of a text that was uploaded as a file of some name."""
    stated = _stated_title(text.report.title if text.report else None)
    return stated or _first_heading(text.markdown) or name


def _stated_title(stated: str | None) -> str | None:
    """A title of metadata, unless a program made it up: `Document1`, `scan_0012`, `untitled`."""
    title = _ENDING.sub("", _PRODUCER.sub("", " ".join((stated or "").split())))
    is_sensible = len(_WORD.findall(title)) > 1 or _CJK_WORDS.search(title)
    if not is_sensible or (_MARKS.search(title) and not _CJK_WORDS.search(title)):
        return None
    return _shortened(title)


def _first_heading(markdown: str) -> str | None:
    for line in read_outline(markdown).headings:
        heading = " ".join(text_only(markdown[line.text_start : line.text_end]).split())
        if _WORD.search(heading) or _CJK_WORDS.search(heading):
            return _shortened(heading)
    return None


def _shortened(title: str) -> str:
    if len(title) <= MAX_TITLE_LENGTH:
        return title
    return f"{title[:MAX_TITLE_LENGTH].rpartition(' ')[0] or title[:MAX_TITLE_LENGTH]}…"
