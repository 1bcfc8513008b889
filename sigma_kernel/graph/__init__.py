"""The computation graph: nodes, the table of ops, and tools for backends to compile or interpret a graph.

This is the public interface for backends, and for plugins that add ops. Layers, optimisers and costs are written with
:mod:`sigma_kernel.functions`. Nothing here depends on a layer or a backend.

- A graph: :class:`Node`, :class:`Graph`, :class:`Spec`; :func:`symbol`, :func:`constant` and :func:`trace` make them.
- The origin of a node: :func:`originating` marks those that a layer makes.
- An op: :func:`op` adds one, with the rules of :mod:`.shapes` and :mod:`.dtypes`; ``OPS`` is the table.
- Its meaning: :func:`interpret` runs a graph in any array namespace, :func:`meaning_of` computes one node;
  :func:`limit_blas` keeps NumPy's products to one thread.
- Transformations: :func:`gradient`, :func:`rewrite`, :func:`map_nodes`.
- Memory: :class:`Arena` places values in one block, by their lifetimes.
- Random numbers: :class:`Key` in graphs, :class:`Draw`, :class:`RowDraws` and :func:`permutation` on the host,
  :mod:`.philox` for bits.
"""

from sigma_kernel.lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "": "dtypes ops philox shapes sums",
        "arena": "Arena",
        "blas": "limit_blas",
        "differentiation": "gradient",
        "meaning": "MEANINGS Meaning",
        "namespace": "Namespace check_indices erf interpret meaning_of numpy_namespace",
        "node": "ALIGNMENT BYTES DTYPES FLOATS INTEGERS Graph Shape Spec frozen_attrs originating topological_order",
        "ops": "Op op takes_indices",
        "random": "ORDER Draw Key RowDraws Streams permutation",
        "rewriting": "map_nodes replace_nodes rewrite with_inputs",
        "shapes": "ELEMENTWISE",
        "table": "OPS Node constant select_ops symbol trace",
    },
)
