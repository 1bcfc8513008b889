"""Declare the components of this plugin."""

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of all components."""
    return [
        Component("op", "softsign", "acme_sigma.softsign:softsign", "Softsign, x / (1 + |x|)."),
        Component("lowering", "softsign.numba", "acme_sigma.kernels:softsign_of_number", "Softsign of a number."),
        Component("lowering", "softsign.numpy", "acme_sigma.kernels:softsign_of_array", "Softsign of an array."),
        Component("activation", "softsign", "acme_sigma.softsign:softsign", "Softsign, x / (1 + |x|)."),
        Component("layer", "gate", "acme_sigma.gate:Gate", "Multiply by a trained gate."),
        Component("optimiser", "sign_descent", "acme_sigma.sign_descent:SignDescent", "Step by the gradient's sign."),
        Component("hook", "diary", "acme_sigma.diary:Diary", "Append a value to a file."),
        Component("backend", "plain", "acme_sigma.plain:Plain", "Call numpy op by op and copy everything."),
        Component("verb", "greet", "acme_sigma.greet:greet", "Say hello."),
    ]
