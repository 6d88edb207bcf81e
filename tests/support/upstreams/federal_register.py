"""A Federal Register of any size, computed from the number of each document, for tests and benches.

    with serve_synthetic(50_000, words=400) as upstream:
        ... settings with hosts=upstream.hosts ...
        upstream.change(7)
        upstream.counts()

It is served by a process of its own, so that it takes nothing from the one that is measured.
"""

from __future__ import annotations

import hashlib
import json
import random
import struct
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, date, datetime, time, timedelta
from itertools import accumulate, product
from typing import Any, Final, overload
from urllib.parse import urlencode

from fonds.demo.bundle import DATA, BundledRegister, bundled_sites
from fonds.demo.federal_register_api import CAP, LABELS, SITE, DocumentXml, Record, RegisterApi
from fonds.demo.http import Handler, Request, Response, not_found
from fonds.demo.server import DemoUpstream

HOST: Final = "www.federalregister.gov"
FIRST_DAY: Final = date(2019, 1, 7)
"""The Monday on which the first documents are published."""

_WORKDAYS: Final = 5
_FILED: Final = time(12, 45, tzinfo=UTC)
_TABLE_SIZE: Final = 2**16
_CODES: Final = {"R": "RULE", "P": "PRORULE", "N": "NOTICE", "D": "PRESDOCU"}
# Roughly the shares of the real print edition.
_TYPES: Final = "NNRNNPNNRNNNPNNRNNDN"

# Words ------------------------------------------------------------------------------------

_SMALL_WORDS: Final = """
    the of to and in a for that is be or by on as with are this from not under any at which such
    an these has will have it its may must each than other all if was were no more when their
    between after within through during before also only into would should could where both
"""
_STEMS: Final = """
    account adjust advis allocat amend appoint apprais assess author benefit calculat certif
    collect compli comput conserv consult contract control convert coordinat cover credit declar
    deduct defin deliver deposit design determin develop direct disclos discharg dispos distribut
    document elect employ enforc establish estimat evaluat examin exclud exempt export extend
    file financ form fund grant guarant handl identif implement import impos improv index inform
    market measur monitor notif operat order organiz own pack pay perform permit plan possess
    publish purchas qualif receiv record reduc refer register regulat reimburs releas report
    requir reserv restrict review revis schedul select serv settl standard stat submit supervis
    supplement support survey suspend test trad train transfer transport treat valid verif waiv
"""
_ENDINGS: Final = ("ed", "ing", "er", "able", "ation", "ment", "ance", "ive", "s", "ally")
_SYLLABLES: Final = """
    ban cor dal fen gar hol jas kel lam mor nev ost pel quin ros sal tam ulm ver wes yar zel
"""


def _vocabulary() -> Iterator[str]:
    yield from _SMALL_WORDS.split()
    yield from (stem + ending for ending, stem in product(_ENDINGS, _STEMS.split()))
    # Names of places and firms, which make the long tail of any index.
    names = list(map("".join, product(_SYLLABLES.split(), repeat=3)))
    yield from random.Random(0).sample(names, len(names))


def _zipf_table(words: Sequence[str]) -> tuple[str, ...]:
    """As many places for each word as its rank earns, so that a random place is a random word."""
    shares = [1 / (rank + 2.7) for rank in range(len(words))]
    spare, total = _TABLE_SIZE - len(words), sum(shares)
    ends = accumulate(share * spare / total for share in shares)
    table: list[str] = []
    for rank, (word, end) in enumerate(zip(words, ends, strict=True), 1):
        table += [word] * (rank + round(end) - len(table))
    return tuple(table)


_WORDS: Final = _zipf_table(tuple(_vocabulary()))


def _draw(count: int, *key: int) -> list[str]:
    """Words that depend on the key alone; a hash takes a tenth of the time of seeding `random`."""
    stream = hashlib.shake_128(repr(key).encode()).digest(2 * count)
    return [_WORDS[place] for place in struct.unpack(f"<{count}H", stream)]


def _sentences(words: Sequence[str]) -> Iterator[str]:
    at = 0
    while at < len(words):
        length = 9 + len(words[at]) * 3 % 16
        yield f"{' '.join(words[at : at + length]).capitalize()}."
        at += length


