"""The code that the book's chapters execute: small, exact BERT code on torch, NumPy and Flax.

The modules, in the order of the book:

- ``config``, ``model``, ``heads``: BERT as released, its sizes, and what stands on top of it
- ``counting``, ``families``: where the parameters sit; encoder, decoder, and both
- ``attention``: scores, masks, weights
- ``masking``, ``pairs``: the two pretraining tasks
- ``tiny``, ``training``: the toy classifier; the loop, and accuracy
- ``by_hand``: one step of fine-tuning in NumPy
- ``schedules``, ``optimizers``, ``tagging``, ``toy_text``: fine-tuning in practice
- ``freezing``, ``discriminative``, ``efficient``, ``forgetting``: what is trained, how fast, and what gets lost
- ``milestones``, ``published``: the project's checks; the released BERT's names and shapes
- ``flax_mini``, ``flax_weights``: the same encoder in Flax, and in torch with Flax's weights
- ``check``, ``findings``: what ``python -m bertbook check`` runs, and how it reports
- ``figures``: every drawing
"""
