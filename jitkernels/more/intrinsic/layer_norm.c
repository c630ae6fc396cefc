// LAYER_NORM: per row the mean, the variance about it, and the result, in four accumulators each. An element
// is read for the last time right before its result is written, so y may be x.
//
// Long rows, rows whose mean is large against their deviation, and rows whose squares overflow or underflow take
// a careful path: blocked, compensated sums, a mean corrected by the mean deviation, and a scale by a power of
// two. The generated kernel does the same and documents the constants.

#define SUMMED 4096
// Elements per accumulator before it is combined with others.
#define ADDS 16
#define SPREAD 16
#ifdef FLOAT64
#define SMALLEST 0x1p-900
#define LARGEST 0x1p1000
#define NEAR 0x1p-450
#define UP 0x1p530
#define TINY 0x1p-1022
#else
#define SMALLEST 0x1p-90f
#define LARGEST 0x1p120f
#define NEAR 0x1p-45f
#define UP 0x1p84f
#define TINY 0x1p-126f
#endif

INLINE element row_sum(const element *x, int64_t n) {
  vector a = zero(), b = zero(), c = zero(), d = zero(), parts = zero();
  int64_t i = 0, whole = n - n % (4 * LANES);
  while (i < whole) {
    int64_t end = whole - i < ADDS * 4 * LANES ? whole : i + ADDS * 4 * LANES;
    parts = add(parts, add(add(a, b), add(c, d)));
    a = zero(), b = zero(), c = zero(), d = zero();
    for (; i < end; i += 4 * LANES) {
      a = add(a, load(x + i));
      b = add(b, load(x + i + LANES));
      c = add(c, load(x + i + 2 * LANES));
      d = add(d, load(x + i + 3 * LANES));
    }
  }
  for (; i + LANES <= n; i += LANES) a = add(a, load(x + i));
  if (i < n) b = add(b, load_part(x + i, first_lanes(n - i)));
  return total(add(parts, add(add(a, b), add(c, d))));
}

INLINE element row_squares(const element *x, int64_t n, element mean) {
  vector a = zero(), b = zero(), c = zero(), d = zero(), parts = zero(), middle = all(mean);
  int64_t i = 0, whole = n - n % (4 * LANES);
  while (i < whole) {
    int64_t end = whole - i < ADDS * 4 * LANES ? whole : i + ADDS * 4 * LANES;
    parts = add(parts, add(add(a, b), add(c, d)));
    a = zero(), b = zero(), c = zero(), d = zero();
    for (; i < end; i += 4 * LANES) {
      vector p = subtract(load(x + i), middle), q = subtract(load(x + i + LANES), middle);
      vector r = subtract(load(x + i + 2 * LANES), middle), s = subtract(load(x + i + 3 * LANES), middle);
      a = multiply_add(p, p, a);
      b = multiply_add(q, q, b);
      c = multiply_add(r, r, c);
      d = multiply_add(s, s, d);
    }
  }
  for (; i + LANES <= n; i += LANES) {
    vector p = subtract(load(x + i), middle);
    a = multiply_add(p, p, a);
  }
  if (i < n) {
    mask rest = first_lanes(n - i);
    vector p = keep_part(rest, subtract(load_part(x + i, rest), middle));
    b = multiply_add(p, p, b);
  }
  return total(add(parts, add(add(a, b), add(c, d))));
}

typedef struct {
  element total, lost;
} long_sum;

INLINE void join_part(long_sum *sum, element part) {
  element larger = sum->total + part, added = larger - sum->total;
  sum->lost += (sum->total - (larger - added)) + (part - added);
  sum->total = larger;
}

// The rounding error of an infinite sum is NaN and is ignored.
INLINE element settled(long_sum sum) { return sum.lost == sum.lost ? sum.total + sum.lost : sum.total; }

