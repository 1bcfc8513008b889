"""Train: from a trainer's settings to a session, and the loop that trains it.

An operator drives the ``TrainingLoop`` of a ``Session`` (``session/loop.py``)::

    while loop.boundary():                      # commands act; waits while paused
        n = loop.distance()                     # iterations until something is due
        loop.advance(n)                         # one burst: batches, program, new state
        loop.settle()                           # due hooks, in their order; goals

============================================  ==========================================================================
question                                      answer
============================================  ==========================================================================
How do settings become a session?             ``preparation.py``, in stages; ``components.py`` resolves names
How does a batch reach the step?              ``session/loop.py``, from ``Feed.next_batches`` (``data/feed.py``)
What does a step compute?                     ``sigma_step``: ``graphs.py``; ``steps.py`` compiles them
Where does an epoch end?                      ``_count`` (``session/loop.py``): ``Feed.advance`` (``data/feed.py``)
What happens when a learning rate is set?     ``commands/set.py``; ``write_values`` (``session/bindings.py``) sets it
Which rule of an optimiser decides?           ``rules.py`` of ``sigma_step``
What can be commanded, and when?              ``commands/``, one file each; ``session/applying.py`` applies them
How are components replaced, or undone?       ``session/reconfigure.py``, ``session/undo.py``
In which order do hooks run?                  ``hooks/order.py``; ``session/hook_runner.py`` runs them
When does training pause, or end?             ``session/goals.py``
How is a checkpoint written?                  ``session/checkpoint_policy.py`` (when); the store writes it
How is the journal written?                   ``history/recorder.py``
How is the journal replayed?                  ``session/replayer.py``, by the rows of ``history/replay.py``
How is a run resumed?                         ``runs/resume.py``
What belongs to a run at one moment?          ``Present`` (``session/state.py``), which ``session/current.py`` holds
What does a hook see?                         ``session/hook_view.py``, ``HookCall`` (``hooks/background.py``)
============================================  ==========================================================================

Its folders and modules import each other in one direction; the page of the design has their order.
"""

from sigma_kernel import lazy_exports
from sigma_training.plugin import sigma_components

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "history.metrics": "History",
        "minimisation": "minimise",
    },
    sigma_components(),
)
