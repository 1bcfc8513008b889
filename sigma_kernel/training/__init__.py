"""Train: from a trainer's settings to a session, and the loop that trains it.

An operator runs the loop of a ``Session`` (``session/loop.py``)::

    while session.boundary():                   # commands act; waits while paused
        n = session.distance()                  # iterations until something is due
        session.advance(n)                      # one burst: batches, program, new state
        session.settle()                        # due hooks, in their order; goals

============================================  ==========================================================================
question                                      answer
============================================  ==========================================================================
How do settings become a session?             ``preparation.py``, in stages; ``components.py`` resolves names
How does a batch reach the step?              ``Session.advance``: ``Feed.next`` (``data/feed.py``) cuts it from a block
What does a step compute?                     ``step/model.py`` (graphs), ``step/steps.py`` (programs, bursts, shards)
Where does an epoch end?                      ``Session._count``: ``Feed.after`` (``data/feed.py``) moves the cursor
What happens when a learning rate is set?     ``Session.act``; ``written`` (``session/bindings.py``) sets the live value
Which rule of an optimiser decides?           ``step/rules.py``
What can be commanded when?                   ``session/progress.py``; the types in ``commands/types.py``
How are components replaced, or undone?       ``session/reconfigure.py``, ``session/undo.py``
In which order do hooks run?                  ``hooks/order.py``
How is a checkpoint written?                  ``checkpoints/writer.py`` (when), ``checkpoints/store.py`` (to disk)
How is the journal written?                   ``Session.note``, then ``history/recorder.py``
How is the journal replayed?                  ``Session.relive``, by the rows of ``history/replay.py``
How is a run resumed?                         ``runs/resume.py``
What belongs to the state of a run?           ``session/state.py``; ``session/snapshot.py`` saves and restores it
What does a hook see?                         ``HookView`` (``session/loop.py``), ``Firing`` (``hooks/background.py``)
============================================  ==========================================================================

Its folders and modules import each other in one direction: each only those to its left in ``files``, ``data``,
``components``, ``step``, ``checkpoints``, ``commands``, ``hooks``, ``history``, ``session``, ``preparation``,
``trainer``, ``runs``.
"""
