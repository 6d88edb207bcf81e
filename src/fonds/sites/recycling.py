"""When a reader process is replaced; it imports this module before it copies itself."""

from __future__ import annotations

import resource
from typing import Final

_MAX_KIB: Final = 192 * 1024


def has_grown() -> bool:
    """True if this process has used much memory, as for a large page, and may not release it."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > _MAX_KIB


HAS_GROWN: Final = f"{__name__}:{has_grown.__name__}"
"""The address of the function."""
