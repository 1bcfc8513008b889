"""What runs kernels: a CUDA device, or the processor in its place."""
