"""The ``sigma`` command: one module per subcommand, each imported on first use.

A plugin that adds a command uses :func:`opened` to read a recipe or a configuration file, :func:`say` for messages on
stderr, :data:`json_option` with :func:`document` for results, and :func:`listed` for the runs in
folders, or :func:`described` for one of them.
"""

from sigma_kernel.lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "configured": "opened recipe_or_file",
        "group": "main",
        "output": "colours document json_option say",
        "runs": "described listed",
    },
)
