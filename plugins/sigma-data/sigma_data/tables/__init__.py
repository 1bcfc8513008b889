"""Tables of any format as record batches of Arrow."""

from sigma_kernel import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "batches": "RecordBatches",
        "dialect": "Dialect detect",
        "opening": "open_alike open_table",
        "places": "InMemory as_place name_place",
    },
)
