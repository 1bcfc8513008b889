"""The whole table of ops, and what makes nodes of them: a plugin that imports only these finds every op."""

from sigma_kernel.graph import matrices as matrices, spectra as spectra
from sigma_kernel.graph.node import OPS as OPS, Node as Node, constant as constant, symbol as symbol, trace as trace
from sigma_kernel.graph.ops import select_ops as select_ops
