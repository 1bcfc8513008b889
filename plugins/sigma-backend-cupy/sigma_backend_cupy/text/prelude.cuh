// What every kernel begins with: numbers as the ops of the graph define them, random bits, and the threads of a block.
//
// A block computes in phases. SIGMA_THREADS(n) { ... } runs the braces once for each of its n threads, whose number is
// t, and ends with a barrier; SIGMA_EACH(n) has no barrier. Between phases, values live in SIGMA_SHARED memory, or in
// SIGMA_OWN arrays of each thread, read as SIGMA_MINE(name, size)[i]. On a processor, host.hpp stands for this part.
#ifndef SIGMA_HOST
#define SIGMA_DEVICE static __device__ __forceinline__
#define SIGMA_KERNEL(name, n) extern "C" __global__ void __launch_bounds__(n) name
#define SIGMA_BLOCK ((int)blockIdx.x)
#define SIGMA_THREADS(n) for (int t = threadIdx.x, once_ = 1; once_; once_ = 0, __syncthreads())
#define SIGMA_EACH(n) for (int t = threadIdx.x, once_ = 1; once_; once_ = 0)
#define SIGMA_SHARED __shared__
#define SIGMA_OWN(type, name, size, n) type name[size]
#define SIGMA_MINE(name, size) name
#define SIGMA_LEAST(place, value) atomicMin(place, value)
#define SIGMA_MOST(place, value) atomicMax(place, value)
#endif
// A step that comes after the last one of a burst changes nothing.
#define SIGMA_ENTER(control) if ((control)[1]) return

typedef unsigned int word;
typedef long long wide;
typedef unsigned long long uwide;
struct bfloat16 { unsigned short bits; };
struct float16 { unsigned short bits; };

SIGMA_DEVICE word sg_bits(float x) { union { float f; word w; } u; u.f = x; return u.w; }
SIGMA_DEVICE float sg_float(word x) { union { float f; word w; } u; u.w = x; return u.f; }

// -- arithmetic: integers wrap, the remainder has the sign of the divisor, NaN is never lost --------------------------
SIGMA_DEVICE int sg_add(int x, int y) { return (int)((word)x + (word)y); }
SIGMA_DEVICE int sg_sub(int x, int y) { return (int)((word)x - (word)y); }
SIGMA_DEVICE int sg_mul(int x, int y) { return (int)((word)x * (word)y); }
SIGMA_DEVICE wide sg_add(wide x, wide y) { return (wide)((uwide)x + (uwide)y); }
SIGMA_DEVICE wide sg_sub(wide x, wide y) { return (wide)((uwide)x - (uwide)y); }
SIGMA_DEVICE wide sg_mul(wide x, wide y) { return (wide)((uwide)x * (uwide)y); }
SIGMA_DEVICE int sg_neg(int x) { return (int)(0u - (word)x); }
SIGMA_DEVICE wide sg_neg(wide x) { return (wide)(0ull - (uwide)x); }
SIGMA_DEVICE word sg_neg(word x) { return 0u - x; }
SIGMA_DEVICE int sg_abs(int x) { return x < 0 ? sg_neg(x) : x; }
SIGMA_DEVICE wide sg_abs(wide x) { return x < 0 ? sg_neg(x) : x; }
SIGMA_DEVICE word sg_abs(word x) { return x; }
SIGMA_DEVICE float sg_abs(float x) { return fabsf(x); }
SIGMA_DEVICE double sg_abs(double x) { return fabs(x); }
template <class T> SIGMA_DEVICE T sg_sign(T x) { return x > T(0) ? T(1) : x < T(0) ? T(-1) : x == T(0) ? T(0) : x; }
SIGMA_DEVICE word sg_sign(word x) { return x ? 1u : 0u; }
template <class T> SIGMA_DEVICE T sg_maximum(T x, T y) { return x >= y ? x : x != x ? x : y; }
template <class T> SIGMA_DEVICE T sg_minimum(T x, T y) { return x <= y ? x : x != x ? x : y; }
SIGMA_DEVICE float sg_signed(float rest, float y) {
    rest = rest != 0.0f && (rest < 0.0f) != (y < 0.0f) ? rest + y : rest;
    return rest == 0.0f ? copysignf(0.0f, y) : rest;
}
SIGMA_DEVICE double sg_signed(double rest, double y) {
    rest = rest != 0.0 && (rest < 0.0) != (y < 0.0) ? rest + y : rest;
    return rest == 0.0 ? copysign(0.0, y) : rest;
}
SIGMA_DEVICE float sg_mod(float x, float y) { return sg_signed(fmodf(x, y), y); }
SIGMA_DEVICE double sg_mod(double x, double y) { return sg_signed(fmod(x, y), y); }
template <class T> SIGMA_DEVICE T sg_mod(T x, T y) {
    if (y == T(0) || y == T(-1)) return y == T(0) || x != x ? T(0) : T(-1) < T(0) ? T(0) : T(x % y);
    T rest = x % y;
    return rest != T(0) && (rest < T(0)) != (y < T(0)) ? T(rest + y) : rest;
}
// Whether a value comes before the best one so far: the first of the largest, where NaN is the largest.
template <class T> SIGMA_DEVICE bool sg_beats(T x, int i, T best, int place) {
    if (x != x || best != best) return x != x && (best == best || i < place);
    return x > best || (x == best && i < place);
}

