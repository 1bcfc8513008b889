"""Search for settings: studies whose members are trials, proposed by Optuna, pruned, and repeatable to the bit."""

from sigma_kernel import lazy_exports
from sigma_search.plugin import sigma_components

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "protocol": "Outcome Protocol",
        "results": "SearchResults",
        "sampling": "propose",
        "searching": "resume_search search",
        "settings": "Dimension Pruning SearchSettings",
    },
    components=sigma_components(),
)