# Documents --------------------------------------------------------------------------------


class SyntheticRegister:
    """A catalogue of `count` documents, `per_day` on each working day from FIRST_DAY on.

    The same arguments always give the same bytes. Nothing is remembered of a document unless it
    was changed or withdrawn.
    """

    def __init__(self, count: int, *, seed: int = 0, words: int = 400, per_day: int = 200) -> None:
        self.count = count
        self.per_day = per_day
        self._seed = seed
        self._words = words
        self._texts: Counter[int] = Counter()
        self._records: Counter[int] = Counter()
        self._withdrawn: set[int] = set()
        # The numbers are those of the bundled agencies, so that both registers agree on them.
        self._agencies = BundledRegister(DATA / HOST).agencies()
        by_id = {agency["id"]: agency for agency in self._agencies}
        self._chains = [
            [*([by_id[one["parent_id"]]] if one["parent_id"] else []), one]
            for one in self._agencies
        ]

    def change(self, index: int, *, silently: bool = False) -> None:
        """Give a document another text, and another record too unless it is done silently."""
        self._texts[index] += 1
        if not silently:
            self._records[index] += 1

    def withdraw(self, index: int) -> None:
        """Take a document out of every list; its text is gone too."""
        self._withdrawn.add(index)

    def restore(self, index: int) -> None:
        """Publish a withdrawn document again."""
        self._withdrawn.discard(index)

    def documents(
        self, since: date, until: date, types: frozenset[str] | None = None
    ) -> Sequence[Record]:
        """The records of a range of days, both included, oldest first; types by their labels."""
        first = self._first_at(since)
        last = self._first_at(until + timedelta(1)) if until < date.max else self.count
        indexes: Sequence[int] = range(first, max(first, last))
        if types is not None or any(index in indexes for index in self._withdrawn):
            indexes = [
                index
                for index in indexes
                if index not in self._withdrawn and (types is None or LABELS[_code(index)] in types)
            ]
        return _Records(self, indexes)

    def find(self, number: str) -> Sequence[Record]:
        """The record of that number."""
        index = self._index(number)
        return [] if index is None else [self.record(index)]

    def full_text(self, number: str, published: date) -> DocumentXml | None:
        """The XML of a document, where there is any."""
        index = self._index(number)
        if index is None or self.day(index) != published:
            return None
        # A second for each change is enough for a client that goes by the date alone.
        modified = datetime.combine(published, _FILED) + timedelta(seconds=self._texts[index])
        return DocumentXml(data=self.xml(index).encode(), modified=modified)

    def agencies(self) -> Sequence[Record]:
        """All agencies, children included."""
        return self._agencies

    def day(self, index: int) -> date:
        """When a document is published."""
        weeks, days = divmod(index // self.per_day, _WORKDAYS)
        return FIRST_DAY + timedelta(7 * weeks + days)

    def number(self, index: int) -> str:
        """A document's number."""
        return f"{self.day(index).year}-{index:05}"

    def record(self, index: int) -> Record:
        """A document as the API describes it."""
        title, abstract = self._headline(index)
        day, number, kind = self.day(index), self.number(index), LABELS[_code(index)]
        path = f"{day.isoformat().replace('-', '/')}/{number}"
        page = 1 + index * 3
        return {
            **_NOTHING,
            "abstract": abstract,
            "action": f"{kind}.",
            "agencies": [_reference(agency) for agency in self._issuers(index)],
            "body_html_url": f"{SITE}/documents/full_text/html/{path}.html",
            "citation": f"{day.year - 1935} FR {page}",
            "document_number": number,
            "end_page": page + 2,
            "full_text_xml_url": f"{SITE}/documents/full_text/xml/{path}.xml",
            "html_url": f"{SITE}/documents/{path}/{title.lower().replace(' ', '-')}",
            "json_url": f"{SITE}/api/v1/documents/{number}.json",
            "mods_url": f"https://www.govinfo.gov/metadata/granule/FR-{day}/{number}/mods.xml",
            "pdf_url": f"https://www.govinfo.gov/content/pkg/FR-{day}/pdf/{number}.pdf",
            "publication_date": day.isoformat(),
            "raw_text_url": f"{SITE}/documents/full_text/text/{path}.txt",
            "start_page": page,
            "title": title,
            "toc_doc": title,
            "type": kind,
            "volume": day.year - 1935,
        }

    def xml(self, index: int) -> str:
        """The full text of a document."""
        title, abstract = self._headline(index)
        drawn = _draw(self._words + 6, self._seed, index, 2, self._texts.get(index, 0))
        day, kind = self.day(index), _code(index)
        *_, agency = self._issuers(index)
        return (
            f'<{kind}>\n<PREAMB>\n<AGENCY TYPE="S">{agency["name"].upper()}</AGENCY>\n'
            f"<SUBJECT>{title}</SUBJECT>\n"
            f'<SUM>\n<HD SOURCE="HED">SUMMARY:</HD>\n<P>{abstract}</P>\n</SUM>\n'
            f'</PREAMB>\n<SUPLINF>\n<HD SOURCE="HED">SUPPLEMENTARY INFORMATION:</HD>\n'
            f"{_body(list(_sentences(drawn[6:])), index * 3 + 1)}\n{_table(drawn[:6], index)}\n"
            f"</SUPLINF>\n<FRDOC>[FR Doc. {self.number(index)} Filed "
            f"{day.month}-{day.day}-{day.year % 100}; 8:45 am]</FRDOC>\n"
            f"<BILCOD>BILLING CODE 0000-00-P</BILCOD>\n</{kind}>\n"
        )

    def _headline(self, index: int) -> tuple[str, str]:
        words = _draw(52, self._seed, index, 1, self._records.get(index, 0))
        return " ".join(words[:12]).title(), " ".join(_sentences(words[12:]))

    def _first_at(self, day: date) -> int:
        weeks, days = divmod((day - FIRST_DAY).days, 7)
        workday = _WORKDAYS * weeks + min(days, _WORKDAYS)
        return min(max(workday * self.per_day, 0), self.count)

    def _index(self, number: str) -> int | None:
        digits = number.rpartition("-")[2]
        if not digits.isdecimal() or int(digits) >= self.count or int(digits) in self._withdrawn:
            return None
        return int(digits) if self.number(int(digits)) == number else None

    def _issuers(self, index: int) -> list[Record]:
        return self._chains[index * 7 % len(self._chains)]


class _Records(Sequence[Record]):
    """Records that exist only while somebody looks at them."""

    def __init__(self, register: SyntheticRegister, indexes: Sequence[int]) -> None:
        self._register = register
        self._indexes = indexes

    def __len__(self) -> int:
        return len(self._indexes)

    @overload
    def __getitem__(self, place: int) -> Record: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Record]: ...
    def __getitem__(self, place: int | slice) -> Record | Sequence[Record]:
        if isinstance(place, slice):
            return _Records(self._register, self._indexes[place])
        return self._register.record(self._indexes[place])


