"""Every program made of the book's cells runs alone, and gives what its page shows."""

import json

import pytest

from book_paths import CHAPTERS, ROOT
from bookkit.snippets.gate import check_programs

LISTING = ROOT / "_build/programs.json"


def test_every_program_runs_alone_and_gives_what_its_page_shows(html_folder, record_property):
    """In a process of its own, where neither package can be imported."""
    outcome = check_programs(LISTING)
    record_property("summary", str(outcome).splitlines()[-1])
    assert outcome.faults == [], "\n\n".join(outcome.faults)
    assert outcome.programs == len(json.loads(LISTING.read_text("utf-8"))["programs"])


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_program_runs_in_a_new_interpreter(html_folder, chapter):
    """The third of each page: the processes of the test above are copies of one that has imported the libraries."""
    outcome = check_programs(LISTING, fresh=True, only=f"/{chapter}/03-")
    assert (outcome.programs, outcome.faults) == (1, [])
