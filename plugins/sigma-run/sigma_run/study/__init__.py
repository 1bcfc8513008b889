"""Studies: several runs of one configuration, with other seeds, on other folds or with other settings, in one folder.

A plugin with a command that plans runs writes a :class:`Study` with :func:`create_study`, continues it with
:func:`reopen_study`, checks its members with a :class:`MemberOpener`, and trains them with a :class:`ParallelTraining`:
a :class:`MemberQueue` of its own says which is next.
"""

from sigma_kernel.lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "folder": "StudyFolder create_study is_study read_study reopen_study",
        "members": "MemberOpener",
        "parallel": "MemberQueue ParallelTraining",
        "plan": "LOST Member Study table_of to_plain",
        "pool": "ProcessPool",
    },
)