_ABSENT: Final = """
    comment_url comments_close_on correction_of dates effective_on executive_order_notes
    executive_order_number president proclamation_number public_inspection_pdf_url
    regulations_dot_gov_url signing_date subtype toc_subject
"""
_NONE: Final = "cfr_references corrections docket_ids regulation_id_numbers topics"
_EMPTY: Final = "images regulation_id_number_info regulations_dot_gov_info"
_NOTHING: Final[Record] = {
    **dict.fromkeys(_ABSENT.split()),
    **{name: [] for name in _NONE.split()},
    **{name: {} for name in _EMPTY.split()},
    "page_length": 3,
    "significant": False,
}


def _code(index: int) -> str:
    return _CODES[_TYPES[index % len(_TYPES)]]


def _reference(agency: Record) -> Record:
    kept = ("name", "id", "url", "json_url", "parent_id", "slug")
    return {"raw_name": agency["name"].upper(), **{name: agency[name] for name in kept}}


def _body(sentences: list[str], page: int) -> str:
    """Paragraphs of five sentences, a heading above every third; a footnote in the first."""
    lines = []
    for number, at in enumerate(range(0, len(sentences), 5)):
        if number % 3 == 0:
            title = " ".join(sentences[at].split()[:6]).rstrip(".").title()
            lines.append(f'<HD SOURCE="HD1">{number // 3 + 1}. {title}</HD>')
        text = " ".join(sentences[at : at + 5])
        if number == 0:
            text += "<SU>1</SU><FTREF/>"
        elif number % 4 == 0:
            first, _, rest = text.partition(" ")
            text = f'{first} <PRTPAGE P="{page + number // 4}"/>{rest}'
        lines.append(f"<P>{text}</P>")
    lines.insert(2, f"<FTNT>\n<P><SU>1</SU> {sentences[-1]}</P>\n</FTNT>")
    return "\n".join(lines)


