"""What this plugin offers."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"

OFFERED = {
    "source": {
        "file": ("sources.file:File", "A file on this machine."),
        "url": ("sources.url:Url", "A file on the web, with mirrors; fetched once, its hash checked."),
        "compressed": ("sources.compressed:Compressed", "What lies packed in another source: gzip, bz2, xz or zip."),
        "multi": ("sources.multi:Multi", "The first of several sources that works."),
    },
    "reader": {
        "idx": ("readers.idx:IdxReader", "IDX files, the format of MNIST."),
        "csv": ("readers.csv:CsvReader", "Tables of comma-separated values."),
        "npy": ("readers.npy:NpyReader", "NumPy's .npy files."),
        "bytes": ("readers.bytes:BytesReader", "Records that all have the same number of bytes."),
        "image": ("readers.image:ImageReader", "PNG and JPEG images (with Pillow)."),
        "samples": ("readers.samples:SamplesReader", "Samples to predict from: a table, an .npy file or an image."),
        "lines": ("readers.lines:LinesReader", "Lines of text."),
    },
    "extractor": {
        "columns": ("extractors.columns:Columns", "Columns by name or number become sections."),
        "offsets": ("extractors.offsets:Offsets", "Places in records of bytes become sections."),
    },
    "preprocessor": {
        "normalise": ("preprocessors.normalise:Normalise", "Map a range to another, such as 0 to 1."),
        "standardise": ("preprocessors.standardise:Standardise", "Give every feature mean 0 and deviation 1."),
        "one_hot": ("preprocessors.one_hot:OneHot", "Make vectors of class indices."),
        "scale": ("preprocessors.scale:Scale", "Multiply and add."),
        "cast": ("preprocessors.cast:Cast", "Change the type of values."),
    },
    "iterator": {
        "minibatch": ("iterators.minibatch:Minibatch", "Every row once an epoch, in a new order each time."),
        "sequential": ("iterators.sequential:Sequential", "The rows as they come."),
        "shuffle": ("iterators.shuffle:Shuffle", "One random order of the rows, the same in every epoch."),
    },
    "dataset": {
        "digits": ("datasets.digits:Digits", "1,797 handwritten digits of 8 x 8 pixels."),
        "iris": ("datasets.iris:Iris", "150 flowers of three species, four lengths each."),
        "wdbc": ("datasets.wdbc:Wdbc", "569 tumours, malignant or benign, 30 features each."),
        "xor": ("datasets.xor:Xor", "The four cases of exclusive or."),
        "mnist": ("datasets.mnist:Mnist", "70,000 handwritten digits of 28 x 28 pixels, downloaded or from a folder."),
        "synthetic": ("datasets.synthetic:Synthetic", "Made-up data of any shape that can be learned."),
        "csv": ("datasets.csv:Csv", "A table of your own: its path and its target column."),
        "npy": ("datasets.npy:Npy", "Arrays of your own in .npy files."),
        "records": ("datasets.records:Records", "Any source, any reader, any extractor."),
    },
}


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of all components."""
    return [
        Component(kind, name, f"sigma_data.{path}", summary)
        for kind, table in OFFERED.items()
        for name, (path, summary) in table.items()
    ]
