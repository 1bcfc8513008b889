"""Compile and run the training step of a network: its loss, gradients, updates and measurements.

============================================  ==========================================================================
question                                      answer
============================================  ==========================================================================
What does a step compute?                     ``graphs.py``: for training, shards, evaluation, observation
How is its graph written?                     ``drafts.py``: inputs, gradients, updates; ``model.py`` says of what
Who changes the graph of the network?         ``rewritings.py`` applies the components of this kind
How is it compiled and run?                   ``steps.py``: programs, bursts of iterations, shards of a batch
Which optimiser has a parameter?              ``rules.py``, and which settings
How does a setting change while it trains?    ``live.py``: live values are inputs of the step
What does it begin with?                      ``initial.py``
What has it measured?                         ``measuring.py``; ``totals.py`` adds up rows without any error
Which weights are evaluated?                  ``weights.py``; ``units.py`` restores the units of the data
============================================  ==========================================================================
"""

from sigma_kernel import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, {"model": "Model"})
