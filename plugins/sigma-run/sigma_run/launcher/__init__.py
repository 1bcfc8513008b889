"""The ``sigma`` command: one module per subcommand, each imported on first use.

A plugin that adds a command uses :func:`open_document` to read a recipe or a configuration file, which
:func:`with_operator` gives another operator, :func:`literal` to read values, :func:`say` for messages on stderr,
:data:`json_option` with :func:`document`, or :func:`table`, for results, and :func:`list_runs` for the runs in folders,
:func:`describe_run` for one of them, or :func:`list_members` for those of studies. A command that predicts has the
options :data:`CHECKPOINT` and :data:`WEIGHTS`, says with :func:`standing` which checkpoint it uses, and writes
:class:`Predictions`. One that examines data uses :func:`load_examiner`, and :func:`describe_findings`; one that trains
studies :func:`show_study`.
"""

from sigma_kernel.lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "configured": "CHECKPOINT WEIGHTS open_document recipe_or_file standing with_operator",
        "findings": "describe_findings load_examiner",
        "group": "main",
        "output": "colours document json_option literal say table",
        "predictions": "Predictions",
        "runs": "describe_run list_members list_runs",
        "studies": "show_study",
    },
)
