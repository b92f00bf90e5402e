"""Runs the command line: `python -m checkrein` and the `checkrein` script."""

from __future__ import annotations

import sys


def main() -> None:
    """The `checkrein` command; on systems we do not gate yet it says so instead of half working."""
    if sys.platform not in ("linux", "darwin"):
        sys.exit("Checkrein runs on Linux and macOS; this system is not supported yet.")
    if sys.argv[1:] == ["serve", "--on-demand"]:
        # A hook waits for this server: the command line would only hold it up.
        from checkrein.server import serve

        serve(lambda _: None, on_demand=True)
        return
    from checkrein.cli import checkrein

    checkrein(prog_name="checkrein")


if __name__ == "__main__":
    main()
