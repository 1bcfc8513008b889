# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_text.bits_per_character import BitsPerCharacter as BitsPerCharacter
from sigma_text.bits_per_character import BitsPerCharacterMetric as BitsPerCharacterMetric
from sigma_text.continued import Continued as Continued
from sigma_text.datasets.shakespeare import Shakespeare as Shakespeare
from sigma_text.datasets.speeches import Speeches as Speeches
from sigma_text.datasets.text import Text as Text
from sigma_text.datasets.texts import Texts as Texts
from sigma_text.encoders.bag_of_words import BagOfWordsEncoder as BagOfWordsEncoder
from sigma_text.encoders.tokens import TokensEncoder as TokensEncoder
from sigma_text.profiling.inspector import TextInspector as TextInspector
from sigma_text.text_sample import TextSample as TextSample
from sigma_text.writing import CharacterGenerator as CharacterGenerator
