"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"

OFFERED = {
    "source": {
        "file": ("sources.file:File", "A local file."),
        "url": ("sources.url:Url", "A file downloaded from a URL or its mirrors, cached, its SHA-256 checked."),
        "fsspec": (
            "sources.fsspec_file:FsspecFile",
            "A file at a place that fsspec knows: s3://, gs://, memory:// and others.",
        ),
        "compressed": (
            "sources.compressed:Compressed",
            "A compressed source, unpacked on reading: gzip, bz2, xz or zip.",
        ),
        "multi": ("sources.multi:Multi", "The first available of several sources."),
    },
    "reader": {
        "idx": ("readers.idx:IdxReader", "IDX files, the format of MNIST."),
        "csv": ("readers.csv:CsvReader", "CSV files: tables of comma-separated values."),
        "npy": ("readers.npy:NpyReader", "NumPy .npy files."),
        "npz": ("readers.npz:NpzReader", "NumPy .npz archives of arrays."),
        "hdf5": ("readers.hdf5:Hdf5Reader", "Datasets in HDF5 files (needs h5py)."),
        "bytes": ("readers.bytes:BytesReader", "Binary files of fixed-size records."),
        "image": ("readers.image:ImageReader", "PNG and JPEG images, channels first (needs Pillow)."),
        "samples": ("readers.samples:SamplesReader", "Samples for prediction: a CSV table, an .npy file or an image."),
        "lines": ("readers.lines:LinesReader", "Text files, one record per line."),
    },
    "extractor": {
        "columns": ("extractors.columns:Columns", "Split a table into sections by column name or number."),
        "encoded": ("encoded:EncodedColumns", "Columns of a table, as their encoders encode them."),
        "table": ("table:Table", "Read columns of a data frame by name, as during training."),
        "offsets": ("extractors.offsets:Offsets", "Split fixed-size records into sections by byte offset."),
    },
    "encoder": {
        "number": ("encoders.number:NumberEncoder", "A number: missing values replaced, limited, scaled."),
        "boolean": ("encoders.boolean:BooleanEncoder", "Booleans, or words for them, as 0 and 1."),
        "one_hot": ("encoders.one_hot:OneHotEncoder", "A category as a vector with a 1 at its place."),
        "ordinal": ("encoders.ordinal:OrdinalEncoder", "A category as its rank in an order."),
        "index": ("encoders.index:IndexEncoder", "A category as an index, for the layer embedding."),
        "hashing": ("encoders.hashing:HashingEncoder", "A category of any number of them, by its hash."),
        "target_mean": (
            "encoders.target_mean:TargetMeanEncoder",
            "A category as the mean of its targets, without leaks.",
        ),
        "date": ("encoders.date:DateEncoder", "A date by its parts, which come again, and the time passed."),
    },
    "preprocessor": {
        "normalise": ("preprocessors.normalise:Normalise", "Rescale values from one range to another, such as 0 to 1."),
        "standardise": (
            "preprocessors.standardise:Standardise",
            "Standardise every feature to mean 0 and standard deviation 1.",
        ),
        "one_hot": ("preprocessors.one_hot:OneHot", "One-hot encode class indices."),
        "scale": ("preprocessors.scale:Scale", "Multiply by a factor and add an offset."),
        "cast": ("preprocessors.cast:Cast", "Cast values to another dtype."),
        "robust": (
            "preprocessors.robust:Robust",
            "Scale every feature by its median and the distance of two quantiles.",
        ),
        "quantile": (
            "preprocessors.quantile:QuantileTransform",
            "Map every feature to a normal or a uniform distribution by its quantiles.",
        ),
        "log": ("preprocessors.log:Log", "Take the logarithm of numbers of either sign."),
        "clip": ("preprocessors.clip:RangeClip", "Limit values to a range, such as that between two quantiles."),
    },
    "augmentation": {
        "flip": ("augmentations.flip:Flip", "Mirror a share of the pictures."),
        "crop": ("augmentations.crop:RandomCrop", "Pad pictures, and crop each at a random place to its size."),
        "rotate": ("augmentations.rotate:Rotate", "Turn pictures by small angles."),
        "scale": ("augmentations.scale:Zoom", "Enlarge or reduce what pictures show."),
        "colour": ("augmentations.colour:Colour", "Vary the brightness, the contrast and the saturation of pictures."),
        "noise": ("augmentations.noise:Jitter", "Add normal noise to numbers."),
        "cut_out": ("augmentations.cut_out:CutOut", "Cover a square of each picture."),
        "mix_up": ("augmentations.mix_up:MixUp", "Mix each row with another one, inputs and targets."),
        "time_shift": ("augmentations.time_shift:TimeShift", "Shift sequences in time."),
        "mask_steps": ("augmentations.mask_steps:MaskSteps", "Mask runs of steps, or of columns, of sequences."),
        "mask_tokens": ("augmentations.mask_tokens:MaskTokens", "Hide a share of the tokens of sequences."),
    },
    "iterator": {
        "minibatch": ("iterators.minibatch:Minibatch", "Shuffled minibatches, in a new order each epoch."),
        "sequential": ("iterators.sequential:Sequential", "Minibatches in the order of the data, without shuffling."),
        "balanced": ("iterators.balanced:Balanced", "Minibatches in which all classes are equally frequent."),
        "shuffle": ("iterators.shuffle:Shuffle", "Minibatches shuffled once, in the same order each epoch."),
    },
    "inspector": {
        "pictures": (
            "profiling.picture_inspector:PictureInspector",
            "Folders of pictures: classes, sizes, broken files.",
        ),
        "sounds": (
            "examining.sound_inspector:SoundInspector",
            "Folders of sounds: classes, lengths, sampling rates, broken files.",
        ),
        "table": ("examining.inspecting:DataInspector", "Tables of any format: kinds of columns, with reasons."),
    },
    "dataset": {
        "digits": ("datasets.digits:Digits", "1,797 handwritten digits of 8 x 8 pixels, 10 classes (UCI, offline)."),
        "iris": ("datasets.iris:Iris", "Fisher's iris: 150 flowers, 4 features, 3 species (offline)."),
        "wdbc": ("datasets.wdbc:Wdbc", "Wisconsin breast cancer: 569 tumours, 30 features, 2 classes (offline)."),
        "textures": (
            "datasets.textures:Textures",
            "240 photographs of brick, grass and gravel (offline; Pillow).",
        ),
        "xor": ("datasets.xor:Xor", "The four samples of exclusive or."),
        "mnist": (
            "datasets.mnist:Mnist",
            "MNIST: 70,000 handwritten digits of 28 x 28 pixels, downloaded or from a directory.",
        ),
        "adding": ("datasets.adding:Adding", "The adding problem: sums of two marked numbers of a sequence."),
        "tictactoe": ("datasets.tictactoe:TicTacToe", "Tic-tac-toe: every position with its outcome and best moves."),
        "synthetic": ("datasets.synthetic:Synthetic", "Random data of any shape, with labels that can be learned."),
        "csv": ("datasets.csv:Csv", "Your own CSV table, with a target column."),
        "table": ("datasets.tabular:Tabular", "Your own table of any format, with a kind for every column."),
        "series": ("datasets.series:Series", "Your own series: windows of the past, and the steps to predict."),
        "sunspots": ("datasets.sunspots:Sunspots", "Sunspots by month since 1749, in windows of 11 years (offline)."),
        "npy": ("datasets.npy:Npy", "Your own arrays, in .npy files."),
        "image_folder": (
            "datasets.image_folder:ImageFolder",
            "Your own pictures, in folders by class or listed in a table (needs Pillow).",
        ),
        "sound_folder": (
            "datasets.sound_folder:SoundFolder",
            "Your own sounds, in folders by class, as waves or spectrograms (needs soundfile).",
        ),
        "frame": ("datasets.frame:Frame", "Your own data frame, with a target column (from Python)."),
        "arrays": ("arrays:Arrays", "Arrays, lists and data frames by section (from Python)."),
        "stream": ("stream:Stream", "Samples or batches of any iterable (from Python)."),
        "divided": ("datasets.shares:Shares", "Parts of another data set, such as a share for validation."),
        "latent": ("datasets.latent:Latent", "Another data set with random vectors beside its rows, for generators."),
        "saved": ("datasets.saved:Saved", "Rows given from Python, saved in the folder of their run."),
        "records": ("datasets.records:Records", "Any combination of source, reader and extractor."),
        "joined": (
            "datasets.joined:Joined",
            "Several sources joined by row, such as one file for images, one for labels.",
        ),
    },
}

