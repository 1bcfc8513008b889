# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_huggingface.dataset import HuggingFace as HuggingFace
from sigma_huggingface.inspector import HuggingFaceInspector as HuggingFaceInspector
from sigma_huggingface.pictures import HuggingFacePictures as HuggingFacePictures
from sigma_huggingface.sequences import HuggingFaceSequences as HuggingFaceSequences
from sigma_huggingface.sounds import HuggingFaceSounds as HuggingFaceSounds
