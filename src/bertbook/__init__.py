"""The code that the book's chapters execute: small, exact BERT code.

The modules, in the order of the book:

- ``config``, ``model``, ``heads``: BERT as released, and what stands on top of it
- ``losses``, ``outputs``: what its task heads minimise, and what it returns
- ``checkpoints``: how its weights are written and read
- ``counting``, ``families``: where the parameters sit; encoder, decoder, and both
- ``attention``: scores, masks, weights
- ``masking``, ``pairs``: the two pretraining tasks
- ``corpus``, ``wordpiece``, ``tokenization``: real text; its words, pieces and ids
- ``piece_learning``: how the pieces are found
- ``pretraining_data``, ``batches``: from documents to examples, and to batches
- ``baselines``: what a masked language model must beat
- ``tiny``, ``training``: the toy classifier; the loop, and accuracy
- ``by_hand``: one step of fine-tuning in NumPy
- ``schedules``, ``optimizers``, ``tagging``, ``toy_text``: fine-tuning in practice
- ``freezing``, ``discriminative``: which parts are trained, and how fast
- ``efficient``, ``forgetting``: few parameters beside a frozen model; what gets lost
- ``milestones``, ``published``: the project's checks; the released BERT's names
- ``flax_mini``, ``flax_weights``: the same encoder in Flax, and its twin in torch
- ``experiments``: what takes minutes, recorded: trained, resumed, distributed, checked
- ``check``, ``findings``: what ``python -m bertbook check`` runs, how it reports
- ``figures``: every drawing
"""
