"""Train: from a trainer's settings to a session, and the loop that trains it.

An operator runs the loop (``session/loop.py``)::

    while session.boundary():                   # commands act; waits while paused
        n = session.distance()                  # iterations until something is due
        session.advance(n)                      # one burst: batches, program, new state
        session.settle()                        # due hooks, in their order; goals

============================================  ==========================================================================
question                                      answer
============================================  ==========================================================================
How do settings become a session?             ``trainer.py``; ``components.py`` resolves names and tables
How does a batch reach the step?              ``Session.advance``, then ``data/feed.py``
What does a step compute?                     ``step/model.py`` (graphs), ``step/steps.py`` (bursts and shards)
Where does an epoch end?                      ``Session._count``; ``data/feed.py`` moves the cursor
What happens when a learning rate is set?     ``Session.act``, then ``written`` in ``session/bindings.py``
What can be commanded when?                   ``session/progress.py``; the types in ``commands/types.py``
How are components replaced, or undone?       ``commands/reconfigure.py``, ``commands/undo.py``
In which order do hooks run?                  ``hooks/order.py``
How is a checkpoint written?                  ``Session._write_checkpoint``, then ``checkpoints/writer.py``
How is the journal written and replayed?      ``history/recorder.py``, ``history/replay.py``
How is a run resumed?                         ``runs/resume.py``
What belongs to the state of a run?           ``session/state.py``
============================================  ==========================================================================
"""
