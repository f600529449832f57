"""Snippets that always run: each code cell of a page can be copied as a complete program.

The modules, in the order in which a cell becomes a program:

- ``observe`` and ``content``: in the kernel, what a cell changed, drew and printed
- ``names`` and ``slice``: which earlier cells it needs
- ``package`` and ``inline``: what these need of the book's package, copied into one text by ``edit``
- ``methods``: what of it is left out: methods that fetch their code when they are called, and are not
- ``recorded``: results that a cell loads, written into its code
- ``files``: files of the book that a program reads, which the archives hold
- ``gather`` and ``program``: the program
- ``page``: the buttons on the page, and the files to download
- ``alone`` and ``gate``: every program runs alone and gives what the page shows, or the tests fail

A slice is derived from the page and from what was observed; nothing about it is written down. Whether it
is right shows only when it runs. That takes longer than the build, so it is not done there: ``make test-slow``
runs every program, and names a cell whose program prints something else than the page. Such a cell gets
the tag ``whole-page``, and its program all earlier cells; a tag that is not needed fails the tests too.
"""
