"""Draft a configuration of a language model of running text: tokens, a network of a size for it, and an end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec

import pyarrow as pa
from attrs import frozen

from sigma_data.profiling.drafting import choose_batch_size, quote
from sigma_text.encoders.tokenisers import FIRST
from sigma_text.encoders.tokens import TokensEncoder
from sigma_text.vocabularies import TokenVocabulary

SHARES = "split = { training = 0.9, validation = 0.1 }"
FEW = 1_000_000  # characters below which a model of characters learns as much as one of byte pairs
LOOKED_AT = 2_000_000  # characters from which byte pairs are learned here
PAIRS = ((5_000_000, 1_000), (50_000_000, 4_000))  # byte pairs below so many characters
MOST_PAIRS = 16_000
CONTEXT = 128  # tokens of a window
BEGINNING = 24  # characters of the text that the network continues
WORK = 8_000_000  # characters that are read in all epochs


@frozen(eq=False)
class LanguageDraft:
    """What a draft is made of: texts without classes, and the lines of the table ``[data]`` that say where they are."""

    name: str
    head: str
    place: Sequence[str]
    texts: Sequence[str]
    has_splits: bool
    notes: Sequence[str] = ()

    @property
    def text(self) -> str:
        """Return the configuration."""
        encoder, size, characters = self._choose_tokens()
        tokens = sum(map(len, self.texts)) / characters
        context = max(1, min(CONTEXT, int(tokens) // (20 if self.has_splits or len(self.texts) == 1 else 40)))
        units = 128 if tokens < FEW else 256
        head = (f"# {self.head}.", "", "format = 1", "", "[run]", f"name = {quote(self.name)}", "seed = 0", "")
        data = ["[data]", *self.place, f"encoder = {encoder}"]
        data += [f"context = {context}".ljust(32) + "# tokens of a window", *([] if self.has_splits else [SHARES])]
        data += [f"batch_size = {min(32, choose_batch_size(int(tokens) // context))}", ""]
        network = [
            f"[network]                       # of a size for {int(tokens):,} tokens",
            'architecture = """',
            f'input(none, dtype="int32") + embedding({size}, 64) + lstm({units}, sequence=true)',
            f"+ dropout(0.1) + output({size}) + softmax_cross_entropy()",
            '"""',
            "",
        ]
        return "\n".join([*head, *data, *network, *self._training(characters), ""])

    def _choose_tokens(self) -> tuple[str, int, float]:
        """Return the encoder, the number of its tokens, and the characters of a token."""
        count = sum(map(len, self.texts))
        if count < FEW or find_spec("tokenizers") is None:
            size = FIRST + len({*"".join(self.texts)})
            return f'{{ type = "tokens", by = "characters", most = {size}, lower = false }}', size, 1.0
        size = next((pairs for limit, pairs in PAIRS if count < limit), MOST_PAIRS)
        encoder, sample = TokensEncoder(by="pairs", most=size, lower=False), self._take_sample()
        vocabulary = TokenVocabulary(encoder, encoder.fit([pa.array(sample, pa.large_string())]))
        characters = sum(map(len, sample)) / len(vocabulary.pack(sample))
        return f'{{ type = "tokens", by = "pairs", most = {size}, lower = false }}', size, characters

    def _take_sample(self) -> list[str]:
        sample, left = list[str](), LOOKED_AT
        for text in self.texts:
            sample.append(text[:left])
            left -= len(text)
            if left <= 0:
                break
        return sample

    def _training(self, characters: float) -> Iterator[str]:
        epochs = max(3, min(100, WORK // max(1, sum(map(len, self.texts)))))
        clipped = 'transforms = { clip = { type = "clip_global_norm", limit = 1.0 } }'
        yield from ("[trainer]", f'optimiser = {{ type = "adam", learning_rate = 0.003, {clipped} }}')
        yield from (f"epochs = {epochs}", "")
        yield from ("[hooks.score]", 'type = "bits_per_character"', 'on = "validation"', 'every = "1 epoch"')
        if characters != 1:
            yield f"characters = {characters:.3f}".ljust(32) + "# of a token, on average"
        yield from ("", "[hooks.writes]                  # what the network writes after each epoch")
        yield from ('type = "text_sample"', f"text = {quote(self._beginning)}", "")
        yield from ("[hooks.finish]                  # the best parameters are restored", 'type = "early_stop"')
        yield from ('value = "validation.loss"', "patience = 3", "restore = true")

    @property
    def _beginning(self) -> str:
        """Return the first words of the first text."""
        line = next((line.strip() for line in self.texts[0].splitlines() if line.strip()), "The")
        return line if len(line) <= BEGINNING else line[:BEGINNING].rpartition(" ")[0] or line[:BEGINNING]