// -- casts: floats are clipped to the range of integers, and NaN becomes 0 ---------------------------------------------
SIGMA_DEVICE int sg_int(double x) { return x <= -2147483648.0 ? -2147483647 - 1 : x >= 2147483648.0 ? 2147483647 : x == x ? (int)x : 0; }
SIGMA_DEVICE word sg_word(double x) { return x >= 4294967296.0 ? 0xFFFFFFFFu : x > 0.0 ? (word)x : 0u; }
SIGMA_DEVICE wide sg_wide(double x) {
    if (x <= -9223372036854775808.0) return -9223372036854775807ll - 1;
    return x >= 9223372036854775808.0 ? 9223372036854775807ll : x == x ? (wide)x : 0ll;
}

// -- 16 bits: rounded to the nearest, ties to even ---------------------------------------------------------------------
SIGMA_DEVICE bfloat16 sg_bfloat16(float x) {
    const word bits = sg_bits(x);
    bfloat16 y;
    y.bits = (unsigned short)(x != x ? bits >> 16 | 0x40u : (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
    return y;
}
SIGMA_DEVICE float sg_wider(bfloat16 x) { return sg_float((word)x.bits << 16); }
SIGMA_DEVICE float sg_to_bfloat16(float x) { return x != x ? x : sg_wider(sg_bfloat16(x)); }
SIGMA_DEVICE float sg_to_float16(float x) {
    const float size = fabsf(x);
    const word bits = sg_bits(size);
    const float even = sg_float((bits + 0xFFFu + (bits >> 13 & 1u)) & 0xFFFFE000u);
    const float small = rintf(size * 16777216.0f) * 5.9604644775390625e-8f;
    const float value = size < 6.103515625e-5f ? small : even < 65536.0f ? even : 1.0f / 0.0f;
    return x != x ? x : copysignf(value, x);
}
SIGMA_DEVICE float16 sg_float16(float x) {
    const float y = sg_to_float16(x);
    const word bits = sg_bits(y), size = bits & 0x7FFFFFFFu, sign = bits >> 16 & 0x8000u;
    float16 z;
    z.bits = (unsigned short)(sign | (y != y ? 0x7E00u : size >= 0x47800000u ? 0x7C00u
        : size < 0x38800000u ? (word)(fabsf(y) * 16777216.0f) : (size - 0x38000000u) >> 13));
    return z;
}

// -- Philox 4x32-10 (Salmon et al., SC 2011): the word of one element --------------------------------------------------
SIGMA_DEVICE word sg_random(uwide element, word c1, word c2, word c3, word k0, word k1) {
    word c0 = (word)(element >> 2);
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const uwide p0 = (uwide)0xD2511F53u * c0, p1 = (uwide)0xCD9E8D57u * c2;
        c0 = (word)(p1 >> 32) ^ c1 ^ k0;
        c1 = (word)p1;
        c2 = (word)(p0 >> 32) ^ c3 ^ k1;
        c3 = (word)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    const word lane = (word)element & 3u;
    return lane < 2u ? (lane ? c1 : c0) : (lane == 2u ? c2 : c3);
}

// -- indices: those outside of their axis are noted, and read its first entry ------------------------------------------
SIGMA_DEVICE int sg_place(wide index, int side, wide* fault) {
    if (index >= 0 && index < side) return (int)index;
    SIGMA_LEAST(fault, index);
    SIGMA_MOST(fault + 1, index);
    return 0;
}
