"""Commands for maintainers: ``python -m bookkit propose``, ``lint`` and ``programs``."""

import argparse
import sys
from pathlib import Path

from bookkit.ledger import LedgerError, find_ledger, load_ledger
from bookkit.lint import lint_chapter
from bookkit.propose import propose_from
from bookkit.snippets.gate import check_programs


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bookkit", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    proposing = commands.add_parser("propose", help="print the ledger patch that the last build's drift would need")
    proposing.add_argument("--report", type=Path, default=Path("_build/report.json"))
    linting = commands.add_parser("lint", help="check the ledger and what the chapters' cells may not do")
    linting.add_argument("chapters", type=Path, nargs="+")
    checking = commands.add_parser("programs", help="run every program of the last build alone (in make test-slow)")
    checking.add_argument("--list", type=Path, default=Path("_build/programs.json"))
    checking.add_argument("--only", default="", help="a part of the file names: no other program is run")
    checking.add_argument("--fresh", action="store_true", help="start a new interpreter for each")
    options = parser.parse_args(arguments)
    try:
        if options.command == "programs":
            outcome = check_programs(options.list, fresh=options.fresh, only=options.only)
            print(outcome)
            return 1 if outcome.faults else 0
        ledger = load_ledger(find_ledger())
        if options.command == "propose":
            print(propose_from(options.report, ledger), end="")
            return 0
    except (LedgerError, LookupError, FileNotFoundError) as error:
        print(error, file=sys.stderr)
        return 1
    faults = [(path, fault) for path in options.chapters for fault in lint_chapter(path.read_text("utf-8"), ledger)]
    for path, fault in faults:
        print(f"{path}:{fault.line}: {fault.message}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
