"""Every drawing of the book, a module a topic.

Each function takes computed values and returns a Figure. Figures keep an opaque white
ground, so that they read the same on a dark page and on paper, and never tell things
apart by colour alone: cells carry their numbers, lines their names.
"""
