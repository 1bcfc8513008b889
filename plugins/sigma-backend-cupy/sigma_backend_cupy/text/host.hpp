// What stands for CUDA on a processor: the threads of a block are a loop, run forward or in reverse.
#define SIGMA_HOST
#include <math.h>
static thread_local int sigma_block_ = 0, sigma_reverse_ = 0;
#define SIGMA_DEVICE static inline
#define SIGMA_KERNEL(name, n) static void name
#define SIGMA_BLOCK sigma_block_
#define SIGMA_THREADS(n) for (int s_ = 0, t = sigma_reverse_ ? (n) - 1 : 0; s_ < (n); ++s_, t += sigma_reverse_ ? -1 : 1)
#define SIGMA_EACH(n) SIGMA_THREADS(n)
#define SIGMA_SHARED static thread_local
#define SIGMA_OWN(type, name, size, n) static thread_local type name[(size) * (n)]
#define SIGMA_MINE(name, size) (name + t * (size))
#define SIGMA_LEAST(place, value) (*(place) = (value) < *(place) ? (value) : *(place))
#define SIGMA_MOST(place, value) (*(place) = (value) > *(place) ? (value) : *(place))
