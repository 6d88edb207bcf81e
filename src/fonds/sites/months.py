"""The months, by the names that publishers of reports give them."""

from __future__ import annotations

from typing import Final

_NAMES: Final = (
    "january januar janner janvier enero styczen stycznia gennaio janeiro jan",
    "february februar fevrier febrero luty lutego febbraio fevereiro feb",
    "march marz maerz mars marzo marzec marca marco mar",
    "april avril abril kwiecien kwietnia aprile apr",
    "may mai mayo maj maja maggio maio",
    "june juni juin junio czerwiec czerwca giugno junho jun",
    "july juli juillet julio lipiec lipca luglio julho jul",
    "august aout agosto sierpien sierpnia aug",
    "september septembre septiembre setiembre wrzesien wrzesnia settembre setembro sept sep",
    "october oktober octobre octubre pazdziernik pazdziernika ottobre outubro oct okt",
    "november novembre noviembre listopad listopada novembro nov",
    "december dezember decembre diciembre grudzien grudnia dicembre dezembro dec dez",
)
MONTHS: Final = {name: number for number, names in enumerate(_NAMES, 1) for name in names.split()}
"""The number of each, by its name in small letters without accents, or a short form of it."""
