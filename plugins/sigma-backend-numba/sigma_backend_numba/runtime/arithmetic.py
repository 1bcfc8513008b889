"""Scalar functions that LLVM can vectorise.

The float32 exponential, logarithm and hyperbolic tangent are polynomials, right to two units in the last place (S. L.
Moshier, Cephes mathematical library, 1989).  The rough variants have a relative error of 1e-4, for users who ask for
them.  None of these functions hides a NaN, an infinity or the sign of a zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sigma_backend_numba.compiler.language import LanguageWord, as_bits, as_float, driver, f4, i4, nearest, sel

fmod = LanguageWord("fmod")
LOWEST, HIGHEST = np.float32(-86.6), np.float32(88.722)  # beyond: 0, because denormals are flushed, and infinity
INFINITY = np.float32(np.inf)
NOTHING, LN2 = np.float32(np.nan), np.float32(0.69314718)
ROOT_HALF = 0x3F3504F3  # the bits of the root of a half
NORMAL, BEYOND = np.float32(2.0**-14), np.float32(2.0**16)  # of float16: the least normal number, and infinity
SCALED, UNSCALED = np.float32(2.0**24), np.float32(2.0**-24)
LOG2E, LN2_HIGH, LN2_LOW = np.float32(1.44269504), np.float32(0.693359375), np.float32(-2.12194440e-4)


@driver
def exponential(x: Any) -> Any:
    """Return e to the power of a float32."""
    y = sel(x > LOWEST, sel(x < HIGHEST, x, HIGHEST), LOWEST)
    n = nearest(y * LOG2E)
    r = y - n * LN2_HIGH
    r = r - n * LN2_LOW
    p = f4(1.9875691500e-4) * r + f4(1.3981999507e-3)
    p = p * r + f4(8.3334519073e-3)
    p = p * r + f4(4.1665795894e-2)
    p = p * r + f4(1.6666665459e-1)
    p = p * r + f4(0.5)
    p = p * r * r + r + f4(1.0)
    half = as_float(i4((i4(n) + i4(126)) << i4(23)))  # half the scale: 2^128 alone would be infinite
    value = p * half * f4(2.0)
    value = sel(x > HIGHEST, INFINITY, sel(x < LOWEST, f4(0.0), value))
    return sel(x != x, x, value)


@driver
def tangent(x: Any) -> Any:
    """Return the hyperbolic tangent of a float32."""
    size = abs(x)
    z = x * x
    p = f4(-5.70498872745e-3) * z + f4(2.06390887954e-2)
    p = p * z - f4(5.37397155531e-2)
    p = p * z + f4(1.33314422036e-1)
    p = p * z - f4(3.33332819422e-1)
    outer = f4(1.0) - f4(2.0) / (exponential(f4(2.0) * sel(size < f4(15.0), size, f4(15.0))) + f4(1.0))
    value = sel(size < f4(0.625), x + x * z * p, sel(x < f4(0.0), -outer, outer))
    return sel(size > f4(0.0), value, x)  # NaN, and zeros with their signs


@driver
def logarithm(x: Any) -> Any:
    """Return the natural logarithm of a float32."""
    above = i4(as_bits(x) - ROOT_HALF)  # a comparison here would become an unpredictable branch
    e = f4(above >> 23)
    m = as_float((above & 0x7FFFFF) + ROOT_HALF) - f4(1.0)  # from the root of a half to the root of two, less one
    p = f4(7.0376836292e-2) * m - f4(1.1514610310e-1)
    p = p * m + f4(1.1676998740e-1)
    p = p * m - f4(1.2420140846e-1)
    p = p * m + f4(1.4249322787e-1)
    p = p * m - f4(1.6668057665e-1)
    p = p * m + f4(2.0000714765e-1)
    p = p * m - f4(2.4999993993e-1)
    p = p * m + f4(3.3333331174e-1)
    z = m * m
    value = p * m * z + LN2_LOW * e - f4(0.5) * z + m + LN2_HIGH * e
    return sel(x > f4(0.0), sel(x < INFINITY, value, x), sel(x == f4(0.0), -INFINITY, NOTHING))


@driver
def rough_exponential(x: Any) -> Any:
    """Return e to the power of a float32, with a relative error of at most 1e-4."""
    y = sel(x > LOWEST, sel(x < HIGHEST, x, HIGHEST), LOWEST) * LOG2E
    n = nearest(y)
    r = y - n
    p = ((f4(5.517132e-2) * r + f4(2.4261054e-1)) * r + f4(6.9326099e-1)) * r + f4(9.9992811e-1)
    value = p * as_float(i4((i4(n) + i4(126)) << i4(23))) * f4(2.0)
    value = sel(x > HIGHEST, INFINITY, sel(x < LOWEST, f4(0.0), value))
    return sel(x != x, x, value)


@driver
def rough_logarithm(x: Any) -> Any:
    """Return the natural logarithm of a float32, with a relative error of at most 1e-4."""
    above = i4(as_bits(x) - ROOT_HALF)
    e = f4(above >> 23)
    m = as_float((above & 0x7FFFFF) + ROOT_HALF) - f4(1.0)
    p = ((f4(1.8102883e-1) * m - f4(2.7203082e-1)) * m + f4(3.3593222e-1)) * m - f4(4.9938666e-1)
    value = (p * m + f4(9.9997284e-1)) * m + LN2 * e
    return sel(x > f4(0.0), sel(x < INFINITY, value, x), sel(x == f4(0.0), -INFINITY, NOTHING))


@driver
def rough_tangent(x: Any) -> Any:
    """Return the hyperbolic tangent of a float32 with a relative error of at most 1e-4: Lambert's fraction."""
    y = sel(x > f4(-4.97), sel(x < f4(4.97), x, f4(4.97)), f4(-4.97))
    z = y * y
    over = y * (f4(135135.0) + z * (f4(17325.0) + z * (f4(378.0) + z)))
    under = f4(135135.0) + z * (f4(62370.0) + z * (f4(3150.0) + z * f4(28.0)))
    return sel(x != x, x, over / under)


