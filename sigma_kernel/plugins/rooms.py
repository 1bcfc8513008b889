"""What the project's own rooms offer, so that an unknown name can say which distribution to install.

The plugins say the same themselves once they are installed; a test compares the two.
"""

from __future__ import annotations

KNOWN: dict[str, dict[str, str]] = {
    "sigma-backend-cupy": {"backend": "cupy"},
    "sigma-backend-jax": {"backend": "jax"},
    "sigma-backend-numba": {"backend": "numba"},
    "sigma-backend-numpy": {"backend": "numpy"},
    "sigma-backend-torch": {"backend": "torch"},
    "sigma-bench": {"command": "bench"},
    "sigma-data": {
        "source": "file url compressed multi",
        "reader": "idx csv npy bytes lines image samples",
        "extractor": "columns offsets",
        "preprocessor": "normalise standardise one_hot scale cast",
        "iterator": "minibatch sequential shuffle",
        "dataset": "digits iris wdbc xor mnist synthetic csv npy records",
    },
    "sigma-export-onnx": {"exporter": "onnx"},
    "sigma-hooks": {
        "hook": "evaluate accuracy threshold_accuracy precision recall f1 confusion_matrix"
        " mean_absolute_error root_mean_square_error r_squared loss report progress running_time"
        " phase_time extrema accumulate statistics update_rate histogram stop time_limit"
        " early_stop nan_guard checkpoint reduce_on_plateau learning_rate_finder switch"
        " target_maximisation verify function",
        "metric": "accuracy threshold_accuracy precision recall f1 confusion_matrix mean_absolute_error"
        " root_mean_square_error r_squared",
    },
    "sigma-initialisers": {
        "initialiser": "constant gaussian truncated_normal uniform glorot_uniform glorot_normal he_uniform"
        " he_normal orthogonal warm_start",
    },
    "sigma-layers": {
        "layer": "input output dense conv2d max_pool average_pool activation dropout flatten reshape add concat"
        " function function_cost softmax_cross_entropy binary_cross_entropy squared_difference",
        "activation": "relu leaky_relu sigmoid tanh softplus elu gelu silu softmax identity",
    },
    "sigma-monitor-console": {"monitor": "console"},
    "sigma-monitor-tensorboard": {"monitor": "tensorboard"},
    "sigma-monitor-web": {"monitor": "web"},
    "sigma-operator-local": {"operator": "local", "merger": "sum"},
    "sigma-operator-mpi": {"operator": "mpi"},
    "sigma-operator-ray": {"operator": "ray"},
    "sigma-optimisers": {
        "optimiser": "gradient_descent momentum nesterov adagrad adadelta rmsprop adam adamw",
        "modifier": "clip_value clip_norm clip_global_norm l1 l2 clip max_norm scale",
        "schedule": "constant step exponential cosine warm_up product one_cycle cyclic",
    },
    "sigma-recipes": {
        "recipe": "bench-cnn bench-deep bench-iris bench-mlp-large bench-mlp-small digits iris mnist wdbc xor",
    },
}


def offering(kind: str, name: str) -> list[str]:
    """Return the distributions of the project that offer a component of this kind and name."""
    return [distribution for distribution, kinds in KNOWN.items() if name in kinds.get(kind, "").split()]


def names(kind: str) -> set[str]:
    """Return the names of this kind that the project's rooms offer."""
    return {name for kinds in KNOWN.values() for name in kinds.get(kind, "").split()}
