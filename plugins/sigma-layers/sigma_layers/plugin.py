"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"

LAYERS = {
    "input": ("Input", "Input layer: a section of the data, with its shape."),
    "output": ("Output", "Output layer, optionally fully connected."),
    "dense": ("Dense", "Fully connected layer, with an activation."),
    "conv1d": ("Conv1d", "1-D convolution over signals, channels first."),
    "conv2d": ("Conv2d", "2-D convolution over images, channels first."),
    "conv3d": ("Conv3d", "3-D convolution over volumes, channels first."),
    "depthwise_conv1d": ("DepthwiseConv1d", "Depthwise 1-D convolution: separate filters for each channel."),
    "depthwise_conv2d": ("DepthwiseConv2d", "Depthwise 2-D convolution: separate filters for each channel."),
    "depthwise_conv3d": ("DepthwiseConv3d", "Depthwise 3-D convolution: separate filters for each channel."),
    "conv1d_transpose": ("Conv1dTranspose", "1-D transposed convolution over signals, which upsamples."),
    "conv2d_transpose": ("Conv2dTranspose", "2-D transposed convolution over images, which upsamples."),
    "conv3d_transpose": ("Conv3dTranspose", "3-D transposed convolution over volumes, which upsamples."),
    "max_pool": ("MaxPool", "Max pooling over windows, channels first."),
    "average_pool": ("AveragePool", "Average pooling over windows, channels first."),
    "global_max_pool": ("GlobalMaxPool", "Maximum of each channel."),
    "global_average_pool": ("GlobalAveragePool", "Mean of each channel."),
    "adaptive_max_pool": ("AdaptiveMaxPool", "Max pooling to given sides."),
    "adaptive_average_pool": ("AdaptiveAveragePool", "Average pooling to given sides."),
    "upsample": ("Upsample", "Upsampling of sides: nearest, or linear interpolation."),
    "pad": ("Pad", "Padding of sides: constant, reflect, replicate or circular."),
    "crop": ("Crop", "Cropping of sides."),
    "simple_rnn": ("SimpleRNN", "Simple recurrent layer over the steps of a sequence."),
    "gru": ("GRU", "Gated recurrent unit over the steps of a sequence."),
    "lstm": ("LSTM", "Long short-term memory over the steps of a sequence."),
    "activation": ("Activation", "Activation function, such as relu."),
    "dropout": ("Dropout", "Dropout: zero elements at random during training."),
    "spatial_dropout": ("SpatialDropout", "Spatial dropout: zero whole channels at random during training."),
    "gaussian_noise": ("GaussianNoise", "Gaussian noise, added during training."),
    "batch_norm": ("BatchNorm", "Batch normalisation, with running statistics for evaluation."),
    "layer_norm": ("LayerNorm", "Layer normalisation over trailing axes."),
    "group_norm": ("GroupNorm", "Group normalisation over groups of channels."),
    "instance_norm": ("InstanceNorm", "Instance normalisation of each channel of a sample."),
    "rms_norm": ("RMSNorm", "Normalisation by the root mean square over trailing axes."),
    "expand": ("Expand", "Add an axis of side 1 to each sample, such as a channel."),
    "flatten": ("Flatten", "Flatten each sample to a vector."),
    "reshape": ("Reshape", "Reshape each sample."),
    "permute": ("Permute", "Reorder the axes of each sample."),
    "add": ("Add", "Elementwise sum of branches, as in residual connections."),
    "multiply": ("Multiply", "Elementwise product of branches, as in gates."),
    "mean": ("Mean", "Elementwise mean of branches."),
    "maximum": ("Maximum", "Elementwise maximum of branches."),
    "dot": ("Dot", "Dot products of two branches."),
    "concat": ("Concat", "Concatenate branches along an axis."),
    "embedding": ("Embedding", "One trained vector for each index."),
    "sinusoidal_positions": ("SinusoidalPositions", "Add sines and cosines of the position to a sequence."),
    "learned_positions": ("LearnedPositions", "Add a trained vector for its position to each entry of a sequence."),
    "document_mask": ("DocumentMask", "Let attention see earlier entries of the same document alone."),
    "attention": ("Attention", "Multi-head attention, causal or not, to itself or to another sequence."),
    "transformer_encoder": ("TransformerEncoder", "Attention and a feed-forward network, with layer normalisation."),
    "transformer_decoder": ("TransformerDecoder", "Attention to itself and to another sequence, and a network."),
    "residual": ("Residual", "Residual connection: add the input of a chain to its output."),
    "repeat": ("Repeat", "Run a chain several times, with separate or shared parameters."),
    "subnetwork": ("Subnetwork", "A network as one layer, with addresses below its own."),
    "pick": ("Pick", "Select another output of the previous layer by name."),
    "function": ("Function", "Layer from your own graph function (Python only)."),
    "function_cost": ("FunctionCost", "Cost from your own graph function (Python only)."),
    "softmax_cross_entropy": ("SoftmaxCrossEntropy", "Softmax cross-entropy for classification, with class weights."),
    "adaptive_softmax": ("AdaptiveSoftmax", "Softmax cross-entropy over very many classes, in clusters by frequency."),
    "binary_cross_entropy": ("BinaryCrossEntropy", "Binary cross-entropy with logits."),
    "squared_difference": ("SquaredDifference", "Mean squared error, for regression."),
    "absolute_difference": ("AbsoluteDifference", "Mean absolute error (L1), for regression."),
    "huber": ("Huber", "Huber loss, for regression with outliers."),
    "poisson": ("Poisson", "Negative log-likelihood of counts."),
    "adversarial": ("Adversarial", "Adversarial cost, for a critic of generated samples and for their generator."),
    "hinge": ("Hinge", "Hinge loss, for binary classification with a margin."),
    "multi_class_hinge": ("MultiClassHinge", "Hinge loss over classes, for classification with a margin."),
    "cosine_distance": ("CosineDistance", "Cosine distance, for embeddings compared by direction."),
    "triplet": ("Triplet", "Triplet loss, for embeddings with similar samples close together."),
    "ctc": ("CTC", "Connectionist temporal classification, for labels without times."),
    "kullback_leibler": ("KullbackLeibler", "Kullback-Leibler divergence, for targets that are distributions."),
}
ACTIVATIONS = {
    "relu": "Rectified linear unit: max(x, 0).",
    "leaky_relu": "Leaky rectified linear unit: max(x, x / 100).",
    "sigmoid": "Logistic sigmoid, into (0, 1).",
    "tanh": "Hyperbolic tangent, into (-1, 1).",
    "softplus": "Smooth rectified linear unit: log(1 + exp(x)).",
    "elu": "Exponential linear unit: x above 0, else exp(x) - 1.",
    "selu": "Scaled exponential linear unit, which keeps mean and variance from layer to layer.",
    "gelu": "Gaussian error linear unit: x times the normal distribution function of x.",
    "silu": "Sigmoid linear unit (swish): x * sigmoid(x).",
    "softmax": "Softmax along the last axis.",
    "identity": "The identity, for no activation.",
}

