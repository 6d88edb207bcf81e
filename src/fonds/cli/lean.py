"""Imported before all others: keeps out of memory what no command needs.

structlog loads rich's tracebacks, and with them all lexers of pygments, wherever it finds them;
rich loads attrs, to print objects made with it. Our tracebacks are plain, and so are our objects.
"""

from __future__ import annotations

import sys
from importlib import import_module

_UNWANTED = ("rich.traceback", "attr")

if "structlog" not in sys.modules:
    hidden = [name for name in _UNWANTED if name not in sys.modules]
    for name in hidden:
        sys.modules[name] = None  # type: ignore[assignment]  # this is how a module is said not to be there
    import_module("structlog")
    for name in hidden:
        del sys.modules[name]
