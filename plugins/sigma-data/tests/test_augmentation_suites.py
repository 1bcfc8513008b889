"""Augmentations pass the suite of their kind."""

from __future__ import annotations

import numpy as np

from sigma_data import Colour, CutOut, Flip, Jitter, MaskSteps, MaskTokens, MixUp, RandomCrop, Rotate, TimeShift, Zoom
from sigma_kernel import Augmentation
from sigma_testing import AugmentationSuite


class _Pictures(AugmentationSuite):
    def sections(self) -> dict[str, np.ndarray]:
        pictures = np.random.default_rng(0).integers(0, 256, (12, 3, 7, 6)).astype(np.uint8)
        return {"inputs": pictures, "targets": np.arange(12)}


class TestFlip(_Pictures):
    def make(self) -> Augmentation:
        return Flip()


class TestCrop(_Pictures):
    def make(self) -> Augmentation:
        return RandomCrop()


class TestRotate(_Pictures):
    def make(self) -> Augmentation:
        return Rotate(30.0)


class TestRotateFloats(TestRotate):
    def sections(self) -> dict[str, np.ndarray]:
        return {"inputs": np.random.default_rng(0).normal(size=(12, 7, 6)).astype(np.float32)}


class TestScale(_Pictures):
    def make(self) -> Augmentation:
        return Zoom()


class TestColour(_Pictures):
    def make(self) -> Augmentation:
        return Colour()


class TestCutOut(_Pictures):
    def make(self) -> Augmentation:
        return CutOut(3, fill=44)


class TestNoise(AugmentationSuite):
    def make(self) -> Augmentation:
        return Jitter()

    def sections(self) -> dict[str, np.ndarray]:
        return {"inputs": np.zeros((12, 5), np.float32), "targets": np.zeros(12)}


class TestMixUp(TestNoise):
    def make(self) -> Augmentation:
        return MixUp()

    def sections(self) -> dict[str, np.ndarray]:
        return {"inputs": np.arange(48.0).reshape(12, 4), "targets": np.eye(12, dtype=np.float32)}


class TestTimeShift(AugmentationSuite):
    def make(self) -> Augmentation:
        return TimeShift()

    def sections(self) -> dict[str, np.ndarray]:
        return {"inputs": np.arange(12 * 5 * 2).reshape(12, 5, 2), "targets": np.zeros(12)}


class TestMaskSteps(AugmentationSuite):
    def make(self) -> Augmentation:
        return MaskSteps(3, fill=-1.0)

    def sections(self) -> dict[str, np.ndarray]:
        return {"inputs": np.arange(12 * 5 * 2.0).reshape(12, 5, 2), "targets": np.zeros(12)}


class TestMaskTokens(AugmentationSuite):
    def make(self) -> Augmentation:
        return MaskTokens(50, share=0.4)

    def sections(self) -> dict[str, np.ndarray]:
        return {"inputs": np.arange(48, dtype=np.int32).reshape(12, 4)}