@driver
def to_bfloat16(x: Any) -> Any:
    """Return a float32 rounded to the upper half of its bits, ties to even."""
    bits = as_bits(x)
    even = as_float(i4((bits + 0x7FFF + ((bits >> 16) & 1)) & -65536))
    return sel(x != x, x, even)


@driver
def to_float16(x: Any) -> Any:
    """Return a float32 rounded to ten bits after the point, ties to even; denormal numbers are multiples of 2^-24."""
    size = abs(x)
    bits = as_bits(size)
    even = as_float(i4((bits + 0xFFF + ((bits >> 13) & 1)) & -8192))
    small = nearest(size * SCALED) * UNSCALED
    value = sel(size < NORMAL, small, sel(even < BEYOND, even, INFINITY))
    return sel(x != x, x, sel(as_bits(x) < 0, -value, value))


@driver
def larger(x: Any, y: Any) -> Any:
    """Return the larger of two numbers, or NaN if either is NaN."""
    return sel(x >= y, x, sel(x != x, x, y))


@driver
def smaller(x: Any, y: Any) -> Any:
    """Return the smaller of two numbers, or NaN if either is NaN."""
    return sel(x <= y, x, sel(x != x, x, y))


@driver
def sign(x: Any, zero: Any, one: Any) -> Any:
    """Return -1, 0 or 1, or NaN for NaN."""
    return sel(x > zero, one, sel(x < zero, -one, sel(x == zero, zero, x)))


@driver
def modulo(x: Any, y: Any) -> Any:
    """Return the remainder of two floats, with the sign of the second."""
    rest = fmod(x, y)
    rest = sel((rest != 0.0) & ((rest < 0.0) != (y < 0.0)), rest + y, rest)
    return sel(rest == 0.0, sel(y < 0.0, -abs(rest), abs(rest)), rest)


@driver
def remainder(x: Any, y: Any) -> Any:
    """Return the remainder of two integers, with the sign of the second; 0 for a division by 0."""
    return x % sel((y == 0) | (y == -1), 1, y)
