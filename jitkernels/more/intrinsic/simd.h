// One name per vector operation, so that a kernel is written once for float and double, AVX2 and AVX-512. The
// including source defines FLOAT64 and AVX512, or not.

#include <immintrin.h>
#include <math.h>
#include <stdint.h>

#ifdef FLOAT64
typedef double element;
typedef int64_t lane_mask;
#define SUFFIX(name) name##_pd
#define OP_MASK(name) name##_pd_mask
#define SQUARE_ROOT sqrt
#else
typedef float element;
typedef int32_t lane_mask;
#define SUFFIX(name) name##_ps
#define OP_MASK(name) name##_ps_mask
#define SQUARE_ROOT sqrtf
#endif

#ifdef AVX512
#define OP(name) SUFFIX(_mm512_##name)
#define COMPARE OP_MASK(_mm512_cmp)
#define BYTES 64
#else
#define OP(name) SUFFIX(_mm256_##name)
#define BYTES 32
#endif

#define LANES ((int64_t)(BYTES / sizeof(element)))
#define INLINE static inline __attribute__((always_inline))

#if defined(AVX512) && defined(FLOAT64)
typedef __m512d vector;
typedef __mmask8 mask;
#elif defined(AVX512)
typedef __m512 vector;
typedef __mmask16 mask;
#elif defined(FLOAT64)
typedef __m256d vector;
typedef __m256i mask;
#else
typedef __m256 vector;
typedef __m256i mask;
#endif

INLINE vector load(const element *from) { return OP(loadu)(from); }
INLINE void store(element *to, vector value) { OP(storeu)(to, value); }
INLINE void store_past_cache(element *to, vector value) { OP(stream)(to, value); }
INLINE vector zero(void) { return OP(setzero)(); }
INLINE vector all(element value) { return OP(set1)(value); }
INLINE vector add(vector a, vector b) { return OP(add)(a, b); }
INLINE vector subtract(vector a, vector b) { return OP(sub)(a, b); }
INLINE vector multiply(vector a, vector b) { return OP(mul)(a, b); }
INLINE vector divide(vector a, vector b) { return OP(div)(a, b); }
INLINE vector multiply_add(vector a, vector b, vector c) { return OP(fmadd)(a, b, c); }

// Blocked, compensated sums: `sum` becomes sum + part, `lost` accumulates the rounding errors. In the end
// `add_lost` returns their sum, or the sum alone where nothing was lost, so that a negative zero stays one, and
// where it is infinite, as its rounding error is NaN.
INLINE void join_block(vector *sum, vector *lost, vector part) {
  vector larger = add(*sum, part), added = subtract(larger, *sum);
  *lost = add(*lost, add(subtract(*sum, subtract(larger, added)), subtract(part, added)));
  *sum = larger;
}

// The second operand if either is NaN.
INLINE vector larger(vector a, vector b) { return OP(max)(a, b); }

#ifdef AVX512

// The first `count` lanes, 0 <= count <= LANES.
INLINE mask first_lanes(int64_t count) { return (mask)((1u << count) - 1); }
INLINE vector load_part(const element *from, mask lanes) { return OP(maskz_loadu)(lanes, from); }
INLINE void store_part(element *to, mask lanes, vector value) { OP(mask_storeu)(to, lanes, value); }
INLINE vector keep_part(mask lanes, vector value) { return OP(maskz_mov)(lanes, value); }
INLINE element total(vector value) { return OP(reduce_add)(value); }

// The mask of lanes with NaN in a or in b, in a form that can be combined.
typedef mask nan_lanes;
INLINE nan_lanes no_nan(void) { return 0; }
INLINE nan_lanes nan_in(vector a, vector b) { return COMPARE(a, b, _CMP_UNORD_Q); }
INLINE nan_lanes join(nan_lanes a, nan_lanes b) { return (nan_lanes)(a | b); }
INLINE vector add_lost(vector sum, vector lost) {
  return OP(mask_add)(sum, COMPARE(lost, zero(), _CMP_NEQ_OQ), sum, lost);
}
INLINE vector put_nan(vector value, nan_lanes where) { return OP(mask_mov)(value, where, all((element)NAN)); }

#else

INLINE mask first_lanes(int64_t count) {
  static const lane_mask sliding[2 * BYTES / sizeof(lane_mask)] = {
      -1, -1, -1, -1,
#ifndef FLOAT64
      -1, -1, -1, -1,
#endif
  };
  return _mm256_loadu_si256((const __m256i *)(sliding + LANES - count));
}
INLINE vector load_part(const element *from, mask lanes) { return OP(maskload)(from, lanes); }
INLINE void store_part(element *to, mask lanes, vector value) { OP(maskstore)(to, lanes, value); }
INLINE vector keep_part(mask lanes, vector value) { return OP(and)(value, (vector)lanes); }
INLINE element total(vector value) {
#ifdef FLOAT64
  __m128d half = _mm_add_pd(_mm256_castpd256_pd128(value), _mm256_extractf128_pd(value, 1));
  return _mm_cvtsd_f64(_mm_add_sd(half, _mm_unpackhi_pd(half, half)));
#else
  __m128 half = _mm_add_ps(_mm256_castps256_ps128(value), _mm256_extractf128_ps(value, 1));
  half = _mm_add_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
#endif
}

typedef vector nan_lanes;
INLINE nan_lanes no_nan(void) { return zero(); }
INLINE nan_lanes nan_in(vector a, vector b) { return OP(cmp)(a, b, _CMP_UNORD_Q); }
INLINE nan_lanes join(nan_lanes a, nan_lanes b) { return OP(or)(a, b); }
INLINE vector add_lost(vector sum, vector lost) {
  return OP(blendv)(sum, add(sum, lost), OP(cmp)(lost, zero(), _CMP_NEQ_OQ));
}
INLINE vector put_nan(vector value, nan_lanes where) { return OP(blendv)(value, all((element)NAN), where); }

#endif