ALSO_KNOWN_AS = {  # in Keras, PyTorch and scikit-learn
    "normalise": "min_max_scaler rescaling",
    "standardise": "standard_scaler",
    "robust": "robust_scaler",
    "quantile": "quantile_transformer n_quantiles=quantiles output_distribution=target",
    "preprocessor one_hot": "one_hot_encoder to_categorical num_classes=classes",
    "encoder one_hot": "one_hot_encoder get_dummies category_encoding min_frequency=least",
    "ordinal": "ordinal_encoder categories=order",
    "index": "label_encoder string_lookup",
    "hashing": "feature_hasher n_features=size",
    "target_mean": "target_encoder smooth=smoothing cv=folds",
    "flip": "random_flip random_horizontal_flip random_vertical_flip",
    "crop": "random_crop",
    "rotate": "random_rotation",
    "augmentation scale": "random_zoom random_affine",
    "colour": "color_jitter random_brightness random_contrast",
    "mask_steps": "time_masking frequency_masking spec_augment time_mask_param=steps freq_mask_param=steps",
    "cut_out": "random_erasing random_cutout",
    "balanced": "weighted_random_sampler RandomOverSampler",
    "stream": "generator data_loader iterable_dataset",
    "arrays": "tensor_dataset",
    "divided": "random_state=seed test_size=split",
    "frame": "dataframe pandas",
    "image_folder": "image_dataset_from_directory flow_from_directory ImageFolder",
    "iris": "load_iris",
    "digits": "load_digits",
    "wdbc": "breast_cancer load_breast_cancer",
}

DEFAULT_FOR = {  # roles in which the kernel looks components up
    ("dataset", "arrays"): "arrays",
    ("dataset", "divided"): "parts",
    ("dataset", "saved"): "saved-rows",
    ("dataset", "stream"): "stream",
    ("extractor", "table"): "columns",
    ("inspector", "table"): "examiner",
    ("reader", "samples"): "samples",
    ("source", "file"): "file",
}


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of all components."""
    return [
        Component(
            kind,
            name,
            f"sigma_data.{path}",
            summary,
            also_known_as=ALSO_KNOWN_AS.get(name, ALSO_KNOWN_AS.get(f"{kind} {name}", "")),
            default_for=DEFAULT_FOR.get((kind, name), ""),
        )
        for kind, table in OFFERED.items()
        for name, (path, summary) in table.items()
    ]