def _table(names: Sequence[str], index: int) -> str:
    rows = "\n".join(
        f'<ROW><ENT I="01">{name.capitalize()}</ENT><ENT>{index % 97 + row}</ENT></ROW>'
        for row, name in enumerate(names)
    )
    return (
        '<GPOTABLE COLS="2" OPTS="L2,i1" CDEF="s50,12">\n<TTITLE>Table 1—Estimates</TTITLE>\n'
        '<BOXHD><CHED H="1">Item</CHED><CHED H="1">Number</CHED></BOXHD>\n'
        f"{rows}\n</GPOTABLE>"
    )


# Served -----------------------------------------------------------------------------------


class SyntheticUpstream:
    """A synthetic register in another process, and the way to alter it."""

    def __init__(self, hosts: dict[str, str], control: str) -> None:
        self.hosts = hosts
        """The value of the setting `hosts`."""
        self._control = control

    def change(self, index: int, *, silently: bool = False) -> None:
        """Give a document another text, and another record too unless it is done silently."""
        self._call("change", index=index, silently=int(silently))

    def withdraw(self, index: int) -> None:
        """Take a document out of every list; its text is gone too."""
        self._call("withdraw", index=index)

    def restore(self, index: int) -> None:
        """Publish a withdrawn document again."""
        self._call("restore", index=index)

    def counts(self) -> dict[str, int]:
        """How often the register was asked: total, conditional, not_modified."""
        counts: dict[str, int] = self._call("counts")
        return counts

    def _call(self, what: str, **query: int) -> Any:
        with urllib.request.urlopen(f"{self._control}/{what}?{urlencode(query)}") as answer:
            return json.load(answer)


@contextmanager
def serve_synthetic(
    count: int, *, seed: int = 0, words: int = 400, per_day: int = 200, cap: int = CAP
) -> Iterator[SyntheticUpstream]:
    """Serve a synthetic register, and the bundled legislators, from a process of their own."""
    wanted = {"count": count, "seed": seed, "words": words, "per_day": per_day}
    command = [sys.executable, "-P", __file__, json.dumps(wanted), str(cap)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        with process.stdin:
            yield SyntheticUpstream(**json.loads(process.stdout.readline()))


def _control(register: SyntheticRegister, upstream: DemoUpstream, request: Request) -> Response:
    command = request.path.removeprefix("/")
    if command in {"change", "withdraw", "restore"}:
        getattr(register, command)(**{name: int(value) for name, value in request.query})
    elif command != "counts":
        return not_found()
    answer = json.dumps(asdict(upstream.counts[HOST])).encode()
    return Response(body=answer, media_type="application/json")


def _serve(wanted: dict[str, int], cap: int) -> None:
    register = SyntheticRegister(**wanted)
    upstream: DemoUpstream
    sites: dict[str, Handler] = {**bundled_sites(), HOST: RegisterApi(register, cap=cap)}
    sites["_control"] = lambda request: _control(register, upstream, request)
    with DemoUpstream(sites) as upstream:
        hosts = upstream.hosts
        control = hosts.pop("_control")
        sys.stdout.write(json.dumps({"hosts": hosts, "control": control}) + "\n")
        sys.stdout.flush()
        # The pipe ends when the process that started this one closes it or dies.
        sys.stdin.read()


if __name__ == "__main__":
    _serve(json.loads(sys.argv[1]), int(sys.argv[2]))
