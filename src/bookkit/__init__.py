"""What makes the book check itself. The modules, in the order in which a record goes through them:

- ``record``: what a record may say
- ``ledger``: reading the records, every fault with file and line
- ``compare``: recorded against computed
- ``verify``: what a chapter calls
- ``show``: the checked record as text and HTML
- ``render``: the checked record as a numbered table of the book
- ``reports``: what each chapter reported; the ``val`` role
- ``alarm``: what makes a build fail, and keep failing
- ``verdicts``: where the source is wrong: the box on the page, and the page of all errata
- ``checked``: the page "what this build checked"
- ``propose``: the ledger patch that a changed result would need

and beside that path ``cells`` and ``lint`` (what a chapter's cells may not do), ``kernels`` (how
they run), ``warm`` (why they start quickly), ``fingerprint``, ``listing`` (code shown from its file),
``mathml`` and ``markup`` (HTML as it should be), ``activities`` (what readers do on a page),
``snippets`` (cells as complete programs), and ``extension``, which plugs everything into Sphinx.
"""

from bookkit.verify import DriftError, verify

__all__ = ["DriftError", "verify"]
