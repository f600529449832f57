"""The code that the book's chapters execute: small, exact BERT code on torch and NumPy.

The modules, in the order of the book:

- ``attention``: scores, masks, weights
- ``tiny``: the toy classifier
- ``training``: the loop, and accuracy
- ``milestones``: the project's checks, for your class or ours
- ``published``: parameter names and shapes of the released BERT
- ``figures``: every drawing
"""
