"""The command `fonds`, as `python -m fonds`."""

from __future__ import annotations

from fonds.cli.main import main

if __name__ == "__main__":
    main()
