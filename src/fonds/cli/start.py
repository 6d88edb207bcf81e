"""Where the command `fonds` begins: it loads what commands need, and little that none needs.

structlog loads rich's tracebacks, and with them all lexers of pygments, wherever it finds them;
rich loads attrs, to print objects made with it. Our tracebacks are plain, and so are our objects.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from typing import Final

# Objects made before Python looks for cycles among them. Commands leave few, and at its 700 a
# twentieth of a crawl is spent on looking.
LOOKED_FOR_CYCLES: Final = 10_000
_UNWANTED: Final = ("rich.traceback", "attr")


def main() -> None:
    """Load the command, and run it."""
    gc.disable()  # what is loaded stays; to look for cycles in it would take a tenth of the time
    for name in _UNWANTED:
        sys.modules[name] = None  # type: ignore[assignment]  # this is how a module is said not to be there
    import_module("structlog")
    for name in _UNWANTED:
        del sys.modules[name]
    run = import_module("fonds.cli.main").main
    gc.freeze()
    gc.set_threshold(LOOKED_FOR_CYCLES)
    gc.enable()
    run()