POOL = "kernel_size=size pool_size=size strides=stride"
WINDOW = "kernel_size=size strides=stride dilation_rate=dilation use_bias=bias"
CONVOLUTION = f"out_channels=filters {WINDOW}"
RECURRENT = "hidden_size=units return_sequences=sequence bidirectional=direction"
GATES = f"{RECURRENT} recurrent_activation=gate_activation"
ALSO_KNOWN_AS = {  # in Keras and PyTorch
    "absolute_difference": "l1_loss mae_loss mean_absolute_error",
    "activation": "activation_function=function",
    "adaptive_average_pool": "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d output_size=size",
    "adaptive_max_pool": "adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d output_size=size",
    "adaptive_softmax": "adaptive_log_softmax adaptive_log_softmax_with_loss n_classes=classes div_value=divisor"
    " head_bias=bias",
    "average_pool": f"avg_pool1d avg_pool2d avg_pool3d average_pooling1d average_pooling2d average_pooling3d {POOL}"
    " count_include_pad=count_padding",
    "subnetwork": "network sequential sub_network module",
    "attention": "multihead_attention multi_head_attention scaled_dot_product_attention self_attention cross_attention"
    " num_heads=heads is_causal=causal key_dim=key_size value_dim=value_size num_kv_heads=key_value_heads"
    " use_bias=bias",
    "embedding": "embed num_embeddings=vocabulary embedding_dim=units input_dim=vocabulary output_dim=units"
    " padding_idx=padding",
    "document_mask": "block_diagonal_mask segment_mask eos_token_id=separator",
    "learned_positions": "position_embedding positional_embedding max_length=length sequence_length=length",
    "sinusoidal_positions": "positional_encoding sine_position_encoding",
    "transformer_decoder": "transformer_decoder_layer nhead=heads dim_feedforward=hidden intermediate_dim=hidden"
    " layer_norm_eps=epsilon layer_norm_epsilon=epsilon num_heads=heads",
    "transformer_encoder": "transformer_encoder_layer nhead=heads dim_feedforward=hidden intermediate_dim=hidden"
    " layer_norm_eps=epsilon layer_norm_epsilon=epsilon num_heads=heads is_causal=causal",
    "residual": "skip skip_connection shortcut shortcut=projection",
    "repeat": "n=times share_parameters=shared",
    "batch_norm": "batch_norm1d batch_norm2d batch_norm3d batch_normalization eps=epsilon",
    "binary_cross_entropy": "bce bce_loss bce_with_logits_loss log_loss",
    "concat": "cat concatenate",
    "conv1d": f"convolution1d {CONVOLUTION}",
    "conv1d_transpose": f"conv_transpose1d convolution1d_transpose {CONVOLUTION}",
    "conv2d": f"convolution2d {CONVOLUTION}",
    "conv2d_transpose": f"conv_transpose2d convolution2d_transpose deconvolution {CONVOLUTION}",
    "conv3d": f"convolution3d {CONVOLUTION}",
    "conv3d_transpose": f"conv_transpose3d convolution3d_transpose {CONVOLUTION}",
    "cosine_distance": "cosine cosine_similarity cosine_embedding_loss",
    "ctc": "ctc_loss connectionist_temporal_classification",
    "crop": "cropping1d cropping2d cropping3d cropping=width",
    "dense": "linear fully_connected out_features=units use_bias=bias",
    "depthwise_conv1d": f"depth_multiplier=multiplier {WINDOW}",
    "depthwise_conv2d": f"depth_multiplier=multiplier {WINDOW}",
    "depthwise_conv3d": f"depth_multiplier=multiplier {WINDOW}",
    "dot": "axes=axis",
    "dropout": "p=rate",
    "expand": "unsqueeze expand_dims dim=axis",
    "adversarial": "gan gan_loss",
    "gaussian_noise": "stddev=deviation std=deviation",
    "function": "lambda",
    "global_average_pool": "global_average_pooling1d global_average_pooling2d global_average_pooling3d",
    "global_max_pool": "global_max_pooling1d global_max_pooling2d global_max_pooling3d",
    "group_norm": "group_normalization num_groups=groups eps=epsilon",
    "hinge": "squared_hinge hinge_embedding_loss",
    "huber": "smooth_l1 smooth_l1_loss huber_loss beta=delta",
    "instance_norm": "instance_norm1d instance_norm2d instance_norm3d instance_normalization eps=epsilon",
    "kullback_leibler": "kl_div kl_div_loss kl_divergence",
    "gru": f"gated_recurrent_unit {GATES}",
    "lstm": f"long_short_term_memory {GATES} unit_forget_bias=forget_bias",
    "layer_norm": "layer_normalization eps=epsilon elementwise_affine=affine",
    "max_pool": f"max_pool1d max_pool2d max_pool3d max_pooling1d max_pooling2d max_pooling3d {POOL}",
    "maximum": "max",
    "mean": "average",
    "multiply": "mul gate",
    "multi_class_hinge": "categorical_hinge multi_margin_loss multi_margin",
    "poisson": "poisson_nll_loss",
    "pad": "zero_padding1d zero_padding2d zero_padding3d zero_pad2d reflection_pad2d replication_pad2d padding=width",
    "permute": "transpose",
    "rms_norm": "rms_normalization eps=epsilon elementwise_affine=affine",
    "softmax_cross_entropy": "categorical_crossentropy sparse_categorical_crossentropy cross_entropy cross_entropy_loss"
    " nll_loss class_weight=class_weights ignore_class=ignore_index smoothing=label_smoothing",
    "squared_difference": "mse mse_loss mean_squared_error l2_loss loss_weight=weight",
    "spatial_dropout": "spatial_dropout1d spatial_dropout2d spatial_dropout3d dropout1d dropout2d dropout3d p=rate",
    "triplet": "triplet_margin_loss p=norm",
    "identity": "linear none",
    "upsample": "up_sampling1d up_sampling2d up_sampling3d interpolate resize scale_factor=factor interpolation=mode",
    "silu": "swish",
    "simple_rnn": f"rnn elman recurrent {RECURRENT} nonlinearity=activation",
}


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of all layers and activations, and of a rewriting."""
    layers = [
        Component("layer", name, f"sigma_layers.{name}:{target}", text, also_known_as=ALSO_KNOWN_AS.get(name, ""))
        for name, (target, text) in LAYERS.items()
    ]
    functions = [
        Component(
            "activation", name, f"sigma_layers.activations:{name}", text, also_known_as=ALSO_KNOWN_AS.get(name, "")
        )
        for name, text in ACTIVATIONS.items()
    ]
    rewriting = Component(
        "rewriting", "quantised_weights", "sigma_layers.quantised_weights:QuantisedWeights",
        "Round weights to a few bits, straight-through.", also_known_as="fake_quantize qat quantize quantization",
    )  # fmt: skip
    return [*layers, *functions, rewriting]
