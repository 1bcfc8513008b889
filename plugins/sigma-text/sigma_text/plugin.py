"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"
BITS = "bpc bits_per_char bits_per_byte bpb bits_per_token"
OF_COLUMNS = (
    Component(
        "dataset", "texts", "sigma_text.datasets.texts:Texts",
        "Your own text files, in a folder for each class, or as running text.",
        also_known_as="packed_dataset group_texts block_size=context context_length=context"
        " text_dataset_from_directory load_files text_folder directory=folder",
    ),
    Component(
        "dataset", "speeches", "sigma_text.datasets.speeches:Speeches",
        "Speeches of three plays of Shakespeare, to say from which they are (offline).",
    ),
    Component(
        "encoder", "tokens", "sigma_text.encoders.tokens:TokensEncoder",
        "A text as indices of its words, characters or byte pairs, for the layer embedding.",
        also_known_as="tokenizer text_vectorization bpe byte_pair max_tokens=most output_sequence_length=length",
    ),
    Component(
        "encoder", "bag_of_words", "sigma_text.encoders.bag_of_words:BagOfWordsEncoder",
        "A text as the numbers of its words, or their tf-idf.",
        also_known_as="count_vectorizer tfidf_vectorizer tf_idf max_features=most",
    ),
    Component(
        "inspector", "texts", "sigma_text.profiling.inspector:TextInspector",
        "Text files, in a folder for each class or not, or a column of texts.",
    ),
)  # fmt: skip


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of the generator of text, and of the data sets, hooks and metrics of text."""
    return [
        *OF_COLUMNS,
        Component(
            "generator", "characters", "sigma_text.writing:CharacterGenerator",
            "Continue a text by characters or tokens.", default_for="generator",
        ),
        Component(
            "dataset", "shakespeare", "sigma_text.datasets.shakespeare:Shakespeare",
            "Three plays of Shakespeare by character (offline).", formerly="sigma-data:shakespeare",
        ),
        Component(
            "dataset", "text", "sigma_text.datasets.text:Text", "Your own text file, character by character.",
            also_known_as="txt corpus characters language_model seq_length=length tokenizer text_line_dataset"
            " context=length context_length=length block_size=length",
            formerly="sigma-data:text",
        ),
        Component(
            "hook", "bits_per_character", "sigma_text.bits_per_character:BitsPerCharacter",
            "Evaluate the bits per character of a model of text.", also_known_as=BITS,
            formerly="sigma-hooks:bits_per_character",
        ),
        Component(
            "hook", "text_sample", "sigma_text.text_sample:TextSample",
            "Show what a network of characters or tokens writes while it learns.",
            also_known_as="generate sample_text generation_callback prompt=text max_new_tokens=length",
            formerly="sigma-hooks:text_sample",
        ),
        Component(
            "metric", "bits_per_character", "sigma_text.bits_per_character:BitsPerCharacterMetric",
            "Bits per character: the mean of -log2 p.", also_known_as=BITS, formerly="sigma-hooks:bits_per_character",
        ),
    ]  # fmt: skip