// Sums of the deviations x * unit - mean, and of their squares.
INLINE void distances(
    const element *x, int64_t n, element unit, element mean, long_sum *sum, long_sum *squares) {
  vector a = zero(), b = zero(), c = zero(), d = zero(), times = all(unit), middle = all(mean);
  int64_t i = 0;
  for (; i + 2 * LANES <= n; i += 2 * LANES) {
    vector p = subtract(multiply(load(x + i), times), middle);
    vector q = subtract(multiply(load(x + i + LANES), times), middle);
    a = add(a, p);
    b = add(b, q);
    c = multiply_add(p, p, c);
    d = multiply_add(q, q, d);
  }
  for (; i < n; i += LANES) {
    mask rest = first_lanes(n - i < LANES ? n - i : LANES);
    vector p = keep_part(rest, subtract(multiply(load_part(x + i, rest), times), middle));
    a = add(a, p);
    c = multiply_add(p, p, c);
  }
  join_part(sum, total(add(a, b)));
  join_part(squares, total(add(c, d)));
}

// The scale of a row, its scaled mean, and the factor of the deviations.
typedef struct {
  element unit, mean, factor;
} measures;

INLINE int is_easy(element mean, element squares, element count) {
  return squares - mean * mean * (count / SPREAD) >= SMALLEST && squares <= LARGEST;
}

static __attribute__((noinline)) measures with_care(const element *x, int64_t n, element eps) {
  element unit = 1, mean = 0, count = (element)n;
  for (int passes = 2;; passes--) {
    long_sum sum = {0, 0}, squared = {0, 0};
    const int64_t part = ADDS * 2 * LANES;
    for (int64_t i = 0; i < n; i += part)
      distances(x + i, n - i < part ? n - i : part, unit, mean, &sum, &squared);
    element off = settled(sum) / count;
    element squares = settled(squared) - off * settled(sum);
    mean += off;
    if (passes == 2) continue;  // the deviations were not from the mean
    if (unit == 1 && !(squares <= LARGEST)) {
      // A scaled eps must stay nonzero: for a constant row it is the whole denominator.
      eps = eps * (1 / UP) * (1 / UP) > TINY || eps == 0 ? eps * (1 / UP) * (1 / UP) : TINY;
      unit = 1 / UP, mean = 0, passes = 3;
    } else if (unit == 1 && squares < SMALLEST && mean < NEAR && -mean < NEAR && eps < NEAR * NEAR) {
      eps = eps * UP * UP;
      unit = UP, mean = 0, passes = 3;
    } else if (passes == 0 || is_easy(mean, squares, count))
      return (measures){unit, mean, 1 / SQUARE_ROOT(squares / count + eps)};
  }
}

INLINE measures measures_of(const element *x, int64_t n, element eps) {
  element count = (element)n;
  if (n <= SUMMED) {
    element mean = row_sum(x, n) / count;
    element squares = row_squares(x, n, mean);
    if (is_easy(mean, squares, count)) return (measures){1, mean, 1 / SQUARE_ROOT(squares / count + eps)};
  }
  return with_care(x, n, eps);
}

INLINE void normalise(
    const element *x, const element *scale, const element *bias, element *y, int64_t n, measures by) {
  vector unit = all(by.unit), middle = all(by.mean), times = all(by.factor);
  int64_t i = 0;
#define RESULT(read)                                                                       \
  vector value = multiply(subtract(multiply(read(x + i), unit), middle), times);           \
  if (scale) value = multiply_add(value, read(scale + i), read(bias + i));
  for (; i + LANES <= n; i += LANES) {
    RESULT(load)
    store(y + i, value);
  }
  if (i < n) {
    mask rest = first_lanes(n - i);
#define LOAD_REST(from) load_part(from, rest)
    RESULT(LOAD_REST)
    store_part(y + i, rest, value);
  }
}

INLINE int64_t every_row(
    const element *x, const element *scale, const element *bias, element *y, int64_t rows, int64_t n,
    element eps) {
  for (int64_t row = 0; row < rows; row++)
    normalise(x + row * n, scale, bias, y + row * n, n, measures_of(x + row * n, n, eps));
  return 0;
}

static int64_t layer_norm(
    const element *x, const element *scale, const element *bias, element *y, int64_t rows, int64_t n,
    const double *eps) {
  return every_row(x, scale, bias, y, rows, n, (element)*eps);
}

static int64_t layer_norm_plain(const element *x, element *y, int64_t rows, int64_t n, const double *eps) {
  return every_row(x, 0, 0, y, rows, n, (element)*eps);
}
