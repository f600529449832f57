"""What Sphinx forgets between two builds: which entries of the general index its search knows."""

from contextlib import suppress

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.index_entries import split_index_msg

Entry = tuple[str, str, str, str, str | None]  # kind, text, target, main or not, key


def restore_entries(app: Sphinx, env: BuildEnvironment) -> None:
    """Sphinx notes them when it writes a page, which is after it has saved what it knows.

    So a second build would leave those of all pages that it does not write again out of the search.
    """
    for docname, entries in env.domains.index_domain.entries.items():
        env._search_index_index_entries[docname] = searchable(entries)


def searchable(entries: list[Entry]) -> list[tuple[str, str, str]]:
    """The words that are found for the index entries of a page, as Sphinx's own search has them.

    >>> searchable([("pair", "loss; masked", "term-loss", "", None)])
    [('loss', 'term-loss', ''), ('masked', 'term-loss', '')]
    """
    found = set()
    for kind, text, target, main, _ in entries:
        with suppress(ValueError):  # an entry that cannot be split, of which Sphinx has warned
            found |= {(word, target or "", main) for word in split_index_msg(kind, text)}
    return sorted(found)
