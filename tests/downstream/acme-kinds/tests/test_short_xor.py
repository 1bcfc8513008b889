from sigma_kernel import Recipe
from sigma_testing import RecipeSuite
from acme_kinds.short_xor_recipe import short_xor


class TestShortXor(RecipeSuite):
    def make(self) -> Recipe:
        return short_xor
