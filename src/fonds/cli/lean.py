"""Imported before all others: keeps out of memory what no command needs.

structlog loads rich's tracebacks, and with them all lexers of pygments, wherever it finds them;
ours are plain.
"""

from __future__ import annotations

import sys
from importlib import import_module

_UNWANTED = "rich.traceback"

if "structlog" not in sys.modules and _UNWANTED not in sys.modules:
    sys.modules[_UNWANTED] = None  # type: ignore[assignment]  # this is how a module is said not to be there
    import_module("structlog")
    del sys.modules[_UNWANTED]
